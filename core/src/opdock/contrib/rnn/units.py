"""Cells whose state is one tensor, and those in which each unit sees its own past alone."""

from __future__ import annotations

from typing import Any

from opdock.contrib.rnn.linear import Linear, known_width
from opdock.graph.variables.initializers import (
    ones_initializer,
    random_uniform_initializer,
    zeros_initializer,
)
from opdock.graph.variables.variable_scope import get_variable_scope, variable_scope
from opdock.layers.rnn_base import LSTMStateTuple, RNNCell
from opdock.layers.rnn_cell import UnitCell
from opdock.ops.bias import bias_add
from opdock.ops.elementary import sigmoid, tanh
from opdock.ops.joining import concat
from opdock.ops.linalg import matmul
from opdock.ops.nn import relu
from opdock.ops.splitting import split
from opdock.ops.tiling import tile

__all__ = [
    "IndRNNCell", "IndyGRUCell", "IndyLSTMCell", "IntersectionRNNCell", "SRUCell", "UGRNNCell",
]  # fmt: skip


class UGRNNCell(RNNCell):
    """A cell with one gate between the old state and the new one (Collins et al. 2016).

    Args:
        num_units: the number of units.
        initializer: makes the kernel.
        forget_bias: added to the gate.
        activation: tanh by default.
        reuse: whether to share variables of the scope.
    """

    def __init__(
        self, num_units: int, initializer: Any = None, forget_bias: float = 1.0,
        activation: Any = tanh, reuse: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(_reuse=reuse)
        self._num_units, self._initializer = num_units, initializer
        self._forget_bias, self._activation = forget_bias, activation
        self._linear: Linear | None = None

    @property
    def state_size(self) -> int:
        """The number of units."""
        return self._num_units

    @property
    def output_size(self) -> int:
        """The number of units."""
        return self._num_units

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        known_width(inputs)
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            given = concat([inputs, state], 1)
            if self._linear is None:
                self._linear = Linear(given, 2 * self._num_units, True)
            gate, new = split(self._linear(given), 2, 1)
            keep = sigmoid(gate + self._forget_bias)
            state = keep * state + (1.0 - keep) * self._activation(new)
        return state, state


class IntersectionRNNCell(RNNCell):
    """A cell with gates in depth as in time (Collins et al. 2016).

    Args:
        num_units: the number of units, which is the size of the inputs too.
        num_in_proj: whether to project inputs of another size, and to what; None for not.
        initializer: makes the kernels.
        forget_bias: added to the gates.
        y_activation: that of the outputs.
        reuse: whether to share variables of the scope.
    """

    def __init__(
        self, num_units: int, num_in_proj: int | None = None, initializer: Any = None,
        forget_bias: float = 1.0, y_activation: Any = relu, reuse: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(_reuse=reuse)
        self._num_units, self._num_in_proj = num_units, num_in_proj
        self._initializer, self._forget_bias = initializer, forget_bias
        self._y_activation = y_activation
        self._project: Linear | None = None
        self._linear: Linear | None = None

    @property
    def state_size(self) -> int:
        """The number of units."""
        return self._num_units

    @property
    def output_size(self) -> int:
        """The number of units."""
        return self._num_units

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        n = self._num_units
        width = known_width(inputs)
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            if width != n:
                if not self._num_in_proj:
                    raise ValueError(
                        "Must have input size == output size for Intersection RNN. To fix, "
                        "num_in_proj should be set to num_units at cell init."
                    )
                with variable_scope("in_projection"):
                    self._project = self._project or Linear(inputs, n, True)
                    inputs = self._project(inputs)
            given = concat([inputs, state], 1)
            self._linear = self._linear or Linear(given, 4 * n, True)
            gate_h, h, gate_y, y = split(self._linear(given), 4, 1)
            keep_h = sigmoid(gate_h + self._forget_bias)
            keep_y = sigmoid(gate_y + self._forget_bias)
            new = keep_h * state + (1.0 - keep_h) * tanh(h)
            return keep_y * inputs + (1.0 - keep_y) * self._y_activation(y), new


class SRUCell(UnitCell):
    """The simple recurrent unit, whose products do not wait for the state (Lei et al. 2017).

    Args:
        num_units: the number of units, which is the size of the inputs too.
        activation: tanh by default.
        reuse: whether to share variables of the scope.
        name: the cell's name.
        **kwargs: `dtype`.
    """

    def __init__(
        self, num_units: int, activation: Any = None, reuse: Any = None, name: Any = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(num_units, activation, reuse, name, **kwargs)

    def build(self, input_shape: Any) -> None:
        """Makes the variables."""
        n = self._num_units
        self._kernel = self.add_weight("kernel", [self._depth(input_shape), 4 * n])
        self._bias = self.add_weight("bias", [2 * n], initializer=zeros_initializer())
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        new, f, r, passed = split(matmul(inputs, self._kernel), 4, 1)
        f, r = split(sigmoid(bias_add(concat([f, r], 1), self._bias)), 2, 1)
        c = f * state + (1.0 - f) * new
        return r * self._activation(c) + (1.0 - r) * passed, c


class IndRNNCell(UnitCell):
    """The plain cell, in which each unit sees its own past alone (Li et al. 2018).

    Args:
        num_units: the number of units.
        activation: tanh by default.
        reuse: whether to share variables of the scope.
        name: the cell's name.
        dtype: the type of the variables; the input's by default.
    """

    def build(self, input_shape: Any) -> None:
        """Makes the variables."""
        n = self._num_units
        self._kernel = self.add_weight("kernel_w", [self._depth(input_shape), n])
        self._past = self.add_weight("kernel_u", [1, n], initializer=_signed())
        self._bias = self.add_weight("bias", [n], initializer=zeros_initializer())
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        given = matmul(inputs, self._kernel) + state * self._past
        output = self._activation(bias_add(given, self._bias))
        return output, output


def _signed() -> Any:
    return random_uniform_initializer(minval=-1, maxval=1)


class IndyGRUCell(UnitCell):
    """A GRU in which each unit sees its own past alone (Gonnet & Deselaers 2019).

    Args:
        num_units: the number of units.
        activation: tanh by default.
        reuse: whether to share variables of the scope.
        kernel_initializer, bias_initializer: make the variables.
        name: the cell's name.
        dtype: the type of the variables; the input's by default.
    """

    def __init__(
        self, num_units: int, activation: Any = None, reuse: Any = None,
        kernel_initializer: Any = None, bias_initializer: Any = None, name: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_units, activation, reuse, name, dtype)
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    def build(self, input_shape: Any) -> None:
        """Makes the variables."""
        n, depth, make = self._num_units, self._depth(input_shape), self._kernel_initializer
        start = self._bias_initializer
        self._gates = [
            self.add_weight("gates/kernel_w", [depth, 2 * n], initializer=make),
            self.add_weight("gates/kernel_u", [1, 2 * n], initializer=_signed()),
            self.add_weight("gates/bias", [2 * n], initializer=start or ones_initializer()),
        ]
        self._candidate = [
            self.add_weight("candidate/kernel", [depth, n], initializer=make),
            self.add_weight("candidate/kernel_u", [1, n], initializer=_signed()),
            self.add_weight("candidate/bias", [n], initializer=start or zeros_initializer()),
        ]
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        kernel, past, bias = self._gates
        gates = bias_add(matmul(inputs, kernel) + tile(state, [1, 2]) * past, bias)
        r, u = split(sigmoid(gates), 2, 1)
        kernel, past, bias = self._candidate
        new = self._activation(bias_add(matmul(inputs, kernel) + r * state * past, bias))
        state = u * state + (1 - u) * new
        return state, state


class IndyLSTMCell(UnitCell):
    """An LSTM in which each unit sees its own past alone (Gonnet & Deselaers 2019).

    Args:
        num_units: the number of units.
        forget_bias: added to the forget gate.
        activation: tanh by default.
        reuse: whether to share variables of the scope.
        kernel_initializer, bias_initializer: make the variables.
        name: the cell's name.
        dtype: the type of the variables; the input's by default.
    """

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, activation: Any = None, reuse: Any = None,
        kernel_initializer: Any = None, bias_initializer: Any = None, name: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_units, activation, reuse, name, dtype)
        self._forget_bias = forget_bias
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    @property
    def state_size(self) -> Any:
        """The sizes of memory and output."""
        return LSTMStateTuple(self._num_units, self._num_units)

    def build(self, input_shape: Any) -> None:
        """Makes the variables."""
        size, depth = 4 * self._num_units, self._depth(input_shape)
        self._kernel = self.add_weight(
            "kernel_w", [depth, size], initializer=self._kernel_initializer
        )
        self._past = self.add_weight("kernel_u", [1, size], initializer=_signed())
        self._bias = self.add_weight(
            "bias", [size], initializer=self._bias_initializer or zeros_initializer()
        )
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        c, h = state
        gates = matmul(inputs, self._kernel) + tile(h, [1, 4]) * self._past
        i, j, f, o = split(bias_add(gates, self._bias), 4, 1)
        c = c * sigmoid(f + self._forget_bias) + sigmoid(i) * self._activation(j)
        h = self._activation(c) * sigmoid(o)
        return h, LSTMStateTuple(c, h)
