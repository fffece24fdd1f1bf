"""`tf.nn.dynamic_rnn` and `static_rnn`: a cell run over a sequence."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.variable_scope import variable_scope
from opdock.layers.rnn_base import checked_cell, dims
from opdock.ops.array import shape
from opdock.ops.cast import cast
from opdock.ops.composed.loops import while_loop
from opdock.ops.composed.tensor_array import TensorArray
from opdock.ops.fill import zeros_like
from opdock.ops.matrix import transpose
from opdock.ops.select import where
from opdock.ops.support.nn_util import emit
from opdock.util import nest

__all__ = ["dynamic_rnn", "static_rnn"]


def transpose_batch_time(tensor: Any) -> Any:
    """Batch and time change places."""
    rank = tensor.shape.ndims
    return transpose(tensor, [1, 0, *range(2, rank)])


def best_effort_input_batch_size(flat_input: Any) -> Any:
    """The size of the batch of tensors [time, batch, ...]: an int where one says, else a tensor.

    Raises:
        ValueError: a tensor has fewer than two dimensions.
    """
    for tensor in flat_input:
        if tensor.shape.ndims is None:
            continue
        if tensor.shape.ndims < 2:
            raise ValueError(f"Expected input tensor {tensor.name} to have rank at least 2")
        batch = tensor.shape.as_list()[1]
        if batch is not None:
            return batch
    return shape(flat_input[0])[1]


def _start(cell: Any, initial_state: Any, batch: Any, dtype: Any) -> Any:
    if initial_state is not None:
        return nest.map_structure(
            lambda s: s if isinstance(s, TensorArray) else convert_to_tensor(s), initial_state
        )
    if not dtype:
        raise ValueError("If there is no initial_state, you must give a dtype.")
    if hasattr(cell, "get_initial_state"):
        return cell.get_initial_state(inputs=None, batch_size=batch, dtype=dtype)
    return cell.zero_state(batch, dtype)


def _output_type(dtype: Any, state: list[Any]) -> Any:
    """The type of the outputs: what was asked for, or that of the whole state."""
    if dtype is not None:
        return dtypes.as_dtype(dtype)
    found = {s.dtype.base_dtype for s in state}
    if len(found) != 1:
        raise ValueError(
            "State has tensors of different inferred_dtypes. Unable to infer a single "
            "representative dtype."
        )
    return found.pop()


def _lengths(sequence_length: Any) -> Any:
    if sequence_length is None:
        return None
    lengths = cast(convert_to_tensor(sequence_length), dtypes.int32)
    if lengths.shape.ndims not in (None, 1):
        raise ValueError(
            f"sequence_length must be a vector of length batch_size, but saw shape: {lengths.shape}"
        )
    return lengths


def _step(cell: Any, time: Any, lengths: Any, inputs: Any, state: Any) -> tuple[Any, Any]:
    """One step; past the end of an example its output is zero and its state stays."""
    output, new = cell(inputs, state)
    nest.assert_same_structure(state, new)
    if lengths is None:
        return output, new
    done = emit("GreaterEqual", time, lengths)

    def unless_done(old: Any, value: Any) -> Any:
        # What has no batch cannot be told apart by example.
        if isinstance(value, TensorArray) or value.shape.ndims == 0:
            return value
        return where(done, old, value)

    output = nest.map_structure(lambda o: unless_done(zeros_like(o), o), output)
    pairs = zip(nest.flatten(state), nest.flatten(new), strict=True)
    flat = [unless_done(old, value) for old, value in pairs]
    return output, nest.pack_sequence_as(new, flat) if nest.is_sequence(new) else flat[0]


@extensible
def dynamic_rnn(
    cell: Any, inputs: Any, sequence_length: Any = None, initial_state: Any = None,
    dtype: Any = None, parallel_iterations: int | None = None, swap_memory: bool = False,
    time_major: bool = False, scope: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Runs a cell over a sequence, in a loop whose length may vary from run to run.

    Args:
        cell: a cell of `tf.nn.rnn_cell`.
        inputs: a tensor [batch, time, ...], or [time, batch, ...] when `time_major`; or a
            structure of them, which the cell takes as it is.
        sequence_length: an integer vector: how long each example is; past that its outputs are
            zero and its state stays.
        initial_state: the state to begin with; zeros by default.
        dtype: the type of the state, when there is no initial state.
        parallel_iterations, swap_memory: accepted for TF's signature.
        time_major: whether time comes first, in inputs and outputs.
        scope: the variable scope; "rnn" by default.

    Returns:
        The outputs, shaped like `inputs` but for the last dimension, and the final state.

    Raises:
        TypeError: `cell` is no cell.
        ValueError: there is neither a state nor a dtype, or a shape does not fit.
    """
    checked_cell("cell", cell)
    with variable_scope(scope or "rnn"):
        inputs = nest.map_structure(lambda t: _time_first(t, time_major), inputs)
        lengths = _lengths(sequence_length)
        every = nest.flatten(inputs)
        sizes = shape(every[0])
        steps, batch = every[0].shape.as_list()[:2]
        for part in every[1:]:
            steps = shapes.merge_dim(steps, part.shape.as_list()[0])
            batch = shapes.merge_dim(batch, part.shape.as_list()[1])
        time = steps if steps is not None else sizes[0]
        state = _start(cell, initial_state, batch if batch is not None else sizes[1], dtype)
        outputs, final = _loop(cell, inputs, time, lengths, state, dtype)
        flat: list[Tensor] = []
        for stacked, size in zip(outputs, nest.flatten(cell.output_size), strict=True):
            stacked.set_shape([steps, batch, *dims(size)])
            flat.append(stacked if time_major else transpose_batch_time(stacked))
        if nest.is_sequence(cell.output_size):
            return nest.pack_sequence_as(cell.output_size, flat), final
        return flat[0], final


