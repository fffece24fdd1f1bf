"""Networks as one call over a whole sequence, and the cells that TensorFlow has one kernel for.

Here a step is compiled as a whole, so such a cell is its products and gates, under TensorFlow's
variable names: checkpoints fit.
"""

from __future__ import annotations

import abc
from typing import Any

from opdock.graph.variables.initializers import constant_initializer
from opdock.layers.base import Layer
from opdock.layers.rnn import dynamic_rnn, static_rnn
from opdock.layers.rnn_base import LSTMStateTuple
from opdock.layers.rnn_cell import LSTMUnitCell, UnitCell
from opdock.layers.spec import InputSpec
from opdock.ops.bias import bias_add
from opdock.ops.elementary import sigmoid, tanh
from opdock.ops.joining import concat, stack
from opdock.ops.linalg import matmul
from opdock.ops.splitting import split, unstack
from opdock.ops.tiling import reverse, reverse_sequence
from opdock.shapes import TensorShape

__all__ = [
    "FusedRNNCell", "FusedRNNCellAdaptor", "GRUBlockCell", "GRUBlockCellV2", "LSTMBlockCell",
    "LSTMBlockFusedCell", "LSTMBlockWrapper", "TimeReversedFusedRNN",
]  # fmt: skip


class FusedRNNCell(abc.ABC):
    """A network over a sequence [time, batch, size], or a list of its steps."""

    @abc.abstractmethod
    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None,
        sequence_length: Any = None, scope: Any = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        """The outputs, in the form of the inputs, and the final state."""


class FusedRNNCellAdaptor(FusedRNNCell):
    """A cell of `tf.nn.rnn_cell` as such a network.

    Args:
        cell: the cell.
        use_dynamic_rnn: whether the steps are a loop; else each has ops of its own.
    """

    def __init__(self, cell: Any, use_dynamic_rnn: bool = False) -> None:
        self._cell, self._dynamic = cell, use_dynamic_rnn

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None,
        sequence_length: Any = None, scope: Any = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Runs the cell over the sequence."""
        is_list = isinstance(inputs, list)
        if self._dynamic:
            outputs, state = dynamic_rnn(
                self._cell, stack(inputs) if is_list else inputs, sequence_length, initial_state,
                dtype, time_major=True, scope=scope,
            )  # fmt: skip
            return unstack(outputs) if is_list else outputs, state
        steps = inputs if is_list else unstack(inputs)
        outputs, state = static_rnn(self._cell, steps, initial_state, dtype, sequence_length, scope)
        return outputs if is_list else stack(outputs), state


class TimeReversedFusedRNN(FusedRNNCell):
    """Another such network, from the end of each example to its begin.

    Args:
        cell: the network.
    """

    def __init__(self, cell: FusedRNNCell) -> None:
        self._cell = cell

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None,
        sequence_length: Any = None, scope: Any = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Runs the network over the sequence turned around, and turns its outputs back."""
        outputs, state = self._cell(
            _turned(inputs, sequence_length), initial_state=initial_state, dtype=dtype,
            sequence_length=sequence_length, scope=scope,
        )  # fmt: skip
        return _turned(outputs, sequence_length), state


def _turned(steps: Any, lengths: Any) -> Any:
    if isinstance(steps, list):
        return list(reversed(steps))
    if lengths is None:
        return reverse(steps, [0])
    return reverse_sequence(steps, lengths, seq_axis=0, batch_axis=1)


class LSTMBlockCell(LSTMUnitCell):
    """`LSTMCell` under the variable names of TensorFlow's fused cell.

    Args:
        num_units: the number of units.
        forget_bias: added to the forget gate.
        cell_clip: the memory is clipped to [-cell_clip, cell_clip], unless it is None or negative.
        use_peephole: whether the gates see the memory.
        dtype: the type of the variables; the input's by default.
        reuse: whether to share variables of the scope.
        name: the cell's name.
    """

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, cell_clip: float | None = None,
        use_peephole: bool = False, dtype: Any = None, reuse: Any = None, name: Any = "lstm_cell",
        **kwargs: Any,
    ) -> None:  # fmt: skip
        clip = None if cell_clip is None or cell_clip < 0 else cell_clip
        super().__init__(
            num_units, use_peephole, clip, forget_bias=forget_bias, reuse=reuse, name=name,
            dtype=dtype, **kwargs,
        )  # fmt: skip


