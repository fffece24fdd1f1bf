"""Local response normalization."""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.registry import Shape, ShapeSig, define_op
from opdock.ops.support.array_util import no_gradient

__all__ = ["local_response_normalization", "lrn"]

_ATTRS = (
    "depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5, "
    "T: {half, bfloat16, float} = DT_FLOAT"
)

lrn_op = define_op("LRN", "input: T -> output: T", _ATTRS)
lrn_grad_op = define_op(
    "LRNGrad", "input_grads: T, input_image: T, output_image: T -> output: T", _ATTRS
)
no_gradient(lrn_grad_op)


@lrn_op.shape
def _lrn_shape(sig: ShapeSig) -> Shape:
    return shapes.with_rank(sig.shapes[0], 4)


@lrn_grad_op.shape
def _lrn_grad_shape(sig: ShapeSig) -> Shape:
    shape: Shape = shapes.with_rank(sig.shapes[0], 4)
    return shapes.merge(shapes.merge(shape, sig.shapes[1]), sig.shapes[2])


@lrn_op.gradient
def _lrn_grad(op: Operation, grad: Tensor) -> Tensor:
    attrs = {name: op.attrs[name] for name in ("depth_radius", "bias", "alpha", "beta")}
    return lrn_grad_op(grad, op.inputs[0], op.outputs[0], **attrs)  # type: ignore[no-any-return]


@extensible
def local_response_normalization(
    input: Any, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Divides each element by a power of the energy of its neighbours along the channels.

    `input / (bias + alpha * sum(input[..., d - r : d + r + 1] ** 2)) ** beta`

    Args:
        input: a 4-D tensor of a floating type.
        depth_radius: how many neighbours on each side count.
        bias: an offset, usually positive to avoid division by zero.
        alpha: the weight of the sum.
        beta: the exponent.
        name: a name for the operation.

    Returns:
        A tensor like `input`.
    """
    return lrn_op(  # type: ignore[no-any-return]
        input, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta, name=name
    )


lrn = local_response_normalization
