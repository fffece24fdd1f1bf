"""Grayscale morphological dilation and erosion."""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.registry import Shape, ShapeSig, define_op
from opdock.ops.support import common_shapes
from opdock.ops.support.nn_util import emit, renamed
from opdock.ops.support.windows import check_length
from opdock.windows import Layout

__all__ = ["dilation2d", "erosion2d"]

_ATTRS = (
    "T: realnumbertype, strides: list(int) >= 4, rates: list(int) >= 4, padding: {'SAME', 'VALID'}"
)

dilation2d_op = define_op("Dilation2D", "input: T, filter: T -> output: T", _ATTRS)
dilation2d_backprop_input_op = define_op(
    "Dilation2DBackpropInput", "input: T, filter: T, out_backprop: T -> in_backprop: T", _ATTRS
).not_differentiable()
dilation2d_backprop_filter_op = define_op(
    "Dilation2DBackpropFilter", "input: T, filter: T, out_backprop: T -> filter_backprop: T", _ATTRS
).not_differentiable()

dilation2d_backprop_input_op.shape(common_shapes.unchanged)


@dilation2d_op.shape
def _dilation2d_shape(sig: ShapeSig) -> Shape:
    data, kernel = shapes.with_rank(sig.shapes[0], 4), shapes.with_rank(sig.shapes[1], 3)
    strides, rates = sig.attrs["strides"], sig.attrs["rates"]
    check_length(strides, 4, "Dilation2D requires the stride")
    check_length(rates, 4, "Dilation2D requires the rates")
    shapes.merge_dim(data[3], kernel[2])
    return (data[0], *Layout(sig.attrs).output(data[1:3], kernel[:2]), kernel[2])


@dilation2d_backprop_filter_op.shape
def _dilation2d_backprop_filter_shape(sig: ShapeSig) -> Shape:
    return sig.shapes[1]


@dilation2d_op.gradient
def _dilation2d_grad(op: Operation, grad: Tensor) -> list[Tensor]:
    attrs = {name: op.attrs[name] for name in ("strides", "rates", "padding")}
    return [
        dilation2d_backprop_input_op(op.inputs[0], op.inputs[1], grad, **attrs),
        dilation2d_backprop_filter_op(op.inputs[0], op.inputs[1], grad, **attrs),
    ]


@extensible
def dilation2d(
    input: Any, filter: Any = None, strides: Any = None, rates: Any = None, padding: Any = None,
    name: str | None = None, filters: Any = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    """The maximum over the window of `input + filter`, channel by channel.

    Args:
        input: a 4-D real tensor [batch, height, width, channels].
        filter: a 3-D tensor [height, width, channels] of the same type.
        strides: a list of 4 ints, the step of the window.
        rates: a list of 4 ints, the step inside the window.
        padding: "SAME" or "VALID".
        name: a name for the operation.
        filters: an alias of `filter`.
        dilations: an alias of `rates`.

    Returns:
        A 4-D tensor of the type of `input`.
    """
    filter = renamed("filters", filters, "filter", filter)
    rates = renamed("dilations", dilations, "rates", rates)
    return dilation2d_op(  # type: ignore[no-any-return]
        input, filter, strides=strides, rates=rates, padding=padding, name=name
    )


@extensible
def erosion2d(
    value: Any, kernel: Any, strides: Any, rates: Any, padding: str, name: str | None = None
) -> Tensor:
    """The minimum over the window of `value` minus the flipped `kernel`, channel by channel.

    Args:
        value: a 4-D real tensor [batch, height, width, channels].
        kernel: a 3-D tensor [height, width, channels] of the same type.
        strides: a list of 4 ints, the step of the window.
        rates: a list of 4 ints, the step inside the window.
        padding: "SAME" or "VALID".
        name: a name for the operation.

    Returns:
        A 4-D tensor of the type of `value`.
    """
    with name_scope(name, "erosion2d", [value, kernel]) as scope:
        # Erosion is dilation of the negative by the flipped kernel.
        dilated = dilation2d_op(
            emit("Neg", value), emit("ReverseV2", kernel, [0, 1]), strides=strides, rates=rates,
            padding=padding, name=scope,
        )  # fmt: skip
        return emit("Neg", dilated)  # type: ignore[no-any-return]
