"""Ragged tensors by their splits: repeated offsets and one gather."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()


def _spans(starts: Array, lengths: Array) -> Array:
    """The numbers from each start on, so many each, one after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def _check_splits(nested: Sequence[Array], values: Array) -> None:
    """Raises InvalidArgumentError unless each level of splits covers the next one."""
    for level, splits in enumerate(nested):
        below = len(nested[level + 1]) - 1 if level + 1 < len(nested) else values.shape[0]
        if splits.ndim != 1 or not len(splits):
            raise checks.invalid("Ragged splits must be vectors with at least one element")
        if splits[0] < 0 or (np.diff(splits) < 0).any():
            raise checks.invalid("Ragged splits must be sorted in ascending order")
        if splits[-1] > below:
            raise checks.invalid(
                f"Ragged splits must not point past values: {int(splits[-1])} vs. {below}"
            )


# ---------------------------------------------------------------- gather
@table.binder("RaggedGather")
def ragged_gather(sig: NodeSig) -> Callable[..., Any]:
    """Rows by index; each level of splits is counted anew."""
    depth = int(sig.attrs["PARAMS_RAGGED_RANK"])

    def run(*inputs: Array) -> Any:
        nested, values, indices = inputs[:depth], inputs[depth], inputs[depth + 1]
        if not values.ndim:
            raise checks.invalid("params.rank must be nonzero")
        _check_splits(nested, values)
        rows = indices.reshape(-1)
        count, kind = len(nested[0]) - 1, nested[0].dtype
        bad = (rows < 0) | (rows >= count)
        if bad.any():
            place = checks.dims(np.unravel_index(int(np.argmax(bad)), indices.shape))
            where = "indices" + (place if indices.ndim else "")
            raise checks.invalid(f"{where} = {rows[int(np.argmax(bad))]} is not in [0, {count})")
        found: list[Array] = []
        # Dense dimensions of the indices become ragged ones whose rows have one length.
        for axis in range(indices.ndim - 1):
            length = indices.shape[axis + 1]
            lead = int(np.prod(indices.shape[: axis + 1]))
            found.append((np.arange(lead + 1) * length).astype(kind))
        for splits in nested:
            starts = splits[rows].astype(np.int64)
            lengths = splits[rows + 1].astype(np.int64) - starts
            found.append(np.concatenate([[0], np.cumsum(lengths)]).astype(kind))
            rows = _spans(starts, lengths)
        if not indices.ndim:
            found = found[1:]  # one row is what stands in it
        return (*found, values[rows]) if found else values[rows]

    return run


# ---------------------------------------------------------------- ranges
@table.binder("RaggedRange")
def ragged_range(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """Ranges of different lengths, one after the other."""
    kind, element = sig.out_dtypes[0].np, sig.out_dtypes[1].base_dtype
    integral = element.is_integer

    def run(starts: Array, limits: Array, deltas: Array) -> tuple[Array, Array]:
        for name, given in (("starts", starts), ("limits", limits), ("deltas", deltas)):
            if given.ndim > 1:
                raise checks.invalid(f"{name} must be a scalar or vector")
        sizes = {len(given) for given in (starts, limits, deltas) if given.ndim}
        if len(sizes) > 1:
            raise checks.invalid("starts, limits, and deltas must have the same shape")
        rows = sizes.pop() if sizes else 1
        start, limit, step = (np.broadcast_to(g, (rows,)) for g in (starts, limits, deltas))
        if (step == 0).any():
            raise checks.invalid("Requires delta != 0")
        lengths = _lengths(start, limit, step, integral)
        if lengths.size and float(lengths.sum(dtype=np.float64)) > np.iinfo(np.int64).max / 16:
            raise checks.invalid("Requires ((limit - start) / delta) to fit into memory")
        splits = np.concatenate([[0], np.cumsum(lengths)]).astype(kind)
        place = _spans(np.zeros(rows, np.int64), lengths)
        if integral:
            values = np.repeat(start, lengths) + place * np.repeat(step, lengths)
        else:
            values = np.repeat(start, lengths) + place.astype(start.dtype) * np.repeat(
                step, lengths
            )
        return splits, values.astype(element.np, copy=False)

    return run


def _lengths(start: Array, limit: Array, step: Array, integral: bool) -> Array:
    if integral:
        wide = [v.astype(np.int64) for v in (start, limit, step)]
        counts = -((wide[0] - wide[1]) // wide[2])
        return np.asarray(np.maximum(counts, 0))
    real = [v.astype(np.float64) for v in (start, limit, step)]
    counts = np.ceil((real[1] - real[0]) / real[2])
    if not np.isfinite(counts).all():
        raise checks.invalid("Requires finite starts, limits and deltas")
    return np.asarray(np.maximum(counts, 0), np.int64)


# ---------------------------------------------------------------- cells
@table.binder("RaggedTensorToSparse")
def ragged_to_sparse(sig: NodeSig) -> Callable[..., tuple[Array, Array, Array]]:
    """The coordinates of all elements, from the innermost dimension out."""

    def run(*inputs: Array) -> tuple[Array, Array, Array]:
        *nested, values = inputs
        if not values.ndim:
            raise checks.invalid(f"flat_values must have ndims >= 1, got {values.ndim}")
        _check_cover(nested, values)
        inner = values.shape[1:]
        grid = np.indices(values.shape, np.int64).reshape(values.ndim, -1)
        columns, size = list(grid[1:]), [*inner]
        row = grid[0]
        for splits in reversed(nested):
            lengths = np.diff(splits).astype(np.int64)
            parent = np.repeat(np.arange(len(lengths)), lengths)
            own = np.arange(len(parent)) - np.repeat(splits[:-1].astype(np.int64), lengths)
            columns.insert(0, own[row])
            size.insert(0, int(lengths.max(initial=0)))
            row = parent[row]
        columns.insert(0, row)
        size.insert(0, len(nested[0]) - 1)
        return np.stack(columns, axis=1), values.flatten(), np.array(size, np.int64)

    return run


def _check_cover(nested: Sequence[Array], values: Array) -> None:
    """Raises InvalidArgumentError unless each level of splits covers all of the next one."""
    for level, splits in enumerate(nested):
        below = len(nested[level + 1]) - 1 if level + 1 < len(nested) else values.shape[0]
        if splits.ndim != 1 or not len(splits):
            raise checks.invalid("ragged splits may not be empty.")
        if splits[0] != 0:
            raise checks.invalid("First value of ragged splits must be 0.")
        if (np.diff(splits) < 0).any():
            raise checks.invalid("Ragged splits must be sorted in ascending order.")
        if splits[-1] != below:
            raise checks.invalid(
                "Final value of ragged splits must match the length of the corresponding ragged "
                f"values: {int(splits[-1])} vs. {below}"
            )


# ---------------------------------------------------------------- variants
@table.binder("RaggedTensorToVariant")
def to_variant(sig: NodeSig) -> Callable[..., Array]:
    """A ragged tensor, or each of its rows, in a box: its splits and its values."""
    batched = bool(sig.attrs["batched_input"])

    def run(*inputs: Array) -> Array:
        nested, values = inputs[:-1], inputs[-1]
        _check_splits(nested, values)
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
    _check_splits(splits, values)
    return list(box)
