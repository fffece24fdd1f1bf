"""Layers that are a formula: softmax in two ways, unit lengths, the largest of several units."""

from __future__ import annotations

from typing import Any

from opdock.autodiff.custom import custom_gradient
from opdock.contrib.framework.arg_scope import add_arg_scope
from opdock.contrib.layers.common import biased, channels, finish, model_variable
from opdock.contrib.layers.utils import get_variable_collections, last_dimension
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.initializers import (
    constant_initializer,
    ones_initializer,
    zeros_initializer,
)
from opdock.graph.variables.variable_scope import variable_scope
from opdock.ops.arithmetic import minimum, multiply
from opdock.ops.array import reshape, shape
from opdock.ops.composed.division import div
from opdock.ops.elementary import rsqrt, sqrt, square
from opdock.ops.fill import lin_space, meshgrid
from opdock.ops.identity import identity
from opdock.ops.joining import concat
from opdock.ops.matrix import transpose
from opdock.ops.reduce import reduce_max, reduce_sum
from opdock.ops.xent import softmax as nn_softmax

__all__ = [
    "bias_add", "maxout", "poincare_normalize", "scale_gradient", "softmax", "spatial_softmax",
    "unit_norm",
]  # fmt: skip


@add_arg_scope
def bias_add(
    inputs: Any, activation_fn: Any = None,
    initializer: Any = zeros_initializer(),  # noqa: B008
    regularizer: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, data_format: str = "NHWC",
    scope: Any = None,
) -> Tensor:  # fmt: skip
    """Adds a variable `biases` to each channel.

    Args:
        inputs: a tensor of rank 2 or more; 4 with "NCHW".
        activation_fn: a function on the result, or None.
        initializer: makes the biases.
        regularizer: a function from the biases to a loss.
        reuse: whether to share the variable of `scope`.
        variables_collections: collections for the variable, or a dict of them.
        outputs_collections: collections for the result.
        trainable: whether optimizers update the variable.
        data_format: "NHWC" or "NCHW".
        scope: the variable scope; "BiasAdd", made unique, by default.

    Raises:
        ValueError: the format is unknown, or the shape of the inputs does not fit.
    """
    first = channels(data_format) == "channels_first"
    with variable_scope(scope, "BiasAdd", [inputs], reuse=reuse) as sc:
        inputs = convert_to_tensor(inputs)
        rank = inputs.shape.ndims
        if rank is None:
            raise ValueError("Dims of shape must be known but is None")
        if first and rank != 4:
            raise ValueError("Data format NCHW only supports 4D Tensor")
        size = inputs.shape.as_list()[1 if first else -1]
        if size is None:
            raise ValueError("`C` dimension must be known but is None")
        outputs: Tensor = biased(
            inputs, size, initializer, regularizer, trainable, variables_collections, data_format
        )
        return finish(outputs, activation_fn, outputs_collections, sc.name)


@add_arg_scope
def softmax(logits: Any, scope: Any = None) -> Tensor:
    """Softmax over the last dimension.

    Args:
        logits: a tensor of rank 2 or more, whose last dimension is known.
        scope: a name for the operations.

    Raises:
        ValueError: the shape does not fit.
    """
    with variable_scope(scope, "softmax", [logits]):
        size = last_dimension(logits.shape, min_rank=2)
        found = reshape(nn_softmax(reshape(logits, [-1, size])), shape(logits))
        found.set_shape(logits.shape)
        return found


