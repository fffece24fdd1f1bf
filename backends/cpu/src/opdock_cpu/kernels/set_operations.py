"""Rows as sets: sorted rows are merged by a generated loop.

Where there is none, values and rows become numbers, so that a set operation is one on vectors. A
number stands for a pair of row and value and grows with both, so sorted numbers are sorted rows of
sorted values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_cpu.jit.looped import Looped

__all__ = ["table"]

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Rows = tuple[Array | None, Array, Shape]
"""The number of each value's row, the values, and the shape of all.

Without the first, rows are equally long, one behind the other.
"""

table = KernelTable()

_OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "a-b": lambda a, b: np.setdiff1d(a, b, assume_unique=True),
    "b-a": lambda a, b: np.setdiff1d(b, a, assume_unique=True),
    "intersection": lambda a, b: np.intersect1d(a, b, assume_unique=True),
    "union": np.union1d,
}


def _dense(values: Array) -> Rows:
    return None, values.reshape(-1), values.shape


def _rows_of(given: Rows) -> Array:
    """The number of each value's row."""
    rows, _, shape = given
    if rows is None:
        rows = np.repeat(np.arange(math.prod(shape[:-1])), shape[-1:] or 1)
    return rows


def _sparse(indices: Array, values: Array, dense_shape: Array) -> Rows:
    shape = tuple(int(n) for n in dense_shape)
    if len(shape) < 2:
        raise checks.invalid(f"Invalid rank {len(shape)}.")
    if indices.shape != (len(values), len(shape)):
        raise checks.invalid(
            f"indices of shape {list(indices.shape)} do not fit {len(values)} values of rank "
            f"{len(shape)}"
        )
    _check_order(indices, shape)
    rows = np.zeros(len(values), np.int64)
    for column, size in zip(indices.T[:-1], shape[:-1], strict=True):
        rows = rows * size + column
    return rows, values, shape


def _check_order(indices: Array, shape: Shape) -> None:
    """Raises InvalidArgumentError unless the indices are inside, ascending and different."""

    def wrong(at: int, why: str) -> Exception:
        return checks.invalid(f"indices[{at}] = [{','.join(map(str, indices[at]))}] {why}")

    outside = ((indices < 0) | (indices >= np.array(shape))).any(axis=1)
    if outside.any():
        sizes = ",".join(map(str, shape))
        raise wrong(int(outside.argmax()), f"is out of bounds: need 0 <= index < [{sizes}]")
    steps = np.diff(indices, axis=0)
    first = (steps != 0).argmax(axis=1)
    lead = np.take_along_axis(steps, first[:, None], 1)[:, 0]
    bad = lead <= 0
    if bad.any():
        at = int(bad.argmax())
        if lead[at] == 0:
            raise wrong(at + 1, "is repeated")
        raise wrong(
            at + 1,
            "is out of order. Many sparse ops require sorted indices.\n"
            "    Use `tf.sparse.reorder` to create a correctly ordered copy.\n\n",
        )


def _numbered(*sets: Rows) -> tuple[list[Array], Array]:
    """The numbers of each set, ascending and different, and the values in ascending order."""
    everything = np.concatenate([values for _, values, _ in sets])
    ordered, codes = np.unique(everything, return_inverse=True)
    found, start = [], 0
    for one in sets:
        rows, values = _rows_of(one), one[1]
        code = codes.reshape(-1)[start : start + len(values)]
        start += len(values)
        found.append(np.unique(rows.astype(np.int64) * max(len(ordered), 1) + code))
    return found, ordered


def _outer(first: Shape, second: Shape) -> Shape:
    for shape in (first, second):
        if len(shape) < 2:
            raise checks.invalid(f"Shape [{','.join(map(str, shape))}] has rank {len(shape)} < 2")
    if first[:-1] != second[:-1]:
        texts = ["[" + ",".join(map(str, s[:-1])) + "]" for s in (first, second)]
        raise checks.invalid(f"Mismatched shapes {texts[0]} vs {texts[1]}")
    return first[:-1]


def _places(numbers: Array, kinds: int, outer: Shape) -> tuple[Array, Array]:
    """Indices of ascending numbers in the result, and how many values each row has."""
    rows = numbers // max(kinds, 1)
    counts = np.bincount(rows, minlength=math.prod(outer))
    column = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
    return np.stack([*np.unravel_index(rows, outer), column], axis=1), counts


_KEPT: Final = {"a-b": (1, 0, 0), "b-a": (0, 1, 0), "intersection": (0, 0, 1), "union": (1, 1, 1)}
"""Whether what only the first has is kept, what only the second has, and what both have."""


