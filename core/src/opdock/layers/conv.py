"""Convolutions over one, two or three spatial dimensions."""

from __future__ import annotations

from typing import Any

from opdock.docstrings import explained
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.initializers import zeros_initializer
from opdock.layers import named
from opdock.layers.base import Layer, applied, static
from opdock.layers.spec import InputSpec
from opdock.layers.utils import (
    channel_axis,
    op_format,
    spatial,
    to_data_format,
    to_padding,
    to_tuple,
    window_length,
    with_spatial,
    words,
)
from opdock.ops.array import reshape
from opdock.ops.bias import bias_add
from opdock.ops.composed.dilated import convolve, strides_and_rates
from opdock.ops.padding import pad
from opdock.shapes import TensorShape


class Convolution(Layer):
    """A convolution, a bias and an activation.

    Variables: `kernel` [window..., in_channels, filters] and `bias` [filters].

    Args:
        filters: the number of output channels.
        kernel_size: the size of the window, an int or one per spatial dimension.
        strides: the step of the window, likewise.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".
        dilation_rate: the step inside the window; 1 when the strides are not.
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

    _rank = 2

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str = "channels_last", dilation_rate: Any = 1, activation: Any = None,
        use_bias: bool = True, kernel_initializer: Any = None,
        bias_initializer: Any = zeros_initializer(),  # noqa: B008
        kernel_regularizer: Any = None, bias_regularizer: Any = None,
        activity_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable: bool = True, name: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        rank = self._rank
        self.filters = filters
        self.kernel_size = to_tuple(kernel_size, rank, "kernel_size")
        self.strides = to_tuple(strides, rank, "strides")
        self.padding = to_padding(padding, causal=rank == 1)
        self.data_format = to_data_format(data_format)
        self.dilation_rate = to_tuple(dilation_rate, rank, "dilation_rate")
        self.activation = named.activation(activation)
        self.use_bias = use_bias
        self.kernel_initializer = kernel_initializer
        self.bias_initializer = bias_initializer
        self.kernel_regularizer = kernel_regularizer
        self.bias_regularizer = bias_regularizer
        self.kernel_constraint = kernel_constraint
        self.bias_constraint = bias_constraint
        self.input_spec = InputSpec(ndim=rank + 2)
        self.kernel: Any = None
        self.bias: Any = None

    def build(self, input_shape: Any) -> None:
        """Makes the variables.

        Raises:
            ValueError: the number of input channels is unknown.
        """
        channels = self._require_channels(input_shape)
        self.kernel = self.add_weight(
            "kernel", self._kernel_shape(channels), initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer, constraint=self.kernel_constraint,
        )  # fmt: skip
        self._build_bias()
        self.built = True

    def _kernel_shape(self, channels: int) -> list[int]:
        return [*self.kernel_size, channels, self.filters]

    def _require_channels(self, input_shape: Any) -> int:
        axis = channel_axis(self.data_format, self._rank)
        channels = static(input_shape)[axis]
        if channels is None:
            raise ValueError("The channel dimension of the inputs should be defined. Found `None`.")
        self.input_spec = InputSpec(ndim=self._rank + 2, axes={axis: channels})
        return channels

    def _build_bias(self) -> None:
        if self.use_bias:
            self.bias = self.add_weight(
                "bias", [self.filters], initializer=self.bias_initializer,
                regularizer=self.bias_regularizer, constraint=self.bias_constraint,
            )  # fmt: skip

    def call(self, inputs: Any) -> Tensor:
        """Convolves."""
        strides, rates = strides_and_rates(self._rank, self.strides, self.dilation_rate)
        if self.padding == "causal":
            inputs = self._pad_left(inputs)
        outputs: Any = convolve(
            inputs, self.kernel, strides, "VALID" if self.padding == "causal" else
            self.padding.upper(), rates, op_format(self.data_format, self._rank), None,
        )  # fmt: skip
        return self._finish(outputs)

    def _pad_left(self, inputs: Any) -> Any:
        left = self.dilation_rate[0] * (self.kernel_size[0] - 1)
        return pad(inputs, with_spatial((0, 0), [(left, 0)], (0, 0), self.data_format))

    def _finish(self, outputs: Any) -> Tensor:
        """Bias and activation."""
        if self.use_bias:
            first = self.data_format == "channels_first"
            if first and self._rank == 1:
                outputs = outputs + reshape(self.bias, (1, self.filters, 1))
            else:
                outputs = bias_add(outputs, self.bias, data_format="NCHW" if first else "NHWC")
        if self.activation is not None:
            outputs = self.activation(outputs)
        return outputs  # type: ignore[no-any-return]

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The number of windows along each spatial dimension, and `filters` channels."""
        dims = static(input_shape)
        windows = zip(
            spatial(dims, self.data_format), self.kernel_size, self.strides, self.dilation_rate,
            strict=True,
        )  # fmt: skip
        space = [window_length(d, k, self.padding, s, r) for d, k, s, r in windows]
        return TensorShape(with_spatial(dims[0], space, self.filters, self.data_format))


class Conv1D(Convolution):
    """A convolution of 3-D tensors; see `conv1d`."""

    _rank = 1


class Conv2D(Convolution):
    """A convolution of 4-D tensors; see `conv2d`."""


class Conv3D(Convolution):
    """A convolution of 5-D tensors; see `conv3d`."""

    _rank = 3


@explained(words(1))
def conv1d(
    inputs: Any, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
    data_format: str = "channels_last", dilation_rate: Any = 1, activation: Any = None,
    use_bias: bool = True, kernel_initializer: Any = None,
    bias_initializer: Any = zeros_initializer(),  # noqa: B008
    kernel_regularizer: Any = None, bias_regularizer: Any = None,
    activity_regularizer: Any = None, kernel_constraint: Any = None,
    bias_constraint: Any = None, trainable: bool = True, name: Any = None, reuse: Any = None,
) -> Tensor:  # fmt: skip
    """A convolution over 1 spatial dimension, with bias and activation."""
    return applied(Conv1D, **locals())


@explained(words(2))
def conv2d(
    inputs: Any, filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
    data_format: str = "channels_last", dilation_rate: Any = (1, 1), activation: Any = None,
    use_bias: bool = True, kernel_initializer: Any = None,
    bias_initializer: Any = zeros_initializer(),  # noqa: B008
    kernel_regularizer: Any = None, bias_regularizer: Any = None,
    activity_regularizer: Any = None, kernel_constraint: Any = None,
    bias_constraint: Any = None, trainable: bool = True, name: Any = None, reuse: Any = None,
) -> Tensor:  # fmt: skip
    """A convolution over 2 spatial dimensions, with bias and activation."""
    return applied(Conv2D, **locals())


@explained(words(3))
def conv3d(
    inputs: Any, filters: int, kernel_size: Any, strides: Any = (1, 1, 1), padding: str = "valid",
    data_format: str = "channels_last", dilation_rate: Any = (1, 1, 1), activation: Any = None,
    use_bias: bool = True, kernel_initializer: Any = None,
    bias_initializer: Any = zeros_initializer(),  # noqa: B008
    kernel_regularizer: Any = None, bias_regularizer: Any = None,
    activity_regularizer: Any = None, kernel_constraint: Any = None,
    bias_constraint: Any = None, trainable: bool = True, name: Any = None, reuse: Any = None,
) -> Tensor:  # fmt: skip
    """A convolution over 3 spatial dimensions, with bias and activation."""
    return applied(Conv3D, **locals())
