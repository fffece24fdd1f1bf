"""LSTM cells whose products are convolutions (Shi et al. 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock.graph.variables.initializers import constant_initializer
from opdock.graph.variables.variable_scope import get_variable
from opdock.layers.rnn_base import LSTMStateTuple, RNNCell
from opdock.ops.composed.dilated import convolution
from opdock.ops.elementary import sigmoid, tanh
from opdock.ops.joining import concat
from opdock.ops.splitting import split
from opdock.shapes import TensorShape

__all__ = ["Conv1DLSTMCell", "Conv2DLSTMCell", "Conv3DLSTMCell", "ConvLSTMCell"]


class ConvLSTMCell(RNNCell):
    """An LSTM over images: inputs and states are [batch, *space, channels].

    Args:
        conv_ndims: the number of spatial dimensions, 1, 2 or 3.
        input_shape: the shape of an input without the batch.
        output_channels: the number of channels of memory and output.
        kernel_shape: the size of the window.
        use_bias: whether there is a bias.
        skip_connection: whether the inputs are joined to the outputs.
        forget_bias: added to the forget gate.
        initializers: not used.
        name: the cell's name.

    Raises:
        ValueError: `input_shape` has another number of dimensions.
    """

    def __init__(
        self, conv_ndims: int, input_shape: Sequence[int], output_channels: int,
        kernel_shape: Sequence[int], use_bias: bool = True, skip_connection: bool = False,
        forget_bias: float = 1.0, initializers: Any = None, name: str = "conv_lstm_cell",
    ) -> None:  # fmt: skip
        super().__init__(name=name)
        if conv_ndims != len(input_shape) - 1:
            raise ValueError(f"Invalid input_shape {input_shape} for conv_ndims={conv_ndims}.")
        self._conv_ndims, self._kernel_shape = conv_ndims, list(kernel_shape)
        self._channels, self._use_bias = output_channels, use_bias
        self._skip, self._forget_bias = skip_connection, forget_bias
        self._space, self._input_channels = list(input_shape[:-1]), input_shape[-1]

    @property
    def state_size(self) -> Any:
        """The shapes of memory and output."""
        size = TensorShape([*self._space, self._channels])
        return LSTMStateTuple(size, size)

    @property
    def output_size(self) -> Any:
        """The shape of an output."""
        more = self._input_channels if self._skip else 0
        return TensorShape([*self._space, self._channels + more])

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        cell, hidden = state
        i, j, f, o = split(self._gates([inputs, hidden]), 4, self._conv_ndims + 1)
        c = sigmoid(f + self._forget_bias) * cell + sigmoid(i) * tanh(j)
        h = tanh(c) * sigmoid(o)
        # TF puts the joined inputs in the state as well, which then no longer fits its size.
        output = concat([h, inputs], -1) if self._skip else h
        return output, LSTMStateTuple(c, h)

    def _gates(self, given: list[Any]) -> Any:
        shapes = [part.shape.as_list() for part in given]
        if any(len(s) != self._conv_ndims + 2 for s in shapes):
            raise ValueError(f"Conv Linear expects all args to be of same Dimension: {shapes}")
        depth, size, dtype = sum(s[-1] for s in shapes), 4 * self._channels, given[0].dtype
        kernel = get_variable("kernel", [*self._kernel_shape, depth, size], dtype)
        product = convolution(concat(given, -1), kernel, "SAME")
        if not self._use_bias:
            return product
        zero = constant_initializer(0.0, dtype=dtype)
        return product + get_variable("biases", [size], dtype, zero)


class Conv1DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` of one spatial dimension; the other arguments are those of that class."""

    def __init__(self, name: str = "conv_1d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=1, name=name, **kwargs)


class Conv2DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` of two spatial dimensions; the other arguments are those of that class."""

    def __init__(self, name: str = "conv_2d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=2, name=name, **kwargs)


class Conv3DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` of three spatial dimensions; the other arguments are those of that class."""

    def __init__(self, name: str = "conv_3d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=3, name=name, **kwargs)
