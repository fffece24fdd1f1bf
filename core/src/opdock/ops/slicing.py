"""Parts of tensors: slices and subscripts."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.graph.nodes import slicespec
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.array import rank, reshape, shape
from opdock.ops.fill import ones_like
from opdock.ops.registry import PerAxis, ShapeSig, Traits, define_op, get
from opdock.ops.support import array_util, common_shapes
from opdock.shapes import Shape

__all__ = ["newaxis", "slice", "strided_slice"]

newaxis = None
_MASK_ATTRS = (
    "begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0, "
    "shrink_axis_mask: int = 0"
)


# ---------------------------------------------------------------- Slice
slice_op = define_op(
    "Slice", "input: T, begin: Index, size: Index -> output: T", "T: type, Index: {int32, int64}"
)
slice_op.declare(Traits(layout=PerAxis((1, 2))))


@slice_op.shape
def _slice_shape(sig: ShapeSig) -> Shape:
    for i in (1, 2):
        array_util.vector_length(sig.shapes[i])
    count = shapes.merge(sig.shapes[1], sig.shapes[2])
    source = sig.shapes[0]
    if count is not None and count[0] is not None:
        source = shapes.with_rank(source, count[0])
    begin, sizes = sig.const_shape(1), array_util.const_ints(sig, 2)
    if sizes is None:
        partial = sig.const_shape(2)
        return partial if partial is not None or source is None else (None,) * len(source)
    source = shapes.with_rank(source, len(sizes))
    out: list[int | None] = []
    for i, length in enumerate(sizes):
        if length == -1:
            start = None if begin is None else begin[i]
            out.append(None if start is None else array_util.subtract(source[i], start))
        elif length < 0:
            raise ValueError(f"Invalid value in tensor used for shape: {length}")
        else:
            out.append(length)
    return tuple(out)


@slice_op.gradient
def _slice_grad(op: Operation, grad: Any) -> list[Any]:
    source, begin = op.inputs[0], op.inputs[1]
    start, full, part = constant_value(begin), source.raw_shape, op.outputs[0].raw_shape
    paddings: Any
    after: Any
    if start is not None and shapes.is_fully_defined(full) and shapes.is_fully_defined(part):
        before = start.astype(np.int64)
        after = np.array(full, np.int64) - np.array(part, np.int64) - before
        paddings = np.stack([before, after], 1).astype(np.int32)
    else:
        column = convert_to_tensor([rank(source), 1], name="stack")
        after = shape(source, out_type=begin.dtype) - shape(op.outputs[0], out_type=begin.dtype)
        columns = [reshape(begin, column), reshape(after - begin, column)]
        paddings = get("ConcatV2")(columns, 1, name="concat")
    padded = get("Pad")(grad, paddings)
    padded.set_shape(source.raw_shape)
    return [padded, None, None]


@extensible
def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """The block of a tensor that starts at `begin` and has shape `size`.

    Args:
        input_: a tensor.
        begin: the first index in each dimension, a 1-D int32 or int64 tensor.
        size: the number of elements in each dimension; -1 takes all that remain.
        name: a name for the operation.

    Returns:
        A tensor of the type of `input_`.

    Raises:
        tf.errors.InvalidArgumentError: at run time, when the block leaves the tensor.
    """
    return slice_op(input_, begin, size, name=name)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- StridedSlice
strided_slice_op = define_op(
    "StridedSlice", "input: T, begin: Index, end: Index, strides: Index -> output: T",
    "T: type, Index: {int32, int64}, " + _MASK_ATTRS,
)  # fmt: skip
strided_slice_grad_op = define_op(
    "StridedSliceGrad",
    "shape: Index, begin: Index, end: Index, strides: Index, dy: T -> output: T",
    "T: type, Index: {int32, int64}, " + _MASK_ATTRS,
)
strided_slice_assign_op = define_op(
    "StridedSliceAssign",
    "ref: Ref(T), begin: Index, end: Index, strides: Index, value: T -> output_ref: Ref(T)",
    "T: type, Index: {int32, int64}, " + _MASK_ATTRS,
).not_differentiable()
resource_strided_slice_assign_op = define_op(
    "ResourceStridedSliceAssign",
    "ref: resource, begin: Index, end: Index, strides: Index, value: T",
    "T: type, Index: {int32, int64}, " + _MASK_ATTRS,
    stateful=True,
).not_differentiable()

strided_slice_assign_op.shape(common_shapes.unchanged)
resource_strided_slice_assign_op.shape(common_shapes.no_outputs)


@strided_slice_op.shape
def _strided_slice_shape(sig: ShapeSig) -> Shape:
    count: Shape = None
    for i in (1, 2, 3):
        array_util.vector_length(sig.shapes[i])
        count = shapes.merge(count, sig.shapes[i])
    begin, end, strides = (array_util.const_ints(sig, i) for i in (1, 2, 3))
    return slicespec.resolve_static(sig.shapes[0], begin, end, strides, sig.attrs)


@strided_slice_grad_op.shape
def _strided_slice_grad_shape(sig: ShapeSig) -> Shape:
    return sig.const_shape(0)


@strided_slice_op.gradient
def _strided_slice_gradient(op: Operation, grad: Any) -> list[Any]:
    source, begin, end, strides = op.inputs
    full = shape(source, out_type=begin.dtype)
    masks: dict[str, Any] = slicespec.masks(op.attrs)
    out = strided_slice_grad_op(full, begin, end, strides, grad, **masks)
    return [out, None, None, None]


@strided_slice_grad_op.gradient
def _strided_slice_grad_gradient(op: Operation, grad: Any) -> list[Any]:
    begin, end, strides = op.inputs[1:4]
    masks: dict[str, Any] = slicespec.masks(op.attrs)
    out = strided_slice_op(grad, begin, end, strides, **masks)
    return [None, None, None, None, out]


@extensible
def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """A part of a tensor by Python's slice rules; `tensor[...]` is the readable form.

    Args:
        input_: a tensor.
        begin: the first index of each subscript, a 1-D int32 or int64 tensor.
        end: the index after the last.
        strides: the steps, 1 by default; negative steps go backwards.
        begin_mask: bits of the subscripts whose `begin` is left out.
        end_mask: bits of the subscripts whose `end` is left out.
        ellipsis_mask: the bit of the subscript that stands for all remaining dimensions.
        new_axis_mask: bits of the subscripts that insert a dimension of size 1.
        shrink_axis_mask: bits of the subscripts that select one index and drop the dimension.
        var: the variable that `input_` was read from; gives the result an `assign` method.
        name: a name for the operation.

    Returns:
        A tensor of the type of `input_`.

    Raises:
        ValueError: an index is out of bounds (`InvalidArgumentError` at run time).
    """
    if strides is None:
        strides = ones_like(begin)
    masks: dict[str, Any] = {
        "begin_mask": begin_mask, "end_mask": end_mask, "ellipsis_mask": ellipsis_mask,
        "new_axis_mask": new_axis_mask, "shrink_axis_mask": shrink_axis_mask,
    }  # fmt: skip
    out: Tensor = strided_slice_op(input_, begin, end, strides, name=name, **masks)
    out.assign = (  # type: ignore[attr-defined]
        _assign_needs_variable
        if var is None
        else functools.partial(_assign_slice, var, (begin, end, strides), masks, name)
    )
    return out


def _assign_needs_variable(value: Any, name: str | None = None) -> Any:
    raise ValueError("Sliced assignment is only supported for variables")


def _assign_slice(
    var: Any, bounds: Any, masks: dict[str, int], parent: str | None, value: Any,
    name: str | None = None,
) -> Any:  # fmt: skip
    if name is None:
        name = (parent or "strided_slice").rstrip("/") + "_assign"
    begin, end, strides = bounds
    if hasattr(var, "_strided_slice_assign"):
        return var._strided_slice_assign(begin, end, strides, value=value, name=name, **masks)
    return assign_slice(var, begin, end, strides, value, name=name, **masks)


def assign_slice(
    var: Any, begin: Any, end: Any, strides: Any, value: Any, name: str | None = None, **masks: int
) -> Any:
    """Writes `value` to a part of a variable.

    Args:
        var: a reference or resource variable, or a reference tensor.
        begin: see `strided_slice`.
        end: see `strided_slice`.
        strides: see `strided_slice`.
        value: a tensor of the part's shape.
        name: a name for the operation.
        **masks: the masks of `strided_slice`.

    Returns:
        The reference tensor, or the new value of a resource variable.
    """
    if hasattr(var, "handle"):
        value = convert_to_tensor(value, dtypes.as_dtype(var.dtype).base_dtype)
        done = resource_strided_slice_assign_op(
            var.handle, begin, end, strides, value, name=name, **masks
        )
        return var._lazy_read(done)
    return strided_slice_assign_op(var, begin, end, strides, value, name=name, **masks)
