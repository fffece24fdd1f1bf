"""`tf.contrib.crf`: conditional random fields over sequences of tags (Lafferty et al. 2001)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.variables.variable_scope import get_variable
from opdock.layers.rnn import dynamic_rnn
from opdock.layers.rnn_base import RNNCell
from opdock.ops.argmax import argmax
from opdock.ops.array import expand_dims, shape, squeeze
from opdock.ops.cast import cast
from opdock.ops.composed.masks import sequence_mask
from opdock.ops.composed.reduce_stats import reduce_logsumexp
from opdock.ops.control import cond
from opdock.ops.fill import fill, zeros_like
from opdock.ops.fill import range as tensor_range
from opdock.ops.gather import gather_nd
from opdock.ops.joining import concat, stack
from opdock.ops.reduce import reduce_max, reduce_sum
from opdock.ops.select import one_hot, where
from opdock.ops.support.nn_util import emit
from opdock.ops.tiling import reverse_sequence

__all__ = [
    "CrfDecodeBackwardRnnCell", "CrfDecodeForwardRnnCell", "CrfForwardRnnCell",
    "crf_binary_score", "crf_decode", "crf_log_likelihood", "crf_log_norm",
    "crf_multitag_sequence_score", "crf_sequence_score", "crf_unary_score", "viterbi_decode",
]  # fmt: skip


def _by_length(inputs: Any, single: Callable[[], Any], several: Callable[[], Any]) -> Any:
    """The branch for sequences of one step, or of several."""
    known = inputs.shape.as_list()[1]
    if known:
        return single() if known == 1 else several()
    return cond(emit("Equal", shape(inputs)[1], 1), single, several)


def _one_less(lengths: Any) -> Any:
    return emit("Maximum", 0, convert_to_tensor(lengths) - 1)


def _unless_empty(values: Any, lengths: Any) -> Any:
    """The values, 0 for sequences without a step."""
    return where(emit("LessEqual", lengths, 0), zeros_like(values), values)


# ------------------------------------------------------------------------------------ scores
def crf_unary_score(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> Any:
    """What the steps of a sequence say of its tags.

    Args:
        tag_indices: an int tensor [batch, time].
        sequence_lengths: an int vector [batch].
        inputs: a float tensor [batch, time, tags]: the score of each tag.

    Returns:
        A vector [batch].
    """
    chosen = reduce_sum(inputs * one_hot(tag_indices, shape(inputs)[2], dtype=inputs.dtype), -1)
    mask = sequence_mask(sequence_lengths, maxlen=shape(tag_indices)[1], dtype=inputs.dtype)
    return reduce_sum(where(mask > 0, chosen, zeros_like(chosen)), 1)


def crf_binary_score(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """What the transitions between the tags of a sequence count.

    Args:
        tag_indices: an int tensor [batch, time].
        sequence_lengths: an int vector [batch].
        transition_params: a float matrix [tags, tags]: from one tag to another.

    Returns:
        A vector [batch].
    """
    pairs = stack([tag_indices[:, :-1], tag_indices[:, 1:]], -1)
    scores = gather_nd(transition_params, pairs)
    mask = sequence_mask(sequence_lengths, maxlen=shape(tag_indices)[1], dtype=scores.dtype)
    return reduce_sum(scores * mask[:, 1:], 1)


def crf_sequence_score(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any
) -> Any:
    """The score of a sequence of tags, not normalized.

    Args:
        inputs: a float tensor [batch, time, tags]: the score of each tag.
        tag_indices: an int tensor [batch, time].
        sequence_lengths: an int vector [batch].
        transition_params: a float matrix [tags, tags].

    Returns:
        A vector [batch].
    """
    unary = crf_unary_score(tag_indices, sequence_lengths, inputs)
    return unary + crf_binary_score(tag_indices, sequence_lengths, transition_params)


def crf_multitag_sequence_score(
    inputs: Any, tag_bitmap: Any, sequence_lengths: Any, transition_params: Any
) -> Any:
    """The score of all sequences whose tags are among those allowed at each step.

    Args:
        inputs: a float tensor [batch, time, tags]: the score of each tag.
        tag_bitmap: a bool tensor of that shape.
        sequence_lengths: an int vector [batch].
        transition_params: a float matrix [tags, tags].

    Returns:
        A vector [batch].
    """
    allowed = where(tag_bitmap, inputs, fill(shape(inputs), float("-inf")))
    return _by_length(
        inputs,
        lambda: reduce_logsumexp(allowed, axis=[1, 2]),
        lambda: crf_log_norm(allowed, sequence_lengths, transition_params),
    )


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The logarithm of the sum over all sequences of tags, by which scores are normalized.

    Args:
        inputs: a float tensor [batch, time, tags]: the score of each tag.
        sequence_lengths: an int vector [batch].
        transition_params: a float matrix [tags, tags].

    Returns:
        A vector [batch]; 0 for sequences without a step.
    """
    first = inputs[:, 0]

    def several() -> Any:
        _, alphas = dynamic_rnn(
            CrfForwardRnnCell(transition_params), inputs[:, 1:], _one_less(sequence_lengths),
            first, dtypes.float32,
        )  # fmt: skip
        return _unless_empty(reduce_logsumexp(alphas, [1]), sequence_lengths)

    def single() -> Any:
        return _unless_empty(reduce_logsumexp(first, [1]), sequence_lengths)

    return _by_length(inputs, single, several)


