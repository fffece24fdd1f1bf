"""`tf.nn.conv_transpose`: the transpose of a convolution over one, two or three dimensions."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.conv import conv1d_transpose, conv2d_transpose
from opdock.ops.conv3d import conv3d_transpose

# Public as tf.nn.
__all__: list[str] = []

_FORMATS = {1: "NWC", 2: "NHWC", 3: "NDHWC"}


@extensible
def conv_transpose(
    input: Any, filters: Any, output_shape: Any, strides: Any, padding: str = "SAME",
    data_format: str | None = None, dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The transpose of `tf.nn.convolution`.

    Args:
        input: a floating-point tensor of 3, 4 or 5 dimensions.
        filters: a tensor [window..., out_channels, in_channels] of the same type.
        output_shape: the shape of the result, an integer vector of known length.
        strides: an int, or a list of ints.
        padding: "SAME" or "VALID".
        data_format: where the channels are: last by default.
        dilations: like `strides`: the step inside the window.
        name: a name for the operation.

    Returns:
        A tensor of shape `output_shape`.

    Raises:
        ValueError: the number of dimensions is not known, or none of 3, 4 and 5.
    """
    if isinstance(output_shape, Tensor):
        known = output_shape.shape.as_list() if output_shape.shape.ndims == 1 else [None]
        rank = known[0]
    else:
        rank = len(output_shape) if isinstance(output_shape, Sized) else None
    if rank is None:
        raise ValueError("output_shape must be a tensor or sized collection.")
    if rank not in (3, 4, 5):
        raise ValueError(f"output_shape must be of length 3, 4 or 5 but was {rank}.")
    n = rank - 2
    options = {
        "output_shape": output_shape, "strides": strides, "padding": padding,
        "data_format": data_format or _FORMATS[n], "dilations": dilations,
    }  # fmt: skip
    with name_scope(name, "conv_transpose", [input, filters, output_shape]) as scope:
        if n == 1:
            return conv1d_transpose(input, filters, name=scope, **options)
        apply = conv2d_transpose if n == 2 else conv3d_transpose
        return apply(input=input, filters=filters, name=scope, **options)
