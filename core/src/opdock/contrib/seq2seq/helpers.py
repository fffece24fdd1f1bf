"""Helpers: where a decoder's inputs come from, and how its outputs become ids."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.layers.rnn import transpose_batch_time
from opdock.ops.argmax import argmax
from opdock.ops.array import reshape, shape, size
from opdock.ops.cast import cast
from opdock.ops.composed.embedding import embedding_lookup
from opdock.ops.composed.tensor_array import TensorArray
from opdock.ops.control import cond
from opdock.ops.fill import zeros_like
from opdock.ops.joining import concat
from opdock.ops.random import random_uniform
from opdock.ops.random_dist import multinomial
from opdock.ops.reduce import reduce_all
from opdock.ops.support.nn_util import emit
from opdock.ops.tiling import tile
from opdock.shapes import TensorShape
from opdock.util import nest

__all__ = [
    "CustomHelper", "GreedyEmbeddingHelper", "Helper", "InferenceHelper", "SampleEmbeddingHelper",
    "TrainingHelper",
]  # fmt: skip


# ------------------------------------------------------------------------------------ sampling
def bernoulli_sample(
    probs: Any = None, logits: Any = None, dtype: Any = dtypes.int32, sample_shape: Any = (),
    seed: int | None = None,
) -> Tensor:  # fmt: skip
    """Draws ones with the given probabilities, `sample_shape + probs.shape` of them."""
    probs = emit("Sigmoid", logits, name="probs") if probs is None else convert_to_tensor(probs)
    wanted = concat([_as_vector(sample_shape), shape(probs)], 0)
    drawn: Tensor = cast(random_uniform(wanted, dtype=probs.dtype, seed=seed) < probs, dtype)
    return drawn


def categorical_sample(
    logits: Any, dtype: Any = dtypes.int32, sample_shape: Any = (), seed: int | None = None
) -> Tensor:
    """Draws classes by their logits, `sample_shape + logits.shape[:-1]` of them."""
    logits = convert_to_tensor(logits, name="logits")
    rows = reshape(logits, [-1, shape(logits)[-1]])
    wanted = concat([_as_vector(sample_shape), shape(logits)[:-1]], 0)
    count = emit("Prod", _as_vector(sample_shape), [0])
    wide = dtypes.int64 if logits.dtype.size > 4 else dtypes.int32
    draws = multinomial(rows, count, seed=seed, output_dtype=wide)
    drawn: Tensor = cast(reshape(emit("Transpose", draws, [1, 0]), wanted), dtype)
    return drawn


def _as_vector(sizes: Any) -> Tensor:
    return reshape(convert_to_tensor(sizes, dtypes.int32, name="sample_shape"), [-1])


def embedder(embedding: Any) -> Callable[[Any], Any]:
    """A function of ids: the one given, or the look-up in the table given."""
    return embedding if callable(embedding) else lambda ids: embedding_lookup(embedding, ids)


def steps_of(inputs: Any) -> Any:
    """The steps of a structure [time, ...] as TensorArrays."""

    def unstacked(part: Any) -> TensorArray:
        array = TensorArray(part.dtype, size=shape(part)[0], element_shape=part.shape[1:])
        return array.unstack(part)

    return nest.map_structure(unstacked, inputs)


# ------------------------------------------------------------------------------------ helpers
class Helper(abc.ABC):
    """What `BasicDecoder` asks for inputs and ids."""

    @property
    @abc.abstractmethod
    def batch_size(self) -> Any:
        """The number of examples."""
        raise NotImplementedError("batch_size has not been implemented")

    @property
    @abc.abstractmethod
    def sample_ids_shape(self) -> Any:
        """The shape of an example's ids."""
        raise NotImplementedError("sample_ids_shape has not been implemented")

    @property
    @abc.abstractmethod
    def sample_ids_dtype(self) -> Any:
        """The type of ids."""
        raise NotImplementedError("sample_ids_dtype has not been implemented")

    @abc.abstractmethod
    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """What is finished at the begin, and the first inputs."""

    @abc.abstractmethod
    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The ids that the outputs of a step stand for."""

    @abc.abstractmethod
    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """What is finished, the next inputs and the next state."""


class _OneId(Helper):
    """A helper with an int32 a step and an example."""

    @property
    def sample_ids_shape(self) -> Any:
        """That of a scalar."""
        return TensorShape([])

    @property
    def sample_ids_dtype(self) -> Any:
        """int32."""
        return dtypes.int32


class CustomHelper(Helper):
    """A helper of three functions.

    Args:
        initialize_fn: takes nothing, and gives what is finished and the first inputs.
        sample_fn: takes `time`, `outputs` and `state`, and gives ids.
        next_inputs_fn: takes these and `sample_ids`, and gives what is finished, the next inputs
            and the next state.
        sample_ids_shape: the shape of an example's ids; a scalar's by default.
        sample_ids_dtype: their type; int32 by default.
    """

    def __init__(
        self, initialize_fn: Callable[[], tuple[Any, Any]], sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., tuple[Any, Any, Any]], sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ) -> None:  # fmt: skip
        self._initialize_fn, self._sample_fn = initialize_fn, sample_fn
        self._next_inputs_fn = next_inputs_fn
        self._batch_size: Any = None
        self._shape = TensorShape(sample_ids_shape or [])
        self._dtype = sample_ids_dtype or dtypes.int32

    @property
    def batch_size(self) -> Any:
        """The number of examples; ValueError before `initialize`."""
        if self._batch_size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch_size

    @property
    def sample_ids_shape(self) -> Any:
        """The shape of an example's ids."""
        return self._shape

    @property
    def sample_ids_dtype(self) -> Any:
        """The type of ids."""
        return self._dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """What the first function gives."""
        with name_scope(name, f"{type(self).__name__}Initialize"):
            finished, inputs = self._initialize_fn()
            if self._batch_size is None:
                self._batch_size = size(finished)
        return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """What the second function gives."""
        with name_scope(name, f"{type(self).__name__}Sample", nest.flatten((time, outputs, state))):
            return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """What the third function gives."""
        given = nest.flatten((time, outputs, state))
        with name_scope(name, f"{type(self).__name__}NextInputs", given):
            return self._next_inputs_fn(
                time=time, outputs=outputs, state=state, sample_ids=sample_ids
            )


