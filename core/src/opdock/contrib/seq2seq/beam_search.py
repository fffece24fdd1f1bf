"""A decoder that follows several sequences at once: the best so far, the beams."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from opdock import dtypes
from opdock.contrib.seq2seq.basic import check_layer, output_shapes
from opdock.contrib.seq2seq.beam_layout import BeamLayout
from opdock.contrib.seq2seq.beam_paths import can_sort, sorted_beams
from opdock.contrib.seq2seq.beam_step import (
    BeamSearchDecoderOutput,
    BeamSearchDecoderState,
    attention_probs,
    beam_search_step,
)
from opdock.contrib.seq2seq.decoder import Decoder
from opdock.contrib.seq2seq.helpers import embedder
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.layers.rnn_base import checked_cell
from opdock.ops.array import expand_dims, size
from opdock.ops.beam_search import gather_tree
from opdock.ops.cast import cast
from opdock.ops.composed.tensor_array import TensorArray
from opdock.ops.control import cond
from opdock.ops.fill import fill, zeros
from opdock.ops.reduce import reduce_all, reduce_max
from opdock.ops.select import one_hot
from opdock.ops.tiling import tile
from opdock.shapes import TensorShape
from opdock.util import nest

__all__ = ["BeamSearchDecoder", "FinalBeamSearchDecoderOutput"]


class FinalBeamSearchDecoderOutput(NamedTuple):
    """What the search gives: whole sequences [time, batch, beams], and the steps they are from."""

    predicted_ids: Any
    beam_search_decoder_output: BeamSearchDecoderOutput


class BeamSearchDecoder(Decoder):
    """Runs a cell on the beams of each example.

    A state that is given, and a memory for attention, must be tiled with `tile_batch`.

    Args:
        cell: a cell of `tf.nn.rnn_cell`.
        embedding: a table, or a function of ids.
        start_tokens: an int32 vector: the first ids.
        end_token: an int32 scalar: the id at which a beam has finished.
        initial_state: the cell's first state, tiled.
        beam_width: how many sequences to follow.
        output_layer: a layer that makes logits of the cell's outputs.
        length_penalty_weight: the exponent of the penalty of length (Wu et al. 2016); 0 for none.
        coverage_penalty_weight: the weight of the penalty of what attention has not seen.
        reorder_tensor_arrays: whether TensorArrays in the cell's state are sorted by the paths.

    Raises:
        TypeError: `cell` or `output_layer` is none.
        ValueError: a token has another rank.
    """

    def __init__(
        self, cell: Any, embedding: Any, start_tokens: Any, end_token: Any, initial_state: Any,
        beam_width: int, output_layer: Any = None, length_penalty_weight: float = 0.0,
        coverage_penalty_weight: float = 0.0, reorder_tensor_arrays: bool = True,
    ) -> None:  # fmt: skip
        checked_cell("cell", cell)
        check_layer(output_layer)
        self._cell, self._output_layer = cell, output_layer
        self._beam_width, self._reorder = beam_width, reorder_tensor_arrays
        self._length_penalty_weight = length_penalty_weight
        self._coverage_penalty_weight = coverage_penalty_weight
        self._embed = embedder(embedding)
        tokens = convert_to_tensor(start_tokens, dtypes.int32, name="start_tokens")
        if tokens.shape.ndims != 1:
            raise ValueError("start_tokens must be a vector")
        self._end_token = convert_to_tensor(end_token, dtypes.int32, name="end_token")
        if self._end_token.shape.ndims != 0:
            raise ValueError("end_token must be a scalar")
        self._batch_size = size(tokens)
        self._layout = BeamLayout(self._batch_size, beam_width)
        self._initial_cell_state = nest.map_structure(
            self._layout.split_if_batched, initial_state, cell.state_size
        )
        self._start_inputs = self._embed(tile(expand_dims(tokens, 1), [1, beam_width]))

    @property
    def batch_size(self) -> Any:
        """The number of examples, without the beams."""
        return self._batch_size

    @property
    def tracks_own_finished(self) -> bool:
        """True: beams change their places, and what was finished goes with them."""
        return True

    @property
    def output_size(self) -> BeamSearchDecoderOutput:
        """The beams, three times."""
        return BeamSearchDecoderOutput(*[TensorShape([self._beam_width])] * 3)

    @property
    def output_dtype(self) -> BeamSearchDecoderOutput:
        """The types of scores, ids and parents."""
        dtype = nest.flatten(self._initial_cell_state)[0].dtype
        scores = nest.map_structure(lambda _: dtype, output_shapes(self._cell, self._output_layer))
        return BeamSearchDecoderOutput(scores, dtypes.int32, dtypes.int32)

    def _first_beam(self, on: Any, off: Any, dtype: Any) -> Any:
        """One value in the first beam of each example, another elsewhere."""
        on, off = (convert_to_tensor(value, dtype) for value in (on, off))
        return one_hot(fill([self._batch_size], 0), self._beam_width, on, off, dtype=dtype)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """One beam, as all begin alike: the others are finished, and impossible."""
        dtype = nest.flatten(self._initial_cell_state)[0].dtype
        finished = self._first_beam(False, True, dtypes.bool_)
        seen = attention_probs(self._initial_cell_state, self._coverage_penalty_weight)
        state = BeamSearchDecoderState(
            cell_state=self._initial_cell_state,
            log_probs=self._first_beam(0.0, -np.inf, dtype),
            finished=finished,
            lengths=zeros([self._batch_size, self._beam_width], dtypes.int64),
            accumulated_attention_probs=() if seen is None else seen,
        )
        return finished, self._start_inputs, state

    def step(
        self, time: Any, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        """One step of the cell on all beams, and the choice of the next ones."""
        with name_scope(name, "BeamSearchDecoderStep"):
            layout = self._layout
            inputs = nest.map_structure(lambda i: layout.merge(i, i.shape[2:]), inputs)
            old = nest.map_structure(
                layout.merge_if_batched, state.cell_state, self._cell.state_size
            )
            outputs, cell_state = self._cell(inputs, old)
            outputs = nest.map_structure(lambda o: layout.split(o, o.shape[1:]), outputs)
            cell_state = nest.map_structure(
                layout.split_if_batched, cell_state, self._cell.state_size
            )
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            output, new = beam_search_step(
                time, outputs, cell_state, state, self._batch_size, self._beam_width,
                self._end_token, self._length_penalty_weight, self._coverage_penalty_weight,
            )  # fmt: skip
            next_inputs = cond(
                reduce_all(new.finished),
                lambda: self._start_inputs,
                lambda: self._embed(output.predicted_ids),
            )
        return output, new, next_inputs, new.finished

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """Whole sequences, and arrays of the cell's state sorted like them."""
        longest = cast(reduce_max(final_state.lengths, axis=1), dtypes.int32)
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end_token)
        if self._reorder:
            cell_state = nest.map_structure(
                lambda part: self._sorted(part, outputs.parent_ids, final_state.lengths),
                final_state.cell_state,
            )
            final_state = final_state._replace(cell_state=cell_state)
        return FinalBeamSearchDecoderOutput(ids, outputs), final_state

    def _sorted(self, part: Any, parent_ids: Any, lengths: Any) -> Any:
        if not isinstance(part, TensorArray) or not can_sort(
            part, constant_value(self._batch_size), self._beam_width
        ):
            return part
        return sorted_beams(part, parent_ids, lengths, self._batch_size, self._beam_width)
