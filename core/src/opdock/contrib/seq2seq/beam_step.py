"""One step of a beam search: the best continuations of all beams."""

from __future__ import annotations

from typing import Any, NamedTuple

from opdock import dtypes
from opdock.contrib.seq2seq.attention_wrapper import AttentionWrapperState
from opdock.contrib.seq2seq.beam_layout import BeamLayout
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.ops.array import expand_dims, reshape, shape
from opdock.ops.cast import cast
from opdock.ops.elementary import log
from opdock.ops.fill import fill, ones_like
from opdock.ops.joining import concat
from opdock.ops.reduce import reduce_mean, reduce_sum
from opdock.ops.select import one_hot, where
from opdock.ops.sorting import top_k
from opdock.ops.support.nn_util import emit
from opdock.ops.tiling import tile
from opdock.ops.xent import log_softmax
from opdock.util import nest

__all__ = [
    "BeamSearchDecoderOutput", "BeamSearchDecoderState", "attention_probs", "beam_search_step",
    "length_penalty", "mask_probs",
]  # fmt: skip


class BeamSearchDecoderState(NamedTuple):
    """The state of the search: that of the cell, and of each beam its log probability so far."""

    cell_state: Any
    log_probs: Any
    finished: Any
    lengths: Any
    accumulated_attention_probs: Any


class BeamSearchDecoderOutput(NamedTuple):
    """What a step gives: [batch, beams] each, the best first."""

    scores: Any
    predicted_ids: Any
    parent_ids: Any


def beam_search_step(
    time: Any, logits: Any, next_cell_state: Any, beam_state: BeamSearchDecoderState,
    batch_size: Any, beam_width: int, end_token: Any, length_penalty_weight: Any,
    coverage_penalty_weight: Any,
) -> tuple[BeamSearchDecoderOutput, BeamSearchDecoderState]:  # fmt: skip
    """Chooses the best continuations of all beams of each example.

    Args:
        time: the step; it makes no difference.
        logits: a tensor [batch, beams, classes].
        next_cell_state: what the cell's state has become, [batch, beams, ...].
        beam_state: the state before.
        batch_size: the number of examples, a scalar tensor.
        beam_width: the number of beams.
        end_token: the id at which a beam has finished.
        length_penalty_weight: see `length_penalty`.
        coverage_penalty_weight: the weight of the penalty of what attention has not seen.

    Returns:
        What was chosen, and the state of the chosen beams.

    Raises:
        ValueError: coverage is to count, and no cell has attention.
    """
    layout, width, end = BeamLayout(batch_size, beam_width), beam_width, end_token
    classes = logits.shape.as_list()[-1]
    classes = shape(logits)[-1] if classes is None else classes
    going = emit("LogicalNot", beam_state.finished)
    added = mask_probs(log_softmax(logits), end, beam_state.finished)
    totals = expand_dims(beam_state.log_probs, 2) + added
    none, one = (convert_to_tensor(n, dtypes.int64) for n in (0, 1))
    more = one_hot(fill([batch_size, width], end), classes, none, one, dtype=dtypes.int64)
    more = more * expand_dims(cast(going, dtypes.int64), 2)
    seen = attention_probs(next_cell_state, coverage_penalty_weight)
    if seen is not None:
        seen = seen * expand_dims(cast(going, dtypes.float32), 2)
        seen = beam_state.accumulated_attention_probs + seen
    scores = totals / cast(
        length_penalty(more + expand_dims(beam_state.lengths, 2), length_penalty_weight),
        totals.dtype,
    )
    if seen is not None:
        scores += _coverage(seen, beam_state.finished, coverage_penalty_weight)
    best, places = top_k(reshape(scores, [batch_size, -1]), k=width)
    for chosen in (best, places):
        chosen.set_shape([layout.static_batch, width])
    log_probs = layout.pick(totals, places, width * classes, [-1], "next_beam_probs")
    ids = cast(emit("FloorMod", places, classes), dtypes.int32)
    parents = cast(emit("FloorDiv", places, classes), dtypes.int32)
    finished = layout.pick(beam_state.finished, parents, width, [-1])
    lengths = layout.pick(beam_state.lengths, parents, width, [-1])
    lengths += cast(emit("LogicalNot", finished), dtypes.int64)
    rows = [batch_size * width, -1]
    state = BeamSearchDecoderState(
        cell_state=nest.map_structure(
            lambda part: layout.pick_if_batched(part, parents, rows), next_cell_state
        ),
        log_probs=log_probs,
        finished=emit("LogicalOr", finished, emit("Equal", ids, end)),
        lengths=lengths,
        accumulated_attention_probs=(
            () if seen is None else layout.pick(seen, parents, width, rows)
        ),
    )
    return BeamSearchDecoderOutput(best, ids, parents), state


def _coverage(seen: Any, finished: Any, weight: Any) -> Any:
    """The penalty of finished beams for what attention has not seen."""
    weight = convert_to_tensor(weight, name="coverage_penalty_weight")
    if weight.shape.ndims != 0:
        raise ValueError(
            f"coverage_penalty_weight should be a scalar, but saw shape: {weight.shape}"
        )
    seen = where(emit("Equal", seen, 0.0), ones_like(seen), seen)
    covered = reduce_sum(log(emit("Minimum", seen, 1.0)), 2) * cast(finished, dtypes.float32)
    return expand_dims(covered * weight, 2)


def length_penalty(sequence_lengths: Any, penalty_factor: Any) -> Any:
    """`((5 + length) / 6) ** factor`, by which log probabilities are divided.

    Args:
        sequence_lengths: an int tensor.
        penalty_factor: a scalar; 0 gives 1.
    """
    factor = convert_to_tensor(penalty_factor, name="penalty_factor")
    factor.set_shape(())
    known = constant_value(factor)
    if known is not None and known == 0:
        return 1.0
    return (5.0 + cast(sequence_lengths, dtypes.float32)) ** factor / (5.0 + 1.0) ** factor


def mask_probs(probs: Any, eos_token: Any, finished: Any) -> Any:
    """Log probabilities under which a finished beam goes on with its end alone.

    Args:
        probs: log probabilities [batch, beams, classes].
        eos_token: the id that ends a sequence.
        finished: a bool tensor [batch, beams].
    """
    classes, dtype = shape(probs)[2], probs.dtype
    row = one_hot(
        eos_token, classes, convert_to_tensor(0.0, dtype), convert_to_tensor(dtype.min, dtype),
        dtype=dtype,
    )  # fmt: skip
    rows = tile(reshape(row, [1, 1, -1]), concat([shape(finished), [1]], 0))
    return where(tile(expand_dims(finished, 2), [1, 1, classes]), rows, probs)


def attention_probs(cell_state: Any, weight: Any) -> Any:
    """The mean attention in a state, where coverage counts; None where it does not.

    Raises:
        ValueError: no cell has attention.
    """
    if weight == 0.0:
        return None
    states = [cell_state] if isinstance(cell_state, AttentionWrapperState) else cell_state
    found = [
        _mean(state.alignments)
        for state in (states if isinstance(states, tuple | list) else ())
        if isinstance(state, AttentionWrapperState)
    ]
    if not found:
        raise ValueError("coverage_penalty_weight must be 0.0 if no cell is attentional.")
    return _mean(tuple(found)) if len(found) > 1 else found[0]


def _mean(alignments: Any) -> Any:
    if not isinstance(alignments, tuple):
        return alignments
    return reduce_mean(concat([expand_dims(a, -1) for a in alignments], -1), -1)
