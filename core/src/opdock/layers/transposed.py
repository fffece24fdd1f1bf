"""Transposed convolutions: the gradient of a convolution as a layer."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from opdock.docstrings import explained
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.initializers import zeros_initializer
from opdock.layers.base import applied, static
from opdock.layers.conv import Convolution
from opdock.layers.utils import (
    op_format,
    spatial,
    to_padding,
    transposed_length,
    with_spatial,
    words,
)
from opdock.ops.array import shape
from opdock.ops.conv import conv2d_transpose as nn_conv2d_transpose
from opdock.ops.conv3d import conv3d_transpose as nn_conv3d_transpose
from opdock.ops.joining import stack
from opdock.ops.matrix import transpose
from opdock.shapes import TensorShape


class _Transposed(Convolution):
    """The transpose of a convolution, a bias and an activation."""

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str = "channels_last", activation: Any = None, use_bias: bool = True,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            filters, kernel_size, strides=strides, padding=to_padding(padding),
            data_format=data_format, activation=activation, use_bias=use_bias, **kwargs,
        )  # fmt: skip

    def _kernel_shape(self, channels: int) -> list[int]:
        return [*self.kernel_size, self.filters, channels]

    def call(self, inputs: Any) -> Tensor:
        """Convolves backwards."""
        sizes = shape(inputs)
        dynamic = [sizes[i] for i in range(self._rank + 2)]
        windows = zip(
            spatial(dynamic, self.data_format), self.kernel_size, self.strides, strict=True
        )
        space = [transposed_length(d, k, self.padding, s) for d, k, s in windows]
        full = stack(with_spatial(dynamic[0], space, self.filters, self.data_format))
        outputs = self._transposed(inputs, full)
        outputs.set_shape(self.compute_output_shape(inputs.shape))
        return self._finish(outputs)

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The length of each spatial dimension times the stride, and `filters` channels."""
        dims = static(input_shape)
        windows = zip(spatial(dims, self.data_format), self.kernel_size, self.strides, strict=True)
        space = [transposed_length(d, k, self.padding, s) for d, k, s in windows]
        return TensorShape(with_spatial(dims[0], space, self.filters, self.data_format))

    @abstractmethod
    def _transposed(self, inputs: Any, output_shape: Any) -> Any:
        """The gradient of a convolution whose input has that shape."""


class Conv2DTranspose(_Transposed):
    """The transpose of a convolution of 4-D tensors; see `conv2d_transpose`."""

    def _transposed(self, inputs: Any, output_shape: Any) -> Any:
        return nn_conv2d_transpose(
            inputs, self.kernel, output_shape,
            strides=with_spatial(1, self.strides, 1, self.data_format),
            padding=self.padding.upper(), data_format=op_format(self.data_format, 2),
        )  # fmt: skip


class Conv3DTranspose(_Transposed):
    """The transpose of a convolution of 5-D tensors; see `conv3d_transpose`."""

    _rank = 3

    def _transposed(self, inputs: Any, output_shape: Any) -> Any:
        first = self.data_format == "channels_first"
        if first:
            # TF transposes volume convolutions with channels last only.
            inputs = transpose(inputs, (0, 2, 3, 4, 1))
            output_shape = stack([output_shape[i] for i in (0, 2, 3, 4, 1)])
        outputs = nn_conv3d_transpose(
            inputs, self.kernel, output_shape, strides=[1, *self.strides, 1],
            padding=self.padding.upper(), data_format="NDHWC",
        )  # fmt: skip
        return transpose(outputs, (0, 4, 1, 2, 3)) if first else outputs


@explained(words(2), strides="by how much the output is larger, likewise.")
def conv2d_transpose(
    inputs: Any, filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
    data_format: str = "channels_last", activation: Any = None, use_bias: bool = True,
    kernel_initializer: Any = None, bias_initializer: Any = zeros_initializer(),  # noqa: B008
    kernel_regularizer: Any = None, bias_regularizer: Any = None,
    activity_regularizer: Any = None, kernel_constraint: Any = None,
    bias_constraint: Any = None, trainable: bool = True, name: Any = None, reuse: Any = None,
) -> Tensor:  # fmt: skip
    """The transpose (gradient) of a convolution over 2 spatial dimensions, often deconvolution."""
    return applied(Conv2DTranspose, **locals())


@explained(words(3), strides="by how much the output is larger, likewise.")
def conv3d_transpose(
    inputs: Any, filters: int, kernel_size: Any, strides: Any = (1, 1, 1), padding: str = "valid",
    data_format: str = "channels_last", activation: Any = None, use_bias: bool = True,
    kernel_initializer: Any = None, bias_initializer: Any = zeros_initializer(),  # noqa: B008
    kernel_regularizer: Any = None, bias_regularizer: Any = None,
    activity_regularizer: Any = None, kernel_constraint: Any = None,
    bias_constraint: Any = None, trainable: bool = True, name: Any = None, reuse: Any = None,
) -> Tensor:  # fmt: skip
    """The transpose (gradient) of a convolution over 3 spatial dimensions, often deconvolution."""
    return applied(Conv3DTranspose, **locals())
