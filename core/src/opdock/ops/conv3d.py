"""3-D convolution: the ops, their gradients, and the public functions over them."""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.registry import Cost, Fails, Shape, ShapeSig, Traits, define_op
from opdock.ops.support.conv_grad import Convolution, both
from opdock.ops.support.nn_util import emit, renamed, sequence
from opdock.ops.support.windows import conv_shape
from opdock.windows import channels_first

__all__ = ["conv3d", "conv3d_backprop_filter", "conv3d_backprop_filter_v2", "conv3d_transpose"]

_ONES = (1, 1, 1, 1, 1)
_OLD_ATTRS = (
    "T: {half, float, double}, strides: list(int) >= 5, padding: {'SAME', 'VALID'}, "
    "dilations: list(int) = [1, 1, 1, 1, 1]"
)
_ATTRS = (
    "T: {half, bfloat16, float, double}, strides: list(int) >= 5, padding: {'SAME', 'VALID'}, "
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC', dilations: list(int) = [1, 1, 1, 1, 1]"
)

conv3d_op = define_op("Conv3D", "input: T, filter: T -> output: T", _ATTRS)
conv3d_backprop_input_op = define_op(
    "Conv3DBackpropInputV2", "input_sizes: Tshape, filter: T, out_backprop: T -> output: T",
    f"{_ATTRS}, Tshape: {{int32, int64}} = DT_INT32",
)  # fmt: skip
conv3d_backprop_filter_op = define_op(
    "Conv3DBackpropFilterV2", "input: T, filter_sizes: int32, out_backprop: T -> output: T", _ATTRS
)
# The first versions take the tensor itself where V2 takes its shape; old graphs hold them.
conv3d_backprop_input_v1_op = define_op(
    "Conv3DBackpropInput", "input: T, filter: T, out_backprop: T -> output: T", _OLD_ATTRS
)
conv3d_backprop_filter_v1_op = define_op(
    "Conv3DBackpropFilter", "input: T, filter: T, out_backprop: T -> output: T", _OLD_ATTRS
)
for _op in (
    conv3d_op,
    conv3d_backprop_input_op,
    conv3d_backprop_filter_op,
    conv3d_backprop_input_v1_op,
    conv3d_backprop_filter_v1_op,
):
    _op.declare(Traits(cost=Cost.PRODUCT, fails=Fails.BY_SHAPE))


@conv3d_op.shape
def _conv3d_shape(sig: ShapeSig) -> Shape:
    return conv_shape(sig, 5, grouped=False, title="Conv3D")


@conv3d_backprop_input_op.shape
def _conv3d_backprop_input_shape(sig: ShapeSig) -> Shape:
    return shapes.with_rank(sig.const_shape(0), 5)


@conv3d_backprop_filter_op.shape
def _conv3d_backprop_filter_shape(sig: ShapeSig) -> Shape:
    return shapes.with_rank(sig.const_shape(1), 5)


@conv3d_backprop_input_v1_op.shape
def _conv3d_backprop_input_v1_shape(sig: ShapeSig) -> Shape:
    return shapes.with_rank(sig.shapes[0], 5)


@conv3d_backprop_filter_v1_op.shape
def _conv3d_backprop_filter_v1_shape(sig: ShapeSig) -> Shape:
    return shapes.with_rank(sig.shapes[1], 5)


# ---------------------------------------------------------------- gradients
_SHARED = ("strides", "padding", "data_format", "dilations")
Convolution(conv3d_op, conv3d_backprop_input_op, conv3d_backprop_filter_op, _SHARED, both).declare(
    [(conv3d_backprop_input_v1_op, conv3d_backprop_filter_v1_op)]
)


# ---------------------------------------------------------------- decompositions
@conv3d_backprop_input_v1_op.decomposition
def _conv3d_backprop_input_v1_parts(sig: Any, data: Tensor, kernel: Tensor, grad: Tensor) -> Any:
    attrs = {k: sig.attrs[k] for k in ("strides", "padding", "dilations")}
    return conv3d_backprop_input_op(emit("Shape", data), kernel, grad, **attrs)


