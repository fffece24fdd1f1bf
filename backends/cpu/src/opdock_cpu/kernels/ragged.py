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
