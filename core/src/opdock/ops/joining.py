"""Tensors made of several: concatenation and stacking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import Handle
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import expand_dims, rank, shape, shape_n_op, squeeze
from opdock.ops.cast import cast
from opdock.ops.identity import identity
from opdock.ops.registry import (
    AlongAxis,
    Fails,
    PartialShape,
    ShapeSig,
    Traits,
    define_op,
    get,
    keeps_slices,
)
from opdock.ops.slicing import slice
from opdock.ops.support import array_util
from opdock.shapes import Shape, TensorShape

__all__ = ["concat", "parallel_stack", "stack"]

# Beyond so many parts one SplitV is cheaper than a Slice for each.
_MANY = 16


# ---------------------------------------------------------------- Concat, ConcatV2, ConcatOffset
concat_op = define_op(
    "Concat", "concat_dim: int32, values: N * T -> output: T", "N: int >= 2, T: type"
)
concat_op.declare(Traits(layout=AlongAxis(0)))
concat_v2_op = define_op(
    "ConcatV2", "values: N * T, axis: Tidx -> output: T",
    "N: int >= 2, T: type, Tidx: {int32, int64} = DT_INT32",
)  # fmt: skip
concat_v2_op.declare(Traits(fails=Fails.NEVER, layout=AlongAxis(-1)))


@concat_v2_op.rows
def _concat_v2_rows(op: Operation, inputs: Sequence[Any], rowed: Sequence[bool]) -> Any:
    """Along the same dimension, which the rows have moved."""
    *values, axis = inputs
    at = constant_value(op.inputs[-1])
    if at is None or rowed[-1] or not all(rowed[:-1]):
        return None
    return [concat_v2_op(values, axis if at < 0 else int(at) + 1)]


concat_offset_op = define_op(
    "ConcatOffset", "concat_dim: int32, shape: N * int32 -> offset: N * int32", "N: int >= 2"
).not_differentiable()


@concat_op.shape
def _concat_shape(sig: ShapeSig) -> Shape:
    return _joined(sig, sig.shapes[1:], 0)


@concat_v2_op.shape
def _concat_v2_shape(sig: ShapeSig) -> Shape:
    return _joined(sig, sig.shapes[:-1], len(sig.shapes) - 1)


def _joined(sig: ShapeSig, parts: list[Shape], axis_input: int) -> Shape:
    axis = array_util.const_int(sig, axis_input)
    n = next((len(p) for p in parts if p is not None), None)
    if n is None:
        return None
    if n == 0:
        raise ValueError("Can't concatenate scalars (use tf.stack instead)")
    ranked = [_with_rank_of(p, n, i) for i, p in enumerate(parts)]
    if axis is None:
        return (None,) * n
    if not -n <= axis < n:
        least = -axis if axis < 0 else axis + 1
        raise ValueError(f"Shape must be at least rank {least} but is rank {n}")
    axis %= n
    total: int | None = 0
    out: Shape = None
    for i, part in enumerate(ranked):
        total = array_util.add(total, part[axis])
        try:
            out = shapes.merge(out, array_util.replace(part, axis, None))
        except ValueError as e:
            raise ValueError(f"{e} From merging shape {i} with other shapes.") from None
    assert out is not None
    return array_util.replace(out, axis, total)


def _with_rank_of(part: Shape, n: int, i: int) -> tuple[int | None, ...]:
    try:
        return shapes.with_rank(part, n)
    except ValueError as e:
        raise ValueError(f"{e} From merging shape {i} with other shapes.") from None


@concat_offset_op.shape
def _concat_offset_shape(sig: ShapeSig) -> list[Shape]:
    return list(sig.shapes[1:])


@concat_op.gradient
@keeps_slices
def _concat_grad(op: Operation, grad: Any) -> list[Any]:
    return [None, *_part_grads(grad, op.inputs[1:], op.inputs[0])]


@concat_v2_op.gradient
@keeps_slices
def _concat_v2_grad(op: Operation, grad: Any) -> list[Any]:
    return [*_part_grads(grad, op.inputs[:-1], op.inputs[-1]), None]


def _part_grads(grad: Any, parts: Sequence[Tensor], axis: Tensor) -> list[Any]:
    if isinstance(grad, IndexedSlices):
        return _part_grads_of_slices(grad, parts, axis)
    at = constant_value(axis)
    n = next((len(p.raw_shape) for p in parts if p.raw_shape is not None), None)
    if at is not None and n is not None:
        known = int(at) % n
        lengths = [None if p.raw_shape is None else p.raw_shape[known] for p in parts]
        if None not in lengths:
            if len(set(lengths)) == 1:
                return list(get("Split")(known, grad, num_split=len(parts)))
            return list(get("SplitV")(grad, lengths, known, num_split=len(parts)))
    return _part_grads_by_offset(grad, parts, axis)


def _non_negative(axis: Tensor, part: Tensor) -> Any:
    if axis.dtype is not dtypes.int32:
        axis = cast(axis, dtypes.int32)
    return axis % rank(part)


def _part_grads_by_offset(grad: Any, parts: Sequence[Tensor], axis: Tensor) -> list[Any]:
    at = _non_negative(axis, parts[0])
    if all(shapes.is_fully_defined(p.raw_shape) for p in parts):
        sizes = [shape(p) for p in parts]
    else:
        sizes = shape_n_op(parts)
    if len(sizes) > _MANY:
        lengths = squeeze(slice(stack(sizes, axis=1), stack([at, 0]), [1, -1]), [0])
        return list(get("SplitV")(grad, lengths, at, num_split=len(parts)))
    offsets = concat_offset_op(at, sizes)
    return [slice(grad, begin, size) for begin, size in zip(offsets, sizes, strict=True)]


def _part_grads_of_slices(grad: IndexedSlices, parts: Sequence[Tensor], axis: Tensor) -> list[Any]:
    gather = get("GatherV2")
    at = constant_value(axis)
    if at is None:
        raise ValueError("Can only compute IndexedSlices gradient with statically-known concat_dim")
    known = int(at)
    if known < 0:
        n = next((len(p.raw_shape) for p in parts if p.raw_shape is not None), None)
        if n is None:
            raise ValueError(
                "Can only compute IndexedSlices gradient with negative concat_dim when first "
                "value rank is statically-known."
            )
        known %= n
    sizes = [shape(p) for p in parts]
    if known > 0:
        # The rows are whole: cut each of them the same way.
        offsets = concat_offset_op(known, sizes)
        out = []
        for begin, size in zip(offsets, sizes, strict=True):
            # A slice of rows keeps all rows but only this part's columns.
            first = concat([[0], begin[1:]], 0)
            length = concat([[-1], size[1:]], 0)
            out.append(IndexedSlices(slice(grad.values, first, length), grad.indices, size))
        return out
    start: Any = 0
    out = []
    for size in sizes:
        end = start + size[0]
        local = grad.indices - cast(start, grad.indices.dtype)
        inside = (local >= 0) & (local < cast(size[0], grad.indices.dtype))
        rows = squeeze(get("Where")(inside), [1])
        out.append(IndexedSlices(gather(grad.values, rows, 0), gather(local, rows, 0), size))
        start = end
    return out


@extensible
def concat(values: Any, axis: Any, name: str = "concat") -> Tensor:
    """Joins tensors along a dimension that they have.

    Args:
        values: a list of tensors of one type, equal in shape but for dimension `axis`.
        axis: the dimension, in [-rank, rank).
        name: a name for the operation.

    Returns:
        A tensor.

    Raises:
        ValueError: the shapes do not fit (`InvalidArgumentError` at run time).
    """
    if not isinstance(values, (list, tuple)):
        values = [values]
    if len(values) == 1:
        with name_scope(name, None, values):
            at = convert_to_tensor(axis, dtypes.int32, "concat_dim")
            if at.raw_shape:
                raise ValueError(f"Shape {at.shape} must have rank 0")
            # TF's name: "concat/concat".
            return identity(values[0], name=name)
    return concat_v2_op(values, axis, name=name)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- Pack
pack_op = define_op("Pack", "values: N * T -> output: T", "N: int >= 1, T: type, axis: int = 0")
pack_op.declare(Traits(fails=Fails.NEVER))


@pack_op.elements
def _packed_elements(sig: ShapeSig) -> Handle | None:
    """Handles that tell the same, together."""
    told = {sig.handle(i) for i in range(len(sig.shapes))}
    return told.pop() if len(told) == 1 else None


@pack_op.known
def _known_vector(sig: ShapeSig) -> list[Any]:
    """A shape vector put together of numbers, some of which may be unknown."""
    if any(s != () for s in sig.shapes) or not sig.attrs["T"].is_integer:
        return [None]
    entries = [sig.const(i) for i in range(len(sig.shapes))]
    known = [e for e in entries if e is not None]
    if len(known) == len(entries):
        return [np.stack(known)]
    return [PartialShape(tuple(None if e is None or e < 0 else int(e) for e in entries))]


@pack_op.shape
def _pack_shape(sig: ShapeSig) -> Shape:
    merged: Shape = None
    for i in range(len(sig.shapes) - 1, -1, -1):
        try:
            merged = shapes.merge(sig.shapes[i], merged)
        except ValueError as e:
            raise ValueError(f"{e}\n\tFrom merging shape {i} with other shapes.") from None
    if merged is None:
        return None
    n, axis = len(merged) + 1, sig.attrs["axis"]
    if not -n <= axis < n:
        raise ValueError(f"Invalid axis: {axis}; must be in [{-n},{n})")
    axis %= n
    return merged[:axis] + (len(sig.shapes),) + merged[axis:]


@pack_op.rows
def _pack_rows(op: Operation, inputs: Sequence[Any], rowed: Sequence[bool]) -> Any:
    """The new dimension stands behind that of the rows."""
    axis = op.attrs["axis"]
    return [pack_op(list(inputs), axis=axis if axis < 0 else axis + 1)] if all(rowed) else None


@pack_op.gradient
def _pack_grad(op: Operation, grad: Any) -> list[Tensor]:
    parts = get("Unpack")(grad, num=op.attrs["N"], axis=op.attrs["axis"], name="unstack")
    return list(parts)


@extensible
def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Joins tensors of one shape along a new dimension.

    Args:
        values: a list of tensors of one type and shape.
        axis: where the new dimension goes, in [-rank - 1, rank].
        name: a name for the operation.

    Returns:
        A tensor of one more dimension.

    Raises:
        ValueError: the shapes differ, or the axis is out of range.
    """
    if axis == 0 and (len(values) == 0 or not all(isinstance(v, Tensor) for v in values)):
        # Numbers alone make a constant, and so does nothing.
        try:
            return convert_to_tensor(values, name=name)
        except (TypeError, ValueError):
            if len(values) == 0:
                raise
            # What is no constant is made a tensor element by element, as its own class says.
    first = convert_to_tensor(values[0], name=name).raw_shape
    if first is not None:
        n = len(first) + 1
        if not -n <= axis < n:
            raise ValueError(f"axis = {axis} not in [{-n}, {n})")
    return pack_op(values, axis=axis, name=name)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- ParallelConcat