def crf_log_likelihood(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None
) -> tuple[Any, Any]:
    """The log likelihood of sequences of tags.

    Args:
        inputs: a float tensor [batch, time, tags]: the score of each tag.
        tag_indices: an int tensor [batch, time]: the true tags.
        sequence_lengths: an int vector [batch].
        transition_params: a float matrix [tags, tags]; a variable `transitions` by default.

    Returns:
        A vector [batch], and the matrix of transitions.
    """
    if transition_params is None:
        tags = inputs.shape.as_list()[2]
        transition_params = get_variable("transitions", [tags, tags])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    norm = crf_log_norm(inputs, sequence_lengths, transition_params)
    return score - norm, transition_params


# ------------------------------------------------------------------------------------ decoding
def viterbi_decode(score: Any, transition_params: Any) -> tuple[list[int], Any]:
    """The best sequence of tags, in NumPy.

    Args:
        score: an array [time, tags].
        transition_params: an array [tags, tags].

    Returns:
        A list of tags, and its score.
    """
    best = score[0]
    origins = []
    for step in score[1:]:
        ways = best[:, None] + transition_params
        origins.append(np.argmax(ways, 0))
        best = step + np.max(ways, 0)
    tags = [int(np.argmax(best))]
    for origin in reversed(origins):
        tags.append(int(origin[tags[-1]]))
    return tags[::-1], np.max(best)


def crf_decode(potentials: Any, transition_params: Any, sequence_length: Any) -> tuple[Any, Any]:
    """The best sequences of tags, as ops.

    Args:
        potentials: a float tensor [batch, time, tags]: the score of each tag.
        transition_params: a float matrix [tags, tags].
        sequence_length: an int vector [batch].

    Returns:
        An int32 tensor [batch, time] of tags, 0 behind a sequence's end, and the scores [batch].
    """

    def single() -> Any:
        only = squeeze(potentials, [1])
        tags = expand_dims(argmax(only, axis=1, output_type=dtypes.int32), 1)
        return tags, reduce_max(only, axis=1)

    def several() -> Any:
        less = _one_less(sequence_length)
        origins, last = dynamic_rnn(
            CrfDecodeForwardRnnCell(transition_params), potentials[:, 1:], less, potentials[:, 0],
            dtypes.int32,
        )  # fmt: skip
        origins = reverse_sequence(origins, less, seq_axis=1)
        start = expand_dims(argmax(last, axis=1, output_type=dtypes.int32), -1)
        cell = CrfDecodeBackwardRnnCell(potentials.shape.as_list()[2])
        tags, _ = dynamic_rnn(cell, origins, less, start, dtypes.int32)
        tags = concat([start, squeeze(tags, axis=[2])], axis=1)
        return reverse_sequence(tags, sequence_length, seq_axis=1), reduce_max(last, axis=1)

    tags, score = _by_length(potentials, single, several)
    return tags, score


class _TagCell(RNNCell):
    """A cell whose state is a score of each tag."""

    def __init__(self, transition_params: Any) -> None:
        super().__init__()
        transition_params = convert_to_tensor(transition_params)
        self._transitions = expand_dims(transition_params, 0)
        self._num_tags = transition_params.shape.as_list()[0]

    @property
    def state_size(self) -> Any:
        """The number of tags."""
        return self._num_tags

    @property
    def output_size(self) -> Any:
        """The number of tags."""
        return self._num_tags


class CrfForwardRnnCell(_TagCell):
    """Adds up all ways to each tag.

    Args:
        transition_params: a float matrix [tags, tags].
    """

    def __call__(self, inputs: Any, state: Any, scope: Any = None, **kwargs: Any) -> Any:
        """One step."""
        alphas = inputs + reduce_logsumexp(expand_dims(state, 2) + self._transitions, [1])
        return alphas, alphas


class CrfDecodeForwardRnnCell(_TagCell):
    """Keeps the best way to each tag, and gives the tags before.

    Args:
        transition_params: a float matrix [tags, tags].
    """

    def __call__(self, inputs: Any, state: Any, scope: Any = None, **kwargs: Any) -> Any:
        """One step."""
        ways = expand_dims(state, 2) + self._transitions
        return cast(argmax(ways, 1), dtypes.int32), inputs + reduce_max(ways, [1])


class CrfDecodeBackwardRnnCell(RNNCell):
    """Goes back from tag to tag.

    Args:
        num_tags: the number of tags.
    """

    def __init__(self, num_tags: int) -> None:
        super().__init__()
        self._num_tags = num_tags

    @property
    def state_size(self) -> int:
        """One tag."""
        return 1

    @property
    def output_size(self) -> int:
        """One tag."""
        return 1

    def __call__(self, inputs: Any, state: Any, scope: Any = None, **kwargs: Any) -> Any:
        """One step."""
        place = stack([tensor_range(shape(inputs)[0]), squeeze(state, axis=[1])], axis=1)
        tags = expand_dims(gather_nd(inputs, place), axis=-1)
        return tags, tags
