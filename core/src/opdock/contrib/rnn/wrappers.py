"""Cells around cells that were once in `tf.nn.rnn_cell`: projections, embedding, attention."""

from __future__ import annotations

import math
from typing import Any

from opdock.contrib.rnn.linear import Linear
from opdock.graph.nodes.scopes import device
from opdock.graph.variables.initializers import constant_initializer, random_uniform_initializer
from opdock.graph.variables.variable_scope import get_variable, get_variable_scope, variable_scope
from opdock.layers.rnn_base import RNNCell, checked_cell, parts_of_state
from opdock.layers.rnn_wrappers import Wrapper
from opdock.ops.array import expand_dims, reshape
from opdock.ops.bias import bias_add
from opdock.ops.composed.embedding import embedding_lookup
from opdock.ops.conv import conv2d
from opdock.ops.elementary import sigmoid, tanh
from opdock.ops.joining import concat
from opdock.ops.linalg import matmul
from opdock.ops.reduce import reduce_sum
from opdock.ops.xent import softmax
from opdock.util import nest

__all__ = [
    "AttentionCellWrapper", "CompiledWrapper", "EmbeddingWrapper", "HighwayWrapper",
    "InputProjectionWrapper", "OutputProjectionWrapper",
]  # fmt: skip


class EmbeddingWrapper(Wrapper):
    """Looks ids up in a variable `embedding` and gives the rows to a cell.

    Args:
        cell: the cell.
        embedding_classes: the number of rows.
        embedding_size: the length of a row.
        initializer: makes the variable; uniform with a variance of 1 by default.
        reuse: whether to share variables of the scope.

    Raises:
        TypeError: `cell` is none.
        ValueError: a size is not positive.
    """

    def __init__(
        self, cell: Any, embedding_classes: int, embedding_size: int, initializer: Any = None,
        reuse: Any = None,
    ) -> None:  # fmt: skip
        checked_cell("cell", cell)
        super().__init__(cell, _reuse=reuse)
        if embedding_classes <= 0 or embedding_size <= 0:
            raise ValueError(
                "Both embedding_classes and embedding_size must be > 0: "
                f"{embedding_classes}, {embedding_size}."
            )
        self._sizes = [embedding_classes, embedding_size]
        self._initializer = initializer

    def call(self, inputs: Any, state: Any) -> Any:
        """One step of the cell."""
        limit = math.sqrt(3)
        make = self._initializer or get_variable_scope().initializer
        with device("/cpu:0"):
            dtype = nest.flatten(state)[0].dtype.base_dtype
            table = get_variable(
                "embedding", self._sizes, dtype,
                initializer=make or random_uniform_initializer(-limit, limit),
            )  # fmt: skip
            return self._cell(embedding_lookup(table, reshape(inputs, [-1])), state)


class InputProjectionWrapper(Wrapper):
    """Projects the inputs of a cell.

    Args:
        cell: the cell.
        num_proj: the size that the cell gets.
        activation: applied to the projection, or None.
        input_size: not used.
        reuse: whether to share variables of the scope.

    Raises:
        TypeError: `cell` is none.
    """

    def __init__(
        self, cell: Any, num_proj: int, activation: Any = None, input_size: Any = None,
        reuse: Any = None,
    ) -> None:  # fmt: skip
        checked_cell("cell", cell)
        super().__init__(cell, _reuse=reuse)
        self._num_proj, self._activation = num_proj, activation
        self._linear: Linear | None = None

    def call(self, inputs: Any, state: Any) -> Any:
        """One step of the cell."""
        if self._linear is None:
            self._linear = Linear(inputs, self._num_proj, True)
        projected = self._linear(inputs)
        if self._activation:
            projected = self._activation(projected)
        return self._cell(projected, state)


class OutputProjectionWrapper(Wrapper):
    """Projects the outputs of a cell.

    Args:
        cell: the cell.
        output_size: the size of the projection.
        activation: applied to the projection, or None.
        reuse: whether to share variables of the scope.

    Raises:
        TypeError: `cell` is none.
        ValueError: `output_size` is not positive.
    """

    def __init__(
        self, cell: Any, output_size: int, activation: Any = None, reuse: Any = None
    ) -> None:
        checked_cell("cell", cell)
        super().__init__(cell, _reuse=reuse)
        if output_size < 1:
            raise ValueError(f"Parameter output_size must be > 0: {output_size}.")
        self._output_size, self._activation = output_size, activation
        self._linear: Linear | None = None

    @property
    def output_size(self) -> Any:
        """The size of the projection."""
        return self._output_size

    def call(self, inputs: Any, state: Any) -> Any:
        """One step of the cell."""
        outputs, new = self._cell(inputs, state)
        if self._linear is None:
            self._linear = Linear(outputs, self._output_size, True)
        projected = self._linear(outputs)
        return (self._activation(projected) if self._activation else projected), new


