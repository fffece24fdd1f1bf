"""Decoders over lists of inputs, one a step: plain, with embeddings, with attention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opdock import dtypes
from opdock.contrib.rnn.linear import linear
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.variables.variable_scope import get_variable, get_variable_scope, variable_scope
from opdock.ops.argmax import argmax
from opdock.ops.array import reshape, shape
from opdock.ops.bias import bias_add
from opdock.ops.cast import cast
from opdock.ops.composed.embedding import embedding_lookup
from opdock.ops.conv import conv2d
from opdock.ops.elementary import tanh
from opdock.ops.fill import zeros
from opdock.ops.identity import stop_gradient
from opdock.ops.joining import concat
from opdock.ops.linalg import matmul
from opdock.ops.reduce import reduce_sum
from opdock.ops.xent import softmax
from opdock.util import nest

__all__ = [
    "attention_decoder", "embedding_attention_decoder", "embedding_rnn_decoder", "rnn_decoder",
]  # fmt: skip

LoopFunction = Callable[[Any, int], Any]


def argmax_and_embed(
    embedding: Any, output_projection: Any = None, update_embedding: bool = True
) -> LoopFunction:
    """A loop function that gives the rows of the best symbols of the step before.

    Args:
        embedding: the table.
        output_projection: weights and biases that make symbols of outputs, or None.
        update_embedding: whether gradients reach the table.
    """

    def loop_function(previous: Any, _: int) -> Any:
        if output_projection is not None:
            weights, biases = output_projection
            previous = bias_add(matmul(previous, weights), biases)
        rows = embedding_lookup(embedding, argmax(previous, 1))
        return rows if update_embedding else stop_gradient(rows)

    return loop_function


def _own_input(loop_function: LoopFunction | None, outputs: list[Any], given: Any) -> Any:
    """What the next step gets: its input, or what is made of the output before."""
    if loop_function is None or not outputs:
        return given
    with variable_scope("loop_function", reuse=True):
        return loop_function(outputs[-1], len(outputs))


def rnn_decoder(
    decoder_inputs: Iterable[Any], initial_state: Any, cell: Any,
    loop_function: LoopFunction | None = None, scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """Runs a cell over a list of inputs, or over its own outputs.

    Args:
        decoder_inputs: tensors [batch, size], one a step.
        initial_state: the cell's first state.
        cell: a cell of `tf.nn.rnn_cell`.
        loop_function: takes an output and the step's number, and gives the next input, in the
            place of all given ones but the first.
        scope: the variable scope; "rnn_decoder" by default.

    Returns:
        A list of outputs, and the final state.
    """
    with variable_scope(scope or "rnn_decoder"):
        state = initial_state
        outputs: list[Any] = []
        for i, given in enumerate(decoder_inputs):
            used = _own_input(loop_function, outputs, given)
            if i > 0:
                get_variable_scope().reuse_variables()
            output, state = cell(used, state)
            outputs.append(output)
    return outputs, state


def check_projection(output_projection: Any, symbols: int, dtype: Any, both: bool = True) -> None:
    """Raises ValueError where a projection does not give so many symbols."""
    if output_projection is None:
        return
    wanted = ([None, symbols], [symbols])
    for value, size in list(zip(output_projection, wanted, strict=True))[0 if both else 1 :]:
        convert_to_tensor(value, dtype).shape.assert_is_compatible_with(size)


def embedding_rnn_decoder(
    decoder_inputs: Sequence[Any], initial_state: Any, cell: Any, num_symbols: int,
    embedding_size: int, output_projection: Any = None, feed_previous: bool = False,
    update_embedding_for_previous: bool = True, scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """`rnn_decoder` over ids.

    Args:
        decoder_inputs: int vectors [batch], one a step.
        initial_state: the cell's first state.
        cell: a cell of `tf.nn.rnn_cell`.
        num_symbols: the number of ids.
        embedding_size: the length of a row.
        output_projection: weights and biases that make symbols of outputs, or None.
        feed_previous: whether each step gets the best symbol of the one before.
        update_embedding_for_previous: whether gradients reach the table through these.
        scope: the variable scope; "embedding_rnn_decoder" by default.

    Returns:
        A list of outputs, and the final state.

    Raises:
        ValueError: the projection has another shape.
    """
    with variable_scope(scope or "embedding_rnn_decoder") as within:
        check_projection(output_projection, num_symbols, within.dtype)
        table = get_variable("embedding", [num_symbols, embedding_size])
        loop = None
        if feed_previous:
            loop = argmax_and_embed(table, output_projection, update_embedding_for_previous)
        rows = (embedding_lookup(table, ids) for ids in decoder_inputs)
        return rnn_decoder(rows, initial_state, cell, loop)


class _Heads:
    """Attention of several heads over states [batch, length, size], with variables of the scope."""

    def __init__(self, states: Any, count: int, dtype: Any) -> None:
        known = states.shape.as_list()
        self._length = shape(states)[1] if known[1] is None else known[1]
        self._size, self._dtype = known[2], dtype
        self._hidden = reshape(states, [-1, self._length, 1, self._size])
        self._features, self._weights = [], []
        for i in range(count):
            kernel = get_variable(f"AttnW_{i}", [1, 1, self._size, self._size], dtype)
            self._features.append(conv2d(self._hidden, kernel, [1, 1, 1, 1], "SAME"))
            self._weights.append(get_variable(f"AttnV_{i}", [self._size], dtype))

    def nothing(self, batch: Any) -> list[Any]:
        """What the heads have found before they looked."""
        found = [zeros([batch, self._size], self._dtype) for _ in self._weights]
        for part in found:
            part.set_shape([None, self._size])
        return found

    def look(self, query: Any) -> list[Any]:
        """What each head finds for a state of the cell."""
        asked = concat(nest.flatten(query), 1) if nest.is_sequence(query) else query
        found = []
        pairs = zip(self._features, self._weights, strict=True)
        for i, (features, weights) in enumerate(pairs):
            with variable_scope(f"Attention_{i}"):
                y = cast(linear(asked, self._size, True), self._dtype)
                y = reshape(y, [-1, 1, 1, self._size])
                score = reduce_sum(weights * tanh(features + y), [2, 3])
                part = cast(softmax(cast(score, dtypes.float32)), self._dtype)
                weighted = reshape(part, [-1, self._length, 1, 1]) * self._hidden
                found.append(reshape(reduce_sum(weighted, [1, 2]), [-1, self._size]))
        return found


def attention_decoder(
    decoder_inputs: Sequence[Any], initial_state: Any, attention_states: Any, cell: Any,
    output_size: int | None = None, num_heads: int = 1,
    loop_function: LoopFunction | None = None, dtype: Any = None, scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:  # fmt: skip
    """`rnn_decoder` whose cell sees what attention finds (Vinyals et al. 2015).

    Args:
        decoder_inputs: tensors [batch, size], one a step.
        initial_state: the cell's first state.
        attention_states: a tensor [batch, length, size].
        cell: a cell of `tf.nn.rnn_cell`.
        output_size: the size of an output; that of the cell's by default.
        num_heads: how often to look in a step.
        loop_function: see `rnn_decoder`.
        dtype: the type of the variables; that of the scope by default.
        scope: the variable scope; "attention_decoder" by default.
        initial_state_attention: whether to look before the first step.

    Returns:
        A list of outputs, and the final state.

    Raises:
        ValueError: there is no input or no head, or a size is not known.
    """
    if not decoder_inputs:
        raise ValueError("Must provide at least 1 input to attention decoder.")
    if num_heads < 1:
        raise ValueError("With less than 1 heads, use a non-attention decoder.")
    if attention_states.shape.as_list()[2] is None:
        raise ValueError(f"Shape[2] of attention_states must be known: {attention_states.shape}")
    size = cell.output_size if output_size is None else output_size
    with variable_scope(scope or "attention_decoder", dtype=dtype) as within:
        dtype = within.dtype
        heads = _Heads(attention_states, num_heads, dtype)
        state = initial_state
        found = heads.nothing(shape(decoder_inputs[0])[0])
        if initial_state_attention:
            found = heads.look(initial_state)
        outputs: list[Any] = []
        for i, given in enumerate(decoder_inputs):
            if i > 0:
                get_variable_scope().reuse_variables()
            used = _own_input(loop_function, outputs, given)
            width = used.shape.with_rank(2).as_list()[1]
            if width is None:
                raise ValueError(f"Could not infer input size from input: {used.name}")
            mixed = linear([cast(part, dtype) for part in (used, *found)], width, True)
            output, state = cell(mixed, state)
            again = True if i == 0 and initial_state_attention else None
            with variable_scope(get_variable_scope(), reuse=again):
                found = heads.look(state)
            with variable_scope("AttnOutputProjection"):
                outputs.append(linear([cast(output, dtype), *found], size, True))
    return outputs, state


def embedding_attention_decoder(
    decoder_inputs: Sequence[Any], initial_state: Any, attention_states: Any, cell: Any,
    num_symbols: int, embedding_size: int, num_heads: int = 1, output_size: int | None = None,
    output_projection: Any = None, feed_previous: bool = False,
    update_embedding_for_previous: bool = True, dtype: Any = None, scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:  # fmt: skip
    """`attention_decoder` over ids.

    Args:
        decoder_inputs: int vectors [batch], one a step.
        initial_state: the cell's first state.
        attention_states: a tensor [batch, length, size].
        cell: a cell of `tf.nn.rnn_cell`.
        num_symbols: the number of ids.
        embedding_size: the length of a row.
        num_heads: how often to look in a step.
        output_size: the size of an output; that of the cell's by default.
        output_projection: weights and biases that make symbols of outputs, or None.
        feed_previous: whether each step gets the best symbol of the one before.
        update_embedding_for_previous: whether gradients reach the table through these.
        dtype: the type of the variables; that of the scope by default.
        scope: the variable scope; "embedding_attention_decoder" by default.
        initial_state_attention: whether to look before the first step.

    Returns:
        A list of outputs, and the final state.

    Raises:
        ValueError: the projection has another shape.
    """
    check_projection(output_projection, num_symbols, dtype, both=False)
    with variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        table = get_variable("embedding", [num_symbols, embedding_size])
        loop = None
        if feed_previous:
            loop = argmax_and_embed(table, output_projection, update_embedding_for_previous)
        return attention_decoder(
            [embedding_lookup(table, ids) for ids in decoder_inputs], initial_state,
            attention_states, cell, output_size, num_heads, loop,
            initial_state_attention=initial_state_attention,
        )  # fmt: skip
