"""`tf.nn.rnn_cell`: one step of a recurrent network each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.initializers import constant_initializer, zeros_initializer
from opdock.graph.variables.trackable import Trackable
from opdock.graph.variables.variable_scope import variable_scope
from opdock.layers import named
from opdock.layers.base import static
from opdock.layers.rnn_base import (
    LayerRNNCell,
    LSTMStateTuple,
    RNNCell,
    check_types,
    parts_of_state,
)
from opdock.layers.rnn_wrappers import DeviceWrapper, DropoutWrapper, ResidualWrapper
from opdock.layers.spec import InputSpec
from opdock.ops.bias import bias_add
from opdock.ops.clip import clip_by_value
from opdock.ops.elementary import sigmoid, tanh
from opdock.ops.joining import concat
from opdock.ops.linalg import matmul
from opdock.ops.splitting import split
from opdock.shapes import TensorShape
from opdock.util import nest

__all__ = [
    "BasicLSTMCell", "BasicRNNCell", "DeviceWrapper", "DropoutWrapper", "GRUCell", "LSTMCell",
    "LSTMStateTuple", "MultiRNNCell", "RNNCell", "ResidualWrapper",
]  # fmt: skip

# What variables are called, in checkpoints too.
BIAS: Final = "bias"
WEIGHTS: Final = "kernel"


class UnitCell(LayerRNNCell):
    """A cell with `num_units` outputs."""

    def __init__(
        self, num_units: int, activation: Any = None, reuse: Any = None, name: Any = None,
        dtype: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self.input_spec = InputSpec(ndim=2)
        self._num_units = num_units
        self._activation = named.activation(activation) or tanh
        self._kernel_initializer: Any = None
        self._bias_initializer: Any = None

    @property
    def state_size(self) -> Any:
        """The number of units."""
        return self._num_units

    @property
    def output_size(self) -> int:
        """The number of units."""
        return self._num_units

    def _depth(self, input_shape: Any) -> int:
        depth = static(input_shape)[-1]
        if depth is None:
            raise ValueError(
                f"Expected inputs.shape[-1] to be known, saw shape: {TensorShape(input_shape)}"
            )
        return depth


class BasicRNNCell(UnitCell):
    """The plain cell: `output = new_state = activation(W input + U state + b)`.

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
        self._kernel = self.add_weight(WEIGHTS, [self._depth(input_shape) + n, n])
        self._bias = self.add_weight(BIAS, [n], initializer=zeros_initializer())
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        check_types(inputs, state)
        gate = bias_add(matmul(concat([inputs, state], 1), self._kernel), self._bias)
        output = self._activation(gate)
        return output, output


