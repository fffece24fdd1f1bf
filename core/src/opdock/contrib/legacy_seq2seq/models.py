"""Models of two networks over lists: one reads a sequence, the other writes one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opdock import dtypes
from opdock.contrib.legacy_seq2seq.decoders import (
    LoopFunction,
    argmax_and_embed,
    check_projection,
    embedding_attention_decoder,
    embedding_rnn_decoder,
    rnn_decoder,
)
from opdock.contrib.rnn.wrappers import EmbeddingWrapper, OutputProjectionWrapper
from opdock.graph.variables.variable_scope import get_variable, get_variable_scope, variable_scope
from opdock.layers.rnn import static_rnn
from opdock.layers.rnn_base import RNNCell
from opdock.ops.array import reshape
from opdock.ops.composed.embedding import embedding_lookup
from opdock.ops.control import cond
from opdock.ops.joining import concat
from opdock.util import nest

__all__ = [
    "basic_rnn_seq2seq", "embedding_attention_seq2seq", "embedding_rnn_seq2seq",
    "embedding_tied_rnn_seq2seq", "one2many_rnn_seq2seq", "tied_rnn_seq2seq",
]  # fmt: skip

Result = tuple[list[Any], Any]


def _decoded(feed_previous: Any, decode: Callable[[bool], Result], like: Any) -> Result:
    """What a decoder makes; where a tensor says whether it gets its own outputs, both ways.

    Args:
        feed_previous: a bool or a bool tensor.
        decode: takes the bool and gives outputs and the final state.
        like: a state of the structure of the final one.
    """
    if isinstance(feed_previous, bool):
        return decode(feed_previous)
    count = 0

    def branch(fed: bool) -> list[Any]:
        nonlocal count
        with variable_scope(get_variable_scope(), reuse=None if fed else True):
            outputs, state = decode(fed)
        count = len(outputs)
        return [*outputs, *nest.flatten(state)]

    made = cond(feed_previous, lambda: branch(True), lambda: branch(False))
    state = made[count:]
    packed = nest.pack_sequence_as(like, state) if nest.is_sequence(like) else state[0]
    return list(made[:count]), packed


def basic_rnn_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], cell: Any,
    dtype: Any = dtypes.float32, scope: Any = None,
) -> Result:  # fmt: skip
    """Two networks of the same cell, each with variables of its own.

    Args:
        encoder_inputs, decoder_inputs: lists of tensors [batch, size].
        cell: a cell of `tf.nn.rnn_cell`.
        dtype: the type of the state.
        scope: the variable scope; "basic_rnn_seq2seq" by default.

    Returns:
        A list of outputs, and the final state.
    """
    with variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], cell: Any,
    loop_function: LoopFunction | None = None, dtype: Any = dtypes.float32, scope: Any = None,
) -> Result:  # fmt: skip
    """One network that reads and writes.

    Args:
        encoder_inputs, decoder_inputs: lists of tensors [batch, size].
        cell: a cell of `tf.nn.rnn_cell`.
        loop_function: see `rnn_decoder`.
        dtype: the type of the state.
        scope: the inner variable scope; "tied_rnn_seq2seq" by default.

    Returns:
        A list of outputs, and the final state.
    """
    with variable_scope("combined_tied_rnn_seq2seq"):
        scope = scope or "tied_rnn_seq2seq"
        _, state = static_rnn(cell, encoder_inputs, dtype=dtype, scope=scope)
        get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function, scope)


def embedding_rnn_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], cell: Any,
    num_encoder_symbols: int, num_decoder_symbols: int, embedding_size: int,
    output_projection: Any = None, feed_previous: Any = False, dtype: Any = None,
    scope: Any = None,
) -> Result:  # fmt: skip
    """`basic_rnn_seq2seq` over ids.

    Args:
        encoder_inputs, decoder_inputs: lists of int vectors [batch].
        cell: a cell of `tf.nn.rnn_cell`.
        num_encoder_symbols, num_decoder_symbols: the numbers of ids.
        embedding_size: the length of a row.
        output_projection: weights and biases that make symbols of outputs; without, the cell's
            outputs are projected to symbols.
        feed_previous: whether each step gets the best symbol of the one before; a bool or a
            bool tensor.
        dtype: the type of the state; that of the scope by default.
        scope: the variable scope; "embedding_rnn_seq2seq" by default.

    Returns:
        A list of outputs, and the final state.
    """
    with variable_scope(scope or "embedding_rnn_seq2seq") as within:
        if dtype is not None:
            within.set_dtype(dtype)
        reader = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        _, state = static_rnn(reader, encoder_inputs, dtype=within.dtype)
        writer = cell
        if output_projection is None:
            writer = OutputProjectionWrapper(cell, num_decoder_symbols)

        def decode(fed: bool) -> Result:
            return embedding_rnn_decoder(
                decoder_inputs, state, writer, num_decoder_symbols, embedding_size,
                output_projection, fed, isinstance(feed_previous, bool),
            )  # fmt: skip

        return _decoded(feed_previous, decode, state)


def embedding_tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], cell: Any, num_symbols: int,
    embedding_size: int, num_decoder_symbols: int | None = None, output_projection: Any = None,
    feed_previous: Any = False, dtype: Any = None, scope: Any = None,
) -> Result:  # fmt: skip
    """`tied_rnn_seq2seq` over ids of one table.

    Args:
        encoder_inputs, decoder_inputs: lists of int vectors [batch].
        cell: a cell of `tf.nn.rnn_cell`.
        num_symbols: the number of ids.
        embedding_size: the length of a row.
        num_decoder_symbols: how many of them are written; all by default.
        output_projection: see `embedding_rnn_seq2seq`.
        feed_previous: see `embedding_rnn_seq2seq`.
        dtype: the type of the state; that of the scope by default.
        scope: the variable scope; "embedding_tied_rnn_seq2seq" by default.

    Returns:
        A list of outputs, and the final state.

    Raises:
        ValueError: the projection has another shape.
    """
    with variable_scope(scope or "embedding_tied_rnn_seq2seq", dtype=dtype) as within:
        dtype = within.dtype
        check_projection(output_projection, num_symbols, dtype)
        table = get_variable("embedding", [num_symbols, embedding_size], dtype)
        read, written = (
            [embedding_lookup(table, ids) for ids in given]
            for given in (encoder_inputs, decoder_inputs)
        )
        writer = cell
        if output_projection is None:
            writer = OutputProjectionWrapper(cell, num_decoder_symbols or num_symbols)

        def decode(fed: bool) -> Result:
            update = isinstance(feed_previous, bool)
            loop = argmax_and_embed(table, output_projection, update) if fed else None
            return tied_rnn_seq2seq(read, written, writer, loop, dtype)

        return _decoded(feed_previous, decode, cell.state_size)


def embedding_attention_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], cell: Any,
    num_encoder_symbols: int, num_decoder_symbols: int, embedding_size: int, num_heads: int = 1,
    output_projection: Any = None, feed_previous: Any = False, dtype: Any = None,
    scope: Any = None, initial_state_attention: bool = False,
) -> Result:  # fmt: skip
    """`embedding_rnn_seq2seq` with attention to the outputs of the network that reads.

    Args:
        encoder_inputs, decoder_inputs: lists of int vectors [batch].
        cell: a cell of `tf.nn.rnn_cell`.
        num_encoder_symbols, num_decoder_symbols: the numbers of ids.
        embedding_size: the length of a row.
        num_heads: how often to look in a step.
        output_projection: see `embedding_rnn_seq2seq`.
        feed_previous: see `embedding_rnn_seq2seq`.
        dtype: the type of the state; that of the scope by default.
        scope: the variable scope; "embedding_attention_seq2seq" by default.
        initial_state_attention: whether to look before the first step.

    Returns:
        A list of outputs, and the final state.
    """
    with variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as within:
        reader = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        outputs, state = static_rnn(reader, encoder_inputs, dtype=within.dtype)
        seen = concat([reshape(out, [-1, 1, cell.output_size]) for out in outputs], 1)
        writer, size = cell, None
        if output_projection is None:
            writer, size = OutputProjectionWrapper(cell, num_decoder_symbols), num_decoder_symbols

        def decode(fed: bool) -> Result:
            return embedding_attention_decoder(
                decoder_inputs, state, seen, writer, num_decoder_symbols, embedding_size,
                num_heads, size, output_projection, fed, isinstance(feed_previous, bool),
                initial_state_attention=initial_state_attention,
            )  # fmt: skip

        return _decoded(feed_previous, decode, state)


def one2many_rnn_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs_dict: Mapping[str, Sequence[Any]],
    enc_cell: Any, dec_cells_dict: Mapping[str, Any], num_encoder_symbols: int,
    num_decoder_symbols_dict: Mapping[str, int], embedding_size: int, feed_previous: Any = False,
    dtype: Any = None, scope: Any = None,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """One network that reads, and several that write, by name.

    Args:
        encoder_inputs: a list of int vectors [batch].
        decoder_inputs_dict: such lists by name.
        enc_cell: the cell that reads.
        dec_cells_dict: the cells that write, by name.
        num_encoder_symbols, num_decoder_symbols_dict: the numbers of ids.
        embedding_size: the length of a row.
        feed_previous: see `embedding_rnn_seq2seq`.
        dtype: the type of the state; that of the scope by default.
        scope: the variable scope; "one2many_rnn_seq2seq" by default.

    Returns:
        Lists of outputs, and final states, by name.

    Raises:
        TypeError: a cell is none.
        ValueError: the names differ.
    """
    for what, cell in (("enc_cell", enc_cell), *(("dec_cell", c) for c in dec_cells_dict.values())):
        if not isinstance(cell, RNNCell):
            raise TypeError(f"{what} is not an RNNCell: {type(cell)}")
    if set(dec_cells_dict) != set(decoder_inputs_dict):
        raise ValueError("keys of dec_cells_dict != keys of decodre_inputs_dict")
    all_outputs, states = {}, {}
    with variable_scope(scope or "one2many_rnn_seq2seq", dtype=dtype) as within:
        reader = EmbeddingWrapper(enc_cell, num_encoder_symbols, embedding_size)
        _, state = static_rnn(reader, encoder_inputs, dtype=within.dtype)
        for name, given in decoder_inputs_dict.items():
            symbols = num_decoder_symbols_dict[name]
            with variable_scope(f"one2many_decoder_{name}"):
                writer = OutputProjectionWrapper(dec_cells_dict[name], symbols)

                def decode(
                    fed: bool, given: Any = given, writer: Any = writer, symbols: int = symbols
                ) -> Result:
                    return embedding_rnn_decoder(
                        given, state, writer, symbols, embedding_size, feed_previous=fed
                    )

                all_outputs[name], states[name] = _decoded(feed_previous, decode, state)
    return all_outputs, states
