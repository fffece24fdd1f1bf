"""Cells that take in the input by itself, and gate it against the past."""

from __future__ import annotations

from typing import Any

from opdock.layers import named
from opdock.layers.rnn_cell import UnitCell
from opdock.ops.bias import bias_add
from opdock.ops.elementary import sigmoid
from opdock.ops.joining import concat
from opdock.ops.linalg import matmul
from opdock.ops.splitting import split

__all__ = ["CFNCell", "MinimalRNNCell"]


class _GatedCell(UnitCell):
    """What both have in common."""

    def __init__(
        self, units: int, activation: Any = "tanh", kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "ones", name: Any = None, dtype: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(units, activation, name=name, dtype=dtype, **kwargs)
        self.units, self.activation = units, self._activation
        self.kernel_initializer = named.initializer(kernel_initializer)
        self.bias_initializer = named.initializer(bias_initializer)


class MinimalRNNCell(_GatedCell):
    """A cell with one gate, between the state and the input alone (Chen et al. 2018).

    Args:
        units: the number of units.
        activation: that of the input's product; tanh by default.
        kernel_initializer, bias_initializer: make the variables.
        name: the cell's name.
        dtype: the type of the variables; the input's by default.
        **kwargs: for `Layer`.
    """

    def build(self, input_shape: Any) -> None:
        """Makes the variables."""
        self._width, n = self._depth(input_shape), self.units
        self.kernel = self.add_weight(
            "kernel", [self._width + 2 * n, n], initializer=self.kernel_initializer
        )
        self.bias = self.add_weight("bias", [n], initializer=self.bias_initializer)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        of_input, of_gate = split(self.kernel, [self._width, 2 * self.units], 0)
        taken = self.activation(matmul(inputs, of_input))
        keep = sigmoid(bias_add(matmul(concat([taken, state], 1), of_gate), self.bias))
        state = keep * state + (1 - keep) * taken
        return state, state


class CFNCell(_GatedCell):
    """A cell whose state dies away without input (Laurent & von Brecht 2017).

    The gate of the input is one less the sigmoid, so that with biases of one it starts small.

    Args:
        units: the number of units.
        activation: that of the state, and of the input's product; tanh by default.
        kernel_initializer, bias_initializer: make the variables.
        name: the cell's name.
        dtype: the type of the variables; the input's by default.
        **kwargs: for `Layer`.
    """

    def build(self, input_shape: Any) -> None:
        """Makes the variables."""
        n, make = self.units, self.kernel_initializer
        self.kernel = self.add_weight("kernel", [self._depth(input_shape), 3 * n], initializer=make)
        self.recurrent_kernel = self.add_weight("recurrent_kernel", [n, 2 * n], initializer=make)
        self.bias = self.add_weight("bias", [2 * n], initializer=self.bias_initializer)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        of_gates, taken = split(matmul(inputs, self.kernel), [2 * self.units, self.units], 1)
        gates = bias_add(matmul(state, self.recurrent_kernel) + of_gates, self.bias)
        keep, shut = split(sigmoid(gates), 2, 1)
        state = keep * self.activation(state) + (1 - shut) * self.activation(taken)
        return state, state
