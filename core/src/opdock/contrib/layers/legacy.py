"""`legacy_fully_connected`: the layer before `fully_connected`, and its partials."""

from __future__ import annotations

import functools
from typing import Any

from opdock.contrib.layers.initializers import xavier_initializer
from opdock.graph.nodes.collections import GraphKeys, add_to_collections
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.initializers import zeros_initializer
from opdock.graph.variables.variable_scope import get_variable, variable_scope
from opdock.ops.array import reshape, shape
from opdock.ops.bias import bias_add
from opdock.ops.joining import stack
from opdock.ops.linalg import matmul
from opdock.ops.nn import relu
from opdock.ops.splitting import unstack

__all__ = ["legacy_fully_connected", "legacy_linear", "legacy_relu"]


def legacy_fully_connected(
    x: Any, num_output_units: int, activation_fn: Any = None,
    weight_init: Any = xavier_initializer(),  # noqa: B008
    bias_init: Any = zeros_initializer(),  # noqa: B008
    name: Any = None, weight_collections: Any = (GraphKeys.WEIGHTS,),
    bias_collections: Any = (GraphKeys.BIASES,), output_collections: Any = (GraphKeys.ACTIVATIONS,),
    trainable: bool = True, weight_regularizer: Any = None, bias_regularizer: Any = None,
) -> Tensor:  # fmt: skip
    """A fully connected layer with variables `weights` and `bias`.

    Args:
        x: a floating-point tensor of rank 2 or more, whose last dimension is known.
        num_output_units: the size of the output's last dimension.
        activation_fn: a function on the result, or None.
        weight_init, bias_init: make the variables; no bias when None.
        name: the variable scope; "fully_connected", made unique, by default.
        weight_collections, bias_collections: collections for the variables.
        output_collections: collections for the result.
        trainable: whether optimizers update the variables.
        weight_regularizer, bias_regularizer: functions from a variable to a loss.

    Raises:
        ValueError: the shape of `x` does not fit.
    """
    with variable_scope(name, "fully_connected", [x]):
        x = convert_to_tensor(x)
        rank = x.shape.ndims
        if rank is None:
            raise ValueError("dims of x must be known but is None")
        if rank < 2:
            raise ValueError(f"rank of x must be at least 2 not: {rank}")
        *outer, size = x.shape.as_list()
        if size is None:
            raise ValueError("last dimension of x must be known but is None")
        dtype = x.dtype.base_dtype
        weights = get_variable(
            "weights", [size, num_output_units], dtype, weight_init, weight_regularizer, trainable,
            _with_global(weight_collections),
        )  # fmt: skip
        y = matmul(x if rank == 2 else reshape(x, [-1, size]), weights)
        if bias_init is not None:
            bias = get_variable(
                "bias", [num_output_units], dtype, bias_init, bias_regularizer, trainable,
                _with_global(bias_collections),
            )  # fmt: skip
            y = bias_add(y, bias)
        if rank > 2:
            y = reshape(y, stack([*unstack(shape(x))[:-1], num_output_units]))
            y.set_shape([*outer, num_output_units])
        if activation_fn is not None:
            y = activation_fn(y)
        add_to_collections([*(output_collections or ()), GraphKeys.ACTIVATIONS], y)
        return y


def _with_global(collections: Any) -> list[str]:
    return [*dict.fromkeys([*(collections or ()), GraphKeys.GLOBAL_VARIABLES])]


legacy_relu = functools.partial(legacy_fully_connected, activation_fn=relu)
legacy_linear = functools.partial(legacy_fully_connected, activation_fn=None)
