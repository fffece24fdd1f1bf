"""Dense, dropout and flatten."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor, has_graph
from opdock.graph.variables.initializers import zeros_initializer
from opdock.layers import named
from opdock.layers.base import Layer, applied, static
from opdock.layers.spec import InputSpec
from opdock.layers.utils import smart_cond, to_data_format
from opdock.ops.array import reshape, shape
from opdock.ops.bias import bias_add
from opdock.ops.composed.dropout import dropout as nn_dropout
from opdock.ops.composed.tensordot import tensordot
from opdock.ops.identity import identity
from opdock.ops.linalg import matmul
from opdock.ops.matrix import transpose
from opdock.shapes import TensorShape


class Dense(Layer):
    """A fully connected layer: `activation(inputs @ kernel + bias)`.

    The inputs are floating-point tensors of rank 2 or more; the product is over the last
    dimension, whose size must be known. Variables: `kernel` [last, units] and `bias` [units].

    Args:
        units: the size of the output's last dimension.
        activation: a function on the result, or its name; None for the result itself.
        use_bias: whether there is a bias.
        kernel_initializer: makes the kernel; the scope's default, then glorot uniform.
        bias_initializer: makes the bias.
        kernel_regularizer, bias_regularizer: functions from a variable to a loss.
        activity_regularizer: a function from the output to a loss.
        kernel_constraint, bias_constraint: applied after each update. All of these may be names
            (`opdock.layers.named`).
        trainable: whether optimizers update the variables.
        name: the layer's name.
        **kwargs: for `Layer`.
    """

    def __init__(
        self, units: int, activation: Any = None, use_bias: bool = True,
        kernel_initializer: Any = None, bias_initializer: Any = zeros_initializer(),  # noqa: B008
        kernel_regularizer: Any = None, bias_regularizer: Any = None,
        activity_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable: bool = True, name: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        self.units = int(units)
        self.activation = named.activation(activation)
        self.use_bias = use_bias
        self.kernel_initializer = kernel_initializer
        self.bias_initializer = bias_initializer
        self.kernel_regularizer = kernel_regularizer
        self.bias_regularizer = bias_regularizer
        self.kernel_constraint = kernel_constraint
        self.bias_constraint = bias_constraint
        self.input_spec = InputSpec(min_ndim=2)
        self.kernel: Any = None
        self.bias: Any = None

    def build(self, input_shape: Any) -> None:
        """Makes the variables.

        Raises:
            TypeError: the inputs are not floating-point.
            ValueError: the size of the last dimension is unknown.
        """
        dtype = self.dtype
        if dtype is not None and not (dtype.is_floating or dtype.is_complex):
            raise TypeError(
                f"Unable to build `Dense` layer with non-floating point dtype {dtype!r}"
            )
        last = static(input_shape)[-1]
        if last is None:
            raise ValueError(
                "The last dimension of the inputs to `Dense` should be defined. Found `None`."
            )
        self.input_spec = InputSpec(min_ndim=2, axes={-1: last})
        self.kernel = self.add_weight(
            "kernel", [last, self.units], initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer, constraint=self.kernel_constraint,
        )  # fmt: skip
        if self.use_bias:
            self.bias = self.add_weight(
                "bias", [self.units], initializer=self.bias_initializer,
                regularizer=self.bias_regularizer, constraint=self.bias_constraint,
            )  # fmt: skip
        self.built = True

    def call(self, inputs: Any) -> Tensor:
        """The product, bias and activation."""
        inputs = convert_to_tensor(inputs)
        dims = static(inputs.shape)
        outputs: Any
        if len(dims) > 2:
            outputs = tensordot(inputs, self.kernel, [[len(dims) - 1], [0]])
            outputs.set_shape([*dims[:-1], self.units])
        else:
            outputs = matmul(inputs, self.kernel)
        if self.use_bias:
            outputs = bias_add(outputs, self.bias)
        if self.activation is not None:
            outputs = self.activation(outputs)
        return outputs  # type: ignore[no-any-return]

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The input's shape with `units` as last dimension.

        Raises:
            ValueError: the last dimension is unknown, or the rank is below 2.
        """
        dims = static(TensorShape(input_shape).with_rank_at_least(2))
        if dims[-1] is None:
            raise ValueError(
                "The innermost dimension of input_shape must be defined, but saw: "
                f"{TensorShape(dims)}"
            )
        return TensorShape([*dims[:-1], self.units])


