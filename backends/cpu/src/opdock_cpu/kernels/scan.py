"""Scans on NumPy: ufuncs that accumulate; running logarithms of sums as a loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import exp, log1p
from typing import Any, Final

import numpy as np

from opdock.plugin import NUMBERS, KernelTable, NodeSig, axes, dtypes
from opdock_cpu.halves import converted, widened
from opdock_cpu.jit.looped import Array, Looped

__all__ = ["table"]

_TWICE: Final = math.log(2.0)
_BLOCK: Final = 256
_VECTOR: Final = 16
_WORK: Final = 30
"""Steps that an element of a running logarithm takes, about."""

table = KernelTable()

_HALVES = frozenset({dtypes.float16, dtypes.bfloat16})
_UFUNCS = {"Cumsum": np.add, "Cumprod": np.multiply, "CumulativeLogsumexp": np.logaddexp}


def _running(
    begin: int, end: int, out: Array, x: Array, last: Array,
    steps: int, inner: int, blocks: int, back: int, exclusive: int,
) -> None:  # fmt: skip
    """A turn is a block of places beside each other, along the dimension that is walked."""
    for t in range(begin, end):
        outer, first = t // blocks, t % blocks * _BLOCK
        for s in range(steps):
            row = (outer * steps + (steps - 1 - s if back == 1 else s)) * inner
            for c in range(first, min(first + _BLOCK, inner)):
                q = outer * inner + c
                a, b = last[q], x[row + c]
                # Infinities have no difference where they are equal.
                total = a + _TWICE if a == b else max(a, b) + log1p(exp(0.0 - abs(a - b)))
                out[row + c] = a if exclusive == 1 else total
                last[q] = total


_RUNNING: Final = Looped(_running)


def _running_sums(x: Array, axis: int, back: bool, exclusive: bool) -> Array | None:
    """The logarithms of running sums of what `x` is the logarithm of; None without code."""
    if not x.size:
        return None
    outer, steps = math.prod(x.shape[:axis]), x.shape[axis]
    inner = x.size // (outer * steps)
    turned = outer > 1 and inner < _VECTOR  # so that many places lie beside each other
    given = np.moveaxis(x, axis, 0) if turned else x
    if turned:
        outer, inner = 1, outer * inner
    out, last = np.empty(given.shape, x.dtype), np.full(outer * inner, -np.inf, x.dtype)
    blocks = -(-inner // _BLOCK)
    numbers = steps, inner, blocks, int(back), int(exclusive)
    if not _RUNNING(outer * blocks, _WORK * x.size, out, given, last, *numbers):
        return None
    return np.ascontiguousarray(np.moveaxis(out, 0, axis)) if turned else out


@table.binder("Cumsum", "Cumprod", T=NUMBERS, host_inputs=("axis",))
@table.binder("CumulativeLogsumexp", host_inputs=("axis",))
def _scan(sig: NodeSig) -> Callable[..., Array]:
    ufunc, dtype = _UFUNCS[sig.op], sig.in_dtypes[0]
    exclusive, reverse = sig.attrs["exclusive"], sig.attrs["reverse"]
    narrow = dtype in _HALVES
    wide: np.dtype[Any] = np.dtype(np.float32) if narrow else dtype.np
    neutral = {"Cumsum": 0, "Cumprod": 1}.get(sig.op, -np.inf)
    logarithms = sig.op == "CumulativeLogsumexp"
    lowest: Any = dtype.min if logarithms else None

    def run(x: Array, axis: Array) -> Array:
        position = axes.scanned(axis, x.ndim)
        if narrow:
            x = widened(x)
        sums = _running_sums(x, position, reverse, exclusive) if logarithms else None
        if sums is not None:
            np.maximum(sums, lowest, out=sums)
            return converted(sums, dtype.np) if narrow else sums
        result = np.empty(x.shape, wide)
        source, target = np.moveaxis(x, position, 0), np.moveaxis(result, position, 0)
        if reverse:
            source, target = source[::-1], target[::-1]
        if exclusive and len(source):
            target[0] = neutral
            ufunc.accumulate(source[:-1], 0, wide, target[1:])
        else:
            ufunc.accumulate(source, 0, wide, target)
        if logarithms:
            np.maximum(result, lowest, out=result)
        return converted(result, dtype.np) if narrow else result

    return run
