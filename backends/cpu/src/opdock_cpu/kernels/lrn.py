"""Local response normalization as a loop over pixels, whose neighbours are those of a short row."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, sqrt
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks, dtypes
from opdock_cpu.jit import llvm
from opdock_cpu.jit.looped import Array, Looped, single
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()


def _falling(norm: Any, quarters: int, beta: float) -> Any:
    """The power of -beta: of a number of quarters up to four from roots, which cost less."""
    if quarters == 4:
        power = single(1) / norm
    elif quarters == 3:
        power = single(1) / (sqrt(norm) * sqrt(sqrt(norm)))
    elif quarters == 2:
        power = single(1) / sqrt(norm)
    elif quarters == 1:
        power = single(1) / sqrt(sqrt(norm))
    else:
        power = exp(-single(beta) * log(norm))
    return power


def _lrn(
    begin: int, end: int, out: Array, x: Array, depth: int, radius: int, quarters: int,
    bias: float, alpha: float, beta: float,
) -> None:  # fmt: skip
    for p in range(begin, end):
        r = p * depth
        for c in range(depth):
            out[r + c] = single(0)
        for o in range(-radius, radius + 1):
            for c in range(max(0, -o), min(depth, depth - o)):
                out[r + c] = out[r + c] + x[r + c + o] * x[r + c + o]
        for c in range(depth):
            norm = single(bias) + single(alpha) * out[r + c]
            out[r + c] = x[r + c] * _falling(norm, quarters, beta)


def _lrn_grad(
    begin: int, end: int, out: Array, norm: Array, share: Array, grad: Array, x: Array, y: Array,
    depth: int, radius: int, quarters: int, bias: float, alpha: float, beta: float,
) -> None:  # fmt: skip
    for p in range(begin, end):
        r = p * depth
        for c in range(depth):
            norm[r + c] = single(0)
            out[r + c] = single(0)
        for o in range(-radius, radius + 1):
            for c in range(max(0, -o), min(depth, depth - o)):
                norm[r + c] = norm[r + c] + x[r + c + o] * x[r + c + o]
        for c in range(depth):
            norm[r + c] = single(bias) + single(alpha) * norm[r + c]
            share[r + c] = grad[r + c] * y[r + c] / norm[r + c]
        for o in range(-radius, radius + 1):
            for c in range(max(0, -o), min(depth, depth - o)):
                out[r + c] = out[r + c] + share[r + c + o]
        for c in range(depth):
            own = grad[r + c] * _falling(norm[r + c], quarters, beta)
            out[r + c] = own - single(2 * alpha * beta) * x[r + c] * out[r + c]


_LRN: Final = Looped(_lrn, fixed=["quarters"])
_LRN_GRAD: Final = Looped(_lrn_grad, fixed=["quarters"])


def _when(sig: NodeSig) -> bool | str:
    if not llvm.available():
        return llvm.why_not()
    # The logarithm of what is not positive is none, whatever the power of it is.
    attrs = sig.attrs
    return (attrs["bias"] > 0 and attrs["alpha"] >= 0) or "sums may not be positive"


def _numbers(attrs: Any, x: Array) -> tuple[int, float, tuple[Any, ...]]:
    """How many pixels there are, what they cost, and what the loops take of the node."""
    depth = x.shape[-1]
    radius = min(int(attrs["depth_radius"]), max(0, depth - 1))
    beta = attrs["beta"]
    quarters = int(4 * beta) if 4 * beta in (1, 2, 3, 4) else 0
    numbers = (depth, radius, quarters, attrs["bias"], attrs["alpha"], beta)
    return x.size // depth, x.size * (2 * radius + 8) / 4, numbers


@table.binder("LRN", T={dtypes.float32}, out=True, priority=2, when=_when)
def lrn(sig: NodeSig) -> Callable[..., Array]:
    """Divides by a power of the neighbours' energy."""
    plain = portable_kernel(sig)

    def run(x: Array, out: Array | None = None) -> Array:
        out = np.empty(x.shape, x.dtype) if out is None else out
        if x.size:
            turns, steps, numbers = _numbers(sig.attrs, x)
            if not _LRN(turns, steps, out, x, *numbers):
                out[...] = plain(x)
        return out

    return run


@table.binder("LRNGrad", T={dtypes.float32}, out=True, priority=2, when=_when)
def lrn_grad(sig: NodeSig) -> Callable[..., Array]:
    """The gradient of `lrn` with respect to its input."""
    plain = portable_kernel(sig)

    def run(grad: Array, x: Array, y: Array, out: Array | None = None) -> Array:
        if not grad.shape == x.shape == y.shape:
            raise checks.invalid(
                "input_grads, input_image and output_image must have the same shape; got "
                f"{[list(a.shape) for a in (grad, x, y)]}"
            )
        out = np.empty(x.shape, x.dtype) if out is None else out
        if x.size:
            turns, steps, numbers = _numbers(sig.attrs, x)
            arrays = (out, np.empty_like(x), np.empty_like(x), grad, x, y)
            if not _LRN_GRAD(turns, steps, *arrays, *numbers):
                out[...] = plain(grad, x, y)
        return out

    return run