class GRUCell(UnitCell):
    """Gated recurrent unit (Cho et al. 2014, arXiv:1406.1078).

    Args:
        num_units: the number of units.
        activation: tanh by default.
        reuse: whether to share variables of the scope.
        kernel_initializer: makes the kernels.
        bias_initializer: makes the biases; by default 1 for the gates and 0 for the candidate.
        name: the cell's name.
        dtype: the type of the variables; the input's by default.
    """

    def __init__(
        self, num_units: int, activation: Any = None, reuse: Any = None,
        kernel_initializer: Any = None, bias_initializer: Any = None, name: Any = None,
        dtype: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(num_units, activation, reuse, name, dtype, **kwargs)
        self._kernel_initializer = named.initializer(kernel_initializer)
        self._bias_initializer = named.initializer(bias_initializer)

    def build(self, input_shape: Any) -> None:
        """Makes the variables."""
        n = self._num_units
        depth = self._depth(input_shape) + n
        kernel, bias = self._kernel_initializer, self._bias_initializer
        ones = constant_initializer(1.0)
        self._gate_kernel = self.add_weight("gates/kernel", [depth, 2 * n], initializer=kernel)
        self._gate_bias = self.add_weight("gates/bias", [2 * n], initializer=bias or ones)
        self._candidate_kernel = self.add_weight("candidate/kernel", [depth, n], initializer=kernel)
        self._candidate_bias = self.add_weight(
            "candidate/bias", [n], initializer=bias or zeros_initializer()
        )
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        check_types(inputs, state)
        gates = matmul(concat([inputs, state], 1), self._gate_kernel)
        reset, update = split(sigmoid(bias_add(gates, self._gate_bias)), 2, 1)
        candidate = matmul(concat([inputs, reset * state], 1), self._candidate_kernel)
        new = self._activation(bias_add(candidate, self._candidate_bias))
        output = update * state + (1 - update) * new
        return output, output


class LSTMUnitCell(UnitCell):
    """Long short-term memory with all that a cell may ask for."""

    def __init__(
        self, num_units: int, use_peepholes: bool = False, cell_clip: float | None = None,
        initializer: Any = None, num_proj: int | None = None, proj_clip: float | None = None,
        num_unit_shards: Any = None, num_proj_shards: Any = None, forget_bias: float = 1.0,
        state_is_tuple: bool = True, activation: Any = None, reuse: Any = None, name: Any = None,
        dtype: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(num_units, activation, reuse, name, dtype, **kwargs)
        self._use_peepholes, self._cell_clip = use_peepholes, cell_clip
        self._initializer = self._kernel_initializer = named.initializer(initializer)
        self._num_proj, self._proj_clip = num_proj, proj_clip
        self._num_unit_shards, self._num_proj_shards = num_unit_shards, num_proj_shards
        self._forget_bias, self._state_is_tuple = forget_bias, state_is_tuple

    @property
    def state_size(self) -> Any:
        """The sizes of memory and output."""
        sizes = LSTMStateTuple(self._num_units, self.output_size)
        return sizes if self._state_is_tuple else sizes.c + sizes.h

    @property
    def output_size(self) -> int:
        """The number of units, or the size of the projection."""
        return self._num_units if self._num_proj is None else self._num_proj

    def build(self, input_shape: Any) -> None:
        """Makes the variables."""
        n, make = self._num_units, self._kernel_initializer
        depth = self._depth(input_shape) + self.output_size
        self._kernel = self.add_weight(WEIGHTS, [depth, 4 * n], initializer=make)
        self._bias = self.add_weight(BIAS, [4 * n], initializer=zeros_initializer())
        if self._use_peepholes:
            self._peepholes = [
                self.add_weight(f"w_{gate}_diag", [n], initializer=make) for gate in "fio"
            ]
        if self._num_proj is not None:
            self._projection = self.add_weight(
                "projection/kernel", [n, self._num_proj], initializer=make
            )
        self.built = True

    def _parts(self, state: Any) -> Any:
        """Memory and output, of a state in one tensor."""
        return parts_of_state(state, (self._num_units, self.output_size))

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        check_types(inputs, state)
        c, h = state if self._state_is_tuple else self._parts(state)
        gates = bias_add(matmul(concat([inputs, h], 1), self._kernel), self._bias)
        i, j, f, o = split(gates, 4, 1)
        f += self._forget_bias
        if self._use_peepholes:
            f += self._peepholes[0] * c
            i += self._peepholes[1] * c
        c = sigmoid(f) * c + sigmoid(i) * self._activation(j)
        if self._cell_clip is not None:
            c = clip_by_value(c, -self._cell_clip, self._cell_clip)
        if self._use_peepholes:
            o += self._peepholes[2] * c
        h = sigmoid(o) * self._activation(c)
        if self._num_proj is not None:
            h = matmul(h, self._projection)
            if self._proj_clip is not None:
                h = clip_by_value(h, -self._proj_clip, self._proj_clip)
        return h, LSTMStateTuple(c, h) if self._state_is_tuple else concat([c, h], 1)


class LSTMCell(LSTMUnitCell):
    """Long short-term memory (Hochreiter & Schmidhuber 1997; Sak et al. 2014).

    Args:
        num_units: the number of units.
        use_peepholes: whether the gates see the memory.
        cell_clip: a bound for the memory, or None.
        initializer: makes the kernels.
        num_proj: the size of a projected output, or None.
        proj_clip: a bound for the projected output, or None.
        num_unit_shards, num_proj_shards: ignored, as TF has deprecated them.
        forget_bias: added to the forget gate.
        state_is_tuple: whether the state is an `LSTMStateTuple`, else one tensor.
        activation: tanh by default.
        reuse: whether to share variables of the scope.
        name: the cell's name.
        dtype: the type of the variables; the input's by default.
    """


class BasicLSTMCell(LSTMUnitCell):
    """Long short-term memory without peepholes, clipping and projection.

    Args:
        num_units: the number of units.
        forget_bias: added to the forget gate.
        state_is_tuple: whether the state is an `LSTMStateTuple`, else one tensor.
        activation: tanh by default.
        reuse: whether to share variables of the scope.
        name: the cell's name.
        dtype: the type of the variables; the input's by default.
    """

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, state_is_tuple: bool = True,
        activation: Any = None, reuse: Any = None, name: Any = None, dtype: Any = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            num_units, forget_bias=forget_bias, state_is_tuple=state_is_tuple,
            activation=activation, reuse=reuse, name=name, dtype=dtype, **kwargs,
        )  # fmt: skip

    def _parts(self, state: Any) -> Any:
        return split(state, 2, 1)  # of another size it fits nothing, as it should not


class MultiRNNCell(RNNCell):
    """Cells on top of each other: the output of one is the input of the next.

    Args:
        cells: a list of cells.
        state_is_tuple: whether the state is a tuple, else one tensor.

    Raises:
        ValueError: there are no cells.
        TypeError: `cells` is no list.
    """

    def __init__(self, cells: Sequence[Any], state_is_tuple: bool = True) -> None:
        super().__init__()
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        if not nest.is_sequence(cells):
            raise TypeError(f"cells must be a list or tuple, but saw: {cells}.")
        self._cells, self._state_is_tuple = list(cells), state_is_tuple
        for i, cell in enumerate(self._cells):
            if isinstance(cell, Trackable):
                self._track_trackable(cell, f"cell-{i}")
        if not state_is_tuple and any(nest.is_sequence(c.state_size) for c in self._cells):
            raise ValueError(
                "Some cells return tuples of states, but the flag state_is_tuple is not set. "
                f"State sizes are: {[c.state_size for c in self._cells]}"
            )

    @property
    def state_size(self) -> Any:
        """The sizes of the states of all cells."""
        sizes = [c.state_size for c in self._cells]
        return tuple(sizes) if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        """The size of the last cell's output."""
        return self._cells[-1].output_size

    @property
    def trainable_weights(self) -> list[Any]:
        """Those of all cells."""
        return [w for c in self._cells for w in c.trainable_weights]

    @property
    def non_trainable_weights(self) -> list[Any]:
        """Those of all cells."""
        return [w for c in self._cells for w in c.non_trainable_weights]

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The zero states of all cells."""
        if not self._state_is_tuple:
            return super().zero_state(batch_size, dtype)
        with name_scope("MultiRNNCellZeroState", values=[batch_size]):
            return tuple(c.zero_state(batch_size, dtype) for c in self._cells)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step of every cell."""
        if self._state_is_tuple:
            if not nest.is_sequence(state) or len(state) != len(self._cells):
                raise ValueError(
                    f"Expected state to be a tuple of length {len(self._cells)}, but received: "
                    f"{state}"
                )
            states = list(state)
        else:
            states = parts_of_state(state, [c.state_size for c in self._cells])
        new: list[Any] = []
        for i, (cell, old) in enumerate(zip(self._cells, states, strict=True)):
            with variable_scope(f"cell_{i}"):
                inputs, made = cell(inputs, old)
                new.append(made)
        return inputs, tuple(new) if self._state_is_tuple else concat(new, 1)
