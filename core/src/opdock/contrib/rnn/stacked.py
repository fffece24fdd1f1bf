"""Layers of networks that run both ways, each over the outputs of the one below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock.graph.variables.variable_scope import variable_scope
from opdock.layers.rnn_directions import bidirectional_dynamic_rnn, static_bidirectional_rnn
from opdock.ops.joining import concat

__all__ = ["stack_bidirectional_dynamic_rnn", "stack_bidirectional_rnn"]

_Layer = Callable[[Any, Any, Any, Any, Any, Any], tuple[Any, Any, Any]]


def stack_bidirectional_rnn(
    cells_fw: Sequence[Any], cells_bw: Sequence[Any], inputs: Any, initial_states_fw: Any = None,
    initial_states_bw: Any = None, dtype: Any = None, sequence_length: Any = None,
    scope: Any = None,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:  # fmt: skip
    """Runs layers of cells both ways over a list of inputs.

    Args:
        cells_fw: a list of cells, one a layer, that go forwards.
        cells_bw: as many that go backwards.
        inputs: a list of tensors [batch, size], see `tf.nn.static_rnn`.
        initial_states_fw, initial_states_bw: lists of states, one a layer; zeros by default.
        dtype: the type of the states, where one is missing.
        sequence_length: a vector of the examples' lengths.
        scope: the variable scope; "stack_bidirectional_rnn" by default.

    Returns:
        The last layer's outputs, those of both ways joined, and all layers' final states.

    Raises:
        ValueError: the lists are none, are empty or differ in length.
    """

    def layer(fw: Any, bw: Any, given: Any, start_fw: Any, start_bw: Any, within: Any) -> Any:
        return static_bidirectional_rnn(
            fw, bw, given, start_fw, start_bw, dtype, sequence_length, within
        )

    return _stacked(layer, cells_fw, cells_bw, inputs, initial_states_fw, initial_states_bw, scope)


def stack_bidirectional_dynamic_rnn(
    cells_fw: Sequence[Any], cells_bw: Sequence[Any], inputs: Any, initial_states_fw: Any = None,
    initial_states_bw: Any = None, dtype: Any = None, sequence_length: Any = None,
    parallel_iterations: int | None = None, time_major: bool = False, scope: Any = None,
    swap_memory: bool = False,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:  # fmt: skip
    """Runs layers of cells both ways over a tensor [batch, time, size].

    Args:
        cells_fw: a list of cells, one a layer, that go forwards.
        cells_bw: as many that go backwards.
        inputs: see `tf.nn.dynamic_rnn`.
        initial_states_fw, initial_states_bw: lists of states, one a layer; zeros by default.
        dtype: the type of the states, where one is missing.
        sequence_length: a vector of the examples' lengths.
        parallel_iterations, swap_memory: accepted for TF's signature.
        time_major: whether time comes first, in inputs and outputs.
        scope: the variable scope; "stack_bidirectional_rnn" by default.

    Returns:
        The last layer's outputs, those of both ways joined, and all layers' final states.

    Raises:
        ValueError: the lists are none, are empty or differ in length.
    """

    def layer(fw: Any, bw: Any, given: Any, start_fw: Any, start_bw: Any, _: Any) -> Any:
        outputs, (state_fw, state_bw) = bidirectional_dynamic_rnn(
            fw, bw, given, sequence_length, start_fw, start_bw, dtype, parallel_iterations,
            swap_memory, time_major,
        )  # fmt: skip
        return concat(list(outputs), 2), state_fw, state_bw

    return _stacked(layer, cells_fw, cells_bw, inputs, initial_states_fw, initial_states_bw, scope)


def _stacked(
    layer: _Layer, cells_fw: Any, cells_bw: Any, inputs: Any, starts_fw: Any, starts_bw: Any,
    scope: Any,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:  # fmt: skip
    _check(cells_fw, cells_bw, starts_fw, starts_bw)
    none = [None] * len(cells_fw)
    finals = []
    with variable_scope(scope or "stack_bidirectional_rnn"):
        rows = zip(cells_fw, cells_bw, starts_fw or none, starts_bw or none, strict=True)
        for i, (fw, bw, start_fw, start_bw) in enumerate(rows):
            with variable_scope(f"cell_{i}") as within:
                inputs, *states = layer(fw, bw, inputs, start_fw, start_bw, within)
            finals.append(states)
    return inputs, tuple(s[0] for s in finals), tuple(s[1] for s in finals)


def _check(cells_fw: Any, cells_bw: Any, starts_fw: Any, starts_bw: Any) -> None:
    for way, cells in (("fw", cells_fw), ("bw", cells_bw)):
        if not cells:
            raise ValueError(f"Must specify at least one {way} cell for BidirectionalRNN.")
    for way, cells in (("fw", cells_fw), ("bw", cells_bw)):
        if not isinstance(cells, list):
            raise ValueError(f"cells_{way} must be a list of RNNCells (one per layer).")
    if len(cells_fw) != len(cells_bw):
        raise ValueError("Forward and Backward cells must have the same depth.")
    for way, starts in (("fw", starts_fw), ("bw", starts_bw)):
        if starts is not None and (not isinstance(starts, list) or len(starts) != len(cells_fw)):
            raise ValueError(
                f"initial_states_{way} must be a list of state tensors (one per layer)."
            )
