"""`tf.nn.raw_rnn`: a cell in a loop whose inputs, states and outputs a function decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.variables.variable_scope import variable_scope
from opdock.layers.rnn_base import checked_cell, dims
from opdock.ops.array import shape
from opdock.ops.composed.loops import while_loop
from opdock.ops.composed.tensor_array import TensorArray
from opdock.ops.fill import zeros
from opdock.ops.joining import concat
from opdock.ops.reduce import reduce_all
from opdock.ops.select import where
from opdock.ops.support.nn_util import emit
from opdock.util import nest

__all__ = ["raw_rnn"]


@extensible
def raw_rnn(
    cell: Any, loop_fn: Callable[..., Any], parallel_iterations: int | None = None,
    swap_memory: bool = False, scope: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Runs a cell until all examples are finished.

    Args:
        cell: a cell of `tf.nn.rnn_cell`.
        loop_fn: takes (time, cell_output, cell_state, loop_state) and returns
            (finished, next_input, next_cell_state, emit_output, next_loop_state). The first call,
            with None for all but the time, gives the initial state, and with `emit_output` the
            structure of what is emitted: that of the cell's output if it is None.
        parallel_iterations, swap_memory: accepted for TF's signature.
        scope: the variable scope; "rnn" by default.

    Returns:
        The TensorArrays of what was emitted, the final state, and the final loop state. What is
        finished emits zeros and keeps its state.

    Raises:
        TypeError: `cell` is no cell, or `loop_fn` not callable.
        ValueError: a structure changes.
    """
    checked_cell("cell", cell)
    if not callable(loop_fn):
        raise TypeError("loop_fn must be a callable")
    with variable_scope(scope or "rnn"):
        time = constant(0, dtypes.int32)
        finished, following, state, emitted, first = loop_fn(time, None, None, None)
        nest.assert_same_structure(state, cell.state_size)
        state = nest.map_structure(convert_to_tensor, state)
        zero, arrays = _emitted(cell, emitted, nest.flatten(following), nest.flatten(state)[0])
        # The loop wants a state of its own even where the caller has none.
        held = constant(0, dtypes.int32) if first is None else first

        def body(
            time: Any, finished: Any, current: Any, arrays: Any, state: Any, held: Any
        ) -> tuple[Any, ...]:
            output, new = cell(current, state)
            nest.assert_same_structure(state, new)
            nest.assert_same_structure(cell.output_size, output)
            done, following, wanted, emitted, after = loop_fn(time + 1, output, new, held)
            nest.assert_same_structure(state, wanted)
            nest.assert_same_structure(current, following)
            nest.assert_same_structure(zero, emitted)
            emitted = _unless(finished, zero, emitted)
            written = nest.map_structure(lambda a, e: a.write(time, e), arrays, emitted)
            return (
                time + 1, emit("LogicalOr", finished, done), following, written,
                _unless(finished, state, wanted), held if after is None else after,
            )  # fmt: skip

        *_, arrays, state, held = while_loop(
            lambda _, finished, *__: emit("LogicalNot", reduce_all(finished)),
            body, [time, finished, following, arrays, state, held],
        )  # fmt: skip
        return arrays, state, None if first is None else held


def _unless(finished: Any, old: Any, new: Any) -> Any:
    """What is new where an example goes on; arrays and what has no batch are passed through."""

    def chosen(a: Any, b: Any) -> Any:
        return b if isinstance(a, TensorArray) or a.shape.ndims == 0 else where(finished, a, b)

    return nest.map_structure(chosen, old, new)


def _emitted(cell: Any, like: Any, inputs: list[Any], state: Any) -> tuple[Any, Any]:
    """Zeros like what a step emits, and the arrays for all steps."""
    static: Any = None
    for tensor in inputs:
        known = tensor.raw_shape
        static = shapes.merge_dim(static, None if known is None else known[0])
    batch = static if static is not None else shape(inputs[0])[0]
    structure = cell.output_size if like is None else like
    zero, arrays = [], []
    for i, item in enumerate(nest.flatten(structure)):
        dtype = state.dtype if like is None else item.dtype
        known = tuple(dims(item)) if like is None else item.raw_shape
        if shapes.is_fully_defined(known):
            zero.append(zeros([batch, *known], dtype))
        else:
            zero.append(zeros(concat([[batch], shape(item)], 0), dtype))
        arrays.append(
            TensorArray(
                dtype, size=0, dynamic_size=True, name=f"rnn_output_{i}",
                element_shape=None if known is None else (static, *known),
            )
        )  # fmt: skip
    if not nest.is_sequence(structure):
        return zero[0], arrays[0]
    return nest.pack_sequence_as(structure, zero), nest.pack_sequence_as(structure, arrays)
