"""2-D convolution: the ops, their gradients, and the public functions over them."""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.registry import Cost, Fails, Formatted, Shape, ShapeSig, Traits, define_op
from opdock.ops.support.conv_grad import Convolution, both
from opdock.ops.support.nn_util import emit, renamed, sequence
from opdock.ops.support.windows import conv_shape
from opdock.windows import channels_first

__all__ = [
    "conv1d", "conv1d_transpose", "conv2d", "conv2d_backprop_filter", "conv2d_backprop_input",
    "conv2d_transpose",
]  # fmt: skip

_ONES = (1, 1, 1, 1)
_ATTRS = (
    "T: {half, bfloat16, float, double}, strides: list(int), use_cudnn_on_gpu: bool = true, "
    "padding: {'SAME', 'VALID', 'EXPLICIT'}, explicit_paddings: list(int) = [], "
    "data_format: {'NHWC', 'NCHW'} = 'NHWC', dilations: list(int) = [1, 1, 1, 1]"
)

conv2d_op = define_op("Conv2D", "input: T, filter: T -> output: T", _ATTRS)
conv2d_op.declare(Traits(cost=Cost.PRODUCT, fails=Fails.BY_SHAPE, layout=Formatted((0,))))
conv2d_backprop_input_op = define_op(
    "Conv2DBackpropInput", "input_sizes: int32, filter: T, out_backprop: T -> output: T", _ATTRS
)
conv2d_backprop_input_op.declare(
    Traits(cost=Cost.PRODUCT, fails=Fails.BY_SHAPE, layout=Formatted((2,), (0,)))
)
conv2d_backprop_filter_op = define_op(
    "Conv2DBackpropFilter", "input: T, filter_sizes: int32, out_backprop: T -> output: T", _ATTRS
)
conv2d_backprop_filter_op.declare(
    Traits(cost=Cost.PRODUCT, fails=Fails.BY_SHAPE, layout=Formatted((0, 2), (), ()))
)


@conv2d_op.shape
def _conv2d_shape(sig: ShapeSig) -> Shape:
    return conv_shape(sig, 4, grouped=True, title="Conv2D")


@conv2d_backprop_input_op.shape
def _conv2d_backprop_input_shape(sig: ShapeSig) -> Shape:
    return shapes.with_rank(sig.const_shape(0), 4)


@conv2d_backprop_filter_op.shape
def _conv2d_backprop_filter_shape(sig: ShapeSig) -> Shape:
    return shapes.with_rank(sig.const_shape(1), 4)


# ---------------------------------------------------------------- gradients
_SHARED = (
    "strides", "use_cudnn_on_gpu", "padding", "explicit_paddings", "data_format", "dilations",
)  # fmt: skip
Convolution(conv2d_op, conv2d_backprop_input_op, conv2d_backprop_filter_op, _SHARED, both).declare()


# ---------------------------------------------------------------- public functions
def split_padding(padding: Any, rank: int = 4) -> tuple[str, list[int]]:
    """The `padding` and `explicit_paddings` attributes for a user's padding argument.

    Raises:
        ValueError: a list that does not hold one pair per dimension, or the word "EXPLICIT".
    """
    if padding == "EXPLICIT":
        raise ValueError(
            '"EXPLICIT" is not a valid value for the padding parameter. To use explicit padding, '
            "the padding parameter must be a list."
        )
    if not isinstance(padding, (list, tuple)):
        return padding, []
    head = "When padding is a list, each element of padding must be a list/tuple of size 2."
    explicit: list[int] = []
    for i, pair in enumerate(padding):
        if not isinstance(pair, (list, tuple)):
            raise ValueError(f"{head} Element with index {i} of padding is not a list/tuple")
        if len(pair) != 2:
            raise ValueError(f"{head} Element with index {i} of padding has size {len(pair)}")
        explicit.extend(pair)
    if len(padding) != rank:
        raise ValueError(
            f"When padding is a list, it must be of size {rank}. "
            f"Got padding of size: {len(padding)}"
        )
    return "EXPLICIT", explicit


def _window_attrs(
    strides: Any, padding: Any, use_cudnn_on_gpu: bool, data_format: str | None, dilations: Any
) -> dict[str, Any]:
    data_format = data_format or "NHWC"
    channel = 1 if channels_first(data_format) else 3
    padding, explicit = split_padding(padding)
    return {
        "strides": sequence(strides, 2, channel, "strides"),
        "padding": padding,
        "use_cudnn_on_gpu": use_cudnn_on_gpu,
        "explicit_paddings": explicit,
        "data_format": data_format,
        "dilations": sequence(dilations, 2, channel, "dilations"),
    }