def _merge(
    begin: int, end: int, out: Array, counts: Array, a: Array, b: Array, first: Array,
    second: Array, of_first: int, of_second: int, of_both: int,
) -> None:  # fmt: skip
    """A turn is a row: both are sorted, and there is room for all of them."""
    for r in range(begin, end):
        i, j = first[r], second[r]
        at = i + j
        while i < first[r + 1] or j < second[r + 1]:
            if i < first[r + 1]:
                value = a[i]
                if j < second[r + 1]:
                    value = min(value, b[j])
            else:
                value = b[j]
            kept, before = 0, i
            while i < first[r + 1] and a[i] == value:
                i += 1
                kept = of_first
            if j < second[r + 1] and b[j] == value:
                kept = of_both if i > before else of_second
                while j < second[r + 1] and b[j] == value:
                    j += 1
            if kept == 1:
                out[at] = value
                at += 1
        counts[r] = at - first[r] - second[r]


_MERGE: Final = Looped(_merge)


def _sorted(given: Rows) -> tuple[Array, Array]:
    """The values of each row in order, one row behind the other, and where each begins."""
    _, values, shape = given
    count = math.prod(shape[:-1])
    if len(values) == math.prod(shape) and values.size:
        each = values.reshape(count, shape[-1])
        # Sets are sorted often, and to look takes a tenth of sorting them.
        if any((some[:, 1:] < some[:, :-1]).any() for some in (each[:1], each)):
            each = np.sort(each, axis=1)
        return each.reshape(-1), np.arange(count + 1) * shape[-1]
    rows = _rows_of(given)
    return values[np.lexsort((values, rows))], np.searchsorted(rows, np.arange(count + 1))


def _merged(first: Rows, second: Rows, name: str) -> tuple[Array, Array, Array] | None:
    """Rows, columns and values of what a set operation keeps; None without a loop for it."""
    if first[1].dtype.kind not in "iu" or first[1].dtype != second[1].dtype:
        return None
    (a, of_a), (b, of_b) = _sorted(first), _sorted(second)
    count = len(of_a) - 1
    room, counts = np.empty(len(a) + len(b), a.dtype), np.empty(count, np.int64)
    if not _MERGE(count, 4 * room.size, room, counts, a, b, of_a, of_b, *_KEPT[name]):
        return None
    rows = np.repeat(np.arange(count), counts)
    column = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
    return rows, column, room[(of_a + of_b)[rows] + column]


def _operation(sig: NodeSig) -> Callable[[Rows, Rows], tuple[Array, Array, Array]]:
    given = sig.attrs["set_operation"]
    name = given.decode() if isinstance(given, bytes) else given
    operation = _OPERATIONS.get(name.lower())
    if operation is None:
        raise checks.invalid(f"Invalid set_operation {name}.")

    def run(first: Rows, second: Rows) -> tuple[Array, Array, Array]:
        outer = _outer(first[2], second[2])
        merged = _merged(first, second, name.lower())
        if merged is not None:
            rows, column, values = merged
            indices = np.stack([*np.unravel_index(rows, outer), column], axis=1)
            shape = np.array([*outer, column.max(initial=-1) + 1], np.int64)
            return indices.astype(np.int64, copy=False), values, shape
        (a, b), ordered = _numbered(first, second)
        numbers = np.sort(operation(a, b))
        indices, counts = _places(numbers, len(ordered), outer)
        shape = np.array([*outer, counts.max(initial=0)], np.int64)
        values = ordered[numbers % max(len(ordered), 1)]
        return indices.astype(np.int64), values.astype(first[1].dtype, copy=False), shape

    return run


@table.binder("DenseToDenseSetOperation")
def dense_to_dense(sig: NodeSig) -> Callable[..., Any]:
    """Both sets dense."""
    operation = _operation(sig)

    def run(a: Array, b: Array) -> Any:
        _outer(a.shape, b.shape)
        return operation(_dense(a), _dense(b))

    return run


@table.binder("DenseToSparseSetOperation")
def dense_to_sparse(sig: NodeSig) -> Callable[..., Any]:
    """The second set sparse."""
    operation = _operation(sig)

    def run(a: Array, *b: Array) -> Any:
        _outer(a.shape, tuple(int(n) for n in b[2]))
        return operation(_dense(a), _sparse(*b))

    return run


@table.binder("SparseToSparseSetOperation")
def sparse_to_sparse(sig: NodeSig) -> Callable[..., Any]:
    """Both sets sparse."""
    operation = _operation(sig)
    return lambda *given: operation(_sparse(*given[:3]), _sparse(*given[3:]))


@table.binder("SetSize")
def set_size(sig: NodeSig) -> Callable[..., Array]:
    """How many different values each row has."""

    def run(indices: Array, values: Array, dense_shape: Array) -> Array:
        given = _sparse(indices, values, dense_shape)
        outer = given[2][:-1]
        (numbers,), ordered = _numbered(given)
        counts = np.bincount(numbers // max(len(ordered), 1), minlength=math.prod(outer))
        return counts.astype(np.int32).reshape(outer)

    return run
