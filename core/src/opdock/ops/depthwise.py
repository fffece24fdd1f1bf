"""Depthwise convolution: the ops, their gradients, and separable convolution over them."""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.composed.dilated import shape_of, with_space_to_batch
from opdock.ops.conv import conv2d
from opdock.ops.registry import Cost, Fails, Formatted, Shape, ShapeSig, Traits, define_op
from opdock.ops.support.array_util import multiply
from opdock.ops.support.conv_grad import Convolution, each
from opdock.ops.support.nn_util import renamed
from opdock.ops.support.windows import check_length
from opdock.shapes import as_dimension
from opdock.windows import Layout

__all__ = [
    "depthwise_conv2d", "depthwise_conv2d_backprop_filter", "depthwise_conv2d_backprop_input",
    "depthwise_conv2d_native", "depthwise_conv2d_native_backprop_filter",
    "depthwise_conv2d_native_backprop_input", "separable_conv2d",
]  # fmt: skip

_ONES = (1, 1, 1, 1)
_ATTRS = (
    "T: {half, bfloat16, float, double}, strides: list(int), padding: {'SAME', 'VALID'}, "
    "data_format: {'NHWC', 'NCHW'} = 'NHWC', dilations: list(int) = [1, 1, 1, 1]"
)

depthwise_op = define_op("DepthwiseConv2dNative", "input: T, filter: T -> output: T", _ATTRS)
depthwise_op.declare(Traits(cost=Cost.PRODUCT, fails=Fails.BY_SHAPE, layout=Formatted((0,))))
depthwise_backprop_input_op = define_op(
    "DepthwiseConv2dNativeBackpropInput",
    "input_sizes: int32, filter: T, out_backprop: T -> output: T", _ATTRS,
)  # fmt: skip
depthwise_backprop_input_op.declare(
    Traits(cost=Cost.PRODUCT, fails=Fails.BY_SHAPE, layout=Formatted((2,), (0,)))
)
depthwise_backprop_filter_op = define_op(
    "DepthwiseConv2dNativeBackpropFilter",
    "input: T, filter_sizes: int32, out_backprop: T -> output: T", _ATTRS,
)  # fmt: skip
depthwise_backprop_filter_op.declare(
    Traits(cost=Cost.PRODUCT, fails=Fails.BY_SHAPE, layout=Formatted((0, 2), (), ()))
)


@depthwise_op.shape
def _depthwise_shape(sig: ShapeSig) -> Shape:
    data, kernel = shapes.with_rank(sig.shapes[0], 4), shapes.with_rank(sig.shapes[1], 4)
    strides, dilations = sig.attrs["strides"], sig.attrs["dilations"]
    check_length(strides, 4, "DepthwiseConv2D requires the stride")
    check_length(dilations, 4, "DepthwiseConv2D requires the dilations")
    layout = Layout(sig.attrs)
    batch, space, channels = layout.parts(data)
    outputs = multiply(shapes.merge_dim(channels, kernel[2]), kernel[3])
    return layout.shape(batch, layout.output(space, kernel[:2]), outputs)


@depthwise_backprop_input_op.shape
def _depthwise_backprop_input_shape(sig: ShapeSig) -> Shape:
    return shapes.with_rank(sig.const_shape(0), 4)


@depthwise_backprop_filter_op.shape
def _depthwise_backprop_filter_shape(sig: ShapeSig) -> Shape:
    return shapes.with_rank(sig.const_shape(1), 4)


# ---------------------------------------------------------------- gradients
_SHARED = ("strides", "padding", "data_format", "dilations")
Convolution(
    depthwise_op, depthwise_backprop_input_op, depthwise_backprop_filter_op, _SHARED, each
).declare()


# ---------------------------------------------------------------- public functions
_WORDS = {
    "input": "a 4-D floating-point tensor.",
    "filter": "a 4-D tensor [height, width, in_channels, channel_multiplier] of the same type.",
    "strides": "a list of 4 ints.",
    "padding": '"SAME" or "VALID".',
    "data_format": '"NHWC" or "NCHW".',
    "dilations": "a list of 4 ints.",
    "name": "a name for the operation.",
    "returns": "A 4-D tensor with `in_channels * channel_multiplier` channels.",
    "out_backprop": "the gradient at its output.",
}
"""What the functions here take."""