def _time_first(inputs: Any, time_major: bool) -> Any:
    inputs = convert_to_tensor(inputs)
    if inputs.shape.ndims is None or inputs.shape.ndims < 2:
        raise ValueError(
            f"Expected inputs of rank 2 or more, [batch, time, ...], but saw shape: {inputs.shape}"
        )
    return inputs if time_major else transpose_batch_time(inputs)


def _loop(
    cell: Any, inputs: Any, time: Any, lengths: Any, state: Any, dtype: Any
) -> tuple[Any, Any]:
    flat_state = nest.flatten(state)
    element = _output_type(dtype, flat_state)
    every = nest.flatten(inputs)
    feeds = [
        TensorArray(x.dtype.base_dtype, size=time, element_shape=x.shape[1:]).unstack(x)
        for x in every
    ]
    batch = None
    for part in every:
        batch = shapes.merge_dim(batch, part.shape.as_list()[1])
    kept = [
        TensorArray(element, size=time, element_shape=[batch, *dims(size)])
        for size in nest.flatten(cell.output_size)
    ]

    def body(t: Any, arrays: Any, old: Any) -> Any:
        parts = [feed.read(t) for feed in feeds]
        for part, whole in zip(parts, every, strict=True):
            part.set_shape(whole.shape[1:])
        current = nest.pack_sequence_as(inputs, parts) if nest.is_sequence(inputs) else parts[0]
        packed = nest.pack_sequence_as(state, list(old)) if nest.is_sequence(state) else old[0]
        output, new = _step(cell, t, lengths, current, packed)
        written = [a.write(t, o) for a, o in zip(arrays, nest.flatten(output), strict=True)]
        after = nest.flatten(new)
        for a, b in zip(old, after, strict=True):
            if not isinstance(b, TensorArray):
                b.set_shape(a.shape)
        return t + 1, written, after

    _, arrays, final = while_loop(
        lambda t, *_: emit("Less", t, time), body, (convert_to_tensor(0), kept, flat_state)
    )
    packed = nest.pack_sequence_as(state, list(final)) if nest.is_sequence(state) else final[0]
    return [a.stack() for a in arrays], packed


@extensible
def static_rnn(
    cell: Any, inputs: Any, initial_state: Any = None, dtype: Any = None,
    sequence_length: Any = None, scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """Runs a cell over a list of inputs, one copy of its ops for each.

    Args:
        cell: a cell of `tf.nn.rnn_cell`.
        inputs: a list of tensors [batch, ...], one per step.
        initial_state: the state to begin with; zeros by default.
        dtype: the type of the state, when there is no initial state.
        sequence_length: an integer vector: how long each example is.
        scope: the variable scope; "rnn" by default.

    Returns:
        The list of outputs, and the final state.

    Raises:
        TypeError: `cell` is no cell, or `inputs` is no list.
        ValueError: `inputs` is empty, or there is neither a state nor a dtype.
    """
    checked_cell("cell", cell)
    if not nest.is_sequence(inputs):
        raise TypeError("inputs must be a sequence")
    if not inputs:
        raise ValueError("inputs must not be empty")
    outputs: list[Any] = []
    with variable_scope(scope or "rnn") as opened:
        first = convert_to_tensor(nest.flatten(inputs)[0])
        batch = first.shape.as_list()[0] if first.shape.ndims else None
        state = _start(cell, initial_state, batch if batch is not None else shape(first)[0], dtype)
        with name_scope("lengths"):
            lengths = _lengths(sequence_length)
        for time, current in enumerate(inputs):
            if time > 0:
                opened.reuse_variables()
            output, state = _step(cell, time, lengths, current, state)
            outputs.append(output)
        return outputs, state