@extensible
def conv2d(
    input: Any, filter: Any = None, strides: Any = None, padding: Any = None,
    use_cudnn_on_gpu: bool = True, data_format: str | None = "NHWC", dilations: Any = _ONES,
    name: str | None = None, filters: Any = None,
) -> Tensor:  # fmt: skip
    """2-D convolution (cross-correlation) of an image batch with a filter bank.

    Args:
        input: a 4-D floating-point tensor, [batch, height, width, channels] for "NHWC".
        filter: a 4-D tensor [height, width, in_channels, out_channels] of the same type. When the
            input has a multiple of `in_channels`, the convolution is grouped.
        strides: an int, or a list of 1, 2 or 4 ints: the step of the window per dimension.
        padding: "SAME", "VALID", or a list of four (before, after) pairs.
        use_cudnn_on_gpu: kept in the node; backends may read it.
        data_format: "NHWC" or "NCHW".
        dilations: like `strides`: the step inside the window.
        name: a name for the operation.
        filters: an alias of `filter`.

    Returns:
        A 4-D tensor of the type of `input`.

    Raises:
        ValueError: shapes, strides or padding do not fit.
    """
    filter = renamed("filters", filters, "filter", filter)
    attrs = _window_attrs(strides, padding, use_cudnn_on_gpu, data_format, dilations)
    return conv2d_op(input, filter, name=name, **attrs)  # type: ignore[no-any-return]


@extensible
def conv2d_backprop_input(
    input_sizes: Any, filter: Any = None, out_backprop: Any = None, strides: Any = None,
    padding: Any = None, use_cudnn_on_gpu: bool = True, data_format: str | None = "NHWC",
    dilations: Any = _ONES, name: str | None = None, filters: Any = None,
) -> Tensor:  # fmt: skip
    """The gradient of `conv2d` with respect to its input.

    Args:
        input_sizes: an int32 vector, the shape of the input.
        filter: the filter of the convolution.
        out_backprop: the gradient at its output.
        strides: as given to `conv2d`.
        padding: as given to `conv2d`.
        use_cudnn_on_gpu: kept in the node.
        data_format: as given to `conv2d`.
        dilations: as given to `conv2d`.
        name: a name for the operation.
        filters: an alias of `filter`.

    Returns:
        A tensor of shape `input_sizes`.
    """
    filter = renamed("filters", filters, "filter", filter)
    attrs = _window_attrs(strides, padding, use_cudnn_on_gpu, data_format, dilations)
    return conv2d_backprop_input_op(input_sizes, filter, out_backprop, name=name, **attrs)  # type: ignore[no-any-return]


