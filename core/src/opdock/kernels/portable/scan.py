"""Portable kernels of the scans."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from opdock import axes, dtypes
from opdock.dtypes import NUMBERS
from opdock.kernels.array_api import copy, full
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

_NARROW = (dtypes.float16, dtypes.bfloat16)


def _along(rank: int, axis: int, where: slice) -> tuple[slice, ...]:
    return tuple(where if i == axis else slice(None) for i in range(rank))


def _doubling(xp: Any, join: Callable[[Any, Any], Any]) -> Callable[[Any, int], Any]:
    """An inclusive scan in log2(n) steps: the standard only has running sums."""

    def total(x: Any, axis: int) -> Any:
        step, rank = 1, len(x.shape)
        while step < x.shape[axis]:
            head = x[_along(rank, axis, slice(0, step))]
            before = x[_along(rank, axis, slice(0, -step))]
            joined = join(before, x[_along(rank, axis, slice(step, None))])
            x, step = xp.concat([head, joined], axis=axis), 2 * step
        return x

    return total


def _bind(
    xp: Any, sig: NodeSig, total: Callable[[Any, int], Any], neutral: Any
) -> Callable[[Any, Any], Any]:
    exclusive, reverse = sig.attrs["exclusive"], sig.attrs["reverse"]
    dtype = sig.in_dtypes[0]
    narrow = dtype in _NARROW

    def run(x: Any, axis: Any) -> Any:
        # 16-bit floats are added up in 32 bits.
        wide = xp.astype(x, xp.float32) if narrow else x
        position, rank = axes.scanned(axis, len(x.shape)), len(x.shape)
        if reverse:
            wide = xp.flip(wide, axis=position)
        if exclusive and x.shape[position]:
            # Everything moves one place; nothing comes before the first.
            shape = tuple(1 if i == position else n for i, n in enumerate(x.shape))
            first = full(xp, shape, neutral, dtypes.float32 if narrow else dtype, wide)
            rest = wide[_along(rank, position, slice(0, -1))]
            wide = xp.concat([first, rest], axis=position)
        out = total(wide, position)
        if reverse:
            out = xp.flip(out, axis=position)
        return xp.astype(out, x.dtype) if narrow else copy(xp, out)

    return run


@portable("Cumsum", host_inputs=("axis",), T=NUMBERS)
def cumsum(xp: Any, sig: NodeSig) -> Callable[[Any, Any], Any]:
    """Running sums."""
    return _bind(xp, sig, lambda x, axis: xp.cumulative_sum(x, axis=axis, dtype=x.dtype), 0)


@portable("Cumprod", host_inputs=("axis",), T=NUMBERS)
def cumprod(xp: Any, sig: NodeSig) -> Callable[[Any, Any], Any]:
    """Running products."""
    # A compiler makes a window of each running product: all before it, for each place.
    if hasattr(xp, "cumulative_prod") and not hasattr(xp, "is_traced"):
        return _bind(xp, sig, lambda x, axis: xp.cumulative_prod(x, axis=axis, dtype=x.dtype), 1)
    return _bind(xp, sig, _doubling(xp, lambda a, b: a * b), 1)


@portable("CumulativeLogsumexp", host_inputs=("axis",))
def cumulative_logsumexp(xp: Any, sig: NodeSig) -> Callable[[Any, Any], Any]:
    """Running log(sum(exp)); nothing gives the type's lowest number."""
    inner = _bind(xp, sig, _doubling(xp, xp.logaddexp), -math.inf)
    dtype = sig.in_dtypes[0]

    def run(x: Any, axis: Any) -> Any:
        return xp.maximum(inner(x, axis), full(xp, (), float(dtype.min), dtype, x))

    return run
