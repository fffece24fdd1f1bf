"""Tensors rearranged along their dimensions: tiles, repeats, reversals and rolls."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.axes import reversed_
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import broadcast_to, expand_dims, reshape, shape, size
from opdock.ops.cast import cast
from opdock.ops.registry import (
    AlongAxis,
    Fails,
    PerAxis,
    ShapeSig,
    Traits,
    define_op,
    get,
    keeps_slices,
)
from opdock.ops.support import array_util
from opdock.shapes import Dimension, Shape, TensorShape

__all__ = ["repeat", "reverse", "reverse_sequence", "reverse_v2", "roll", "tile"]

_REVERSIBLE = "uint8, int8, uint16, int16, int32, int64, bool, "


# ---------------------------------------------------------------- Tile
tile_op = define_op(
    "Tile", "input: T, multiples: Tmultiples -> output: T",
    "T: type, Tmultiples: {int32, int64} = DT_INT32",
)  # fmt: skip
tile_op.declare(Traits(fails=Fails.BY_SHAPE, repeats=0, layout=PerAxis((1,))))


@tile_op.shape
def _tile_shape(sig: ShapeSig) -> Shape:
    source, count = sig.shapes[0], array_util.vector_length(sig.shapes[1])
    if source is not None:
        shapes.merge(sig.shapes[1], (len(source),))
        count = len(source)
    multiples = sig.const_shape(1)
    if multiples is None:
        multiples = None if count is None else (None,) * count
    if multiples is None:
        return None
    source = shapes.with_rank(source, len(multiples))
    return tuple(array_util.multiply(d, m) for d, m in zip(source, multiples, strict=True))


@tile_op.gradient
@keeps_slices
def _tile_grad(op: Operation, grad: Any) -> list[Any]:
    from opdock.ops.fill import range
    from opdock.ops.joining import stack
    from opdock.ops.matrix import transpose
    from opdock.ops.reduce import reduce_sum

    source, multiples = op.inputs
    counts = constant_value(multiples)
    known: Any = source.raw_shape
    split_shape: Any
    axes: Any
    if counts is not None and known is not None and shapes.is_fully_defined(known):
        split_shape = [int(v) for pair in zip(counts, known, strict=True) for v in pair]
        axes = list(builtins.range(0, len(split_shape), 2))
    else:
        source_shape = shape(source, out_type=multiples.dtype)
        split_shape = reshape(transpose(stack([multiples, source_shape])), [-1])
        axes = range(0, size(split_shape), 2)
    if isinstance(grad, IndexedSlices):
        # Rows of the tiled tensor fold back onto rows of the source.
        rows = shape(source, out_type=grad.indices.dtype)[0]
        grad = convert_to_tensor(
            IndexedSlices(grad.values, grad.indices % rows, _one_tile(source, multiples))
        )
        split_shape = _first_one(split_shape)
    out = reduce_sum(reshape(grad, split_shape), axes)
    out.set_shape(known)
    return [out, None]


def _one_tile(source: Tensor, multiples: Tensor) -> Tensor:
    from opdock.ops.joining import concat

    rows = shape(source, out_type=multiples.dtype)
    return cast(concat([rows[:1], (rows * multiples)[1:]], 0), dtypes.int32)  # type: ignore[no-any-return]


def _first_one(split_shape: Any) -> Any:
    if isinstance(split_shape, list):
        return [1, *split_shape[1:]]
    from opdock.ops.joining import concat

    return concat([np.ones(1, split_shape.dtype.as_numpy_dtype), split_shape[1:]], 0)


@extensible
def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """Repeats a whole tensor along its dimensions.

    Args:
        input: a tensor of rank 1 or more.
        multiples: how often in each dimension, a 1-D int32 or int64 tensor.
        name: a name for the operation.

    Returns:
        A tensor of the type of `input`.

    Raises:
        ValueError: `multiples` does not have one entry per dimension.
    """
    return tile_op(input, multiples, name=name)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- Reverse, ReverseV2
reverse_op = define_op(
    "Reverse", "tensor: T, dims: bool -> output: T",
    "T: {" + _REVERSIBLE + "half, float, double, complex64, complex128, string}",
)  # fmt: skip
reverse_v2_op = define_op(
    "ReverseV2", "tensor: T, axis: Tidx -> output: T",
    "Tidx: {int32, int64} = DT_INT32, "
    "T: {" + _REVERSIBLE + "bfloat16, half, float, double, complex64, complex128, string}",
)  # fmt: skip
reverse_v2_op.declare(Traits(layout=AlongAxis(-1)))


def _at_most_8(shape: Shape) -> None:
    if shape is not None and len(shape) > 8:
        raise ValueError("reverse does not work on tensors with more than 8 dimensions")


@reverse_op.shape
def _reverse_shape(sig: ShapeSig) -> Shape:
    count, source = array_util.vector_length(sig.shapes[1]), sig.shapes[0]
    if count is not None:
        source = shapes.with_rank(source, count)
    _at_most_8(source)
    return source


@reverse_v2_op.shape
def _reverse_v2_shape(sig: ShapeSig) -> Shape:
    array_util.vector_length(sig.shapes[1])
    source, axes = sig.shapes[0], array_util.const_ints(sig, 1)
    _at_most_8(source)
    if axes is not None and source is not None:
        reversed_(axes, len(source))
    return source


@reverse_op.gradient
def _reverse_grad(op: Operation, grad: Any) -> list[Any]:
    return [reverse_op(grad, op.inputs[1]), None]


@reverse_v2_op.gradient
def _reverse_v2_grad(op: Operation, grad: Any) -> list[Any]:
    return [reverse_v2_op(grad, op.inputs[1]), None]


@extensible
def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """Reverses the order of the elements along some dimensions.

    Args:
        tensor: a tensor of up to 8 dimensions.
        axis: the dimensions, a 1-D int32 or int64 tensor.
        name: a name for the operation.

    Returns:
        A tensor of the same type and shape.

    Raises:
        ValueError: a dimension is out of range or given twice.
    """
    return reverse_v2_op(tensor, axis, name=name)  # type: ignore[no-any-return]


reverse_v2 = reverse


# ---------------------------------------------------------------- ReverseSequence
reverse_sequence_op = define_op(
    "ReverseSequence", "input: T, seq_lengths: Tlen -> output: T",
    "seq_dim: int, batch_dim: int = 0, T: type, Tlen: {int32, int64} = DT_INT64",
)  # fmt: skip


@reverse_sequence_op.shape
def _reverse_sequence_shape(sig: ShapeSig) -> Shape:
    count, source = array_util.vector_length(sig.shapes[1]), sig.shapes[0]
    if source is None:
        return None
    n, batch, sequence = len(source), sig.attrs["batch_dim"], sig.attrs["seq_dim"]
    if batch >= n:
        raise ValueError(f"batch_dim must be < input rank: {batch} vs. {n}")
    if sequence >= n:
        raise ValueError(f"seq_dim must be < input rank: {sequence} vs. {n}")
    return array_util.replace(source, batch, shapes.merge_dim(source[batch], count))


@reverse_sequence_op.gradient
def _reverse_sequence_grad(op: Operation, grad: Any) -> list[Any]:
    attrs = {k: op.attrs[k] for k in ("seq_dim", "batch_dim")}
    return [reverse_sequence_op(grad, op.inputs[1], **attrs), None]


def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """Reverses the first elements of each sequence in a batch.

    Args:
        input: a tensor.
        seq_lengths: how many elements of each sequence to reverse, a 1-D integer tensor.
        seq_axis: the dimension that runs along the sequences.
        batch_axis: the dimension that counts the sequences, 0 by default.
        name: a name for the operation.
        seq_dim: deprecated name of `seq_axis`.
        batch_dim: deprecated name of `batch_axis`.

    Returns:
        A tensor of the same type and shape.

    Raises:
        ValueError: an axis is missing, given under both names or out of range.
    """
    seq_axis = array_util.renamed("seq_axis", seq_axis, "seq_dim", seq_dim)
    batch_axis = array_util.renamed("batch_axis", batch_axis, "batch_dim", batch_dim)
    if seq_axis is None:
        raise ValueError("tf.reverse_sequence needs `seq_axis`")
    return reverse_sequence_op(  # type: ignore[no-any-return]
        input, seq_lengths, seq_dim=seq_axis, batch_dim=batch_axis or 0, name=name
    )


# ---------------------------------------------------------------- Roll
roll_op = define_op(
    "Roll", "input: T, shift: Tshift, axis: Taxis -> output: T",
    "T: type, Tshift: {int32, int64}, Taxis: {int32, int64}",
)  # fmt: skip


@roll_op.shape
def _roll_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank_at_most(sig.shapes[1], 1)
    shapes.with_rank_at_most(sig.shapes[2], 1)
    if sig.shapes[1] is not None and sig.shapes[2] is not None:
        shapes.merge(sig.shapes[1], sig.shapes[2])
    return shapes.with_rank_at_least(sig.shapes[0], 1)


@roll_op.gradient
def _roll_grad(op: Operation, grad: Any) -> list[Any]:
    return [roll_op(grad, -op.inputs[1], op.inputs[2]), None, None]


@extensible
def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Shifts the elements along some dimensions; what leaves at one end enters at the other.

    Args:
        input: a tensor of rank 1 or more.
        shift: how far in each of the dimensions, a scalar or 1-D integer tensor.
        axis: the dimensions, of the shape of `shift`; a dimension may occur several times.
        name: a name for the operation.

    Returns:
        A tensor of the same type and shape.
    """
    return roll_op(input, shift, axis, name=name)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- repeat
