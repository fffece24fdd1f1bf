"""Ragged tensors padded to tensors: RaggedTensorToTensor."""

from __future__ import annotations

from typing import Any, Final

from opdock import shapes
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.array import reshape, shape
from opdock.ops.fill import zeros_like
from opdock.ops.registry import ShapeSig, define_op, get
from opdock.ops.unbroadcast import unbroadcast
from opdock.shapes import Shape

__all__: list[str] = []

PARTITIONS: Final = (
    "FIRST_DIM_SIZE", "VALUE_ROWIDS", "ROW_LENGTHS", "ROW_SPLITS", "ROW_LIMITS", "ROW_STARTS",
)  # fmt: skip

to_tensor_op = define_op(
    "RaggedTensorToTensor",
    "shape: Tshape, values: T, default_value: T, "
    "row_partition_tensors: num_row_partition_tensors * Tindex -> result: T",
    "T: type, Tindex: {int64, int32}, Tshape: {int64, int32}, "
    "num_row_partition_tensors: int >= 1, row_partition_types: list(string)",
)


def ragged_rank_of(kinds: list[str]) -> int:
    """How many dimensions the partitions of these kinds make ragged."""
    return len(kinds) - (kinds[:1] == ["FIRST_DIM_SIZE"])


@to_tensor_op.shape
def _to_tensor_shape(sig: ShapeSig) -> Shape:
    kinds = [str(kind) for kind in sig.attrs["row_partition_types"]]
    _check_partitions(kinds, sig.shapes[3:])
    depth, values, default = ragged_rank_of(kinds), sig.shapes[1], sig.shapes[2]
    _check_default(default, values)
    given = None if sig.shapes[0] == () else sig.const_shape(0)
    if values is None:
        return given
    padded = (*[None] * (depth + 1), *values[1:])
    if given is not None and len(given) != len(padded):
        raise ValueError(
            f"Value shape ({shapes.text(values)}), ragged_rank({depth}) and shape("
            f"{shapes.text(given)}) do not have a consistent number of dimensions"
        )
    return shapes.merge(given, padded)


def _check_partitions(kinds: list[str], tensors: list[Shape]) -> None:
    if len(kinds) != len(tensors):
        raise ValueError(
            f"Number of row partition types ({len(kinds)}) and of row partition tensors "
            f"({len(tensors)}) differ"
        )
    for i, (kind, partition) in enumerate(zip(kinds, tensors, strict=True)):
        if kind not in PARTITIONS:
            raise ValueError(f"Unknown string for partition info type: {kind}")
        if kind == "FIRST_DIM_SIZE" and i:
            raise ValueError("FIRST_DIM_SIZE is for the first row partition tensor only")
        if i == 0 and kind == "VALUE_ROWIDS":
            raise ValueError("Cannot handle VALUE_ROWIDS in first dimension.")
        shapes.with_rank(partition, 0 if kind == "FIRST_DIM_SIZE" else 1)


def _check_default(default: Shape, values: Shape) -> None:
    if default is None or values is None:
        return
    if len(default) > len(values):
        raise ValueError(
            "default_value_shape must have no more dimensions than the value. "
            f"default_value_shape: {shapes.text(default)} value_shape: {shapes.text(values)}"
        )


@to_tensor_op.gradient
def _to_tensor_gradient(op: Operation, grad: Tensor) -> list[Any]:
    _, values, default, *partitions = op.inputs
    kinds = op.attrs["row_partition_types"]
    depth = ragged_rank_of([str(kind) for kind in kinds])
    # Which of the values stands where; zero where there is the default.
    count = get("StridedSlice")(shape(values), [0], [1], [1], shrink_axis_mask=1)
    outer = get("StridedSlice")(shape(grad), [0], [depth + 1], [1])
    places = to_tensor_op(
        outer, get("Range")(1, count + 1, 1), 0, partitions, row_partition_types=kinds
    )
    rows = reshape(grad, get("ConcatV2")([[-1], get("Slice")(shape(values), [1], [-1])], 0))
    flat = reshape(places, [-1])
    of_values = get("UnsortedSegmentSum")(rows, flat - 1, count)
    blank = get("Select")(get("Equal")(flat, 0), rows, zeros_like(rows))
    of_default = unbroadcast(blank, default, rows)
    return [None, reshape(of_values, shape(values)), of_default, *[None] * len(partitions)]
