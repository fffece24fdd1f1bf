"""Ragged tensors by their splits: ranges and coordinates as generated loops; variants."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import ceil
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks, dtypes
from opdock_cpu.jit.looped import Array, Looped
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()

_BLOCK: Final = 1 << 11
"""Elements of a turn."""
_MOST: Final = 1 << 31
"""A range as long as that is left to the portable kernel, and what is wrong with it."""


# ---------------------------------------------------------------- ranges
def _real_lengths(
    begin: int, end: int, lengths: Array, start: Array, limit: Array, step: Array
) -> None:  # fmt: skip
    """How long each range is, or -1; in the element type, so that a last bit decides as in TF."""
    for r in range(begin, end):
        count = (limit[r] - start[r]) / step[r]
        lengths[r] = max(ceil(count), 0) if abs(count) < _MOST else -1


def _whole_lengths(
    begin: int, end: int, lengths: Array, start: Array, limit: Array, step: Array
) -> None:  # fmt: skip
    for r in range(begin, end):
        away = start[r] - limit[r]
        lengths[r] = -1
        if step[r] != 0 and abs(away) < _MOST:
            lengths[r] = max(-(away // step[r]), 0)


def _fill(
    begin: int, end: int, out: Array, splits: Array, start: Array, step: Array
) -> None:  # fmt: skip
    """A turn is a range: each element is the one before and a step, rounded."""
    for r in range(begin, end):
        value = start[r]
        for i in range(splits[r], splits[r + 1]):
            out[i] = value
            value += step[r]


_REAL_LENGTHS: Final = Looped(_real_lengths)
_WHOLE_LENGTHS: Final = Looped(_whole_lengths)
_FILL: Final = Looped(_fill)


@table.binder("RaggedRange", T={dtypes.float32, dtypes.float64, dtypes.int32})
def ragged_range(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """Ranges of different lengths, one after the other."""
    kind, dtype = sig.out_dtypes[0].np, sig.out_dtypes[1].base_dtype
    measure, plain = _WHOLE_LENGTHS if dtype.is_integer else _REAL_LENGTHS, portable_kernel(sig)

    def run(*inputs: Any) -> Any:
        given = [np.asarray(value) for value in inputs]
        counts = {len(value) for value in given if value.ndim == 1}
        if len(counts) != 1 or any(value.ndim > 1 for value in given):
            return plain(*inputs)
        (rows,) = counts
        start, limit, step = (np.broadcast_to(value, (rows,)) for value in given)
        lengths = np.empty(rows, np.int64)
        if not rows or not measure(rows, 4 * rows, lengths, start, limit, step):
            return plain(*inputs)
        splits = np.zeros(rows + 1, np.int64)
        np.cumsum(lengths, out=splits[1:])
        if lengths.min() < 0 or splits[-1] >= _MOST:
            return plain(*inputs)
        out = np.empty(splits[-1], dtype.np)
        if not _FILL(rows, rows + out.size, out, splits, start, step):
            return plain(*inputs)
        return splits.astype(kind, copy=False), out

    return run


# ---------------------------------------------------------------- coordinates
def _coordinates(
    begin: int, end: int, out: Array, rows: Array, splits: Array, starts: Array, count: int,
    depth: int,
) -> None:  # fmt: skip
    """A turn is a block of elements, and `rows` has the rows of each level in which it goes on.

    `starts` says where the splits of each level begin, and those behind the last.
    """
    for t in range(begin, end):
        first = t * _BLOCK
        place = first
        for back in range(depth):
            level = depth - 1 - back
            low, high = 0, starts[level + 1] - starts[level] - 2
            while low < high:
                middle = (low + high) // 2
                if splits[starts[level] + middle + 1] <= place:
                    low = middle + 1
                else:
                    high = middle
            rows[t * depth + level] = low
            place = low
        for i in range(first, min(first + _BLOCK, count)):
            place = i
            for back in range(depth):
                level = depth - 1 - back
                row = rows[t * depth + level]
                while splits[starts[level] + row + 1] <= place:
                    row += 1
                rows[t * depth + level] = row
                out[i * (depth + 1) + level + 1] = place - splits[starts[level] + row]
                place = row
            out[i * (depth + 1)] = place


_COORDINATES: Final = Looped(_coordinates, fixed=("depth",))


@table.binder("RaggedTensorToSparse")
def ragged_to_sparse(sig: NodeSig) -> Callable[..., tuple[Array, Array, Array]]:
    """The coordinates of all elements."""
    plain = portable_kernel(sig)

    def run(*inputs: Array) -> Any:
        *nested, values = inputs
        if values.ndim != 1 or not values.size or not _cover(nested, len(values)):
            return plain(*inputs)
        depth, turns = len(nested), -(-len(values) // _BLOCK)
        out, rows = np.empty((len(values), depth + 1), np.int64), np.empty(turns * depth, np.int64)
        splits = np.concatenate(nested).astype(np.int64, copy=False)
        starts = np.cumsum([0, *map(len, nested)])
        if not _COORDINATES(turns, out.size, out, rows, splits, starts, len(values), depth):
            return plain(*inputs)
        longest = [int(np.diff(level).max()) for level in nested]
        return out, values.copy(), np.array([len(nested[0]) - 1, *longest], np.int64)

    return run


def _cover(nested: Sequence[Array], count: int) -> bool:
    """Whether each level of splits covers all of the next one."""
    for splits in nested:
        if splits.ndim != 1 or len(splits) < 2 or splits[0] or (np.diff(splits) < 0).any():
            return False
    inner = all(len(below) - 1 == above[-1] for above, below in pairwise(nested))
    return inner and bool(nested[-1][-1] == count)


# ---------------------------------------------------------------- variants
@table.binder("RaggedTensorToVariant")
def to_variant(sig: NodeSig) -> Callable[..., Array]:
    """A ragged tensor, or each of its rows, in a box: its splits and its values."""
    batched = bool(sig.attrs["batched_input"])

    def run(*inputs: Array) -> Array:
        nested, values = inputs[:-1], inputs[-1]
        checks.check_splits(nested, values)
        if not batched:
            return _boxes([_packed([*nested, values])], ())
        outer = nested[0]
        rows = [_row(nested[1:], values, *outer[i : i + 2]) for i in range(len(outer) - 1)]
        return _boxes(rows, (len(rows),))

    return run


def _row(nested: Sequence[Array], values: Array, begin: Any, end: Any) -> Array:
    """What stands in a row, which begins and ends there."""
    parts = []
    for splits in nested:
        part = splits[begin : end + 1]
        begin, end = part[0], part[-1]
        parts.append(part - begin)
    return _packed([*parts, values[begin:end]])


def _packed(parts: Sequence[Array]) -> Array:
    out = np.empty(len(parts), object)
    for i, part in enumerate(parts):
        out[i] = part.copy()
    return out


def _boxes(contents: Sequence[Array], shape: tuple[int, ...]) -> Array:
    out = np.empty(len(contents), object)
    for i, content in enumerate(contents):
        out[i] = content
    return out.reshape(shape)


@table.binder("RaggedTensorFromVariant")
def from_variant(sig: NodeSig) -> Callable[..., tuple[Array, ...]]:
    """The ragged tensor in a box, or one of as many rows as there are boxes."""
    given, depth = int(sig.attrs["input_ragged_rank"]), int(sig.attrs["output_ragged_rank"])
    kind, dtype = sig.attrs["Tsplits"].np, sig.attrs["Tvalues"]

    def run(encoded: Array) -> tuple[Array, ...]:
        inner = _depth_of_boxes(given, depth, encoded.ndim)
        boxes = [_opened(b, i, inner, kind, dtype) for i, b in enumerate(encoded.reshape(-1))]
        if not encoded.ndim:
            return tuple(part.copy() for part in boxes[0])
        out = [
            np.arange(math.prod(encoded.shape[: i + 1]) + 1, dtype=kind) * encoded.shape[i + 1]
            for i in range(encoded.ndim - 1)
        ]
        for level in range(inner + 1):
            # Rows are counted by the next level's splits, which have one more, or by the values.
            lengths = [np.diff(box[level - 1]) for box in boxes] if level else [
                [len(box[0]) - bool(inner)] for box in boxes
            ]  # fmt: skip
            every = np.concatenate([[0], *lengths])
            out.append(np.cumsum(every).astype(kind))
        values = [box[inner] for box in boxes]
        if any(v.ndim != values[0].ndim for v in values):
            raise checks.invalid("Rank of values must match for all components")
        return *out, np.concatenate(values) if values else np.empty(0, dtype.np)

    return run


def _depth_of_boxes(given: int, depth: int, rank: int) -> int:
    inner = depth - rank if given == -1 else given
    if inner < 0:
        raise checks.invalid(
            "Inferred input_ragged_rank (output_ragged_rank - encoded_variant.dims()) must be >= "
            f"0, found output_ragged_rank: {depth}, encoded_variant.dims(): {rank}, inferred "
            f"input_ragged_rank: {inner}"
        )
    if depth != rank + inner:
        raise checks.invalid(
            "output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); "
            f"output_ragged_rank: {depth}, input_ragged_rank: {inner}, encoded_variant.dims(): "
            f"{rank}."
        )
    return inner


def _opened(box: Any, index: int, depth: int, kind: Any, dtype: Any) -> list[Array]:
    """Splits and values of a box."""
    if not isinstance(box, np.ndarray) or box.dtype != object or box.ndim != 1:
        raise checks.invalid(f"Input Variant element at index {index} doesn't hold a Tensor")
    if len(box) != depth + 1:
        raise checks.invalid(
            "Encoded input Variant must hold either input_ragged_rank + 1 Tensors or an empty "
            f"Tensor, input_ragged_rank: {depth}, found {len(box)} Tensors"
        )
    *splits, values = box
    for part in splits:
        if part.dtype != kind:
            raise checks.invalid(f"Expected splits Tensor dtype: {kind}, found: {part.dtype}")
    if values.dtype != dtype.np:
        raise checks.invalid(f"Expected values Tensor dtype: {dtype.np}, found: {values.dtype}")
    checks.check_splits(splits, values)
    return list(box)
