"""3-D pooling ops: MaxPool3D, AvgPool3D, and their gradients."""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.registry import Shape, ShapeSig, define_op
from opdock.ops.support.nn_util import emit, zeros_like
from opdock.ops.support.windows import pool_shape

__all__: list[str] = []

_WINDOW = (
    "ksize: list(int) >= 5, strides: list(int) >= 5, padding: {'SAME', 'VALID'}, "
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'"
)
_TITLE = "Pool3D ops require"

avg_pool3d_op = define_op(
    "AvgPool3D", "input: T -> output: T", f"{_WINDOW}, T: {{half, bfloat16, float, double}}"
)
avg_pool3d_grad_op = define_op(
    "AvgPool3DGrad", "orig_input_shape: int32, grad: T -> output: T",
    f"{_WINDOW}, T: {{half, bfloat16, float, double}}",
)  # fmt: skip
max_pool3d_op = define_op(
    "MaxPool3D", "input: T -> output: T", f"{_WINDOW}, T: {{half, bfloat16, float}}"
)
max_pool3d_grad_op = define_op(
    "MaxPool3DGrad", "orig_input: TInput, orig_output: TInput, grad: T -> output: T",
    f"{_WINDOW}, T: {{half, bfloat16, float}} = DT_FLOAT, "
    "TInput: {half, bfloat16, float} = DT_FLOAT",
)  # fmt: skip
max_pool3d_grad_grad_op = define_op(
    "MaxPool3DGradGrad", "orig_input: T, orig_output: T, grad: T -> output: T",
    f"{_WINDOW}, T: realnumbertype",
)  # fmt: skip


@avg_pool3d_op.shape
@max_pool3d_op.shape
def _pool3d_shape(sig: ShapeSig) -> Shape:
    return pool_shape(sig, 5, _TITLE)


@avg_pool3d_grad_op.shape
def _avg_pool3d_grad_shape(sig: ShapeSig) -> Shape:
    return shapes.with_rank(sig.const_shape(0), 5)


@max_pool3d_grad_op.shape
def _max_pool3d_grad_shape(sig: ShapeSig) -> Shape:
    return shapes.with_rank(sig.shapes[0], 5)


@max_pool3d_grad_grad_op.shape
def _max_pool3d_grad_grad_shape(sig: ShapeSig) -> Shape:
    out = pool_shape(sig, 5, _TITLE)
    shapes.merge(sig.shapes[0], sig.shapes[2])
    return shapes.merge(sig.shapes[1], out)


# ---------------------------------------------------------------- gradients
def _window(op: Operation) -> dict[str, Any]:
    return {name: op.attrs[name] for name in ("ksize", "strides", "padding", "data_format")}


@avg_pool3d_op.gradient
def _avg_pool3d_grad(op: Operation, grad: Tensor) -> Tensor:
    return avg_pool3d_grad_op(emit("Shape", op.inputs[0]), grad, **_window(op))  # type: ignore[no-any-return]


@avg_pool3d_grad_op.gradient
def _avg_pool3d_grad_grad(op: Operation, grad: Tensor) -> list[Tensor | None]:
    return [None, avg_pool3d_op(grad, **_window(op))]


@max_pool3d_op.gradient
def _max_pool3d_grad(op: Operation, grad: Tensor) -> Tensor:
    return max_pool3d_grad_op(op.inputs[0], op.outputs[0], grad, **_window(op))  # type: ignore[no-any-return]


@max_pool3d_grad_op.gradient
def _max_pool3d_grad_grad(op: Operation, grad: Tensor) -> list[Tensor]:
    data, out, _ = op.inputs
    result = max_pool3d_grad_grad_op(data, out, grad, **_window(op))
    return [zeros_like(data), zeros_like(out), result]


@max_pool3d_grad_grad_op.gradient
def _max_pool3d_grad_grad_grad(op: Operation, grad: Tensor) -> list[Tensor]:
    data, out, _ = op.inputs
    result = max_pool3d_grad_op(data, out, grad, **_window(op))
    return [zeros_like(data), zeros_like(out), result]