class LSTMBlockWrapper(Layer):
    """A layer that runs an LSTM over a whole sequence.

    Subclasses say what `num_units` is and define `_call_cell`.
    """

    @property
    @abc.abstractmethod
    def num_units(self) -> int:
        """The number of units."""

    @abc.abstractmethod
    def _call_cell(
        self, inputs: Any, initial_state: Any, dtype: Any, sequence_length: Any
    ) -> tuple[Any, Any]:
        """The outputs [time, batch, units] and the final state."""

    def call(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None
    ) -> tuple[Any, Any]:
        """Runs over the sequence.

        Args:
            inputs: a tensor [time, batch, size], or a list of its steps.
            initial_state: a pair of memory and output; zeros by default.
            dtype: the type of the state, where it is missing.
            sequence_length: a vector of the examples' lengths.

        Returns:
            The outputs in the form of the inputs, zeros behind an example's end; the final state.

        Raises:
            ValueError: there is no state and no type, or the state is no pair.
        """
        is_list = isinstance(inputs, list)
        steps = stack(inputs) if is_list else inputs
        if initial_state is None and dtype is None:
            raise ValueError("Either initial_state or dtype needs to be specified")
        if initial_state is not None:
            if len(initial_state) != 2:
                raise ValueError("Expecting initial_state to be a tuple with length 2 or None")
            initial_state = LSTMStateTuple(*initial_state)
        outputs, state = self._call_cell(steps, initial_state, dtype, sequence_length)
        return unstack(outputs) if is_list else outputs, state


class LSTMBlockFusedCell(LSTMBlockWrapper):
    """An LSTM over a whole sequence, under the variable names of TensorFlow's.

    Args:
        num_units: the number of units.
        forget_bias: added to the forget gate.
        cell_clip: the memory is clipped to [-cell_clip, cell_clip], unless it is None or negative.
        use_peephole: whether the gates see the memory.
        reuse: whether to share variables of the scope.
        dtype: the type of the variables; the input's by default.
        name: the layer's name.
    """

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, cell_clip: float | None = None,
        use_peephole: bool = False, reuse: Any = None, dtype: Any = None,
        name: Any = "lstm_fused_cell",
    ) -> None:  # fmt: skip
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self.input_spec = InputSpec(ndim=3)
        self._given = (num_units, forget_bias, cell_clip, use_peephole)

    @property
    def num_units(self) -> int:
        """The number of units."""
        return self._given[0]

    def build(self, input_shape: Any) -> None:
        """Makes the variables."""
        size = TensorShape(input_shape).as_list()[2]
        if not size:
            raise ValueError(f"Expecting inputs_shape[2] to be set: {input_shape}")
        self._cell = LSTMBlockCell(
            *self._given, dtype=self.dtype, reuse=self._reuse, name=self.name, _scope=self._scope
        )
        self._cell.build(TensorShape([None, size]))
        self._trainable_weights.extend(self._cell.trainable_weights)
        self.built = True

    def _call_cell(
        self, inputs: Any, initial_state: Any, dtype: Any, sequence_length: Any
    ) -> tuple[Any, Any]:
        return dynamic_rnn(
            self._cell, inputs, sequence_length, initial_state, dtype, time_major=True
        )


class GRUBlockCell(UnitCell):
    """A GRU under the variable names of TensorFlow's fused cell.

    Args:
        num_units: the number of units.
        cell_size: the same, deprecated.
        reuse: whether to share variables of the scope.
        name: the cell's name.

    Raises:
        ValueError: both or neither of `num_units` and `cell_size` are given.
    """

    _NAMES = ("w_ru", "b_ru", "w_c", "b_c")

    def __init__(
        self, num_units: int | None = None, cell_size: int | None = None, reuse: Any = None,
        name: Any = "gru_cell",
    ) -> None:  # fmt: skip
        units = cell_size if num_units is None else num_units
        if units is None or (cell_size is not None and num_units is not None):
            raise ValueError("Exactly one of num_units or cell_size must be provided.")
        super().__init__(units, tanh, reuse, name)

    def build(self, input_shape: Any) -> None:
        """Makes the variables."""
        n, depth = self._num_units, self._depth(input_shape) + self._num_units
        sizes = ([depth, 2 * n], [2 * n], [depth, n], [n])
        starts = (None, constant_initializer(1.0), None, constant_initializer(0.0))
        self._parts = [
            self.add_weight(name, size, initializer=start)
            for name, size, start in zip(self._NAMES, sizes, starts, strict=True)
        ]
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        gate_kernel, gate_bias, kernel, bias = self._parts
        gates = sigmoid(bias_add(matmul(concat([inputs, state], 1), gate_kernel), gate_bias))
        r, u = split(gates, 2, 1)
        new = tanh(bias_add(matmul(concat([inputs, r * state], 1), kernel), bias))
        state = u * state + (1 - u) * new
        return state, state


class GRUBlockCellV2(GRUBlockCell):
    """`GRUBlockCell` under the variable names of `tf.nn.rnn_cell.GRUCell`."""

    _NAMES = ("gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias")
