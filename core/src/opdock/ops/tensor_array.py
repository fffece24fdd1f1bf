"""The tensor-array ops: arrays of tensors that are written and read one element at a time.

A handle names the array within one step; a scalar `flow` runs through all uses and orders them.
The gradient of an array is another array, kept with it, one per `tf.gradients` call.
"""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes import gradient_scope
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.traits import Traits
from opdock.ops.registry import ShapeSig, define_op
from opdock.shapes import Shape

__all__: list[str] = []

tensor_array_op = define_op(
    "TensorArrayV3", "size: int32 -> handle: resource, flow: float",
    "dtype: type, element_shape: shape = unknown, dynamic_size: bool = false, "
    "clear_after_read: bool = true, identical_element_shapes: bool = false, "
    'tensor_array_name: string = ""',
    stateful=True,
).not_differentiable()  # fmt: skip
tensor_array_grad_op = define_op(
    "TensorArrayGradV3",
    "handle: resource, flow_in: float -> grad_handle: resource, flow_out: float",
    "source: string",
    stateful=True,
)
tensor_array_write_op = define_op(
    "TensorArrayWriteV3",
    "handle: resource, index: int32, value: T, flow_in: float -> flow_out: float",
    "T: type",
    stateful=True,
)
tensor_array_read_op = define_op(
    "TensorArrayReadV3",
    "handle: resource, index: int32, flow_in: float -> value: dtype",
    "dtype: type",
    stateful=True,
)
tensor_array_gather_op = define_op(
    "TensorArrayGatherV3",
    "handle: resource, indices: int32, flow_in: float -> value: dtype",
    "dtype: type, element_shape: shape = unknown",
    stateful=True,
)
tensor_array_scatter_op = define_op(
    "TensorArrayScatterV3",
    "handle: resource, indices: int32, value: T, flow_in: float -> flow_out: float",
    "T: type",
    stateful=True,
)
tensor_array_concat_op = define_op(
    "TensorArrayConcatV3",
    "handle: resource, flow_in: float -> value: dtype, lengths: int64",
    "dtype: type, element_shape_except0: shape = unknown",
    stateful=True,
)
tensor_array_split_op = define_op(
    "TensorArraySplitV3",
    "handle: resource, value: T, lengths: int64, flow_in: float -> flow_out: float",
    "T: type",
    stateful=True,
)
tensor_array_size_op = define_op(
    "TensorArraySizeV3", "handle: resource, flow_in: float -> size: int32", stateful=True
).not_differentiable()
tensor_array_close_op = define_op(
    "TensorArrayCloseV3", "handle: resource", stateful=True
).not_differentiable()


for _op in (
    tensor_array_op, tensor_array_grad_op, tensor_array_write_op, tensor_array_read_op,
    tensor_array_gather_op, tensor_array_scatter_op, tensor_array_concat_op,
    tensor_array_split_op, tensor_array_size_op, tensor_array_close_op,
):  # fmt: skip
    _op.declare(Traits(local=True))


@tensor_array_op.shape
@tensor_array_grad_op.shape
@tensor_array_write_op.shape
@tensor_array_scatter_op.shape
@tensor_array_split_op.shape
@tensor_array_size_op.shape
@tensor_array_close_op.shape
def _scalars(sig: ShapeSig) -> list[Shape]:
    if sig.op == "TensorArrayV3":
        shapes.with_rank(sig.shapes[0], 0)
    return [()] * sig.n_outputs


@tensor_array_read_op.shape
def _read_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[1], 0)
    return None


@tensor_array_gather_op.shape
def _gather_shape(sig: ShapeSig) -> Shape:
    (count,) = shapes.with_rank(sig.shapes[1], 1)
    element: Shape = sig.attrs["element_shape"]
    return None if element is None else (count, *element)


@tensor_array_concat_op.shape
def _concat_shape(sig: ShapeSig) -> list[Shape]:
    rest: Shape = sig.attrs["element_shape_except0"]
    return [None if rest is None else (None, *rest), (None,)]


# ---------------------------------------------------------------- gradients
def _gradient_array(op: Operation, flow: Tensor) -> tuple[Tensor, Tensor]:
    handle, out = tensor_array_grad_op(op.inputs[0], flow, source=gradient_scope.current())
    return handle, out


@tensor_array_grad_op.gradient
def _grad_gradient(op: Operation, handle: Any, flow: Tensor | None) -> list[Any]:
    # An array of gradients has one of its own for each computation that differentiates it, which
    # its reads and writes find by its handle; here only their order passes on.
    return [None, flow]


@tensor_array_read_op.gradient
def _read_gradient(op: Operation, grad: Tensor) -> list[Any]:
    handle, flow = _gradient_array(op, op.inputs[2])
    return [None, None, tensor_array_write_op(handle, op.inputs[1], grad, flow)]


@tensor_array_write_op.gradient
def _write_gradient(op: Operation, flow: Tensor) -> list[Any]:
    handle, gflow = _gradient_array(op, flow)
    grad = tensor_array_read_op(handle, op.inputs[1], gflow, dtype=op.attrs["T"])
    return [None, None, _known(grad, op.inputs[2]), flow]


@tensor_array_gather_op.gradient
def _gather_gradient(op: Operation, grad: Tensor) -> list[Any]:
    handle, flow = _gradient_array(op, op.inputs[2])
    return [None, None, tensor_array_scatter_op(handle, op.inputs[1], grad, flow)]


@tensor_array_scatter_op.gradient
def _scatter_gradient(op: Operation, flow: Tensor) -> list[Any]:
    handle, gflow = _gradient_array(op, flow)
    grad = tensor_array_gather_op(handle, op.inputs[1], gflow, dtype=op.attrs["T"])
    return [None, None, _known(grad, op.inputs[2]), flow]


@tensor_array_concat_op.gradient
def _concat_gradient(op: Operation, grad: Tensor, unused: Any) -> list[Any]:
    handle, flow = _gradient_array(op, op.inputs[1])
    return [None, tensor_array_split_op(handle, grad, op.outputs[1], flow)]


@tensor_array_split_op.gradient
def _split_gradient(op: Operation, flow: Tensor) -> list[Any]:
    handle, gflow = _gradient_array(op, flow)
    grad, _ = tensor_array_concat_op(handle, gflow, dtype=op.attrs["T"])
    return [None, _known(grad, op.inputs[1]), None, flow]


def _known(grad: Tensor, like: Tensor) -> Tensor:
    grad.set_shape(like.raw_shape)
    return grad