@extensible
def conv2d_backprop_filter(
    input: Any, filter_sizes: Any, out_backprop: Any, strides: Any, padding: Any,
    use_cudnn_on_gpu: bool = True, data_format: str | None = "NHWC", dilations: Any = _ONES,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The gradient of `conv2d` with respect to its filter.

    Args:
        input: the input of the convolution.
        filter_sizes: an int32 vector, the shape of the filter.
        out_backprop: the gradient at its output.
        strides: as given to `conv2d`.
        padding: as given to `conv2d`.
        use_cudnn_on_gpu: kept in the node.
        data_format: as given to `conv2d`.
        dilations: as given to `conv2d`.
        name: a name for the operation.

    Returns:
        A tensor of shape `filter_sizes`.
    """
    attrs = _window_attrs(strides, padding, use_cudnn_on_gpu, data_format, dilations)
    return conv2d_backprop_filter_op(input, filter_sizes, out_backprop, name=name, **attrs)  # type: ignore[no-any-return]


@extensible
def conv2d_transpose(
    value: Any = None, filter: Any = None, output_shape: Any = None, strides: Any = None,
    padding: str = "SAME", data_format: str | None = "NHWC", name: str | None = None,
    input: Any = None, filters: Any = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    """The transpose (gradient) of `conv2d`, often called deconvolution.

    Args:
        value: a 4-D floating-point tensor.
        filter: a 4-D tensor [height, width, out_channels, in_channels] of the same type.
        output_shape: an int32 vector, the shape of the result.
        strides: an int, or a list of 1, 2 or 4 ints.
        padding: "SAME" or "VALID".
        data_format: "NHWC" or "NCHW".
        name: a name for the operation.
        input: an alias of `value`.
        filters: an alias of `filter`.
        dilations: like `strides`: the step inside the window.

    Returns:
        A 4-D tensor of the type of `value`.
    """
    value = renamed("input", input, "value", value)
    filter = renamed("filters", filters, "filter", filter)
    with name_scope(name, "conv2d_transpose", [value, filter, output_shape]) as scope:
        attrs = _window_attrs(strides, padding, True, data_format, dilations)
        return conv2d_backprop_input_op(output_shape, filter, value, name=scope, **attrs)  # type: ignore[no-any-return]


def _format_1d(data_format: str | None) -> tuple[str, int, int]:
    """The 2-D data format, the dimension to insert and the channel dimension of a 1-D format."""
    if data_format in (None, "NHWC", "NWC"):
        return "NHWC", 1, 2
    if data_format in ("NCHW", "NCW"):
        return "NCHW", 2, 1
    raise ValueError('data_format must be "NWC" or "NCW".')


@extensible
def conv1d(
    value: Any = None, filters: Any = None, stride: Any = None, padding: Any = None,
    use_cudnn_on_gpu: bool | None = None, data_format: str | None = None, name: str | None = None,
    input: Any = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    """1-D convolution, as a 2-D convolution of height 1.

    Args:
        value: a 3-D floating-point tensor, [batch, width, channels] for "NWC".
        filters: a 3-D tensor [width, in_channels, out_channels] of the same type.
        stride: an int, or a list of 1 or 3 ints.
        padding: "SAME" or "VALID".
        use_cudnn_on_gpu: kept in the node.
        data_format: "NWC" (default) or "NCW".
        name: a name for the operation.
        input: an alias of `value`.
        dilations: like `stride`: the step inside the window.

    Returns:
        A 3-D tensor of the type of `value`.
    """
    value = renamed("input", input, "value", value)
    with name_scope(name, "conv1d", [value, filters]) as scope:
        data_format, space, channel = _format_1d(data_format)
        result = conv2d_op(
            emit("ExpandDims", value, space),
            emit("ExpandDims", filters, 0),
            strides=[1, *sequence(stride, 1, channel, "stride")],
            padding=padding,
            use_cudnn_on_gpu=True if use_cudnn_on_gpu is None else use_cudnn_on_gpu,
            data_format=data_format,
            dilations=[1, *sequence(dilations, 1, channel, "dilations")],
            name=scope,
        )
        return emit("Squeeze", result, squeeze_dims=[space])  # type: ignore[no-any-return]


@extensible
def conv1d_transpose(
    input: Any, filters: Any, output_shape: Any, strides: Any, padding: str = "SAME",
    data_format: str | None = "NWC", dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The transpose (gradient) of `conv1d`.

    Args:
        input: a 3-D floating-point tensor.
        filters: a 3-D tensor [width, out_channels, in_channels] of the same type.
        output_shape: an int32 vector of three entries, the shape of the result.
        strides: an int, or a list of 1 or 3 ints.
        padding: "SAME" or "VALID".
        data_format: "NWC" or "NCW".
        dilations: like `strides`: the step inside the window.
        name: a name for the operation.

    Returns:
        A 3-D tensor of the type of `input`.
    """
    with name_scope(name, "conv1d_transpose", [input, filters, output_shape]) as scope:
        data_format, space, channel = _format_1d(data_format)
        if isinstance(output_shape, Tensor):
            head, tail = emit("SplitV", output_shape, [space, 3 - space], 0, num_split=2)
            full: Any = emit("ConcatV2", [head, [1], tail], 0)
        else:
            sizes = [int(d) for d in output_shape]
            full = [*sizes[:space], 1, *sizes[space:]]
        result = conv2d_backprop_input_op(
            full,
            emit("ExpandDims", filters, 0),
            emit("ExpandDims", input, space),
            strides=[1, *sequence(strides, 1, channel, "stride")],
            padding=padding,
            data_format=data_format,
            dilations=[1, *sequence(dilations, 1, channel, "dilations")],
            name=scope,
        )
        return emit("Squeeze", result, squeeze_dims=[space])  # type: ignore[no-any-return]
