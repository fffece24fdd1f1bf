"""Scattering: values written to or added at coordinates of a new tensor."""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.array import reshape, shape
from opdock.ops.cast import cast
from opdock.ops.fill import zeros_like
from opdock.ops.gather import gather_nd
from opdock.ops.joining import concat
from opdock.ops.reduce import reduce_prod, reduce_sum
from opdock.ops.registry import ShapeSig, define_op, get
from opdock.ops.scan import cumprod
from opdock.ops.support.common_shapes import check_scatter_nd
from opdock.shapes import Shape

__all__ = [
    "scatter_nd", "tensor_scatter_add", "tensor_scatter_nd_add", "tensor_scatter_nd_max",
    "tensor_scatter_nd_min", "tensor_scatter_nd_sub", "tensor_scatter_nd_update",
    "tensor_scatter_sub", "tensor_scatter_update",
]  # fmt: skip

_ON_TENSOR = "tensor: T, indices: Tindices, updates: T -> output: T"
_ATTRS = "T: type, Tindices: {int32, int64}"

scatter_nd_op = define_op(
    "ScatterNd", "indices: Tindices, updates: T, shape: Tindices -> output: T", _ATTRS
)
scatter_nd_non_aliasing_add_op = define_op(
    "ScatterNdNonAliasingAdd", "input: T, indices: Tindices, updates: T -> output: T",
    "T: {numbertype, bool}, Tindices: {int32, int64}",
)  # fmt: skip
tensor_scatter_update_op = define_op("TensorScatterUpdate", _ON_TENSOR, _ATTRS)
tensor_scatter_add_op = define_op("TensorScatterAdd", _ON_TENSOR, _ATTRS)
tensor_scatter_sub_op = define_op("TensorScatterSub", _ON_TENSOR, _ATTRS)
tensor_scatter_min_op = define_op("TensorScatterMin", _ON_TENSOR, _ATTRS)
tensor_scatter_max_op = define_op("TensorScatterMax", _ON_TENSOR, _ATTRS)


# ---------------------------------------------------------------- shapes
@scatter_nd_op.shape
def _scatter_nd_shape(sig: ShapeSig) -> Shape:
    for i in (0, 1):
        shapes.with_rank_at_least(sig.shapes[i], 1)
    out = sig.const_shape(2)
    check_scatter_nd(out, sig.shapes[0], sig.shapes[1])
    return out


@scatter_nd_non_aliasing_add_op.shape
@tensor_scatter_update_op.shape
@tensor_scatter_add_op.shape
@tensor_scatter_sub_op.shape
@tensor_scatter_min_op.shape
@tensor_scatter_max_op.shape
def _tensor_scatter_shape(sig: ShapeSig) -> Shape:
    for shape_ in sig.shapes:
        shapes.with_rank_at_least(shape_, 1)
    check_scatter_nd(sig.shapes[0], sig.shapes[1], sig.shapes[2])
    return sig.shapes[0]


# ---------------------------------------------------------------- gradients
@scatter_nd_op.gradient
def _scatter_nd_grad(op: Operation, grad: Any) -> list[Any]:
    return [None, gather_nd(grad, op.inputs[0]), None]


@scatter_nd_non_aliasing_add_op.gradient
@tensor_scatter_add_op.gradient
def _add_grad(op: Operation, grad: Any) -> list[Any]:
    return [grad, None, gather_nd(grad, op.inputs[1])]


@tensor_scatter_sub_op.gradient
def _sub_grad(op: Operation, grad: Any) -> list[Any]:
    return [grad, None, -gather_nd(grad, op.inputs[1])]


@tensor_scatter_update_op.gradient
def _update_grad(op: Operation, grad: Any) -> list[Any]:
    indices, updates = op.inputs[1], op.inputs[2]
    kept = tensor_scatter_update_op(grad, indices, zeros_like(updates, dtype=grad.dtype))
    return [kept, None, gather_nd(grad, indices)]


@tensor_scatter_min_op.gradient
@tensor_scatter_max_op.gradient
def _extremum_grad(op: Operation, grad: Any) -> list[Any]:
    """The gradient is shared evenly by all contributions that equal the extremum."""
    equal = get("Equal")
    source, indices, updates = op.inputs
    out = op.outputs[0]
    of_source = cast(equal(source, out), grad.dtype)
    of_updates = cast(equal(updates, gather_nd(out, indices)), grad.dtype)
    holders = of_source + scatter_nd(indices, of_updates, shape(source, out_type=indices.dtype))
    part = convert_to_tensor(grad) / holders
    return [part * of_source, None, gather_nd(part, indices) * of_updates]