class TrainingHelper(_OneId):
    """Gives the true sequence as inputs, whatever the outputs are.

    Args:
        inputs: a structure of tensors [batch, time, ...].
        sequence_length: an int32 vector of the examples' lengths.
        time_major: whether the inputs are [time, batch, ...].
        name: a name for the operations.

    Raises:
        ValueError: `sequence_length` is no vector.
    """

    def __init__(
        self, inputs: Any, sequence_length: Any, time_major: bool = False, name: str | None = None
    ) -> None:
        given = [*nest.flatten(inputs), sequence_length]
        with name_scope(name, "TrainingHelper", given):
            self._inputs = nest.map_structure(
                lambda part: convert_to_tensor(part, name="inputs"), inputs
            )
            steps = self._inputs
            if not time_major:
                steps = nest.map_structure(transpose_batch_time, steps)
            self._steps = steps_of(steps)
            self._sequence_length = convert_to_tensor(sequence_length, name="sequence_length")
            if self._sequence_length.shape.ndims != 1:
                raise ValueError(
                    "Expected sequence_length to be a vector, but received shape: "
                    f"{self._sequence_length.shape}"
                )
            self._zero_inputs = nest.map_structure(lambda part: zeros_like(part[0, :]), steps)
            self._batch_size = size(self._sequence_length)

    @property
    def inputs(self) -> Any:
        """The true sequence."""
        return self._inputs

    @property
    def sequence_length(self) -> Any:
        """The examples' lengths."""
        return self._sequence_length

    @property
    def batch_size(self) -> Any:
        """The number of examples."""
        return self._batch_size

    def _at(self, time: Any, finished: Any) -> Any:
        """The inputs of a step; zeros once all have finished, when there are no more."""
        return cond(
            reduce_all(finished),
            lambda: self._zero_inputs,
            lambda: nest.map_structure(lambda array: array.read(time), self._steps),
        )

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Examples without a step are finished; the first step."""
        with name_scope(name, "TrainingHelperInitialize"):
            finished = emit("Equal", 0, self._sequence_length)
            return finished, self._at(0, finished)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        """The place of the largest output."""
        with name_scope(name, "TrainingHelperSample", [time, outputs]):
            return cast(argmax(outputs, axis=-1), dtypes.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """The next step of the true sequence."""
        with name_scope(name, "TrainingHelperNextInputs", nest.flatten([time, outputs, state])):
            finished = emit("GreaterEqual", time + 1, self._sequence_length)
            return finished, self._at(time + 1, finished), state


class GreedyEmbeddingHelper(_OneId):
    """Gives the rows of the ids with the largest outputs as inputs.

    Args:
        embedding: a table, or a function of ids.
        start_tokens: an int32 vector: the first ids.
        end_token: an int32 scalar: the id at which an example has finished.

    Raises:
        ValueError: a token has another rank.
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embed = embedder(embedding)
        self._start_tokens = convert_to_tensor(start_tokens, dtypes.int32, name="start_tokens")
        self._end_token = convert_to_tensor(end_token, dtypes.int32, name="end_token")
        if self._start_tokens.shape.ndims != 1:
            raise ValueError("start_tokens must be a vector")
        self._batch_size = size(self._start_tokens)
        if self._end_token.shape.ndims != 0:
            raise ValueError("end_token must be a scalar")
        self._start_inputs = self._embed(self._start_tokens)

    @property
    def batch_size(self) -> Any:
        """The number of examples."""
        return self._batch_size

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Nothing is finished; the rows of the first ids."""
        return tile([False], [self._batch_size]), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The place of the largest output."""
        return argmax(_single(outputs), axis=-1, output_type=dtypes.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """The rows of the ids."""
        finished = emit("Equal", sample_ids, self._end_token)
        inputs = cond(
            reduce_all(finished), lambda: self._start_inputs, lambda: self._embed(sample_ids)
        )
        return finished, inputs, state


def _single(outputs: Any) -> Tensor:
    if not isinstance(outputs, Tensor):
        raise TypeError(f"Expected outputs to be a single Tensor, got: {type(outputs)}")
    return outputs


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Gives the rows of ids that are drawn by the outputs as inputs.

    Args:
        embedding: a table, or a function of ids.
        start_tokens: an int32 vector: the first ids.
        end_token: an int32 scalar: the id at which an example has finished.
        softmax_temperature: divides the outputs; the larger, the more random.
        seed: the seed of the random numbers.
    """

    def __init__(
        self, embedding: Any, start_tokens: Any, end_token: Any, softmax_temperature: Any = None,
        seed: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(embedding, start_tokens, end_token)
        self._temperature, self._seed = softmax_temperature, seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Ids, drawn by the outputs."""
        logits = _single(outputs)
        if self._temperature is not None:
            logits = logits / self._temperature
        return categorical_sample(logits, seed=self._seed)


class InferenceHelper(Helper):
    """Gives what is drawn from the outputs as inputs.

    Args:
        sample_fn: takes the outputs and gives what is drawn.
        sample_shape: the shape of what is drawn for an example.
        sample_dtype: its type.
        start_inputs: the first inputs.
        end_fn: takes what is drawn and says what is finished.
        next_inputs_fn: takes what is drawn and gives the next inputs; the same by default.
    """

    def __init__(
        self, sample_fn: Callable[[Any], Any], sample_shape: Any, sample_dtype: Any,
        start_inputs: Any, end_fn: Callable[[Any], Any],
        next_inputs_fn: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        self._sample_fn, self._end_fn, self._next_inputs_fn = sample_fn, end_fn, next_inputs_fn
        self._shape, self._dtype = TensorShape(sample_shape), sample_dtype
        self._start_inputs = convert_to_tensor(start_inputs, name="start_inputs")
        self._batch_size = shape(self._start_inputs)[0]

    @property
    def batch_size(self) -> Any:
        """The number of examples."""
        return self._batch_size

    @property
    def sample_ids_shape(self) -> Any:
        """The shape of what is drawn for an example."""
        return self._shape

    @property
    def sample_ids_dtype(self) -> Any:
        """The type of what is drawn."""
        return self._dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Nothing is finished; the first inputs."""
        return tile([False], [self._batch_size]), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """What is drawn from the outputs."""
        return self._sample_fn(outputs)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """What was drawn, or what is made of it."""
        inputs = self._next_inputs_fn(sample_ids) if self._next_inputs_fn else sample_ids
        return self._end_fn(sample_ids), inputs, state
