"""What is different in vectors and among slices of arrays, and differences of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import NUMBERS, REALS, KernelTable, NodeSig, checks, dtypes
from opdock_cpu import halves
from opdock_cpu.jit.looped import Array, Looped
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()

_FEW: Final = 1 << 10
"""Elements that a dictionary numbers sooner than NumPy sorts them."""


def _cell(v: int, last: int) -> int:
    """Where a value should stand among `last` + 1 cells, a power of two.

    Fibonacci hashing: the product's upper half depends on all bits of the value.
    """
    return (v * -7046029254386353131 // 4294967296) & last


def _number(
    begin: int, end: int, values: Array, index: Array, counts: Array, found: Array, cells: Array,
    x: Array, length: int, last: int,
) -> None:  # fmt: skip
    """Numbers by first occurrence, from a hash table of `last` + 1 cells, a power of two.

    A cell has the number of a value, or -1; who finds another value there looks at the next one.
    """
    for r in range(begin, end):
        have = r
        for i in range(length):
            v = int(x[i])
            at = _cell(v, last)
            while cells[at] >= 0 and values[cells[at]] != v:
                at = (at + 1) & last
            if cells[at] < 0:
                cells[at] = have
                values[have] = v
                counts[have] = 0
                have += 1
            index[i] = cells[at]
            counts[cells[at]] += 1
        found[r] = have


_NUMBER: Final = Looped(_number)


def _by_hash(x: Array, dtype: np.dtype[Any]) -> tuple[Array, Array, Array] | None:
    """The different whole numbers, the index of each and how often they are; None without code."""
    values, found = np.empty_like(x), np.empty(1, np.int64)
    index, counts = np.empty(x.size, dtype), np.empty(x.size, dtype)
    cells = np.full(1 << (2 * x.size).bit_length(), -1, np.int64)
    arrays = (values, index, counts, found, cells, x)
    if not _NUMBER(1, 2 * x.size, *arrays, x.size, cells.size - 1):
        return None
    have = int(found[0])
    return values[:have].copy(), index, counts[:have].copy()


def _by_dictionary(x: Array, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    numbers: dict[Any, int] = {}
    # Not-a-numbers are objects of their own here, and so different from each other, as in TF.
    index = np.array([numbers.setdefault(v, len(numbers)) for v in x.tolist()], dtype)
    counts = np.bincount(index, minlength=len(numbers)).astype(dtype)
    return np.array(list(numbers), x.dtype), index, counts


@table.binder("Unique", "UniqueWithCounts", T=NUMBERS | {dtypes.bool_, dtypes.string})
def unique(sig: NodeSig) -> Callable[..., Any]:
    """The different values of a vector, in the order in which they come first."""
    count, dtype = len(sig.out_dtypes), sig.out_dtypes[1].np
    whole, sort = sig.in_dtypes[0].is_integer, portable_kernel(sig)

    def run(x: Any) -> Any:
        checks.check_vector("unique", x)
        if x.size <= _FEW or x.dtype.hasobject:
            return _by_dictionary(x, dtype)[:count]
        found = _by_hash(x, dtype) if whole else None
        if found is not None:
            return found[:count]
        values, *rest = sort(halves.widened(x))
        return (halves.narrowed(values, x.dtype), *rest)

    return run


def _collect(begin: int, end: int, cells: Array, y: Array, length: int, last: int) -> None:
    """Puts each different number into a table like that of `_number`."""
    for _ in range(begin, end):
        for i in range(length):
            v = int(y[i])
            at = _cell(v, last)
            while cells[at] >= 0 and y[cells[at]] != v:
                at = (at + 1) & last
            if cells[at] < 0:
                cells[at] = i


def _look_up(
    begin: int, end: int, missing: Array, cells: Array, y: Array, x: Array, last: int
) -> None:
    """Which numbers are not in the table."""
    for i in range(begin, end):
        v = int(x[i])
        at = _cell(v, last)
        while cells[at] >= 0 and y[cells[at]] != v:
            at = (at + 1) & last
        missing[i] = cells[at] < 0


_COLLECT: Final = Looped(_collect)
_LOOK_UP: Final = Looped(_look_up)


def _missing(x: Array, y: Array) -> Array:
    """Which elements of `x` are not in `y`."""
    left, right = _as_whole(x), _as_whole(y)
    if x.size > _FEW and left is not None and right is not None:
        cells = np.full(1 << (2 * y.size).bit_length(), -1, np.int64)
        found, last = np.empty(x.size, np.bool_), cells.size - 1
        if _COLLECT(1, 2 * y.size, cells, right, y.size, last):
            if _LOOK_UP(x.size, 4 * x.size, found, cells, right, left, last):
                # What is no number equals nothing, itself included.
                return found | np.isnan(x) if x.dtype.kind == "f" else found
    return np.isin(x, y, invert=True)


def _as_whole(x: Array) -> Array | None:
    """Whole numbers that are equal where elements are; None for types that have none."""
    if x.dtype.kind == "f":
        # Zeros of both signs are equal: adding one leaves a single one of them.
        bits: Array = (x + x.dtype.type(0)).view(f"i{x.itemsize}")
        return bits
    whole = x.dtype.kind == "i" or (x.dtype.kind == "u" and x.itemsize < 8)
    return x if whole else None


@table.binder("ListDiff")
def list_diff(sig: NodeSig) -> Callable[..., Any]:
    """The elements of `x` that are not in `y`, and where they are."""
    index_type = sig.out_dtypes[1].np

    def run(x: Any, y: Any) -> Any:
        checks.check_lists(x, y)
        if x.dtype.hasobject:
            other = set(y.tolist())
            kept = np.array([i for i, v in enumerate(x.tolist()) if v not in other], index_type)
        else:
            absent = _missing(halves.widened(x), halves.widened(y))
            kept = np.flatnonzero(absent).astype(index_type)
        return x[kept], kept

    return run


@table.binder("UniqueV2", "UniqueWithCountsV2", T=REALS, host_inputs=("axis",))
def unique_v2(sig: NodeSig) -> Callable[..., Any]:
    """The different slices along a dimension, found by their bytes."""
    plain: Callable[..., Any] = portable_kernel(sig)
    n, dtype = len(sig.out_dtypes), sig.out_dtypes[1].np

    def run(x: Any, axis: Any) -> Any:
        given, wide = checks.ints(axis), halves.widened(x)
        along = x.ndim > 1 and len(given) == 1 and -x.ndim <= given[0] < x.ndim
        # What is no number equals nothing, itself included, whatever its bytes are.
        if not along or np.isnan(wide).any():
            return plain(x, axis)
        first, index = _first_of_each(np.moveaxis(wide, given[0], 0))
        count = np.bincount(index, minlength=len(first)).astype(dtype)
        return (np.take(x, first, axis=given[0]), index.astype(dtype), count)[:n]

    return run


def _first_of_each(slices: Any) -> tuple[list[int], Any]:
    """Where each different slice stands first, and which of them each slice is."""
    # Zeros of both signs are equal: adding one leaves a single one of them.
    same = slices + slices.dtype.type(0)
    step = same.nbytes // max(len(same), 1)
    data, found = same.tobytes(), dict[bytes, int]()
    index = np.empty(len(same), np.int64)
    first: list[int] = []
    for i in range(len(same)):
        index[i] = place = found.setdefault(data[i * step : (i + 1) * step], len(found))
        if place == len(first):
            first.append(i)
    return first, index
