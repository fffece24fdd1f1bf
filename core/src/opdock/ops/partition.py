"""Splitting a tensor by labels and putting the parts together again."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.array import reshape, shape
from opdock.ops.cast import cast
from opdock.ops.registry import ShapeSig, define_op, keeps_slices
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__ = ["dynamic_partition", "dynamic_stitch"]

dynamic_partition_op = define_op(
    "DynamicPartition", "data: T, partitions: int32 -> outputs: num_partitions * T",
    "num_partitions: int >= 1, T: type",
)  # fmt: skip
dynamic_stitch_op = define_op(
    "DynamicStitch", "indices: N * int32, data: N * T -> merged: T", "N: int >= 1, T: type"
)
parallel_dynamic_stitch_op = define_op(
    "ParallelDynamicStitch", "indices: N * int32, data: N * T -> merged: T", "N: int >= 1, T: type"
)


# ---------------------------------------------------------------- shapes
@dynamic_partition_op.shape
def _dynamic_partition_shape(sig: ShapeSig) -> list[Shape]:
    data, labels = sig.shapes
    out: Shape = None
    if data is not None and labels is not None:
        out = (None, *_rest(data, labels))
    return [out] * sig.n_outputs


@dynamic_stitch_op.shape
@parallel_dynamic_stitch_op.shape
def _dynamic_stitch_shape(sig: ShapeSig) -> Shape:
    n = sig.attrs["N"]
    extra: Shape = None
    largest: int | None = -1
    for i in range(n):
        indices, data = sig.shapes[i], sig.shapes[n + i]
        values = array_util.const_ints(sig, i)
        largest = None if values is None or largest is None else max([largest, *values])
        if indices is not None and data is not None:
            extra = shapes.merge(extra, _rest(data, indices))
    return shapes.concat((None if largest is None else largest + 1,), extra)


def _rest(data: tuple[int | None, ...], prefix: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """The dimensions of `data` after `prefix`; ValueError unless it starts with them."""
    if len(data) < len(prefix) or not shapes.is_compatible(data[: len(prefix)], prefix):
        raise ValueError(
            f"Shapes must start alike: data has shape {shapes.text(data)}, "
            f"its indices have {shapes.text(prefix)}"
        )
    return data[len(prefix) :]


# ---------------------------------------------------------------- gradients
@dynamic_partition_op.gradient
def _dynamic_partition_grad(op: Operation, *grads: Any) -> list[Any]:
    from opdock.ops.fill import range
    from opdock.ops.reduce import reduce_prod

    data, labels = op.inputs
    label_shape = shape(labels)
    positions = reshape(range(reduce_prod(label_shape)), label_shape)
    parts = dynamic_partition(positions, labels, op.attrs["num_partitions"])
    merged = parallel_dynamic_stitch_op(parts, list(grads))
    return [reshape(merged, shape(data)), None]


@dynamic_stitch_op.gradient
@parallel_dynamic_stitch_op.gradient
@keeps_slices
def _dynamic_stitch_grad(op: Operation, grad: Any) -> list[Any]:
    from opdock.ops.gather import gather
    from opdock.ops.unsorted_segment import unsorted_segment_sum

    n = op.attrs["N"]
    indices = op.inputs[:n]
    if isinstance(grad, IndexedSlices):
        rows = shape(op.outputs[0])[0]
        grad = unsorted_segment_sum(grad.values, cast(grad.indices, dtypes.int32), rows)
    return [*[None] * n, *[gather(grad, i) for i in indices]]


# ---------------------------------------------------------------- public functions
@extensible
def dynamic_partition(
    data: Any, partitions: Any, num_partitions: int, name: str | None = None
) -> list[Tensor]:
    """Distributes the slices of a tensor over several by label.

    Args:
        data: a tensor.
        partitions: an int32 tensor of labels in [0, num_partitions); `data` starts with its shape.
        num_partitions: the number of results.
        name: a name for the operation.

    Returns:
        A list of `num_partitions` tensors; each keeps the order of its slices.

    Raises:
        tf.errors.InvalidArgumentError: at run time, for a label out of range.
    """
    return dynamic_partition_op(data, partitions, num_partitions=num_partitions, name=name)  # type: ignore[no-any-return]


@extensible
def dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> Tensor:
    """Interleaves tensors: the slice `data[m][i]` goes to row `indices[m][i]`.

    Args:
        indices: a list of int32 tensors.
        data: a list of as many tensors; each shape starts with that of its indices.
        name: a name for the operation.

    Returns:
        A tensor with as many rows as the largest index demands; of repeated indices the last wins.
    """
    return dynamic_stitch_op(indices, data, name=name)  # type: ignore[no-any-return]
