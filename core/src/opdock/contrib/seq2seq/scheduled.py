"""Scheduled sampling: training on true inputs and on the model's own (Bengio et al. 2015)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.contrib.seq2seq.helpers import (
    TrainingHelper,
    bernoulli_sample,
    categorical_sample,
    embedder,
    steps_of,
)
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.layers.rnn import transpose_batch_time
from opdock.ops.array import shape
from opdock.ops.cast import cast
from opdock.ops.control import cond
from opdock.ops.fill import fill
from opdock.ops.gather import gather_nd
from opdock.ops.joining import concat
from opdock.ops.reduce import reduce_all, reduce_any
from opdock.ops.scatter import scatter_nd
from opdock.ops.select import where
from opdock.ops.support.nn_util import emit
from opdock.util import nest

__all__ = ["ScheduledEmbeddingTrainingHelper", "ScheduledOutputTrainingHelper"]


def _probability(value: Any) -> Any:
    found = convert_to_tensor(value, name="sampling_probability")
    if found.shape.ndims not in (0, 1):
        raise ValueError(
            f"sampling_probability must be either a scalar or a vector. saw shape: {found.shape}"
        )
    return found


def _mixed(drawn: Any, inputs: Any, own: Callable[[Any], Any]) -> Any:
    """Rows of `own(places)` where `drawn` holds, of the inputs elsewhere."""
    here = cast(where(drawn), dtypes.int32)
    there = cast(where(emit("LogicalNot", drawn)), dtypes.int32)
    size = shape(inputs)
    return scatter_nd(here, own(here), size) + scatter_nd(there, gather_nd(inputs, there), size)


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Gives true inputs, but by chance rows of ids that are drawn by the outputs.

    Args:
        inputs: a tensor [batch, time, size].
        sequence_length: an int32 vector of the examples' lengths.
        embedding: a table, or a function of ids.
        sampling_probability: a scalar, or a vector with one number an example.
        time_major: whether the inputs are [time, batch, size].
        seed: the seed by which ids are drawn.
        scheduling_seed: the seed by which examples are chosen.
        name: a name for the operations.

    Raises:
        ValueError: `sampling_probability` has another rank.
    """

    def __init__(
        self, inputs: Any, sequence_length: Any, embedding: Any, sampling_probability: Any,
        time_major: bool = False, seed: int | None = None, scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        with name_scope(name, "ScheduledEmbeddingSamplingWrapper"):
            self._embed = embedder(embedding)
            self._probability = _probability(sampling_probability)
            self._seed, self._scheduling_seed = seed, scheduling_seed
            super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        """Ids where the outputs are taken, -1 where the true inputs are."""
        with name_scope(name, "ScheduledEmbeddingTrainingHelperSample", [time, outputs]):
            drawn = bernoulli_sample(
                probs=self._probability, dtype=dtypes.bool_, sample_shape=self.batch_size,
                seed=self._scheduling_seed,
            )  # fmt: skip
            return where(
                drawn, categorical_sample(outputs, seed=self._seed), fill([self.batch_size], -1)
            )

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None,
        name: str | None = None,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        """The next true step, with rows of ids in it."""
        with name_scope(name, "ScheduledEmbeddingTrainingHelperNextInputs"):
            finished, inputs, state = super().next_inputs(time, outputs, state)

            def mixed() -> Any:
                return _mixed(
                    emit("Greater", sample_ids, -1), inputs,
                    lambda here: self._embed(gather_nd(sample_ids, here)),
                )  # fmt: skip

            return finished, cond(reduce_all(finished), lambda: inputs, mixed), state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """Gives true inputs, but by chance the outputs of the step before.

    Args:
        inputs: a structure of tensors [batch, time, ...].
        sequence_length: an int32 vector of the examples' lengths.
        sampling_probability: a scalar, or a vector with one number an example.
        time_major: whether the inputs are [time, batch, ...].
        seed: the seed by which examples are chosen.
        next_inputs_fn: takes outputs and gives inputs; the same by default.
        auxiliary_inputs: of the structure of `inputs`: joined to what is given, at the end.
        name: a name for the operations.

    Raises:
        ValueError: `sampling_probability` has another rank.
    """

    def __init__(
        self, inputs: Any, sequence_length: Any, sampling_probability: Any,
        time_major: bool = False, seed: int | None = None,
        next_inputs_fn: Callable[[Any], Any] | None = None, auxiliary_inputs: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        with name_scope(name, "ScheduledOutputTrainingHelper"):
            self._probability = _probability(sampling_probability)
            self._auxiliary = None
            if auxiliary_inputs is not None:
                more = nest.map_structure(convert_to_tensor, auxiliary_inputs)
                inputs = nest.map_structure(
                    lambda x, y: concat([x, y], -1),
                    nest.map_structure(convert_to_tensor, inputs), more,
                )  # fmt: skip
                if not time_major:
                    more = nest.map_structure(transpose_batch_time, more)
                self._auxiliary = steps_of(more)
            self._seed, self._next_inputs_fn = seed, next_inputs_fn
            super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        """1 where the outputs are taken, 0 where the true inputs are."""
        with name_scope(name, "ScheduledOutputTrainingHelperSample"):
            return bernoulli_sample(
                probs=self._probability, sample_shape=self.batch_size, seed=self._seed
            )

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None,
        name: str | None = None,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        """The next true step, with outputs in it."""
        with name_scope(name, "ScheduledOutputTrainingHelperNextInputs"):
            finished, inputs, state = super().next_inputs(time, outputs, state)
            drawn = cast(sample_ids, dtypes.bool_)

            def joined(values: Any, here: Any = None) -> Any:
                if self._auxiliary is None:
                    return values
                more = nest.map_structure(lambda array: array.read(time + 1), self._auxiliary)
                if here is not None:
                    more = gather_nd(more, here)
                return nest.map_structure(lambda x, y: concat([x, y], -1), values, more)

            def mixed() -> Any:
                convert = self._next_inputs_fn
                if convert is None:
                    return where(drawn, joined(outputs), inputs)
                return _mixed(
                    drawn, inputs, lambda here: joined(convert(gather_nd(outputs, here)), here)
                )

            as_they_are = emit(
                "LogicalOr", reduce_all(finished), emit("LogicalNot", reduce_any(drawn))
            )
            return finished, cond(as_they_are, lambda: inputs, mixed), state