@conv3d_backprop_filter_v1_op.decomposition
def _conv3d_backprop_filter_v1_parts(sig: Any, data: Tensor, kernel: Tensor, grad: Tensor) -> Any:
    attrs = {k: sig.attrs[k] for k in ("strides", "padding", "dilations")}
    return conv3d_backprop_filter_op(data, emit("Shape", kernel), grad, **attrs)


# ---------------------------------------------------------------- public functions
def _window_attrs(strides: Any, padding: str, data_format: str | None, dilations: Any) -> Any:
    data_format = data_format or "NDHWC"
    channel = 1 if channels_first(data_format) else 4
    return {
        "strides": sequence(strides, 3, channel, "strides"),
        "padding": padding,
        "data_format": data_format,
        "dilations": sequence(dilations, 3, channel, "dilations"),
    }


@extensible
def conv3d(
    input: Any, filter: Any = None, strides: Any = None, padding: Any = None,
    data_format: str | None = "NDHWC", dilations: Any = _ONES, name: str | None = None,
    filters: Any = None,
) -> Tensor:  # fmt: skip
    """3-D convolution (cross-correlation) of a batch of volumes with a filter bank.

    Args:
        input: a 5-D floating-point tensor, [batch, depth, height, width, channels] for "NDHWC".
        filter: a 5-D tensor [depth, height, width, in_channels, out_channels] of the same type.
        strides: an int, or a list of 1, 3 or 5 ints.
        padding: "SAME" or "VALID".
        data_format: "NDHWC" or "NCDHW".
        dilations: like `strides`: the step inside the window.
        name: a name for the operation.
        filters: an alias of `filter`.

    Returns:
        A 5-D tensor of the type of `input`.

    Raises:
        ValueError: shapes, strides or padding do not fit.
    """
    filter = renamed("filters", filters, "filter", filter)
    attrs = _window_attrs(strides, padding, data_format, dilations)
    return conv3d_op(input, filter, name=name, **attrs)  # type: ignore[no-any-return]


@extensible
def conv3d_backprop_filter_v2(
    input: Any, filter_sizes: Any, out_backprop: Any, strides: Any, padding: str,
    data_format: str | None = "NDHWC", dilations: Any = _ONES, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The gradient of `conv3d` with respect to its filter.

    Args:
        input: the input of the convolution.
        filter_sizes: an int32 vector, the shape of the filter.
        out_backprop: the gradient at its output.
        strides: as given to `conv3d`.
        padding: as given to `conv3d`.
        data_format: as given to `conv3d`.
        dilations: as given to `conv3d`.
        name: a name for the operation.

    Returns:
        A tensor of shape `filter_sizes`.
    """
    attrs = _window_attrs(strides, padding, data_format, dilations)
    return conv3d_backprop_filter_op(input, filter_sizes, out_backprop, name=name, **attrs)  # type: ignore[no-any-return]


conv3d_backprop_filter = conv3d_backprop_filter_v2


@extensible
def conv3d_transpose(
    value: Any = None, filter: Any = None, output_shape: Any = None, strides: Any = None,
    padding: str = "SAME", data_format: str | None = "NDHWC", name: str | None = None,
    input: Any = None, filters: Any = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    """The transpose (gradient) of `conv3d`.

    Args:
        value: a 5-D floating-point tensor.
        filter: a 5-D tensor [depth, height, width, out_channels, in_channels] of the same type.
        output_shape: an int vector, the shape of the result.
        strides: an int, or a list of 1, 3 or 5 ints.
        padding: "SAME" or "VALID".
        data_format: "NDHWC" or "NCDHW".
        name: a name for the operation.
        input: an alias of `value`.
        filters: an alias of `filter`.
        dilations: like `strides`: the step inside the window.

    Returns:
        A 5-D tensor of the type of `value`.
    """
    value = renamed("input", input, "value", value)
    filter = renamed("filters", filters, "filter", filter)
    with name_scope(name, "conv3d_transpose", [value, filter, output_shape]) as scope:
        attrs = _window_attrs(strides, padding, data_format, dilations)
        return conv3d_backprop_input_op(output_shape, filter, value, name=scope, **attrs)  # type: ignore[no-any-return]
