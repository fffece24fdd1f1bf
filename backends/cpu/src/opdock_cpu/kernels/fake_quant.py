"""Rounding to the numbers of a range, one pass; ranges by channel are portable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig
from opdock_cpu.jit.looped import Array, Looped, lower, single
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()
_BLOCK: Final = 4096
"""Elements whose gradients beyond a range are added up in single precision."""


def _ends(sig: NodeSig, low: Array, high: Array) -> Array | None:
    """The range moved so that an integer stands for 0, by the same steps as elsewhere.

    None if it is from 0 to 0, or no range, about which the portable kernel knows more.
    """
    bits = sig.attrs["num_bits"]
    if not 2 <= bits <= 16 or np.shape(low) or np.shape(high) or (low == 0 and high == 0):
        return None
    least, most = np.float32(bool(sig.attrs["narrow_range"])), np.float32((1 << bits) - 1)
    with np.errstate(all="ignore"):
        step = (np.float32(high) - np.float32(low)) / (most - least)
        from_low = least - np.float32(low) / step
        zero = np.floor(from_low)
        zero += np.float32(from_low - zero >= 0.5)
        zero = least if from_low < least else most if from_low > most else zero
        return np.array([(least - zero) * step, (most - zero) * step, step], np.float32)


def _onto(begin: int, end: int, out: Array, x: Array, ends: Array) -> None:
    """The nearest of the numbers between two ends, a step apart, of which one is 0."""
    low, high, step = ends[0], ends[1], ends[2]
    inverse = single(1) / step
    zero = lower(-low * inverse + 0.5)
    for i in range(begin, end):
        inside = max(min(x[i], high), low)
        out[i] = lower((inside - low) * inverse - zero + 0.5) * step


def _within(
    begin: int, end: int, out: Array, below: Array, above: Array, grad: Array, x: Array,
    ends: Array, size: int,
) -> None:  # fmt: skip
    """The gradient inside of a range; a turn is a block, with its sums below and above."""
    low, high = ends[0], ends[1]
    for b in range(begin, end):
        under, over = single(0), single(0)
        for i in range(b * _BLOCK, min((b + 1) * _BLOCK, size)):
            out[i] = grad[i] if x[i] >= low and x[i] <= high else 0
            under += grad[i] if x[i] < low else 0
            over += grad[i] if x[i] > high else 0
        below[b] = under
        above[b] = over


_ONTO: Final = Looped(_onto)
_WITHIN: Final = Looped(_within)


@table.binder("FakeQuantWithMinMaxVars", out=True)
def fake_quant_vars(sig: NodeSig) -> Callable[..., Array]:
    """Rounds to the numbers of a range that is an input."""
    plain: Callable[..., Array] = portable_kernel(sig)

    def run(x: Array, low: Array, high: Array, out: Array | None = None) -> Array:
        out = np.empty(x.shape, x.dtype) if out is None else out
        ends = _ends(sig, low, high)
        if ends is None or not _ONTO(x.size, 2 * x.size, out, x, ends):
            out[...] = plain(x, low, high)
        return out

    return run


@table.binder("FakeQuantWithMinMaxVarsGradient")
def fake_quant_vars_gradient(sig: NodeSig) -> Callable[..., Any]:
    """The gradient inside of the range, and its sums below and above."""
    plain: Callable[..., Any] = portable_kernel(sig)

    def run(grad: Array, x: Array, low: Array, high: Array) -> Any:
        ends = _ends(sig, low, high)
        if ends is not None and grad.shape == x.shape:
            blocks = -(-x.size // _BLOCK)
            out, below, above = np.empty_like(x), *np.empty((2, blocks), np.float32)
            if _WITHIN(blocks, 4 * x.size, out, below, above, grad, x, ends, x.size):
                return out, below.sum(dtype=np.float32), above.sum(dtype=np.float32)
        return plain(grad, x, low, high)

    return run