parallel_concat_op = define_op(
    "ParallelConcat", "values: N * T -> output: T", "N: int >= 1, T: type, shape: shape"
)
array_util.no_gradient(parallel_concat_op)


@parallel_concat_op.shape
def _parallel_concat_shape(sig: ShapeSig) -> Shape:
    wanted: Shape = sig.attrs["shape"]
    if wanted is None or not shapes.is_fully_defined(wanted):
        raise ValueError("shape attr must be fully defined.")
    row: Shape = array_util.replace(wanted, 0, 1)
    for i, part in enumerate(sig.shapes):
        if part is not None and (not part or part[0] not in (None, 1)):
            raise ValueError("Size of first dimension must be 1.")
        try:
            row = shapes.merge(part, row)
        except ValueError as e:
            raise ValueError(f"{e} From merging shape {i} with other shapes.") from None
    return wanted


@extensible
def parallel_stack(values: Any, name: str = "parallel_stack") -> Tensor:
    """Stacks tensors along a new first dimension, each as soon as it is ready.

    Args:
        values: a list of tensors of one type and one fully defined shape.
        name: a name for the operation.

    Returns:
        A tensor of one more dimension; no gradient flows through it.

    Raises:
        ValueError: a shape is not fully defined.
    """
    with name_scope(name, None, values):
        first = convert_to_tensor(values[0])
        full = TensorShape([len(values)]).concatenate(first.get_shape())
        if not full.is_fully_defined():
            raise ValueError(f"All input shapes must be fully defined, got {first.get_shape()}.")
        return parallel_concat_op([expand_dims(v, 0) for v in values], shape=full)  # type: ignore[no-any-return]
