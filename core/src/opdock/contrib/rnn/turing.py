"""The neural Turing machine: a cell that reads and writes a memory (Graves et al. 2014)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from opdock import dtypes
from opdock.contrib.rnn.linear import known_width
from opdock.graph.variables.initializers import (
    constant_initializer,
    glorot_uniform_initializer,
    truncated_normal_initializer,
    zeros_initializer,
)
from opdock.layers.rnn_base import LayerRNNCell, checked_cell
from opdock.ops.array import expand_dims, shape, squeeze
from opdock.ops.bias import bias_add
from opdock.ops.clip import clip_by_value
from opdock.ops.control import cond
from opdock.ops.elementary import exp, sigmoid, sqrt, square, tanh
from opdock.ops.fill import ones_like, zeros
from opdock.ops.joining import concat
from opdock.ops.linalg import matmul
from opdock.ops.nn import softplus
from opdock.ops.reduce import reduce_sum
from opdock.ops.splitting import split
from opdock.ops.support.nn_util import emit
from opdock.ops.tiling import roll
from opdock.ops.xent import softmax
from opdock.shapes import TensorShape

__all__ = ["NTMCell", "NTMControllerState"]


class NTMControllerState(NamedTuple):
    """The state of an `NTMCell`.

    Attributes:
        controller_state: that of the controller.
        read_vector_list: what each reading head has read, [batch, memory_vector_dim].
        w_list: the weights of each head over the memory's places, [batch, memory_size]; first the
            reading heads'.
        M: the memory, [batch, memory_size, memory_vector_dim].
        time: how many steps there have been.
    """

    controller_state: Any
    read_vector_list: Any
    w_list: Any
    M: Any
    time: Any


class NTMCell(LayerRNNCell):
    """A network with a memory, as Collier & Beel 2018 have it.

    What heads, weights and memory are at the first step is learned.

    Args:
        controller: a cell, which sees the input and what was read, and moves the heads.
        memory_size: how many places the memory has.
        memory_vector_dim: the size of each place.
        read_head_num, write_head_num: how many heads read, and how many write.
        shift_range: by how many places a head may move in a step.
        output_dim: the size of the outputs; that of the inputs by default.
        clip_value: a bound for the heads' parameters and for the outputs.
        dtype: the type of the variables.
        name: the cell's name.

    Raises:
        TypeError: the controller is no cell.
    """

    def __init__(
        self, controller: Any, memory_size: int, memory_vector_dim: int, read_head_num: int,
        write_head_num: int, shift_range: int = 1, output_dim: int | None = None,
        clip_value: float = 20, dtype: Any = dtypes.float32, name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(dtype=dtype, name=name)
        checked_cell("NTM RNN controller cell", controller)
        self.controller = controller
        self.memory_size, self.memory_vector_dim = memory_size, memory_vector_dim
        self.read_head_num, self.write_head_num = read_head_num, write_head_num
        self.shift_range, self.output_dim, self.clip_value = shift_range, output_dim, clip_value
        self.num_heads = read_head_num + write_head_num
        # A key, its strength, a gate, the shifts, and a power that sharpens.
        self.num_parameters_per_head = memory_vector_dim + 2 * shift_range + 4
        self.total_parameter_num = (
            self.num_parameters_per_head * self.num_heads + memory_vector_dim * 2 * write_head_num
        )

    @property
    def state_size(self) -> NTMControllerState:
        """The sizes of the parts of the state."""
        return NTMControllerState(
            self.controller.state_size,
            [self.memory_vector_dim] * self.read_head_num,
            [self.memory_size] * self.num_heads,
            TensorShape([self.memory_size * self.memory_vector_dim]),
            TensorShape([]),
        )

    @property
    def output_size(self) -> int | None:
        """The size of the outputs; None while it is that of inputs not seen yet."""
        return self.output_dim

    def zero_state(self, batch_size: Any, dtype: Any) -> NTMControllerState:
        """The state before the first step.

        Args:
            batch_size: an int or a scalar tensor.
            dtype: the type of the state.
        """
        size, places = self.memory_vector_dim, self.memory_size
        return NTMControllerState(
            self.controller.zero_state(batch_size, dtype),
            [zeros([batch_size, size], dtype) for _ in range(self.read_head_num)],
            [zeros([batch_size, places], dtype) for _ in range(self.num_heads)],
            zeros([batch_size, places, size], dtype),
            0,
        )

    def build(self, inputs_shape: Any) -> None:
        """Makes the variables."""
        width = TensorShape(inputs_shape).as_list()[1]
        if self.output_dim is None:
            if width is None:
                raise ValueError(
                    f"Expected inputs.shape[-1] to be known, saw shape: {inputs_shape}"
                )
            self.output_dim = width
        zero, glorot = zeros_initializer(), glorot_uniform_initializer()

        def affine(name: str, rows: int, columns: int) -> tuple[Any, Any]:
            start = truncated_normal_initializer(stddev=1.0 / math.sqrt(rows))
            kernel = self.add_weight(f"{name}_kernel", [rows, columns], initializer=start)
            return kernel, self.add_weight(f"{name}_bias", [columns], initializer=zero)

        size, places, given = self.memory_vector_dim, self.memory_size, self.controller.output_size
        self._params = affine("parameters", given, self.total_parameter_num)
        self._output = affine("output", given + size * self.read_head_num, self.output_dim)
        self._first_reads = [
            self.add_weight(f"initial_read_vector_{i}", [1, size], initializer=glorot)
            for i in range(self.read_head_num)
        ]
        self._first_weights = [
            self.add_weight(f"initial_address_weights_{i}", [1, places], initializer=glorot)
            for i in range(self.num_heads)
        ]
        self._first_memory = self.add_weight(
            "memory", [places, size], initializer=constant_initializer(1e-6)
        )
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Any, NTMControllerState]:
        """One step."""
        reads, weights, memory = self._before(inputs, state)
        known_width(inputs)
        given, controller_state = self.controller(
            concat([inputs, *reads], 1), state.controller_state
        )
        heads, writes = self._parameters(given)
        weights = [
            self._address(head, memory, old) for head, old in zip(heads, weights, strict=True)
        ]
        count = self.read_head_num
        reads = [reduce_sum(expand_dims(w, 2) * memory, 1) for w in weights[:count]]
        for i, w in enumerate(weights[count:]):
            place = expand_dims(w, 2)
            erased = matmul(place, expand_dims(sigmoid(writes[2 * i]), 1))
            added = matmul(place, expand_dims(tanh(writes[2 * i + 1]), 1))
            memory = memory * (ones_like(memory) - erased) + added
        output = self._bounded(_affine(concat([given, *reads], 1), self._output))
        return output, NTMControllerState(controller_state, reads, weights, memory, state.time + 1)

    def _before(self, inputs: Any, state: Any) -> tuple[list[Any], list[Any], Any]:
        """What was read, the weights and the memory: at the first step, what was learned."""
        known = inputs.shape.as_list()[0]
        batch = shape(inputs)[0] if known is None else known

        def repeated(value: Any) -> Any:
            return value + zeros([batch, *([1] * (value.shape.ndims - 1))], value.dtype)

        def first() -> list[Any]:
            return [
                *(repeated(tanh(v)) for v in self._first_reads),
                *(repeated(softmax(v)) for v in self._first_weights),
                repeated(expand_dims(self._first_memory, 0)),
            ]

        def later() -> list[Any]:
            return [*state.read_vector_list, *state.w_list, state.M]

        *vectors, memory = cond(emit("Equal", state.time, 0), first, later)
        memory.set_shape([known, self.memory_size, self.memory_vector_dim])
        return vectors[: self.read_head_num], vectors[self.read_head_num :], memory

    def _parameters(self, given: Any) -> tuple[list[Any], list[Any]]:
        """Each head's parameters; and what each writing head erases, and adds."""
        both = self._bounded(_affine(given, self._params))
        of_heads = self.num_parameters_per_head * self.num_heads
        heads, writes = split(both, [of_heads, self.total_parameter_num - of_heads], 1)
        written = split(writes, 2 * self.write_head_num, 1) if self.write_head_num else []
        return split(heads, self.num_heads, 1), written

    def _bounded(self, values: Any) -> Any:
        return clip_by_value(values, -self.clip_value, self.clip_value)

    def _address(self, head: Any, memory: Any, old: Any) -> Any:
        """A head's new weights: places like its key, its old ones, shifted, sharpened."""
        moves = 2 * self.shift_range + 1
        key, strength, gate, shifts, power = split(
            head, [self.memory_vector_dim, 1, 1, moves, 1], 1
        )
        column = expand_dims(tanh(key), 2)
        lengths = _length(memory, 2) * _length(column, 1)
        likeness = squeeze(matmul(memory, column) / (lengths + 1e-8), axis=[2])
        by_content = _shares(exp(softplus(strength) * likeness))
        mixed = sigmoid(gate) * by_content + (1 - sigmoid(gate)) * old
        # The first parameter is for staying, then come moves ahead, and last those back.
        parts = split(softmax(shifts), moves, 1)
        places = [*range(self.shift_range + 1), *range(-self.shift_range, 0)]
        pairs = zip(parts, places, strict=True)
        moved = sum(part * roll(mixed, by, 1) for part, by in pairs)
        return _shares(moved ** (softplus(power) + 1))


def _affine(values: Any, weights: tuple[Any, Any]) -> Any:
    return bias_add(matmul(values, weights[0]), weights[1])


def _length(vectors: Any, axis: int) -> Any:
    return sqrt(reduce_sum(square(vectors), axis, keepdims=True))


def _shares(values: Any) -> Any:
    return values / reduce_sum(values, 1, keepdims=True)
