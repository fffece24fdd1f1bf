"""Reductions on NumPy: BLAS adds up, ufuncs do the rest.

A sum over rows or columns is a product with a vector of ones, which BLAS does several times faster
than `np.add.reduce` and with smaller rounding errors.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import COMPLEX, INTS, NUMBERS, REALS, KernelTable, NodeSig, axes, dtypes
from opdock_cpu.halves import astype, converted, widened

__all__ = ["table"]

Array = npt.NDArray[Any]
Axes = tuple[int, ...]
Reduce = Callable[[Array, Array | None], Array]
Plan = Callable[[tuple[int, ...], Axes, bool], Reduce]

table = KernelTable()

_HOST = ("reduction_indices",)
_BLAS = frozenset({dtypes.float32, dtypes.float64})
_HALVES = frozenset({dtypes.float16, dtypes.bfloat16})


# ---------------------------------------------------------------- axes and groups
def _result_shape(shape: Sequence[int], axes: Axes, keep: bool) -> tuple[int, ...]:
    if keep:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def _groups(shape: Sequence[int], axes: Axes) -> list[tuple[int, bool]]:
    """Neighbouring dimensions of one kind merged: (size, reduced), alternating."""
    groups: list[tuple[int, bool]] = []
    for i, n in enumerate(shape):
        if n == 1:
            continue
        reduced = i in axes
        if groups and groups[-1][1] == reduced:
            groups[-1] = (groups[-1][0] * n, reduced)
        else:
            groups.append((n, reduced))
    return groups


def _bind(sig: NodeSig, plan: Plan) -> Callable[..., Array]:
    """Plans once where shape and axes are known, else once for each shape that comes along."""
    keep = bool(sig.attrs["keep_dims"])
    constant, shape = sig.const(1), sig.in_shapes[0]
    if constant is not None and shape is not None and None not in shape:
        known = tuple(n for n in shape if n is not None)
        fixed = plan(known, axes.reduced(constant, len(known)), keep)

        def run_planned(x: Array, indices: Array, out: Array | None = None) -> Array:
            return fixed(x, out)

        return run_planned
    plans: dict[Any, Reduce] = {}

    def run(x: Array, indices: Array, out: Array | None = None) -> Array:
        key = (x.shape, constant is None and np.asarray(indices).tobytes())
        found = plans.get(key)
        if found is None:
            if len(plans) > 64:
                plans.clear()
            found = plans[key] = plan(x.shape, axes.reduced(indices, x.ndim), keep)
        return found(x, out)

    return run


# ---------------------------------------------------------------- sums
@functools.lru_cache(maxsize=64)
def _ones(n: int, dtype: Any) -> Array:
    ones = np.ones(n, dtype)
    ones.flags.writeable = False
    return ones


def _ufunc_plan(ufunc: np.ufunc, dtype: Any) -> Plan:
    def plan(shape: tuple[int, ...], axes: Axes, keep: bool) -> Reduce:
        if not axes:
            # As in TF: what reduces nothing changes nothing, not even the sign of a zero.
            return _copy
        reduce: Any = ufunc.reduce
        return lambda x, out: reduce(x, axes, dtype, out, keep)

    return plan


def _copy(x: Array, out: Array | None) -> Array:
    if out is None:
        return x.copy()
    np.copyto(out, x)
    return out


def _sum_plan(dtype: Any) -> Plan:
    """Sums through BLAS for the layouts where that is one call."""
    slow = _ufunc_plan(np.add, dtype)

    def plan(shape: tuple[int, ...], axes: Axes, keep: bool) -> Reduce:
        groups, result = _groups(shape, axes), _result_shape(shape, axes, keep)
        kinds = [reduced for _, reduced in groups]
        sizes = [n for n, _ in groups]
        if 0 in sizes or kinds not in ([True], [False, True], [True, False], [False, True, False]):
            return slow(shape, axes, keep)
        if kinds == [True]:
            return _sum_all(sizes[0], result, dtype)
        ones = _ones(sizes[kinds.index(True)], dtype)
        if kinds == [False, True]:
            return _product(lambda x, out: np.dot(x.reshape(sizes), ones, out), sizes[:1], result)
        if kinds == [True, False]:
            return _product(lambda x, out: np.dot(ones, x.reshape(sizes), out), sizes[1:], result)
        # A product per outer row: worth it only when the rows are not tiny.
        if sizes[1] * sizes[2] < 32:
            return slow(shape, axes, keep)
        inner = [sizes[0], sizes[2]]
        return _product(lambda x, out: np.matmul(ones, x.reshape(sizes), out), inner, result)

    return plan


def _product(fn: Reduce, flat: list[int], result: tuple[int, ...]) -> Reduce:
    """`fn`, whose result is flat, between buffers of the shape `result`."""
    if tuple(flat) == result:
        return fn

    def run(x: Array, out: Array | None) -> Array:
        if out is None:
            return fn(x, None).reshape(result)
        fn(x, out.reshape(flat))
        return out

    return run


# Up to this length a running float32 total loses nothing worth mentioning.
_RUN = 4096


def _sum_all(n: int, result: tuple[int, ...], dtype: Any) -> Reduce:
    rows = n // _RUN
    ones = _ones(min(n, _RUN), dtype)

    def run(x: Array, out: Array | None) -> Array:
        flat = x.reshape(-1)
        if not rows:
            total = np.dot(flat, ones)
        else:
            partial = np.dot(flat[: rows * _RUN].reshape(rows, _RUN), ones)
            total = np.add.reduce(partial) + np.add.reduce(flat[rows * _RUN :])
        if out is None:
            return np.asarray(total).reshape(result) if result else total
        out[...] = total
        return out

    return run


def _narrow(plan: Plan, dtype: Any) -> Plan:
    """A plan for float32 applied to a 16-bit type."""

    def narrow(shape: tuple[int, ...], axes: Axes, keep: bool) -> Reduce:
        wide = plan(shape, axes, keep)
        return lambda x, out: converted(np.asarray(wide(widened(x), None)), dtype)

    return narrow


@table.binder("Sum", T=_BLAS, out=True, host_inputs=_HOST)
def _sum_blas(sig: NodeSig) -> Callable[..., Array]:
    return _bind(sig, _sum_plan(sig.in_dtypes[0].np))


@table.binder("Sum", T=INTS | COMPLEX, out=True, host_inputs=_HOST)
def _sum(sig: NodeSig) -> Callable[..., Array]:
    return _bind(sig, _ufunc_plan(np.add, sig.in_dtypes[0].np))


@table.binder("Sum", T=_HALVES, host_inputs=_HOST)
def _sum_half(sig: NodeSig) -> Callable[..., Array]:
    return _bind(sig, _narrow(_sum_plan(np.dtype(np.float32)), sig.in_dtypes[0].np))


@table.binder("Prod", T=NUMBERS - _HALVES, out=True, host_inputs=_HOST)
def _prod(sig: NodeSig) -> Callable[..., Array]:
    return _bind(sig, _ufunc_plan(np.multiply, sig.in_dtypes[0].np))


@table.binder("Prod", T=_HALVES, host_inputs=_HOST)
def _prod_half(sig: NodeSig) -> Callable[..., Array]:
    wide = _ufunc_plan(np.multiply, np.dtype(np.float32))
    return _bind(sig, _narrow(wide, sig.in_dtypes[0].np))


# ---------------------------------------------------------------- means
def _mean_plan(total: Plan) -> Plan:
    def plan(shape: tuple[int, ...], axes: Axes, keep: bool) -> Reduce:
        fold, count = total(shape, axes, keep), math.prod(shape[a] for a in axes)
        if not axes:
            return fold
        if not count:
            return lambda x, out: np.multiply(fold(x, out), np.nan, out)

        def run(x: Array, out: Array | None) -> Array:
            total = fold(x, out)
            place = total if isinstance(total, np.ndarray) else None
            return np.divide(total, count, place, dtype=x.dtype)

        return run

    return plan


@table.binder("Mean", T=_BLAS, out=True, host_inputs=_HOST)
def _mean_blas(sig: NodeSig) -> Callable[..., Array]:
    return _bind(sig, _mean_plan(_sum_plan(sig.in_dtypes[0].np)))


@table.binder("Mean", T=COMPLEX, out=True, host_inputs=_HOST)
def _mean_complex(sig: NodeSig) -> Callable[..., Array]:
    return _bind(sig, _mean_plan(_ufunc_plan(np.add, sig.in_dtypes[0].np)))


@table.binder("Mean", T=_HALVES, host_inputs=_HOST)
def _mean_half(sig: NodeSig) -> Callable[..., Array]:
    # NumPy scalars of 32 bits divide as such, so nothing is rounded before the end.
    total = _narrow(_sum_plan(np.dtype(np.float32)), np.dtype(np.float32))
    dtype = sig.in_dtypes[0].np

    def plan(shape: tuple[int, ...], axes: Axes, keep: bool) -> Reduce:
        fold, count = total(shape, axes, keep), math.prod(shape[a] for a in axes)
        factor = np.float32(count) if count else np.float32(np.nan)
        return lambda x, out: converted(np.divide(fold(x, None), factor), dtype)

    return _bind(sig, plan)


@table.binder("Mean", T=INTS, host_inputs=_HOST)
def _mean_int(sig: NodeSig) -> Callable[..., Array]:
    """Narrow integers are added up in 64 bits, wide ones wrap around; the division is that of C."""
    dtype = sig.in_dtypes[0].np
    wide = np.dtype(f"{dtype.kind}8") if dtype.itemsize < 4 else dtype

    def plan(shape: tuple[int, ...], axes: Axes, keep: bool) -> Reduce:
        count = math.prod(shape[a] for a in axes)

        def run(x: Array, out: Array | None) -> Array:
            total = np.asarray(x.sum(axes, wide, keepdims=keep))
            if not count:
                return np.zeros(total.shape, dtype)
            divisor = wide.type(count)
            return np.asarray((total - np.fmod(total, divisor)) // divisor).astype(dtype)

        return run

    return _bind(sig, plan)


# ---------------------------------------------------------------- extremes
def _extreme_plan(ufunc: np.ufunc, nothing: Any, dtype: Any) -> Plan:
    reduce: Any = ufunc.reduce

    def plan(shape: tuple[int, ...], axes: Axes, keep: bool) -> Reduce:
        groups, result = _groups(shape, axes), _result_shape(shape, axes, keep)
        kinds, sizes = [reduced for _, reduced in groups], [n for n, _ in groups]
        if 0 in shape:
            # `initial` is what the ufunc gives for nothing.
            return lambda x, out: reduce(x, axes, None, out, keep, nothing)
        if kinds == [False, True] and sizes[1] <= 64 and sizes[0] >= 64:
            return _by_columns(ufunc, sizes, result)
        if kinds in ([True, False], [False, True, False]) and sizes[-1] < 256:
            fold = _fold_factor(sizes[-2], sizes[-1])
            if fold > 1:
                return _folded(ufunc, sizes, fold, result)
        return lambda x, out: reduce(x, axes, None, out, keep)

    return plan


def _by_columns(ufunc: np.ufunc, sizes: list[int], result: tuple[int, ...]) -> Reduce:
    """Short rows: NumPy pays per row, so the columns are compared as wholes."""
    rows, columns = sizes

    def run(x: Array, out: Array | None) -> Array:
        table_ = x.reshape(rows, columns)
        best = np.empty(rows, x.dtype) if out is None else out.reshape(rows)
        ufunc(table_[:, 0], table_[:, 1], out=best)
        for i in range(2, columns):
            ufunc(best, table_[:, i], out=best)
        return best.reshape(result) if out is None else out

    return run


def _fold_factor(reduced: int, kept: int) -> int:
    """How many rows to treat as one, so that the inner loop is long."""
    factor = 1
    while kept * factor < 512 and reduced % (2 * factor) == 0 and reduced // factor > 4:
        factor *= 2
    return factor


def _folded(ufunc: np.ufunc, sizes: list[int], fold: int, result: tuple[int, ...]) -> Reduce:
    outer = math.prod(sizes[:-2])
    reduced, kept = sizes[-2:]
    long = (outer, reduced // fold, fold * kept)
    short = (outer, fold, kept)

    def run(x: Array, out: Array | None) -> Array:
        partial = ufunc.reduce(x.reshape(long), 1).reshape(short)
        flat = None if out is None else out.reshape(outer, kept)
        best: Array = ufunc.reduce(partial, 1, None, flat)
        return best.reshape(result) if out is None else out

    return run


@table.binder("Max", "Min", T=REALS, out=True, host_inputs=_HOST)
def _extreme(sig: NodeSig) -> Callable[..., Array]:
    dtype, largest = sig.in_dtypes[0], sig.op == "Max"
    if dtype.is_integer:
        nothing: Any = dtype.min if largest else dtype.max
    else:
        nothing = -math.inf if largest else math.inf
    return _bind(sig, _extreme_plan(np.maximum if largest else np.minimum, nothing, dtype.np))


# ---------------------------------------------------------------- norms, truth
@table.binder("EuclideanNorm", T=NUMBERS, host_inputs=_HOST)
def _euclidean_norm(sig: NodeSig) -> Callable[..., Array]:
    dtype = sig.in_dtypes[0]
    exact = dtype.is_integer or dtype is dtypes.float64 or dtype is dtypes.complex128
    wide = np.dtype(np.float64 if exact else np.float32)
    total = _sum_plan(wide)

    def plan(shape: tuple[int, ...], axes: Axes, keep: bool) -> Reduce:
        if not axes:
            return _copy  # as in TF: not even the sign changes
        fold = total(shape, axes, keep)

        def run(x: Array, out: Array | None) -> Array:
            size = np.abs(x) if dtype.is_complex else astype(x, wide, copy=False)
            norm: Array = np.sqrt(np.asarray(fold(np.square(size), None)))
            return converted(norm, dtype.np)

        return run

    return _bind(sig, plan)


@table.binder("All", "Any", out=True, host_inputs=_HOST)
def _logical(sig: NodeSig) -> Callable[..., Array]:
    ufunc = np.logical_and if sig.op == "All" else np.logical_or
    return _bind(sig, _ufunc_plan(ufunc, None))
