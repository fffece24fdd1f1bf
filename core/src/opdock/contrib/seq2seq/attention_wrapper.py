"""A cell that looks at a memory in each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from opdock import dtypes
from opdock.contrib.seq2seq.attention_base import AttentionMechanism, size_of
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.layers.core import Dense
from opdock.layers.rnn_base import RNNCell, checked_cell, zero_states
from opdock.ops.array import expand_dims, squeeze
from opdock.ops.check import assert_equal
from opdock.ops.composed.tensor_array import TensorArray
from opdock.ops.fill import zeros
from opdock.ops.identity import identity
from opdock.ops.joining import concat
from opdock.ops.linalg import matmul
from opdock.shapes import TensorShape
from opdock.util import nest

__all__ = ["AttentionWrapper", "AttentionWrapperState"]

_TILE = (
    "  Are you using the BeamSearchDecoder?  You may need to tile {what} via the "
    "tf.contrib.seq2seq.tile_batch function with argument multiple=beam_width."
)


class _State(NamedTuple):
    cell_state: Any
    attention: Any
    time: Any
    alignments: Any
    alignment_history: Any
    attention_state: Any


class AttentionWrapperState(_State):
    """The state of an `AttentionWrapper`.

    Attributes:
        cell_state: the cell's.
        attention: what attention gave in the step before.
        time: the number of steps so far.
        alignments: the attention of the step before, or a tuple of them.
        alignment_history: TensorArrays of all of them, or ().
        attention_state: the states of the mechanisms.
    """

    __slots__ = ()

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """A copy with other parts, which must fit in shape.

        Args:
            **kwargs: the parts.

        Raises:
            ValueError: a shape does not fit.
        """

        def shaped(old: Any, new: Any) -> Any:
            if isinstance(old, Tensor) and isinstance(new, Tensor):
                new.shape.assert_is_compatible_with(old.shape)
                new.set_shape(old.shape)
            return new

        changed: AttentionWrapperState = nest.map_structure(shaped, self, self._replace(**kwargs))
        return changed


def compute_attention(
    attention_mechanism: Any, cell_output: Any, attention_state: Any, attention_layer: Any
) -> tuple[Any, Any, Any]:
    """What a cell's output finds in a memory: the values, weighted by attention.

    Args:
        attention_mechanism: the AttentionMechanism.
        cell_output: the cell's output [batch, size].
        attention_state: the mechanism's state.
        attention_layer: applied to output and values, joined; None for the values alone.

    Returns:
        What was found, the attention, and the mechanism's next state.
    """
    alignments, next_state = attention_mechanism(cell_output, state=attention_state)
    found = squeeze(matmul(expand_dims(alignments, 1), attention_mechanism.values), [1])
    joined = attention_layer is not None
    attention = attention_layer(concat([cell_output, found], 1)) if joined else found
    return attention, alignments, next_state


class AttentionWrapper(RNNCell):
    """A cell that gets what attention found in the step before, and looks again.

    Args:
        cell: the cell.
        attention_mechanism: an AttentionMechanism, or a list of them.
        attention_layer_size: the size of a layer over the cell's output and what was found, or a
            list of sizes; without one, what was found is the attention.
        alignment_history: whether the state keeps the attention of all steps.
        cell_input_fn: takes inputs and attention, and gives the cell's inputs; joins them by
            default.
        output_attention: whether the attention is the output; else the cell's output is.
        initial_cell_state: the cell's first state; zeros by default.
        name: the cell's name.
        attention_layer: layers in place of sizes.
        attention_fn: what is done with a mechanism; `compute_attention` by default.
        dtype: the type of the variables.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: sizes and layers are both given, or not one a mechanism.
    """

    def __init__(
        self, cell: Any, attention_mechanism: Any, attention_layer_size: Any = None,
        alignment_history: bool = False, cell_input_fn: Callable[[Any, Any], Any] | None = None,
        output_attention: bool = True, initial_cell_state: Any = None, name: str | None = None,
        attention_layer: Any = None, attention_fn: Callable[..., Any] | None = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(name=name, dtype=dtype)
        checked_cell("cell", cell)
        self._is_multi = isinstance(attention_mechanism, (list, tuple))
        self._attention_mechanisms = _mechanisms(attention_mechanism)
        if cell_input_fn is not None and not callable(cell_input_fn):
            raise TypeError(
                f"cell_input_fn must be callable, saw type: {type(cell_input_fn).__name__}"
            )
        self._cell = cell
        self._cell_input_fn = cell_input_fn or (
            lambda inputs, attention: concat([inputs, attention], -1)
        )
        self._layers = self._attention_layers_of(attention_layer_size, attention_layer)
        self._attention_fn = attention_fn or compute_attention
        self._output_attention, self._alignment_history = output_attention, alignment_history
        self._initial_cell_state = None
        with name_scope(name, "AttentionWrapperInit"):
            if initial_cell_state is not None:
                batch = size_of(nest.flatten(initial_cell_state)[-1], 0)
                what = f"When constructing AttentionWrapper {self._base_name}: "
                why = "the memory (encoder output) and initial_cell_state."
                self._initial_cell_state = self._checked(
                    batch, what, why, "your initial state", initial_cell_state,
                    "check_initial_cell_state",
                )  # fmt: skip

    def _attention_layers_of(self, sizes: Any, layers: Any) -> tuple[Any, ...] | None:
        """The layers over what each mechanism finds, and the size of the attention."""
        count = len(self._attention_mechanisms)
        if sizes is not None and layers is not None:
            raise ValueError("Only one of attention_layer_size and attention_layer should be set")
        if sizes is not None:
            wanted = tuple(sizes) if isinstance(sizes, (list, tuple)) else (sizes,)
            if len(wanted) != count:
                raise ValueError(
                    "If provided, attention_layer_size must contain exactly one integer per "
                    f"attention_mechanism, saw: {len(wanted)} vs {count}"
                )
            self._attention_size = sum(wanted)
            return tuple(
                Dense(size, name="attention_layer", use_bias=False, dtype=mechanism.dtype)
                for size, mechanism in zip(wanted, self._attention_mechanisms, strict=True)
            )
        depths = [m.values.shape.as_list()[-1] for m in self._attention_mechanisms]
        if layers is None:
            self._attention_size = sum(depths)
            return None
        found = tuple(layers) if isinstance(layers, (list, tuple)) else (layers,)
        if len(found) != count:
            raise ValueError(
                "If provided, attention_layer must contain exactly one layer per "
                f"attention_mechanism, saw: {len(found)} vs {count}"
            )
        self._attention_size = 0
        for layer, depth in zip(found, depths, strict=True):
            given = TensorShape([None, self._cell.output_size + depth])
            self._attention_size += TensorShape(layer.compute_output_shape(given)).as_list()[-1]
        return found

    def _checked(self, batch: Any, what: str, why: str, tile: str, values: Any, name: str) -> Any:
        """Values, once it is certain that memories and `batch` fit."""
        message = f"{what}Non-matching batch sizes between {why}" + _TILE.format(what=tile)
        checks = [
            assert_equal(batch, m.batch_size, message=message) for m in self._attention_mechanisms
        ]
        with control_dependencies(checks):
            return nest.map_structure(lambda value: identity(value, name=name), values)

    def _item_or_tuple(self, values: Any) -> Any:
        found = tuple(values)
        return found if self._is_multi else found[0]

    @property
    def output_size(self) -> Any:
        """The size of the attention, or of the cell's output."""
        return self._attention_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> AttentionWrapperState:
        """The sizes of all parts."""
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            time=TensorShape([]),
            attention=self._attention_size,
            alignments=self._item_or_tuple(m.alignments_size for m in self._attention_mechanisms),
            attention_state=self._item_or_tuple(m.state_size for m in self._attention_mechanisms),
            alignment_history=self._item_or_tuple(
                m.alignments_size if self._alignment_history else ()
                for m in self._attention_mechanisms
            ),
        )

    def zero_state(self, batch_size: Any, dtype: Any) -> AttentionWrapperState:
        """The first state.

        Args:
            batch_size: an int or a scalar tensor.
            dtype: the type of the state.

        Raises:
            InvalidArgumentError: a memory has another number of examples.
        """
        with name_scope(type(self).__name__ + "ZeroState", values=[batch_size]):
            state = self._initial_cell_state
            if state is None:
                state = self._cell.zero_state(batch_size, dtype)
            what = f"When calling zero_state of AttentionWrapper {self._base_name}: "
            why = (
                "the memory (encoder output) and the requested batch size.  If so, make sure that "
                "the batch_size= argument is batch_size * beam_width."
            )
            state = self._checked(
                batch_size, what, why, "your encoder output", state, "checked_cell_state"
            )
            first = [m.initial_alignments(batch_size, dtype) for m in self._attention_mechanisms]
            return AttentionWrapperState(
                cell_state=state,
                time=zeros([], dtypes.int32),
                attention=zero_states(self._attention_size, batch_size, dtype),
                alignments=self._item_or_tuple(first),
                attention_state=self._item_or_tuple(
                    m.initial_state(batch_size, dtype) for m in self._attention_mechanisms
                ),
                alignment_history=self._item_or_tuple(
                    TensorArray(dtype, size=0, dynamic_size=True, element_shape=alignments.shape)
                    if self._alignment_history
                    else ()
                    for alignments in first
                ),
            )

    def call(self, inputs: Any, state: Any) -> tuple[Any, AttentionWrapperState]:
        """One step: the cell, and attention with its output."""
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(
                "Expected state to be instance of AttentionWrapperState. "
                f"Received type {type(state)} instead."
            )
        given = self._cell_input_fn(inputs, state.attention)
        output, cell_state = self._cell(given, state.cell_state)
        output = self._checked(
            size_of(output, 0), f"When applying AttentionWrapper {self.name}: ",
            "the memory (encoder output) and the query (decoder output).", "your memory input",
            output, "checked_cell_output",
        )  # fmt: skip
        states, histories = (
            part if self._is_multi else [part]
            for part in (state.attention_state, state.alignment_history)
        )
        layers = self._layers or [None] * len(self._attention_mechanisms)
        rows = zip(self._attention_mechanisms, states, layers, strict=True)
        found, alignments, next_states = zip(
            *(self._attention_fn(m, output, s, layer) for m, s, layer in rows), strict=True
        )
        kept = (
            history.write(state.time, alignment) if self._alignment_history else ()
            for history, alignment in zip(histories, alignments, strict=True)
        )
        attention = concat(list(found), 1)
        new = AttentionWrapperState(
            cell_state=cell_state,
            time=state.time + 1,
            attention=attention,
            alignments=self._item_or_tuple(alignments),
            attention_state=self._item_or_tuple(next_states),
            alignment_history=self._item_or_tuple(kept),
        )
        return attention if self._output_attention else output, new


def _mechanisms(given: Any) -> tuple[Any, ...]:
    if isinstance(given, (list, tuple)):
        for mechanism in given:
            if not isinstance(mechanism, AttentionMechanism):
                raise TypeError(
                    "attention_mechanism must contain only instances of AttentionMechanism, saw "
                    f"type: {type(mechanism).__name__}"
                )
        return tuple(given)
    if not isinstance(given, AttentionMechanism):
        raise TypeError(
            "attention_mechanism must be an AttentionMechanism or list of multiple "
            f"AttentionMechanism instances, saw type: {type(given).__name__}"
        )
    return (given,)