# ---------------------------------------------------------------- in terms of segments
def _segments(indices: Tensor, shape_of_out: Any) -> tuple[Tensor, Any, Any]:
    """(flat positions, their number, the rest of the shape); coordinates are not checked."""
    depth = shape(indices)[-1]
    outer, rest = shape_of_out[:depth], shape_of_out[depth:]
    strides = cumprod(outer, exclusive=True, reverse=True)
    flat = reduce_sum(indices * strides, axis=-1)
    return reshape(flat, [-1]), reduce_prod(outer), rest


def _by_segment(combine: str, indices: Tensor, updates: Tensor, shape_of_out: Any) -> Tensor:
    """All updates of each place, combined; places without any hold the neutral element."""
    flat, count, rest = _segments(indices, shape_of_out)
    rows = reshape(updates, concat([shape(flat, out_type=rest.dtype), rest], 0))
    return reshape(get(combine)(rows, flat, count), shape_of_out)


@scatter_nd_op.decomposition
def _scatter_nd_parts(sig: Any, indices: Tensor, updates: Tensor, shape: Tensor) -> Tensor:
    return _by_segment("UnsortedSegmentSum", indices, updates, shape)


@scatter_nd_non_aliasing_add_op.decomposition
@tensor_scatter_add_op.decomposition
def _add_parts(sig: Any, tensor: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    total = shape(tensor, out_type=indices.dtype)
    return tensor + _by_segment("UnsortedSegmentSum", indices, updates, total)


@tensor_scatter_sub_op.decomposition
def _sub_parts(sig: Any, tensor: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    total = shape(tensor, out_type=indices.dtype)
    return tensor - _by_segment("UnsortedSegmentSum", indices, updates, total)


@tensor_scatter_min_op.decomposition
def _min_parts(sig: Any, tensor: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    total = shape(tensor, out_type=indices.dtype)
    least = _by_segment("UnsortedSegmentMin", indices, updates, total)
    return get("Minimum")(tensor, least)  # type: ignore[no-any-return]


@tensor_scatter_max_op.decomposition
def _max_parts(sig: Any, tensor: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    total = shape(tensor, out_type=indices.dtype)
    most = _by_segment("UnsortedSegmentMax", indices, updates, total)
    return get("Maximum")(tensor, most)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- public functions
_WORDS = {
    "indices": "an int32 or int64 tensor; its last dimension holds the coordinates.",
    "updates": "a tensor of shape `indices.shape[:-1] + tensor.shape[indices.shape[-1]:]`.",
    "name": "a name for the operation.",
    "returns": "A tensor of the shape of `tensor`; repeated coordinates add up.",
    "tensor": "a tensor.",
}
"""What the functions here take."""


@extensible
@explained(
    _WORDS,
    updates="a tensor of shape `indices.shape[:-1] + shape[indices.shape[-1]:]`.",
    shape="the shape of the result, a 1-D tensor of the type of `indices`.",
    returns="A tensor of the type of `updates`; repeated coordinates add up.",
    raises="ValueError: the shapes do not fit.\n"
    "tf.errors.InvalidArgumentError: at run time, for coordinates out of range.",
)
def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Adds updates at coordinates of a tensor of zeros."""
    return scatter_nd_op(indices, updates, shape, name=name)  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    returns="A tensor of the shape of `tensor`; of repeated coordinates the last wins.",
)
def tensor_scatter_update(
    tensor: Any, indices: Any, updates: Any, name: str | None = None
) -> Tensor:
    """A copy of a tensor with values replaced at some coordinates."""
    return tensor_scatter_update_op(tensor, indices, updates, name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS)
def tensor_scatter_add(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """A copy of a tensor with updates added at some coordinates."""
    return tensor_scatter_add_op(tensor, indices, updates, name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS)
def tensor_scatter_sub(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """A copy of a tensor with updates subtracted at some coordinates."""
    return tensor_scatter_sub_op(tensor, indices, updates, name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS, returns="A tensor of the shape of `tensor`.")
def tensor_scatter_nd_min(
    tensor: Any, indices: Any, updates: Any, name: str | None = None
) -> Tensor:
    """A copy of a tensor with the element-wise minimum taken at some coordinates."""
    return tensor_scatter_min_op(tensor, indices, updates, name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS, returns="A tensor of the shape of `tensor`.")
def tensor_scatter_nd_max(
    tensor: Any, indices: Any, updates: Any, name: str | None = None
) -> Tensor:
    """A copy of a tensor with the element-wise maximum taken at some coordinates."""
    return tensor_scatter_max_op(tensor, indices, updates, name=name)  # type: ignore[no-any-return]


tensor_scatter_nd_update = tensor_scatter_update
tensor_scatter_nd_add = tensor_scatter_add
tensor_scatter_nd_sub = tensor_scatter_sub
