"""Convolutions that go up, that keep channels apart, or have one filter for all channels."""

from __future__ import annotations

from typing import Any

from opdock.contrib.framework.arg_scope import add_arg_scope
from opdock.contrib.layers.basic import RENAMED
from opdock.contrib.layers.common import (
    biased,
    channels,
    finish,
    model_variable,
    normalized,
    variable_getter,
)
from opdock.contrib.layers.initializers import xavier_initializer
from opdock.contrib.layers.utils import (
    channel_dimension,
    get_variable_collections,
    last_dimension,
    two_element_tuple,
)
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.initializers import zeros_initializer
from opdock.graph.variables.variable_scope import variable_scope
from opdock.layers.separable import SeparableConv2D
from opdock.layers.transposed import Conv2DTranspose, Conv3DTranspose
from opdock.ops.depthwise import depthwise_conv2d
from opdock.ops.nn import relu
from opdock.ops.tiling import tile

__all__ = [
    "conv2d_in_plane", "conv2d_transpose", "conv3d_transpose", "convolution2d_in_plane",
    "convolution2d_transpose", "convolution3d_transpose", "separable_conv2d",
    "separable_convolution2d",
]  # fmt: skip

WORDS = {
    "inputs": "a floating-point tensor of rank 4.",
    "num_outputs": "the number of output channels.",
    "kernel_size": "the size of the window, an int or one per spatial dimension.",
    "stride": "the step of the window, likewise.",
    "padding": '"SAME" or "VALID".',
    "data_format": '"NHWC" or "NCHW".',
    "activation_fn": "ReLU by default; None for none.",
    "normalizer_fn": "called with the result in place of the bias, `batch_norm` for example.",
    "normalizer_params": "its arguments.",
    "weights_initializer": "makes the weights.",
    "weights_regularizer": "a function from the weights to a loss.",
    "biases_initializer": "makes the biases; None for none.",
    "biases_regularizer": "a function from the biases to a loss.",
    "reuse": "whether to share the variables of `scope`.",
    "variables_collections": "collections for the variables, or a dict of them.",
    "outputs_collections": "collections for the result.",
    "trainable": "whether optimizers update the variables.",
    "returns": "A tensor of the rank of `inputs`.",
    "raises": "ValueError: the format or the rank of the inputs does not fit.",
}
"""What the functions here take."""


@add_arg_scope
@explained(WORDS, scope='the variable scope; "ConvInPlane", made unique, by default.')
def convolution2d_in_plane(
    inputs: Any, kernel_size: Any, stride: Any = 1, padding: str = "SAME",
    activation_fn: Any = relu, normalizer_fn: Any = None, normalizer_params: Any = None,
    weights_initializer: Any = xavier_initializer(),  # noqa: B008
    weights_regularizer: Any = None,
    biases_initializer: Any = zeros_initializer(),  # noqa: B008
    biases_regularizer: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
) -> Tensor:  # fmt: skip
    """The same convolution of each channel by itself, with one filter `weights` for all."""
    with variable_scope(scope, "ConvInPlane", [inputs], reuse=reuse) as sc:
        inputs = convert_to_tensor(inputs)
        size = last_dimension(inputs.shape, min_rank=4)
        weights = model_variable(
            "weights", [*two_element_tuple(kernel_size), 1, 1], weights_initializer, trainable,
            get_variable_collections(variables_collections, "weights"), weights_regularizer,
            inputs.dtype.base_dtype,
        )  # fmt: skip
        steps = [1, *two_element_tuple(stride), 1]
        outputs = depthwise_conv2d(inputs, tile(weights, [1, 1, size, 1]), steps, padding)
        if normalizer_fn is not None:
            outputs = normalizer_fn(outputs, **(normalizer_params or {}))
        elif biases_initializer is not None:
            outputs = biased(
                outputs, size, biases_initializer, biases_regularizer, trainable,
                variables_collections,
            )  # fmt: skip
        return finish(outputs, activation_fn, outputs_collections, sc.name)


@add_arg_scope
@explained(WORDS, scope='the variable scope; "Conv2d_transpose", made unique, by default.')
def convolution2d_transpose(
    inputs: Any, num_outputs: int, kernel_size: Any, stride: Any = 1, padding: str = "SAME",
    data_format: str = "NHWC", activation_fn: Any = relu, normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = xavier_initializer(),  # noqa: B008
    weights_regularizer: Any = None,
    biases_initializer: Any = zeros_initializer(),  # noqa: B008
    biases_regularizer: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
) -> Tensor:  # fmt: skip
    """The transpose of a convolution of images, with variables `weights` and `biases`."""
    given = locals()
    return _transposed(Conv2DTranspose, "Conv2d_transpose", ("NHWC", "NCHW"), **given)


@add_arg_scope
@explained(
    WORDS, inputs="a floating-point tensor of rank 5.", data_format='"NDHWC" or "NCDHW".',
    scope='the variable scope; "Conv3d_transpose", made unique, by default.',
)  # fmt: skip
def convolution3d_transpose(
    inputs: Any, num_outputs: int, kernel_size: Any, stride: Any = 1, padding: str = "SAME",
    data_format: str = "NDHWC", activation_fn: Any = relu, normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = xavier_initializer(),  # noqa: B008
    weights_regularizer: Any = None,
    biases_initializer: Any = zeros_initializer(),  # noqa: B008
    biases_regularizer: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
) -> Tensor:  # fmt: skip
    """The transpose of a convolution of volumes, with variables `weights` and `biases`."""
    given = locals()
    return _transposed(Conv3DTranspose, "Conv3d_transpose", ("NDHWC", "NCDHW"), **given)


