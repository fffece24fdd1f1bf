"""Layers whose weights are masked."""

from __future__ import annotations

from typing import Any

from opdock.contrib.framework.arg_scope import add_arg_scope
from opdock.contrib.layers.basic import RENAMED
from opdock.contrib.layers.common import channels, finish, normalized, variable_getter
from opdock.contrib.layers.convolutions import WORDS
from opdock.contrib.layers.initializers import xavier_initializer
from opdock.contrib.model_pruning.masks import Masked
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.initializers import zeros_initializer
from opdock.graph.variables.variable_scope import variable_scope
from opdock.layers.conv import Conv2D
from opdock.layers.core import Dense
from opdock.ops.nn import relu

__all__ = [
    "MaskedConv2D", "MaskedFullyConnected", "masked_conv2d", "masked_convolution",
    "masked_fully_connected",
]  # fmt: skip

_WORDS = WORDS | {
    "num_outputs": "the size of the last dimension, or the number of channels.",
    "scope": "the variable scope; a name of its own, made unique, by default.",
}
_KERNELS = ("unmasked_kernel",)


class MaskedConv2D(Masked, Conv2D):
    """`tf.layers.Conv2D` with a mask for its kernel; see there."""


class MaskedFullyConnected(Masked, Dense):
    """`tf.layers.Dense` with a mask for its kernel; see there."""


@add_arg_scope
@explained(
    _WORDS,
    rate="the step inside the window; 1 when the stride is not.",
)
def masked_convolution(
    inputs: Any, num_outputs: int, kernel_size: Any, stride: Any = 1, padding: str = "SAME",
    data_format: str | None = None, rate: Any = 1, activation_fn: Any = relu,
    normalizer_fn: Any = None, normalizer_params: Any = None,
    weights_initializer: Any = xavier_initializer(),  # noqa: B008
    weights_regularizer: Any = None,
    biases_initializer: Any = zeros_initializer(),  # noqa: B008
    biases_regularizer: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
) -> Tensor:  # fmt: skip
    """`tf.contrib.layers.conv2d` with masked weights."""
    with variable_scope(
        scope, "Conv", [inputs], reuse=reuse, custom_getter=variable_getter(RENAMED)
    ) as sc:
        inputs = convert_to_tensor(inputs)
        if inputs.shape.ndims != 4:
            raise ValueError(
                "Sparse Convolution not supported for input with rank", inputs.shape.ndims
            )
        layer = MaskedConv2D(
            num_outputs, kernel_size, strides=stride, padding=padding,
            data_format=channels(data_format), dilation_rate=rate,
            use_bias=not normalizer_fn and biases_initializer is not None,
            kernel_initializer=weights_initializer, bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer, bias_regularizer=biases_regularizer,
            trainable=trainable, name=sc.name, dtype=inputs.dtype.base_dtype, _scope=sc,
            _reuse=reuse,
        )  # fmt: skip
        outputs: Tensor = normalized(
            layer, inputs, normalizer_fn, normalizer_params, variables_collections, _KERNELS
        )
        return finish(outputs, activation_fn, outputs_collections, sc.name)


masked_conv2d = masked_convolution


@add_arg_scope
@explained(
    _WORDS,
    inputs="a floating-point tensor of rank 2 or more, the last size known.",
    returns="A tensor shaped like `inputs`, but for the last dimension.",
    raises="ValueError: `num_outputs` is no int, or the inputs do not fit.",
)
def masked_fully_connected(
    inputs: Any, num_outputs: int, activation_fn: Any = relu, normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = xavier_initializer(),  # noqa: B008
    weights_regularizer: Any = None,
    biases_initializer: Any = zeros_initializer(),  # noqa: B008
    biases_regularizer: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
) -> Tensor:  # fmt: skip
    """`tf.contrib.layers.fully_connected` with masked weights."""
    if not isinstance(num_outputs, int):
        raise ValueError(f"num_outputs should be int or long, got {num_outputs}.")
    with variable_scope(
        scope, "fully_connected", [inputs], reuse=reuse, custom_getter=variable_getter(RENAMED)
    ) as sc:
        inputs = convert_to_tensor(inputs)
        layer = MaskedFullyConnected(
            num_outputs, use_bias=not normalizer_fn and biases_initializer is not None,
            kernel_initializer=weights_initializer, bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer, bias_regularizer=biases_regularizer,
            trainable=trainable, name=sc.name, dtype=inputs.dtype.base_dtype, _scope=sc,
            _reuse=reuse,
        )  # fmt: skip
        outputs: Tensor = normalized(
            layer, inputs, normalizer_fn, normalizer_params, variables_collections, _KERNELS
        )
        return finish(outputs, activation_fn, outputs_collections, sc.name)
