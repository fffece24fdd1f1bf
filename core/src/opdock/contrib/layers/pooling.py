"""Pooling of images and volumes, as contrib names it."""

from __future__ import annotations

from typing import Any

from opdock.contrib.framework.arg_scope import add_arg_scope
from opdock.contrib.layers.common import channels, finish
from opdock.contrib.layers.utils import n_positive_integers
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.layers.pooling import (
    AveragePooling2D,
    AveragePooling3D,
    MaxPooling2D,
    MaxPooling3D,
)
from opdock.ops.composed.pooling import pool as nn_pool

__all__ = ["avg_pool2d", "avg_pool3d", "max_pool2d", "max_pool3d", "pool"]

_IMAGES, _VOLUMES = ("NHWC", "NCHW"), ("NDHWC", "NCDHW")
_WORDS = {
    "inputs": "a 4-D tensor.",
    "kernel_size": "the size of the window, an int or two.",
    "stride": "the step of the window, likewise.",
    "padding": '"VALID" or "SAME".',
    "data_format": '"NHWC" or "NCHW".',
    "outputs_collections": "collections for the result.",
    "scope": "a name for the operations.",
    "returns": "A 4-D tensor.",
    "raises": "ValueError: the format is another one.",
}
"""What the functions here take."""
_OF_VOLUMES = _WORDS | {
    "inputs": "a 5-D tensor.",
    "kernel_size": "the size of the window, an int or three.",
    "data_format": '"NDHWC" or "NCDHW".',
    "returns": "A 5-D tensor.",
}


@add_arg_scope
@explained(_WORDS)
def max_pool2d(
    inputs: Any, kernel_size: Any, stride: Any = 2, padding: str = "VALID",
    data_format: str = "NHWC", outputs_collections: Any = None, scope: str | None = None,
) -> Tensor:  # fmt: skip
    """The largest value of each window of images."""
    return _pooled(
        MaxPooling2D, "MaxPool2D", inputs, kernel_size, stride, padding,
        channels(data_format, _IMAGES), outputs_collections, scope,
    )  # fmt: skip


@add_arg_scope
@explained(_WORDS)
def avg_pool2d(
    inputs: Any, kernel_size: Any, stride: Any = 2, padding: str = "VALID",
    data_format: str = "NHWC", outputs_collections: Any = None, scope: str | None = None,
) -> Tensor:  # fmt: skip
    """The mean of each window of images."""
    return _pooled(
        AveragePooling2D, "AvgPool2D", inputs, kernel_size, stride, padding,
        channels(data_format, _IMAGES), outputs_collections, scope,
    )  # fmt: skip


@add_arg_scope
@explained(_OF_VOLUMES)
def max_pool3d(
    inputs: Any, kernel_size: Any, stride: Any = 2, padding: str = "VALID",
    data_format: str = "NDHWC", outputs_collections: Any = None, scope: str | None = None,
) -> Tensor:  # fmt: skip
    """The largest value of each window of volumes."""
    return _pooled(
        MaxPooling3D, "MaxPool3D", inputs, kernel_size, stride, padding,
        channels(data_format, _VOLUMES), outputs_collections, scope,
    )  # fmt: skip


@add_arg_scope
@explained(_OF_VOLUMES)
def avg_pool3d(
    inputs: Any, kernel_size: Any, stride: Any = 2, padding: str = "VALID",
    data_format: str = "NDHWC", outputs_collections: Any = None, scope: str | None = None,
) -> Tensor:  # fmt: skip
    """The mean of each window of volumes."""
    return _pooled(
        AveragePooling3D, "AvgPool3D", inputs, kernel_size, stride, padding,
        channels(data_format, _VOLUMES), outputs_collections, scope,
    )  # fmt: skip


def _pooled(
    kind: Any, title: str, inputs: Any, kernel_size: Any, stride: Any, padding: str,
    data_format: str, outputs_collections: Any, scope: str | None,
) -> Tensor:  # fmt: skip
    with name_scope(scope, title, [inputs]) as sc:
        layer = kind(kernel_size, stride, padding, data_format, _scope=sc)
        outputs: Tensor = layer(convert_to_tensor(inputs))
        return finish(outputs, None, outputs_collections, sc)


@add_arg_scope
def pool(
    inputs: Any, kernel_size: Any, pooling_type: str, padding: str = "VALID",
    data_format: str | None = None, dilation_rate: Any = 1, stride: Any = 1,
    outputs_collections: Any = None, scope: str | None = None,
) -> Tensor:  # fmt: skip
    """Pooling over all spatial dimensions of the inputs, with strides or dilation.

    Args:
        inputs: a tensor of rank 3 or more.
        kernel_size: the size of the window, an int or one per spatial dimension.
        pooling_type: "MAX" or "AVG".
        padding: "VALID" or "SAME".
        data_format: as of `tf.nn.pool`.
        dilation_rate: the step inside the window, an int or one per spatial dimension.
        stride: the step of the window, likewise.
        outputs_collections: collections for the result.
        scope: a name for the operations.

    Returns:
        A tensor of the rank of `inputs`.

    Raises:
        ValueError: the rank is unknown or less than 3, or an argument does not fit it.
    """
    with name_scope(scope, f"{pooling_type.lower()}_pool", [inputs]) as sc:
        inputs = convert_to_tensor(inputs)
        rank = inputs.shape.ndims
        if rank is None:
            raise ValueError("Rank of inputs must be known")
        if rank < 3:
            raise ValueError("Rank of inputs must be >= 3")
        outputs = nn_pool(
            inputs, n_positive_integers(rank - 2, kernel_size), pooling_type, padding,
            n_positive_integers(rank - 2, dilation_rate), n_positive_integers(rank - 2, stride),
            name=sc, data_format=data_format,
        )  # fmt: skip
        return finish(outputs, None, outputs_collections, sc)
