"""Cells run both ways over a sequence, and over sequences that go on from step to step."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.scopes import control_dependencies
from opdock.graph.variables.variable_scope import variable_scope
from opdock.layers.rnn import dynamic_rnn, static_rnn
from opdock.layers.rnn_base import checked_cell
from opdock.ops.identity import identity
from opdock.ops.joining import concat, stack
from opdock.ops.splitting import unstack
from opdock.ops.tiling import reverse, reverse_sequence
from opdock.util import nest

__all__ = ["bidirectional_dynamic_rnn", "static_bidirectional_rnn", "static_state_saving_rnn"]


@extensible
def bidirectional_dynamic_rnn(
    cell_fw: Any, cell_bw: Any, inputs: Any, sequence_length: Any = None,
    initial_state_fw: Any = None, initial_state_bw: Any = None, dtype: Any = None,
    parallel_iterations: int | None = None, swap_memory: bool = False, time_major: bool = False,
    scope: Any = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:  # fmt: skip
    """Runs one cell forwards and another backwards over a sequence; see `dynamic_rnn`.

    Args:
        cell_fw: the cell that goes forwards.
        cell_bw: the cell that goes backwards, from the end of each example.
        inputs: see `dynamic_rnn`.
        sequence_length: see `dynamic_rnn`.
        initial_state_fw: the state that `cell_fw` begins with; zeros by default.
        initial_state_bw: the state that `cell_bw` begins with; zeros by default.
        dtype: the type of the states, where one is missing.
        parallel_iterations, swap_memory: accepted for TF's signature.
        time_major: whether time comes first, in inputs and outputs.
        scope: the variable scope; "bidirectional_rnn" by default.

    Returns:
        The outputs of both, both in the order of the inputs, and the final states of both.

    Raises:
        TypeError: a cell is none.
        ValueError: see `dynamic_rnn`.
    """
    checked_cell("cell_fw", cell_fw)
    checked_cell("cell_bw", cell_bw)
    time_axis = 0 if time_major else 1

    def turned(values: Any) -> Any:
        if sequence_length is None:
            return nest.map_structure(lambda v: reverse(v, axis=[time_axis]), values)
        return nest.map_structure(
            lambda v: reverse_sequence(
                v, sequence_length, seq_axis=time_axis, batch_axis=1 - time_axis
            ),
            values,
        )

    same = {
        "sequence_length": sequence_length, "dtype": dtype, "swap_memory": swap_memory,
        "parallel_iterations": parallel_iterations, "time_major": time_major,
    }  # fmt: skip
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forth:
            output_fw, state_fw = dynamic_rnn(
                cell_fw, inputs, initial_state=initial_state_fw, scope=forth, **same
            )
        with variable_scope("bw") as back:
            output_bw, state_bw = dynamic_rnn(
                cell_bw, turned(inputs), initial_state=initial_state_bw, scope=back, **same
            )
    return (output_fw, turned(output_bw)), (state_fw, state_bw)


@extensible
def static_bidirectional_rnn(
    cell_fw: Any, cell_bw: Any, inputs: Any, initial_state_fw: Any = None,
    initial_state_bw: Any = None, dtype: Any = None, sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any, Any]:  # fmt: skip
    """Runs one cell forwards and another backwards over a list of inputs; see `static_rnn`.

    Args:
        cell_fw, cell_bw: the cells.
        inputs: a list of tensors, a step each.
        initial_state_fw, initial_state_bw: their first states; zeros by default.
        dtype: the type of such zeros.
        sequence_length: the length of each sequence, where they differ.
        scope: the scope of the variables, "bidirectional_rnn" by default.

    Returns:
        A list of outputs, those of both cells joined along the last dimension, and the final
        states of both.

    Raises:
        TypeError: a cell is none, or `inputs` is no list.
        ValueError: `inputs` is empty.
    """
    checked_cell("cell_fw", cell_fw)
    checked_cell("cell_bw", cell_bw)
    if not nest.is_sequence(inputs):
        raise TypeError("inputs must be a sequence")
    if not inputs:
        raise ValueError("inputs must not be empty")
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forth:
            output_fw, state_fw = static_rnn(
                cell_fw, inputs, initial_state_fw, dtype, sequence_length, forth
            )
        with variable_scope("bw") as back:
            output_bw, state_bw = static_rnn(
                cell_bw, _turned(inputs, sequence_length), initial_state_bw, dtype,
                sequence_length, back,
            )  # fmt: skip
    pairs = zip(
        nest.flatten(output_fw), nest.flatten(_turned(output_bw, sequence_length)), strict=True
    )
    joined = [concat([forth, back], 1) for forth, back in pairs]
    return nest.pack_sequence_as(output_fw, joined), state_fw, state_bw


def _turned(steps: list[Any], lengths: Any) -> list[Any]:
    """The steps from the last to the first, of each example as many as it has."""
    if lengths is None:
        return list(reversed(steps))
    columns = []
    for column in zip(*(nest.flatten(step) for step in steps), strict=True):
        shape = column[0].shape
        for part in column[1:]:
            shape = shape.merge_with(part.shape)
        whole = stack(list(column))
        parts = unstack(reverse_sequence(whole, lengths, seq_axis=0, batch_axis=1), len(column))
        for part in parts:
            part.set_shape(shape)
        columns.append(parts)
    rows = zip(*columns, strict=True)
    return [
        nest.pack_sequence_as(step, list(row)) if nest.is_sequence(step) else row[0]
        for step, row in zip(steps, rows, strict=True)
    ]


@extensible
def static_state_saving_rnn(
    cell: Any, inputs: Any, state_saver: Any, state_name: Any, sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """Runs a cell over a list of inputs, from the state that a saver has and keeps again.

    Args:
        cell: a cell of `tf.nn.rnn_cell`.
        inputs: a list of tensors, see `static_rnn`.
        state_saver: an object with `state(name)` and `save_state(name, value)`.
        state_name: the name of the state, in the structure of `cell.state_size`.
        sequence_length: see `static_rnn`.
        scope: the variable scope; "rnn" by default.

    Returns:
        The outputs and the final state; the last output and the state wait until it is saved.

    Raises:
        ValueError: the names have another structure than the state.
    """
    sizes = cell.state_size
    if nest.is_sequence(sizes) != nest.is_sequence(state_name):
        raise ValueError(
            "state_name should be the same type as cell.state_size.  "
            f"state_name: {state_name}, cell.state_size: {sizes}"
        )
    names = nest.flatten(state_name)
    if len(names) != len(nest.flatten(sizes)):
        raise ValueError(
            f"#elems(state_name) != #elems(state_size): {len(names)} vs. {len(nest.flatten(sizes))}"
        )
    start = nest.pack_sequence_as(sizes, [state_saver.state(n) for n in names])
    outputs, state = static_rnn(cell, inputs, start, None, sequence_length, scope)
    saved = [
        state_saver.save_state(name, part)
        for name, part in zip(names, nest.flatten(state), strict=True)
    ]
    with control_dependencies(saved):
        outputs[-1] = nest.map_structure(identity, outputs[-1])
        return outputs, nest.map_structure(identity, state)