@extensible
def repeat(input: Any, repeats: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Repeats each element along a dimension.

    Args:
        input: a tensor.
        repeats: how often, a scalar or one integer for each element along `axis`.
        axis: the dimension; by default the flattened input is repeated.
        name: a name for the operation.

    Returns:
        A tensor of the type of `input`.

    Raises:
        TypeError: `axis` is not an integer.
        ValueError: `repeats` does not fit the dimension.
    """
    if axis is None:
        input, axis = reshape(input, [-1]), 0
    if not isinstance(axis, (int, np.integer)):
        raise TypeError(f"axis must be an int; got {type(axis).__name__}")
    with name_scope(name, "Repeat", [input, repeats]):
        data = convert_to_tensor(input, name="data")
        counts = _integers(repeats)
        if data.raw_shape is None:
            data = _at_least_a_vector(data)
        elif data.raw_shape == ():
            data = reshape(data, [1])
        TensorShape(counts.raw_shape).with_rank_at_most(1)
        at = _positive(int(axis), data.raw_shape)
        known = None if data.raw_shape is None else data.raw_shape[at]
        if counts.raw_shape == ():
            return _repeat_evenly(data, counts, at)
        if counts.raw_shape is None:  # one for all or one for each: known when it runs
            counts = broadcast_to(counts, shape(data)[at : at + 1])
            counts.set_shape([known])
        Dimension(known).merge_with(array_util.vector_length(counts.raw_shape))
        return _repeat_each(data, counts, at)


def _at_least_a_vector(data: Tensor) -> Tensor:
    """A tensor of unknown rank, with a dimension of one element if it is a number."""
    from opdock.ops.joining import concat

    longer = concat([[1], shape(data)], 0)
    return reshape(data, longer[-get("Maximum")(1, get("Rank")(data)) :])


def _integers(repeats: Any) -> Tensor:
    tensor = convert_to_tensor(repeats, name="repeats", preferred_dtype=dtypes.int32)
    if not tensor.dtype.is_integer:
        raise TypeError(f"repeats must be an integer tensor; dtype={tensor.dtype}")
    return cast(tensor, dtypes.int32)  # type: ignore[no-any-return]


def _positive(axis: int, known: Shape) -> int:
    if known is None:
        if axis < 0:
            raise ValueError("axis may only be negative if the rank of the input is known")
        return axis
    n = len(known)
    if not -n <= axis < n:
        raise ValueError(f"axis={axis} out of bounds: expected {-n}<=axis<{n}")
    return axis % n


def _repeat_evenly(data: Tensor, count: Tensor, axis: int) -> Tensor:
    from opdock.ops.fill import ones_like
    from opdock.ops.joining import concat

    data_shape = shape(data)
    wide = expand_dims(data, axis + 1)
    ones = ones_like(shape(wide))
    multiples = concat([ones[: axis + 1], [count], ones[axis + 2 :]], axis=0)
    full = concat([data_shape[:axis], [-1], data_shape[axis + 1 :]], axis=0)
    return reshape(tile(wide, multiples), full)


def _repeat_each(data: Tensor, counts: Tensor, axis: int) -> Tensor:
    """Gathers by the index of the source element, repeated; the indices are found by a mask."""
    from opdock.ops.composed.masks import boolean_mask, sequence_mask
    from opdock.ops.fill import range
    from opdock.ops.gather import gather
    from opdock.ops.joining import stack
    from opdock.ops.reduce import reduce_max

    n = shape(data)[axis]
    longest = get("Maximum")(0, reduce_max(counts))
    mask = sequence_mask(counts, longest)
    grid = broadcast_to(expand_dims(range(n), 1), stack([n, longest]))
    return gather(data, boolean_mask(grid, mask), axis=axis)