class HighwayWrapper(Wrapper):
    """A learned mixture of the inputs of a cell and its outputs (Srivastava et al. 2015).

    Args:
        cell: the cell; its outputs have the structure and shapes of its inputs.
        couple_carry_transform_gates: whether the parts add up to 1; else each has its own gate.
        carry_bias_init: the start of the gate's bias.
    """

    def __init__(
        self, cell: Any, couple_carry_transform_gates: bool = True, carry_bias_init: float = 1.0
    ) -> None:
        super().__init__(cell)
        self._coupled, self._start = couple_carry_transform_gates, carry_bias_init

    def __call__(self, inputs: Any, state: Any, scope: Any = None, **kwargs: Any) -> Any:
        """One step of the cell."""
        outputs, new = self._cell(inputs, state, scope=scope)
        nest.assert_same_structure(inputs, outputs)
        for given, made in zip(nest.flatten(inputs), nest.flatten(outputs), strict=True):
            given.shape.assert_is_compatible_with(made.shape)
        return nest.map_structure(self._mixed, inputs, outputs), new

    def _mixed(self, given: Any, made: Any) -> Any:
        carry = self._gate("carry", given, self._start)
        part = 1 - carry if self._coupled else self._gate("transform", given, -self._start)
        return given * carry + made * part

    @staticmethod
    def _gate(name: str, given: Any, start: float) -> Any:
        size = given.shape.with_rank(2).as_list()[1]
        kernel = get_variable(f"{name}_w", [size, size])
        bias = get_variable(f"{name}_b", [size], initializer=constant_initializer(start))
        return sigmoid(bias_add(matmul(given, kernel), bias))


class CompiledWrapper(Wrapper):
    """A cell as it is: whole steps are compiled anyway, so there is no mark for XLA to set.

    Args:
        cell: the cell.
        compile_stateful: not used.
    """

    def __init__(self, cell: Any, compile_stateful: bool = False) -> None:
        super().__init__(cell)

    def __call__(self, inputs: Any, state: Any, scope: Any = None, **kwargs: Any) -> Any:
        """One step of the cell."""
        return self._cell(inputs, state, scope=scope)


class AttentionCellWrapper(RNNCell):
    """Attention over the last outputs of a cell (Cheng et al. 2016).

    Args:
        cell: the cell.
        attn_length: over how many outputs.
        attn_size: the size of what attention finds; the cell's output size by default.
        attn_vec_size: the size of the features that are compared; `attn_size` by default.
        input_size: the size that the cell gets; that of the inputs by default.
        state_is_tuple: whether the state is a tuple, else one tensor.
        reuse: whether to share variables of the scope.

    Raises:
        TypeError: `cell` is none.
        ValueError: the cell's state is a tuple and the flag is not set, or a length is not
            positive.
    """

    def __init__(
        self, cell: Any, attn_length: int, attn_size: int | None = None,
        attn_vec_size: int | None = None, input_size: int | None = None,
        state_is_tuple: bool = True, reuse: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(_reuse=reuse)
        checked_cell("cell", cell)
        if nest.is_sequence(cell.state_size) and not state_is_tuple:
            raise ValueError(
                "Cell returns tuple of states, but the flag state_is_tuple is not set. "
                f"State size is: {cell.state_size}"
            )
        if attn_length <= 0:
            raise ValueError(f"attn_length should be greater than zero, got {attn_length}")
        self._cell, self._length, self._state_is_tuple = cell, attn_length, state_is_tuple
        self._size = cell.output_size if attn_size is None else attn_size
        self._features = attn_vec_size or self._size
        self._input_size = input_size
        self._made: dict[str, Linear] = {}

    @property
    def state_size(self) -> Any:
        """The cell's state, what attention found, and the outputs that it looks at."""
        sizes = (self._cell.state_size, self._size, self._size * self._length)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        """The size of what attention finds."""
        return int(self._size)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step of the cell."""
        own = self._cell.state_size
        parts = (
            state
            if self._state_is_tuple
            else parts_of_state(state, [own, self._size, self._size * self._length])
        )
        inner, found, seen = parts
        seen = reshape(seen, [-1, self._length, self._size])
        size = self._input_size or inputs.shape.as_list()[1]
        output, new = self._cell(self._linear("input", [inputs, found], size), inner)
        query = concat(nest.flatten(new), 1) if self._state_is_tuple else new
        found = self._attention(query, seen)
        with variable_scope("attn_output_projection"):
            output = self._linear("output", [output, found], self._size)
        seen = concat([seen[:, 1:], expand_dims(output, 1)], 1)
        result = (new, found, reshape(seen, [-1, self._length * self._size]))
        return output, result if self._state_is_tuple else concat(list(result), 1)

    def _linear(self, name: str, args: Any, size: int) -> Any:
        if name not in self._made:
            self._made[name] = Linear(args, size, True)
        return self._made[name](args)

    def _attention(self, query: Any, seen: Any) -> Any:
        with variable_scope("attention"):
            kernel = get_variable("attn_w", [1, 1, self._size, self._features])
            weights = get_variable("attn_v", [self._features])
            hidden = reshape(seen, [-1, self._length, 1, self._size])
            features = conv2d(hidden, kernel, [1, 1, 1, 1], "SAME")
            asked = self._linear("query", query, self._features)
            asked = reshape(asked, [-1, 1, 1, self._features])
            alignment = softmax(reduce_sum(weights * tanh(features + asked), [2, 3]))
            weighted = reshape(alignment, [-1, self._length, 1, 1]) * hidden
            return reshape(reduce_sum(weighted, [1, 2]), [-1, self._size])