def _transposed(
    kind: Any, title: str, formats: tuple[str, str], inputs: Any, num_outputs: int,
    kernel_size: Any, stride: Any, padding: str, data_format: str, activation_fn: Any,
    normalizer_fn: Any, normalizer_params: Any, weights_initializer: Any,
    weights_regularizer: Any, biases_initializer: Any, biases_regularizer: Any, reuse: Any,
    variables_collections: Any, outputs_collections: Any, trainable: bool, scope: Any,
) -> Tensor:  # fmt: skip
    with variable_scope(
        scope, title, [inputs], reuse=reuse, custom_getter=variable_getter(RENAMED)
    ) as sc:
        inputs = convert_to_tensor(inputs)
        layer = kind(
            num_outputs, kernel_size, strides=stride, padding=padding,
            data_format=channels(data_format, formats),
            use_bias=not normalizer_fn and biases_initializer is not None,
            kernel_initializer=weights_initializer, bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer, bias_regularizer=biases_regularizer,
            trainable=trainable, name=sc.name, dtype=inputs.dtype.base_dtype, _scope=sc,
            _reuse=reuse,
        )  # fmt: skip
        outputs: Tensor = normalized(
            layer, inputs, normalizer_fn, normalizer_params, variables_collections
        )
        return finish(outputs, activation_fn, outputs_collections, sc.name)


@add_arg_scope
@explained(
    WORDS,
    num_outputs="the number of output channels; None to leave channels apart, unmixed.",
    depth_multiplier="how many channels each input channel becomes before they are mixed.",
    rate="the step inside the window, an int or two; 1 when the stride is not.",
    weights_initializer="makes the weights, those that mix too if they have no other.",
    pointwise_initializer="makes the weights that mix channels.",
    scope='the variable scope; "SeparableConv2d", made unique, by default.',
)
def separable_convolution2d(
    inputs: Any, num_outputs: int | None, kernel_size: Any, depth_multiplier: int = 1,
    stride: Any = 1, padding: str = "SAME", data_format: str = "NHWC", rate: Any = 1,
    activation_fn: Any = relu, normalizer_fn: Any = None, normalizer_params: Any = None,
    weights_initializer: Any = xavier_initializer(),  # noqa: B008
    pointwise_initializer: Any = None, weights_regularizer: Any = None,
    biases_initializer: Any = zeros_initializer(),  # noqa: B008
    biases_regularizer: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
) -> Tensor:  # fmt: skip
    """A convolution of each channel by itself, then one of size 1 that mixes channels.

    Its variables are `depthwise_weights`, `pointwise_weights` and `biases`.
    """
    where = channels(data_format)
    renamed = {
        "bias": "biases",
        "depthwise_kernel": "depthwise_weights",
        "pointwise_kernel": "pointwise_weights",
    }
    with variable_scope(
        scope, "SeparableConv2d", [inputs], reuse=reuse, custom_getter=variable_getter(renamed)
    ) as sc:
        inputs = convert_to_tensor(inputs)
        dtype = inputs.dtype.base_dtype
        if num_outputs is not None:
            layer = SeparableConv2D(
                num_outputs, kernel_size, strides=stride, padding=padding, data_format=where,
                dilation_rate=two_element_tuple(rate), depth_multiplier=depth_multiplier,
                use_bias=not normalizer_fn and biases_initializer is not None,
                depthwise_initializer=weights_initializer,
                pointwise_initializer=pointwise_initializer or weights_initializer,
                bias_initializer=biases_initializer, depthwise_regularizer=weights_regularizer,
                pointwise_regularizer=weights_regularizer, bias_regularizer=biases_regularizer,
                trainable=trainable, name=sc.name, dtype=dtype, _scope=sc, _reuse=reuse,
            )  # fmt: skip
            outputs: Tensor = normalized(
                layer, inputs, normalizer_fn, normalizer_params, variables_collections,
                ("depthwise_kernel", "pointwise_kernel"),
            )  # fmt: skip
            return finish(outputs, activation_fn, outputs_collections, sc.name)
        size = channel_dimension(inputs.shape, where, min_rank=4)
        weights = model_variable(
            "depthwise_weights", [*two_element_tuple(kernel_size), size, depth_multiplier],
            weights_initializer, trainable,
            get_variable_collections(variables_collections, "weights"), weights_regularizer, dtype,
        )  # fmt: skip
        steps = two_element_tuple(stride)
        outputs = depthwise_conv2d(
            inputs, weights, [1, 1, *steps] if data_format == "NCHW" else [1, *steps, 1], padding,
            rate=two_element_tuple(rate), data_format=data_format,
        )  # fmt: skip
        if normalizer_fn is not None:
            outputs = normalizer_fn(outputs, **(normalizer_params or {}))
        elif biases_initializer is not None:
            outputs = biased(
                outputs, depth_multiplier * size, biases_initializer, biases_regularizer, trainable,
                variables_collections, data_format,
            )  # fmt: skip
        return finish(outputs, activation_fn, outputs_collections, sc.name)


conv2d_in_plane = convolution2d_in_plane
conv2d_transpose = convolution2d_transpose
conv3d_transpose = convolution3d_transpose
separable_conv2d = separable_convolution2d
