"""Fully connected layers, convolutions, pooling, dropout and flatten, as contrib names them."""

from __future__ import annotations

import functools
from typing import Any

from opdock.contrib.framework.arg_scope import add_arg_scope
from opdock.contrib.layers.common import (
    channels,
    finish,
    normalized,
    variable_getter,
)
from opdock.contrib.layers.initializers import xavier_initializer
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.initializers import zeros_initializer
from opdock.graph.variables.variable_scope import variable_scope
from opdock.layers.conv import Conv1D, Conv2D, Conv3D
from opdock.layers.core import Dense, Dropout
from opdock.layers.core import flatten as layers_flatten
from opdock.ops.nn import elu as nn_elu
from opdock.ops.nn import relu as nn_relu
from opdock.ops.nn import relu6 as nn_relu6

RENAMED = {"kernel": "weights", "bias": "biases"}
_CONV = {3: Conv1D, 4: Conv2D, 5: Conv3D}


@add_arg_scope
def fully_connected(
    inputs: Any, num_outputs: int, activation_fn: Any = nn_relu, normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = xavier_initializer(),  # noqa: B008
    weights_regularizer: Any = None,
    biases_initializer: Any = zeros_initializer(),  # noqa: B008
    biases_regularizer: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
) -> Tensor:  # fmt: skip
    """A fully connected layer with variables `weights` and `biases`.

    Args:
        inputs: a floating-point tensor of rank 2 or more.
        num_outputs: the size of the output's last dimension.
        activation_fn: ReLU by default; None for none.
        normalizer_fn: called with the product in place of the bias, `batch_norm` for example.
        normalizer_params: its arguments.
        weights_initializer, biases_initializer: make the variables; no bias when None.
        weights_regularizer, biases_regularizer: functions from a variable to a loss.
        reuse: whether to share the variables of `scope`.
        variables_collections: collections for the variables, or a dict of them.
        outputs_collections: collections for the result.
        trainable: whether optimizers update the variables.
        scope: the variable scope; "fully_connected", made unique, by default.

    Returns:
        A tensor shaped like `inputs`, but for the last dimension.

    Raises:
        ValueError: `num_outputs` is no int, or the inputs do not fit.
    """
    if not isinstance(num_outputs, int):
        raise ValueError(f"num_outputs type should be one of {[int]}, got {type(num_outputs)}.")
    with variable_scope(
        scope, "fully_connected", [inputs], reuse=reuse, custom_getter=variable_getter(RENAMED)
    ) as sc:
        inputs = convert_to_tensor(inputs)
        layer = Dense(
            num_outputs, use_bias=not normalizer_fn and biases_initializer is not None,
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
def convolution(
    inputs: Any, num_outputs: int, kernel_size: Any, stride: Any = 1, padding: str = "SAME",
    data_format: str | None = None, rate: Any = 1, activation_fn: Any = nn_relu,
    normalizer_fn: Any = None, normalizer_params: Any = None,
    weights_initializer: Any = xavier_initializer(),  # noqa: B008
    weights_regularizer: Any = None,
    biases_initializer: Any = zeros_initializer(),  # noqa: B008
    biases_regularizer: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
    conv_dims: int | None = None,
) -> Tensor:  # fmt: skip
    """A convolution over 1, 2 or 3 spatial dimensions with variables `weights` and `biases`.

    Args:
        inputs: a floating-point tensor of rank 3, 4 or 5.
        num_outputs: the number of output channels.
        kernel_size: the size of the window, an int or one per spatial dimension.
        stride: the step of the window, likewise.
        padding: "SAME" or "VALID".
        data_format: "NWC", "NHWC", "NDHWC" (default) or "NCW", "NCHW", "NCDHW".
        rate: the step inside the window; 1 when the stride is not.
        activation_fn: ReLU by default; None for none.
        normalizer_fn: called with the result in place of the bias, `batch_norm` for example.
        normalizer_params: its arguments.
        weights_initializer, biases_initializer: make the variables; no bias when None.
        weights_regularizer, biases_regularizer: functions from a variable to a loss.
        reuse: whether to share the variables of `scope`.
        variables_collections: collections for the variables, or a dict of them.
        outputs_collections: collections for the result.
        trainable: whether optimizers update the variables.
        scope: the variable scope; "Conv", made unique, by default.
        conv_dims: the number of spatial dimensions that the inputs must have.

    Returns:
        A tensor of the rank of `inputs`.

    Raises:
        ValueError: the format or the rank of the inputs does not fit.
    """
    if data_format not in (None, "NWC", "NCW", "NHWC", "NCHW", "NDHWC", "NCDHW"):
        raise ValueError(f"Invalid data_format: {data_format!r}")
    with variable_scope(
        scope, "Conv", [inputs], reuse=reuse, custom_getter=variable_getter(RENAMED)
    ) as sc:
        inputs = convert_to_tensor(inputs)
        rank = inputs.shape.ndims
        if conv_dims is not None and conv_dims + 2 != rank:
            raise ValueError(f"Convolution expects input with rank {conv_dims + 2}, got {rank}")
        if rank not in _CONV:
            raise ValueError("Convolution not supported for input with rank", rank)
        layer = _CONV[rank](
            num_outputs, kernel_size, strides=stride, padding=padding,
            data_format=channels(data_format, (data_format or "",)), dilation_rate=rate,
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
def convolution1d(
    inputs: Any, num_outputs: int, kernel_size: Any, *args: Any, **kwargs: Any
) -> Tensor:
    """`convolution` of tensors of rank 3."""
    return convolution(inputs, num_outputs, kernel_size, *args, **{"conv_dims": 1, **kwargs})


@add_arg_scope
def convolution2d(
    inputs: Any, num_outputs: int, kernel_size: Any, *args: Any, **kwargs: Any
) -> Tensor:
    """`convolution` of tensors of rank 4."""
    return convolution(inputs, num_outputs, kernel_size, *args, **{"conv_dims": 2, **kwargs})


@add_arg_scope
def convolution3d(
    inputs: Any, num_outputs: int, kernel_size: Any, *args: Any, **kwargs: Any
) -> Tensor:
    """`convolution` of tensors of rank 5."""
    return convolution(inputs, num_outputs, kernel_size, *args, **{"conv_dims": 3, **kwargs})


_WORDS = {
    "outputs_collections": "collections for the result.",
    "scope": "a name for the operations.",
}
"""What the functions here take."""


@add_arg_scope
@explained(
    _WORDS,
    inputs="a floating-point tensor.",
    keep_prob="the part to keep.",
    noise_shape="the shape of the random mask; the input's by default.",
    is_training="a bool or a bool tensor.",
    scope='the variable scope; "Dropout", made unique, by default.',
    seed="the seed of the random numbers.",
    returns="A tensor like `inputs`.",
)
def dropout(
    inputs: Any, keep_prob: Any = 0.5, noise_shape: Any = None, is_training: Any = True,
    outputs_collections: Any = None, scope: Any = None, seed: int | None = None,
) -> Tensor:  # fmt: skip
    """Sets a random part of `inputs` to 0 while training, and scales up the rest."""
    with variable_scope(scope, "Dropout", [inputs], custom_getter=variable_getter()) as sc:
        layer = Dropout(1 - keep_prob, noise_shape, seed, name=sc.name, _scope=sc)
        outputs: Tensor = layer(inputs, training=is_training)
        return finish(outputs, None, outputs_collections, sc.name)


@add_arg_scope
@explained(_WORDS, inputs="a tensor of known rank.", returns="A tensor of rank 2.")
def flatten(inputs: Any, outputs_collections: Any = None, scope: str | None = None) -> Tensor:
    """`inputs` as a matrix, the batch dimension kept."""
    with name_scope(scope, "Flatten", [inputs]) as sc:
        return finish(layers_flatten(convert_to_tensor(inputs)), None, outputs_collections, sc)


conv1d = convolution1d
conv2d = convolution2d
conv3d = convolution3d

elu = functools.partial(fully_connected, activation_fn=nn_elu)
linear = functools.partial(fully_connected, activation_fn=None)
relu = functools.partial(fully_connected, activation_fn=nn_relu)
relu6 = functools.partial(fully_connected, activation_fn=nn_relu6)