@extensible
@explained(_WORDS, dilations="a list of 4 ints: the step inside the window.")
def depthwise_conv2d_native(
    input: Any, filter: Any, strides: Any, padding: str, data_format: str | None = "NHWC",
    dilations: Any = _ONES, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Convolves each input channel with its own filters."""
    return depthwise_op(  # type: ignore[no-any-return]
        input, filter, strides=strides, padding=padding, data_format=data_format or "NHWC",
        dilations=list(dilations), name=name,
    )  # fmt: skip


@extensible
@explained(
    _WORDS,
    input_sizes="an int32 vector, the shape of the input.",
    filter="the filter of the convolution.",
    returns="A tensor of shape `input_sizes`.",
)
def depthwise_conv2d_native_backprop_input(
    input_sizes: Any, filter: Any, out_backprop: Any, strides: Any, padding: str,
    data_format: str | None = "NHWC", dilations: Any = _ONES, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The gradient of `depthwise_conv2d_native` with respect to its input."""
    return depthwise_backprop_input_op(  # type: ignore[no-any-return]
        input_sizes, filter, out_backprop, strides=strides, padding=padding,
        data_format=data_format or "NHWC", dilations=list(dilations), name=name,
    )  # fmt: skip


@extensible
@explained(
    _WORDS,
    input="the input of the convolution.",
    filter_sizes="an int32 vector, the shape of the filter.",
    returns="A tensor of shape `filter_sizes`.",
)
def depthwise_conv2d_native_backprop_filter(
    input: Any, filter_sizes: Any, out_backprop: Any, strides: Any, padding: str,
    data_format: str | None = "NHWC", dilations: Any = _ONES, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The gradient of `depthwise_conv2d_native` with respect to its filter."""
    return depthwise_backprop_filter_op(  # type: ignore[no-any-return]
        input, filter_sizes, out_backprop, strides=strides, padding=padding,
        data_format=data_format or "NHWC", dilations=list(dilations), name=name,
    )  # fmt: skip


depthwise_conv2d_backprop_input = depthwise_conv2d_native_backprop_input
depthwise_conv2d_backprop_filter = depthwise_conv2d_native_backprop_filter


@extensible
@explained(
    _WORDS,
    strides="a list of 4 ints; all 1 when `rate` is above 1.",
    rate="two ints, the dilation of the window.",
    data_format='"NHWC" (default) or "NCHW".',
    dilations="an alias of `rate`.",
)
def depthwise_conv2d(
    input: Any, filter: Any, strides: Any, padding: str, rate: Any = None, name: str | None = None,
    data_format: str | None = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    """Depthwise convolution, optionally dilated."""
    rate = renamed("dilations", dilations, "rate", rate)
    with name_scope(name, "depthwise", [input, filter]) as scope:
        input = convert_to_tensor(input, name="tensor_in")
        kernel = convert_to_tensor(filter, name="filter_in")

        def native(converted: Tensor, _: Any, padding: str) -> Tensor:
            return depthwise_conv2d_native(
                converted, kernel, strides, padding, data_format, name=scope
            )

        return with_space_to_batch(
            input, [1, 1] if rate is None else rate, padding, native,
            filter_shape=shape_of(kernel), data_format=data_format,
        )  # fmt: skip


@extensible
@explained(
    _WORDS,
    depthwise_filter="a 4-D tensor [height, width, in_channels, channel_multiplier].",
    pointwise_filter="a 4-D tensor [1, 1, in_channels * channel_multiplier, out_channels].",
    strides="a list of 4 ints, the steps of the depthwise part.",
    rate="two ints, the dilation of the depthwise part.",
    data_format='"NHWC" (default) or "NCHW".',
    dilations="an alias of `rate`.",
    returns="A 4-D tensor with `out_channels` channels.",
    raises="ValueError: the pointwise filter is not 1x1.",
)
def separable_conv2d(
    input: Any, depthwise_filter: Any, pointwise_filter: Any, strides: Any, padding: str,
    rate: Any = None, name: str | None = None, data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:  # fmt: skip
    """A depthwise convolution followed by a 1x1 convolution that mixes the channels."""
    rate = renamed("dilations", dilations, "rate", rate)
    with name_scope(name, "separable_conv2d", [input, depthwise_filter, pointwise_filter]) as scope:
        input = convert_to_tensor(input, name="tensor_in")
        deep = convert_to_tensor(depthwise_filter, name="depthwise_filter")
        point = convert_to_tensor(pointwise_filter, name="pointwise_filter")
        point_shape = point.get_shape().with_rank(4)
        as_dimension(point_shape[0]).assert_is_compatible_with(1)
        as_dimension(point_shape[1]).assert_is_compatible_with(1)

        def native(converted: Tensor, _: Any, padding: str) -> Tensor:
            return depthwise_conv2d_native(
                converted, deep, strides, padding, data_format, name="depthwise"
            )

        middle = with_space_to_batch(
            input, [1, 1] if rate is None else rate, padding, native,
            filter_shape=shape_of(deep), data_format=data_format,
        )  # fmt: skip
        return conv2d(middle, point, [1, 1, 1, 1], "VALID", data_format=data_format, name=scope)