@add_arg_scope
def spatial_softmax(
    features: Any, temperature: float | None = None, name: Any = None,
    variables_collections: Any = None, trainable: bool = True, data_format: str = "NHWC",
) -> Tensor:  # fmt: skip
    """Where each channel of images is large: the mean place, weighed by a softmax over places.

    Args:
        features: images of a known number of channels.
        temperature: what values are divided by before, or where that begins; a variable
            `temperature`, which is 1 in the beginning if None.
        name: the variable scope; "spatial_softmax", made unique, by default.
        variables_collections: collections for the variable, or a dict of them.
        trainable: whether optimizers update it.
        data_format: "NHWC" or "NCHW".

    Returns:
        A tensor [batch, channels * 2] of x and y, from -1 to 1, of each channel.

    Raises:
        ValueError: the format is another one, or the number of channels is not known.
    """
    with variable_scope(name, "spatial_softmax"):
        first = channels(data_format) == "channels_first"
        sizes = shape(features)
        height, width = (sizes[2], sizes[3]) if first else (sizes[1], sizes[2])
        count = features.shape.as_list()[1 if first else 3]
        if count is None:
            raise ValueError(
                "The num_channels dimension of the inputs to `spatial_softmax` should be defined. "
                "Found `None`."
            )
        with name_scope("spatial_softmax_op", "spatial_softmax_op", [features]):
            places = height * width
            x, y = (
                reshape(at, [places])
                for at in meshgrid(
                    lin_space(-1.0, 1.0, num=height), lin_space(-1.0, 1.0, num=width),
                    indexing="ij",
                )
            )  # fmt: skip
            begin = ones_initializer() if temperature is None else constant_initializer(temperature)
            collected = get_variable_collections(variables_collections, "temperature")
            scale = model_variable(
                "temperature", (), begin, trainable, collected if trainable else None
            )
            by_channel = features if first else transpose(features, [0, 3, 1, 2])
            weights = nn_softmax(reshape(by_channel, [-1, places]) / scale)
            means = [reduce_sum(at * weights, [1], keepdims=True) for at in (x, y)]
            found = reshape(concat(means, 1), [-1, count * 2])
            found.set_shape([None, count * 2])
            return found


@add_arg_scope
def unit_norm(inputs: Any, dim: int, epsilon: float = 1e-7, scope: Any = None) -> Tensor:
    """Inputs over their lengths along a dimension.

    Args:
        inputs: a tensor of known rank.
        dim: the dimension.
        epsilon: added to the squares of lengths.
        scope: a name for the operations.

    Raises:
        ValueError: the rank is not known, or has no such dimension.
    """
    with variable_scope(scope, "UnitNorm", [inputs]):
        rank = inputs.shape.ndims
        if not rank:
            raise ValueError("The input rank must be known.")
        if not 0 <= dim < rank:
            raise ValueError("dim must be positive but smaller than the input rank.")
        return div(inputs, sqrt(epsilon + reduce_sum(square(inputs), dim, keepdims=True)))


@add_arg_scope
def maxout(inputs: Any, num_units: int, axis: int = -1, scope: Any = None) -> Tensor:
    """The largest of each group of features (Goodfellow et al. 2013, arXiv:1302.4389).

    Args:
        inputs: a tensor whose dimension `axis` is known.
        num_units: how many groups there are, a divisor of the features.
        axis: the dimension of the features.
        scope: a name for the operations.

    Raises:
        ValueError: the features are no multiple of `num_units`.
    """
    with variable_scope(scope, "MaxOut", [inputs]):
        inputs = convert_to_tensor(inputs)
        sizes: list[Any] = inputs.shape.as_list()
        features = sizes[axis]
        if features % num_units:
            raise ValueError(
                f"number of features({features}) is not a multiple of num_units({num_units})"
            )
        sizes[axis] = num_units
        known = [shape(inputs)[i] if size is None else size for i, size in enumerate(sizes)]
        return reduce_max(reshape(inputs, [*known, features // num_units]), -1)


def poincare_normalize(
    x: Any, axis: Any = 1, epsilon: float = 1e-5, name: str | None = None
) -> Tensor:
    """Into the unit ball of Poincaré's model (Nickel and Kiela 2017): lengths of 1 and more go.

    Args:
        x: a floating-point tensor.
        axis: the dimension, or dimensions, along which there are vectors.
        epsilon: how far within the ball a vector is left.
        name: a name for the operation.
    """
    with name_scope(name, "poincare_normalize", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        inverse = rsqrt(reduce_sum(square(x), axis, keepdims=True))
        return multiply(x, minimum((1.0 - epsilon) * inverse, 1.0), name=scope)


@custom_gradient
def scale_gradient(inputs: Tensor, gradient_multiplier: Tensor) -> Any:
    """The inputs, whose gradient is multiplied.

    Args:
        inputs: a floating-point tensor.
        gradient_multiplier: what it is multiplied by.
    """
    return identity(inputs), lambda grad: (grad * gradient_multiplier, None)
