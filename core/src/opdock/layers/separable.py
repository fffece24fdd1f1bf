"""Separable convolutions: each channel by itself, then a mix of channels."""

from __future__ import annotations

from typing import Any

from opdock.docstrings import explained
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.initializers import zeros_initializer
from opdock.layers.base import applied
from opdock.layers.conv import Convolution
from opdock.layers.utils import op_format, with_spatial, words
from opdock.ops.array import expand_dims, squeeze
from opdock.ops.bias import bias_add
from opdock.ops.depthwise import separable_conv2d as nn_separable_conv2d


class _Separable(Convolution):
    """A convolution of each channel by itself, a mix of the channels, a bias and an activation.

    Variables: `depthwise_kernel` [window..., in_channels, depth_multiplier], `pointwise_kernel`
    [1..., in_channels * depth_multiplier, filters] and `bias` [filters].
    """

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str = "channels_last", dilation_rate: Any = 1, depth_multiplier: int = 1,
        activation: Any = None, use_bias: bool = True, depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = zeros_initializer(),  # noqa: B008
        depthwise_regularizer: Any = None, pointwise_regularizer: Any = None,
        bias_regularizer: Any = None, activity_regularizer: Any = None,
        depthwise_constraint: Any = None, pointwise_constraint: Any = None,
        bias_constraint: Any = None, trainable: bool = True, name: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            filters, kernel_size, strides=strides, padding=padding, data_format=data_format,
            dilation_rate=dilation_rate, activation=activation, use_bias=use_bias,
            bias_initializer=bias_initializer, bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer, bias_constraint=bias_constraint,
            trainable=trainable, name=name, **kwargs,
        )  # fmt: skip
        self.depth_multiplier = depth_multiplier
        self.depthwise_initializer = depthwise_initializer
        self.pointwise_initializer = pointwise_initializer
        self.depthwise_regularizer = depthwise_regularizer
        self.pointwise_regularizer = pointwise_regularizer
        self.depthwise_constraint = depthwise_constraint
        self.pointwise_constraint = pointwise_constraint
        self.depthwise_kernel: Any = None
        self.pointwise_kernel: Any = None

    def build(self, input_shape: Any) -> None:
        """Makes the variables.

        Raises:
            ValueError: the number of input channels is unknown.
        """
        channels = self._require_channels(input_shape)
        self.depthwise_kernel = self.add_weight(
            "depthwise_kernel", [*self.kernel_size, channels, self.depth_multiplier],
            initializer=self.depthwise_initializer, regularizer=self.depthwise_regularizer,
            constraint=self.depthwise_constraint,
        )  # fmt: skip
        self.pointwise_kernel = self.add_weight(
            "pointwise_kernel",
            [*[1] * self._rank, channels * self.depth_multiplier, self.filters],
            initializer=self.pointwise_initializer, regularizer=self.pointwise_regularizer,
            constraint=self.pointwise_constraint,
        )  # fmt: skip
        self._build_bias()
        self.built = True


class SeparableConv2D(_Separable):
    """A separable convolution of 4-D tensors; see `separable_conv2d`."""

    def call(self, inputs: Any) -> Tensor:
        """Convolves."""
        outputs = nn_separable_conv2d(
            inputs, self.depthwise_kernel, self.pointwise_kernel,
            strides=with_spatial(1, self.strides, 1, self.data_format),
            padding=self.padding.upper(), rate=self.dilation_rate,
            data_format=op_format(self.data_format, 2),
        )  # fmt: skip
        return self._finish(outputs)


class SeparableConv1D(_Separable):
    """A separable convolution of 3-D tensors; see `separable_conv1d`."""

    _rank = 1

    def call(self, inputs: Any) -> Tensor:
        """Convolves, as images of height 1."""
        padding = self.padding
        if padding == "causal":
            inputs, padding = self._pad_left(inputs), "valid"
        axis = 1 if self.data_format == "channels_last" else 2
        outputs = nn_separable_conv2d(
            expand_dims(inputs, axis),
            expand_dims(self.depthwise_kernel, 0),
            expand_dims(self.pointwise_kernel, 0),
            # The depthwise op wants equal strides, also along the dimension of size 1.
            strides=with_spatial(1, self.strides * 2, 1, self.data_format),
            padding=padding.upper(),
            rate=(1, *self.dilation_rate),
            data_format=op_format(self.data_format, 2),
        )
        return self._finish_1d(outputs, axis)

    def _finish_1d(self, outputs: Any, axis: int) -> Tensor:
        if self.use_bias:
            first = self.data_format == "channels_first"
            outputs = bias_add(outputs, self.bias, data_format="NCHW" if first else "NHWC")
        outputs = squeeze(outputs, [axis])
        if self.activation is not None:
            outputs = self.activation(outputs)
        return outputs  # type: ignore[no-any-return]


def _words(rank: int) -> dict[str, str]:
    own = {
        "initializer": "make the variables.",
        "regularizer": "functions from a variable to a loss.",
        "constraint": "applied after each update.",
    }
    kinds = ("depthwise", "pointwise", "bias")
    return words(rank) | {f"{kind}_{k}": text for k, text in own.items() for kind in kinds}


@explained(_words(1))
def separable_conv1d(
    inputs: Any, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
    data_format: str = "channels_last", dilation_rate: Any = 1, depth_multiplier: int = 1,
    activation: Any = None, use_bias: bool = True, depthwise_initializer: Any = None,
    pointwise_initializer: Any = None,
    bias_initializer: Any = zeros_initializer(),  # noqa: B008
    depthwise_regularizer: Any = None, pointwise_regularizer: Any = None,
    bias_regularizer: Any = None, activity_regularizer: Any = None,
    depthwise_constraint: Any = None, pointwise_constraint: Any = None,
    bias_constraint: Any = None, trainable: bool = True, name: Any = None, reuse: Any = None,
) -> Tensor:  # fmt: skip
    """A convolution of each channel by itself, followed by a mix of the channels."""
    return applied(SeparableConv1D, **locals())


@explained(_words(2), strides="the step of the window, likewise; all equal.")
def separable_conv2d(
    inputs: Any, filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
    data_format: str = "channels_last", dilation_rate: Any = (1, 1), depth_multiplier: int = 1,
    activation: Any = None, use_bias: bool = True, depthwise_initializer: Any = None,
    pointwise_initializer: Any = None,
    bias_initializer: Any = zeros_initializer(),  # noqa: B008
    depthwise_regularizer: Any = None, pointwise_regularizer: Any = None,
    bias_regularizer: Any = None, activity_regularizer: Any = None,
    depthwise_constraint: Any = None, pointwise_constraint: Any = None,
    bias_constraint: Any = None, trainable: bool = True, name: Any = None, reuse: Any = None,
) -> Tensor:  # fmt: skip
    """A convolution of each channel by itself, followed by a mix of the channels."""
    return applied(SeparableConv2D, **locals())