def dense(
    inputs: Any, units: int, activation: Any = None, use_bias: bool = True,
    kernel_initializer: Any = None, bias_initializer: Any = zeros_initializer(),  # noqa: B008
    kernel_regularizer: Any = None, bias_regularizer: Any = None,
    activity_regularizer: Any = None, kernel_constraint: Any = None,
    bias_constraint: Any = None, trainable: bool = True, name: Any = None, reuse: Any = None,
) -> Tensor:  # fmt: skip
    """A fully connected layer applied to `inputs`; the arguments are those of `Dense`.

    Args:
        inputs: a floating-point tensor of rank 2 or more.
        units: the size of the last dimension that comes out.
        activation: applied to the result, or None.
        use_bias: whether a vector is added.
        kernel_initializer, bias_initializer: make the first values; the scope's by default.
        kernel_regularizer, bias_regularizer, activity_regularizer: make losses of matrix, vector
            and result.
        kernel_constraint, bias_constraint: what optimizers apply after each update.
        trainable: whether the variables are trained.
        reuse: whether to share the variables of a layer of that name.

    Returns:
        A tensor shaped like `inputs`, but for the last dimension.
    """
    return applied(Dense, **locals())


class Dropout(Layer):
    """Sets a random part of its inputs to 0 while training, and scales up the rest.

    Args:
        rate: the part to drop, between 0 and 1.
        noise_shape: the shape of the random mask, which is broadcast; the input's by default.
        seed: the seed of the random numbers.
        name: the layer's name.
        **kwargs: for `Layer`.
    """

    def __init__(
        self, rate: Any = 0.5, noise_shape: Any = None, seed: int | None = None, name: Any = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, **kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs: Any, training: Any = False) -> Tensor:
        """Drops when `training` (a bool or a bool tensor) holds."""
        inputs = convert_to_tensor(inputs)
        dropped: Tensor = smart_cond(
            False if training is None else training,
            lambda: nn_dropout(
                inputs, noise_shape=self._noise_shape(inputs), seed=self.seed, rate=self.rate
            ),
            lambda: identity(inputs),
        )
        return dropped

    def _noise_shape(self, inputs: Tensor) -> Any:
        if self.noise_shape is None or has_graph(self.noise_shape):
            return self.noise_shape
        dynamic = shape(inputs)
        return [dynamic[i] if d is None else d for i, d in enumerate(self.noise_shape)]

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The shape of the input."""
        return TensorShape(input_shape)


def dropout(
    inputs: Any, rate: Any = 0.5, noise_shape: Any = None, seed: int | None = None,
    training: Any = False, name: Any = None,
) -> Tensor:  # fmt: skip
    """Dropout applied to `inputs`.

    Args:
        inputs: a floating-point tensor.
        rate: the part to drop.
        noise_shape: the shape of the random mask; the input's by default.
        seed: the seed of the random numbers.
        training: a bool or a bool tensor: whether to drop at all.
        name: the layer's name.

    Returns:
        A tensor like `inputs`.
    """
    return applied(Dropout, **locals())


class Flatten(Layer):
    """Joins all dimensions but the first.

    Args:
        data_format: "channels_last", or "channels_first" to move channels last before.
        **kwargs: for `Layer`.
    """

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = to_data_format(data_format)
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Any) -> Tensor:
        """Reshapes to [batch, -1]."""
        inputs = convert_to_tensor(inputs)
        dims = static(inputs.shape)
        if self.data_format == "channels_first" and len(dims) > 1:
            inputs = transpose(inputs, perm=[0, *range(2, len(dims)), 1])
        outputs: Tensor = reshape(inputs, (dims[0] or shape(inputs)[0], -1))
        outputs.set_shape(self.compute_output_shape(dims))
        return outputs

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """[batch, the product of the rest]."""
        batch, *rest = static(input_shape)
        size: int | None = 1
        for d in rest:
            size = None if size is None or d is None else size * d
        return TensorShape([batch, size])


def flatten(inputs: Any, name: Any = None, data_format: str = "channels_last") -> Tensor:
    """`inputs` as a matrix, the batch dimension kept.

    Args:
        inputs: a tensor of known rank.
        name: the layer's name.
        data_format: "channels_last" or "channels_first".

    Returns:
        A tensor of rank 2.
    """
    return applied(Flatten, **locals())
