"""Portable kernels of the reductions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from opdock import axes, dtypes
from opdock.dtypes import COMPLEX, FLOATS, NUMBERS, REALS
from opdock.kernels.array_api import copy, full
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

_HOST = ("reduction_indices",)
_NARROW = (dtypes.float16, dtypes.bfloat16)

Run = Callable[[Any, Any], Any]


def _bind(sig: NodeSig, reduce: Callable[[Any, tuple[int, ...], bool], Any]) -> Run:
    """Decodes the axes once where they are constant."""
    keep = bool(sig.attrs["keep_dims"])
    constant, shape = sig.const(1), sig.in_shapes[0]
    if constant is not None and shape is not None:
        known = axes.reduced(constant, len(shape))
        return lambda x, indices: reduce(x, known, keep)
    return lambda x, indices: reduce(x, axes.reduced(indices, len(x.shape)), keep)


def _count(x: Any, axes: tuple[int, ...]) -> int:
    return math.prod(int(x.shape[a]) for a in axes)


@portable("Sum", "Prod", host_inputs=_HOST, T=NUMBERS)
def sum_prod(xp: Any, sig: NodeSig) -> Run:
    """Totals; 16-bit floats are added up in 32 bits."""
    fold = xp.sum if sig.op == "Sum" else xp.prod
    narrow = sig.in_dtypes[0] in _NARROW

    def reduce(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
        if not axes:
            return copy(xp, x)
        if narrow:
            wide = fold(xp.astype(x, xp.float32), axis=axes, keepdims=keep)
            return xp.astype(wide, x.dtype)
        return fold(x, axis=axes, keepdims=keep, dtype=x.dtype)

    return _bind(sig, reduce)


@portable("Mean", host_inputs=_HOST, T=FLOATS | COMPLEX)
def mean(xp: Any, sig: NodeSig) -> Run:
    """The sum over the count; NaN of nothing."""
    narrow = sig.in_dtypes[0] in _NARROW

    def reduce(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
        if not axes:
            return copy(xp, x)
        count = _count(x, axes)
        wide = xp.astype(x, xp.float32) if narrow else x
        total = xp.sum(wide, axis=axes, keepdims=keep, dtype=wide.dtype)
        out = total / count if count else total * math.nan
        return xp.astype(out, x.dtype) if narrow else out

    return _bind(sig, reduce)


@portable("Max", "Min", host_inputs=_HOST, T=REALS)
def extreme(xp: Any, sig: NodeSig) -> Run:
    """The largest or smallest element; the type's other end of nothing."""
    fold, dtype = (xp.max, sig.in_dtypes[0]) if sig.op == "Max" else (xp.min, sig.in_dtypes[0])
    nothing: Any = -math.inf if sig.op == "Max" else math.inf
    if dtype.is_integer:
        nothing = dtype.min if sig.op == "Max" else dtype.max

    def reduce(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
        if not axes:
            return copy(xp, x)
        if not _count(x, axes):
            shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keep or i not in axes]
            return full(xp, tuple(shape), nothing, dtype, x)
        return fold(x, axis=axes, keepdims=keep)

    return _bind(sig, reduce)


@portable("EuclideanNorm", host_inputs=_HOST, T=FLOATS | COMPLEX)
def euclidean_norm(xp: Any, sig: NodeSig) -> Run:
    """The root of the sum of squared magnitudes; without axes, a copy."""
    narrow, is_complex = sig.in_dtypes[0] in _NARROW, sig.in_dtypes[0].is_complex

    def reduce(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
        if not axes:
            return copy(xp, x)
        size = xp.astype(x, xp.float32) if narrow else xp.abs(x) if is_complex else x
        return xp.astype(xp.sqrt(xp.sum(size * size, axis=axes, keepdims=keep)), x.dtype)

    return _bind(sig, reduce)


@portable("All", "Any", host_inputs=_HOST)
def logical(xp: Any, sig: NodeSig) -> Run:
    """Whether all, or some, elements are true."""
    fold = xp.all if sig.op == "All" else xp.any

    def reduce(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
        return fold(x, axis=axes, keepdims=keep) if axes else copy(xp, x)

    return _bind(sig, reduce)
