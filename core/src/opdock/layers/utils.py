"""What the layers share: checked arguments, and branches on Python or tensor conditions."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

from opdock.graph.nodes import constant_value as known
from opdock.graph.nodes.operation import Tensor, has_graph
from opdock.ops.control import cond


def to_tuple(value: Any, n: int, name: str) -> tuple[int, ...]:
    """`value` as a tuple of `n` ints; one int stands for all.

    Raises:
        ValueError: it is neither an int nor `n` of them.
    """
    if isinstance(value, numbers.Integral):
        return (int(value),) * n
    message = f"The `{name}` argument must be a tuple of {n} integers. Received: {value}"
    try:
        items = tuple(value)
    except TypeError:
        raise ValueError(message) from None
    if len(items) != n:
        raise ValueError(message)
    for item in items:
        try:
            int(item)
        except (ValueError, TypeError):
            raise ValueError(f"{message} including element {item} of type {type(item)}") from None
    return tuple(int(i) for i in items)


def to_padding(value: Any, *, causal: bool = False) -> str:
    """`value` in lower case.

    Raises:
        ValueError: it is no kind of padding that the layer knows.
    """
    padding = value.lower() if isinstance(value, str) else value
    if padding not in ({"valid", "same", "causal"} if causal else {"valid", "same"}):
        raise ValueError(
            'The `padding` argument must be a list/tuple or one of "valid", "same" (or "causal", '
            f"only for `Conv1D`). Received: {padding}"
        )
    return str(padding)


def to_data_format(value: Any) -> str:
    """`value` in lower case; "channels_last" for None.

    Raises:
        ValueError: it is neither "channels_first" nor "channels_last".
    """
    data_format = "channels_last" if value is None else str(value).lower()
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError(
            'The `data_format` argument must be one of "channels_first", "channels_last". '
            f"Received: {value}"
        )
    return data_format


def op_format(data_format: str, rank: int) -> str:
    """The data format of the ops, "NHWC" and so on, for `rank` spatial dimensions."""
    space = {1: "W", 2: "HW", 3: "DHW"}[rank]
    return f"N{space}C" if data_format == "channels_last" else f"NC{space}"


def window_length(
    size: int | None, window: int, padding: str, stride: int, dilation: int = 1
) -> int | None:
    """How many positions a window has along a dimension of `size`; "full" lets it reach out."""
    if size is None:
        return None
    reach = window + (window - 1) * (dilation - 1)
    free = {"valid": size - reach + 1, "full": size + reach - 1}.get(padding, size)
    return (free + stride - 1) // stride


def transposed_length(size: Any, window: int, padding: str, stride: int) -> Any:
    """The length that a transposed convolution makes of `size`, an int, tensor or None."""
    if size is None:
        return None
    size = size * stride
    if padding == "valid":
        size = size + max(window - stride, 0)
    elif padding == "full":
        size = size - (stride + window - 2)
    return size


def windowed_length(size: int | None, window: int, padding: str, stride: int) -> int | None:
    """The length along which a window has `size` positions."""
    if size is None:
        return None
    pad = {"valid": 0, "full": window - 1}.get(padding, window // 2)
    return (size - 1) * stride - 2 * pad + window


def op_format_of_rank(data_format: str, ndim: int) -> str:
    """The data format of the ops for images of `ndim` dimensions, batch and channels among them.

    Raises:
        ValueError: there is none.
    """
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError(f"Invalid data_format: {data_format}")
    if ndim not in (3, 4, 5):
        raise ValueError(f"Input rank not supported: {ndim}")
    return op_format(data_format, ndim - 2)


def static_bool(value: Any) -> bool | None:
    """A condition as a bool when it is known now, else None.

    Raises:
        TypeError: it is neither a tensor nor a bool.
    """
    found = constant_value(value)
    return None if found is None else bool(found)


def constant_value(value: Any) -> Any:
    """What a condition is if that is known now, else None; a tensor's value as it is.

    Raises:
        TypeError: it is neither a tensor nor a bool.
    """
    if isinstance(value, (bool, numbers.Integral)) and value in (0, 1):
        return bool(value)
    if isinstance(value, Tensor):
        return known.constant_value(value)
    if has_graph(value):
        return None
    raise TypeError(
        "`pred` must be a Tensor, a Python bool, or 1 or 0. "
        f"Found instead: {value!r} of type {type(value).__name__}"
    )


def smart_cond(
    pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any], name: str | None = None
) -> Any:
    """`tf.cond`, decided now when the condition is known now.

    Args:
        pred: a bool, 0, 1, or a scalar bool tensor.
        true_fn: what to return when it holds.
        false_fn: what to return when it does not.
        name: a name for the conditional, if there is one.
    """
    known = static_bool(pred)
    if known is None:
        return cond(pred, true_fn=true_fn, false_fn=false_fn, name=name)
    return true_fn() if known else false_fn()


def channel_axis(data_format: str, rank: int) -> int:
    """The channel dimension of a tensor with `rank` spatial dimensions."""
    return 1 if data_format == "channels_first" else rank + 1


def spatial(dims: Sequence[Any], data_format: str) -> list[Any]:
    """The spatial entries of a shape."""
    return list(dims[2:]) if data_format == "channels_first" else list(dims[1:-1])


def with_spatial(batch: Any, space: Sequence[Any], channels: Any, data_format: str) -> list[Any]:
    """A shape from its parts."""
    if data_format == "channels_first":
        return [batch, channels, *space]
    return [batch, *space, channels]


_SHARED = {
    "filters": "the number of output channels.",
    "strides": "the step of the window, likewise.",
    "padding": '"valid" or "same".',
    "data_format": '"channels_last" or "channels_first".',
    "dilation_rate": "the step inside the window; 1 when the strides are not.",
    "depth_multiplier": "how many channels each input channel becomes before the mix.",
    "activation": "a function on the result, or its name; None for the result itself.",
    "use_bias": "whether there is a bias.",
    "kernel_initializer": "makes the kernel; the scope's default, then glorot uniform.",
    "bias_initializer": "makes the bias.",
    "kernel_regularizer": "functions from a variable to a loss.",
    "bias_regularizer": "functions from a variable to a loss.",
    "activity_regularizer": "a function from the output to a loss.",
    "kernel_constraint": "applied after each update.",
    "bias_constraint": "applied after each update.",
    "trainable": "whether optimizers update the variables.",
    "name": "the layer's name.",
    "reuse": "whether to share the variables of a layer of that name.",
    "raises": "ValueError: an argument or the shape of the inputs does not fit.",
}


def words(rank: int) -> dict[str, str]:
    """What the arguments of layers with a window are, for so many spatial dimensions."""
    ints = "an int or a list of 1 int." if rank == 1 else f"an int or {rank} of them."
    return {
        **_SHARED,
        "inputs": f"a floating-point tensor of rank {rank + 2}.",
        "kernel_size": f"the size of the window, {ints}",
        "pool_size": f"the size of the window, {ints}",
        "returns": f"A tensor of rank {rank + 2}.",
    }
