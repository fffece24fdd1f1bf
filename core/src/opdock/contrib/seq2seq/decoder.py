"""Decoders, and the loop that runs one until it has finished."""

from __future__ import annotations

import abc
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.variables.variable_scope import variable_scope
from opdock.layers.rnn import transpose_batch_time
from opdock.layers.rnn_base import zero_states
from opdock.ops.array import shape
from opdock.ops.composed.loops import while_loop
from opdock.ops.composed.tensor_array import TensorArray
from opdock.ops.fill import fill, zeros_like
from opdock.ops.reduce import reduce_all
from opdock.ops.select import where
from opdock.ops.support.nn_util import emit
from opdock.shapes import TensorShape
from opdock.util import nest

__all__ = ["Decoder", "dynamic_decode"]


class Decoder(abc.ABC):
    """What makes a sequence, step by step: `dynamic_decode` runs it.

    `time` is a scalar, inputs and states are structures of tensors, and `finished` is a bool
    vector, one entry an example.
    """

    @property
    def batch_size(self) -> Any:
        """The number of examples."""
        raise NotImplementedError

    @property
    def output_size(self) -> Any:
        """The shapes of what a step gives, without the batch."""
        raise NotImplementedError

    @property
    def output_dtype(self) -> Any:
        """The types of what a step gives."""
        raise NotImplementedError

    @abc.abstractmethod
    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """What is finished at the begin, the first inputs and the first state."""
        raise NotImplementedError

    @abc.abstractmethod
    def step(
        self, time: Any, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        """The outputs of one step, the next state, the next inputs and what is finished."""
        raise NotImplementedError

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """All outputs and the final state, as the caller of the loop gets them."""
        raise NotImplementedError

    @property
    def tracks_own_finished(self) -> bool:
        """Whether `step` says what is finished so far, and not in this step alone."""
        return False


def dynamic_decode(
    decoder: Decoder, output_time_major: bool = False, impute_finished: bool = False,
    maximum_iterations: Any = None, parallel_iterations: int = 32, swap_memory: bool = False,
    scope: Any = None, **kwargs: Any,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Runs a decoder until all examples have finished.

    Args:
        decoder: a Decoder.
        output_time_major: whether the outputs are [time, batch, ...]; else [batch, time, ...].
        impute_finished: whether finished examples keep their state and give zeros.
        maximum_iterations: an int32 scalar, or None for no limit.
        parallel_iterations, swap_memory: accepted for TF's signature.
        scope: the variable scope; "decoder" by default.

    Returns:
        The outputs, the final state, and the length of each example's sequence.

    Raises:
        TypeError: `decoder` is none.
        ValueError: `maximum_iterations` is no scalar.
    """
    if not isinstance(decoder, Decoder):
        raise TypeError(f"Expected decoder to be type Decoder, but saw: {type(decoder)}")
    with variable_scope(scope, "decoder"):
        limit = _limit(maximum_iterations)
        finished, inputs, state = decoder.initialize()
        if limit is not None:
            finished = emit("LogicalOr", finished, emit("GreaterEqual", 0, limit))
        arrays = nest.map_structure(
            lambda size, dtype: _array(decoder.batch_size, size, dtype),
            decoder.output_size, decoder.output_dtype,
        )  # fmt: skip
        start = (
            convert_to_tensor(0, dtypes.int32), arrays, state, inputs, finished,
            zeros_like(finished, dtype=dtypes.int32),
        )  # fmt: skip
        _, arrays, state, _, _, lengths = while_loop(
            lambda *loop: emit("LogicalNot", reduce_all(loop[4])),
            lambda *loop: _turn(decoder, impute_finished, *loop),
            start, parallel_iterations=parallel_iterations, maximum_iterations=limit,
            swap_memory=swap_memory,
        )  # fmt: skip
        outputs = nest.map_structure(lambda array: array.stack(), arrays)
        # Not to have it is a decoder's choice, and no error in one that has it.
        if type(decoder).finalize is not Decoder.finalize:
            outputs, state = decoder.finalize(outputs, state, lengths)
        if not output_time_major:
            outputs = nest.map_structure(transpose_batch_time, outputs)
    return outputs, state, lengths


def _limit(given: Any) -> Any:
    if given is None:
        return None
    limit = convert_to_tensor(given, dtypes.int32, name="maximum_iterations")
    if limit.shape.ndims != 0:
        raise ValueError("maximum_iterations must be a scalar")
    return limit


def _array(batch: Any, size: Any, dtype: Any) -> TensorArray:
    """The array of one output; what it says of its elements is what is known of them."""
    element = None
    if isinstance(size, TensorShape) and size.ndims != 0:
        known = constant_value(convert_to_tensor(batch, name="batch_size"))
        element = TensorShape([None if known is None else int(known)]).concatenate(size)
    return TensorArray(dtype, size=0, dynamic_size=True, element_shape=element)


def _turn(
    decoder: Decoder, impute: bool, time: Any, arrays: Any, state: Any, inputs: Any,
    finished: Any, lengths: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """One turn of the loop."""
    outputs, new_state, new_inputs, now = decoder.step(time, inputs, state)
    new_finished = now if decoder.tracks_own_finished else emit("LogicalOr", now, finished)
    going = emit("LogicalNot", finished)
    new_lengths = where(going, fill(shape(lengths), time + 1), lengths)
    nest.assert_same_structure(state, new_state)
    nest.assert_same_structure(arrays, outputs)
    nest.assert_same_structure(inputs, new_inputs)

    def kept(new: Any, old: Any) -> Any:
        if isinstance(old, TensorArray):
            return new
        new.set_shape(old.shape)
        return new if new.shape.ndims == 0 else where(finished, old, new)

    if impute:
        zero = nest.map_structure(
            lambda size, dtype: zero_states(size, decoder.batch_size, dtype),
            decoder.output_size, decoder.output_dtype,
        )  # fmt: skip
        outputs = nest.map_structure(lambda out, none: where(finished, none, out), outputs, zero)
        new_state = nest.map_structure(kept, new_state, state)
    arrays = nest.map_structure(lambda array, out: array.write(time, out), arrays, outputs)
    return time + 1, arrays, new_state, new_inputs, new_finished, new_lengths
