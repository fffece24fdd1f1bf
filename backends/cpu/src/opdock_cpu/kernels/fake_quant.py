"""Rounding to the numbers of a range, one pass; gradients of ranges by channel are portable."""

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
"""Elements whose gradients beyond a range are added up in single precision, or of a turn."""


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


def _nudged(
    begin: int, end: int, ends: Array, low: Array, high: Array, channels: int, least: float,
    most: float,
) -> None:  # fmt: skip
    """The same as `_ends` for each channel; a step of 0 for a range from 0 to 0."""
    first, last = single(least), single(most)
    for c in range(begin, end):
        step = (high[c] - low[c]) / (last - first)
        from_low = first - low[c] / step
        zero = lower(from_low)
        zero = zero + single(1) if from_low - zero >= single(0.5) else zero
        zero = first if from_low < first else zero
        zero = last if from_low > last else zero
        none = low[c] == 0 and high[c] == 0
        ends[c] = single(0) if none else (first - zero) * step
        ends[channels + c] = single(0) if none else (last - zero) * step
        ends[2 * channels + c] = single(0) if none else step


def _onto_each(
    begin: int, end: int, out: Array, x: Array, ends: Array, channels: int, blocks: int
) -> None:
    """The same as `_onto` for the range of each channel; a turn is a block of a row."""
    for t in range(begin, end):
        row, start = t // blocks * channels, t % blocks * _BLOCK
        for c in range(start, min(start + _BLOCK, channels)):
            low, high, step = ends[c], ends[channels + c], ends[2 * channels + c]
            inverse = single(1) / step
            zero = lower(-low * inverse + single(0.5))
            inside = max(min(x[row + c], high), low)
            value = lower((inside - low) * inverse - zero + single(0.5)) * step
            out[row + c] = single(0) if step == 0 else value


def _inside(begin: int, end: int, out: Array, grad: Array, x: Array, ends: Array) -> None:
    """The gradient inside of a range."""
    low, high = ends[0], ends[1]
    for i in range(begin, end):
        out[i] = grad[i] if x[i] >= low and x[i] <= high else 0


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
_NUDGED: Final = Looped(_nudged)
_ONTO_EACH: Final = Looped(_onto_each)
_INSIDE: Final = Looped(_inside)
_WITHIN: Final = Looped(_within)


@table.binder("FakeQuantWithMinMaxArgs", out=True)
def fake_quant_args(sig: NodeSig) -> Callable[..., Array]:
    """Rounds to the numbers of a range among the attributes."""
    plain: Callable[..., Array] = portable_kernel(sig)  # which says what is wrong with it
    ends = _ends(sig, *(np.asarray(sig.attrs[name], np.float32) for name in ("min", "max")))

    def run(x: Array, out: Array | None = None) -> Array:
        out = np.empty(x.shape, x.dtype) if out is None else out
        if ends is None or not _ONTO(x.size, 2 * x.size, out, x, ends):
            out[...] = plain(x)
        return out

    return run


@table.binder("FakeQuantWithMinMaxArgsGradient", out=True)
def fake_quant_args_gradient(sig: NodeSig) -> Callable[..., Array]:
    """The gradient inside of that range."""
    plain: Callable[..., Array] = portable_kernel(sig)
    ends = _ends(sig, *(np.asarray(sig.attrs[name], np.float32) for name in ("min", "max")))

    def run(grad: Array, x: Array, out: Array | None = None) -> Array:
        out = np.empty(x.shape, x.dtype) if out is None else out
        if (
            ends is None
            or grad.shape != x.shape
            or not _INSIDE(x.size, 2 * x.size, out, grad, x, ends)
        ):
            out[...] = plain(grad, x)
        return out

    return run


@table.binder("FakeQuantWithMinMaxVarsPerChannel", out=True)
def fake_quant_vars_per_channel(sig: NodeSig) -> Callable[..., Array]:
    """Rounds to the numbers of a range for each entry of the last dimension."""
    plain: Callable[..., Array] = portable_kernel(sig)
    bits, narrow = sig.attrs["num_bits"], bool(sig.attrs["narrow_range"])
    numbers = float(narrow), float((1 << max(bits, 0)) - 1)

    def run(x: Array, low: Array, high: Array, out: Array | None = None) -> Array:
        out = np.empty(x.shape, x.dtype) if out is None else out
        if x.size and low.shape == high.shape == x.shape[-1:]:
            channels = x.shape[-1]
            ends, blocks = np.empty((3, channels), np.float32), -(-channels // _BLOCK)
            turns = x.size // channels * blocks
            if _NUDGED(channels, 8 * x.size, ends, low, high, channels, *numbers) and _ONTO_EACH(
                turns, 4 * x.size, out, x, ends, channels, blocks
            ):
                return out
        out[...] = plain(x, low, high)
        return out

    return run


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
