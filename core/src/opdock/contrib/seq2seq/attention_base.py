"""What mechanisms of attention share: a prepared memory, and scores that are masked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.layers.base import Layer
from opdock.layers.rnn_base import zero_states
from opdock.ops.argmax import argmax
from opdock.ops.array import reshape, shape
from opdock.ops.cast import cast
from opdock.ops.check import assert_positive
from opdock.ops.clip import clip_by_value
from opdock.ops.composed.functional import scan
from opdock.ops.composed.masks import sequence_mask
from opdock.ops.elementary import exp, log, sigmoid
from opdock.ops.fill import fill, ones, ones_like, zeros
from opdock.ops.joining import concat
from opdock.ops.matrix import transpose
from opdock.ops.random import random_normal
from opdock.ops.scan import cumprod, cumsum
from opdock.ops.select import one_hot, where
from opdock.util import nest

__all__ = [
    "AttentionMechanism", "BaseAttentionMechanism", "BaseMonotonicAttentionMechanism", "hardmax",
    "mask_score", "monotonic_attention", "monotonic_probability", "prepare_memory", "safe_cumprod",
    "size_of",
]  # fmt: skip

Probability = Callable[[Any, Any], Any]


def size_of(tensor: Any, axis: int) -> Any:
    """The size of a dimension: an int where it is known, else a scalar tensor."""
    known = tensor.shape.as_list()[axis]
    return shape(tensor)[axis] if known is None else known


# ------------------------------------------------------------------------------------ functions
def hardmax(logits: Any, name: str | None = None) -> Tensor:
    """1 at the largest element of each row, 0 elsewhere."""
    with name_scope(name, "Hardmax", [logits]):
        logits = convert_to_tensor(logits, name="logits")
        return one_hot(argmax(logits, -1), size_of(logits, -1), dtype=logits.dtype)


def safe_cumprod(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """`tf.cumprod` of numbers from 0 to 1 as the exponential of a sum, whose gradient is finite.

    Args:
        x: a tensor.
        *args, **kwargs: those of `tf.cumsum`.
    """
    with name_scope(None, "SafeCumprod", [x]):
        x = convert_to_tensor(x, name="x")
        tiny = np.finfo(x.dtype.as_numpy_dtype).tiny
        return exp(cumsum(log(clip_by_value(x, tiny, 1)), *args, **kwargs))


def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> Tensor:
    """Attention that goes forwards alone (Raffel et al. 2017).

    Args:
        p_choose_i: [batch, memory]: the probability to stop at each place, once there.
        previous_attention: [batch, memory]: the attention of the step before.
        mode: "recursive", slow and exact; "parallel", fast; "hard", where both hold 0 and 1.

    Raises:
        ValueError: another mode.
    """
    stop = convert_to_tensor(p_choose_i, name="p_choose_i")
    before = convert_to_tensor(previous_attention, name="previous_attention")
    if mode == "recursive":
        batch = size_of(stop, 0)
        passed = concat([ones([batch, 1], stop.dtype), 1 - stop[:, :-1]], 1)
        reached = scan(
            lambda x, yz: reshape(yz[0] * x + yz[1], [batch]),
            [transpose(passed), transpose(before)], zeros([batch], stop.dtype),
        )  # fmt: skip
        return stop * transpose(reached)
    if mode == "parallel":
        passed = safe_cumprod(1 - stop, axis=1, exclusive=True)
        return stop * passed * cumsum(before / clip_by_value(passed, 1e-10, 1.0), axis=1)
    if mode == "hard":
        stop = stop * cumsum(before, axis=1)
        return stop * cumprod(1 - stop, axis=1, exclusive=True)
    raise ValueError("mode must be 'recursive', 'parallel', or 'hard'.")


def monotonic_probability(
    score: Any, previous_alignments: Any, sigmoid_noise: float, mode: str, seed: int | None = None
) -> Tensor:
    """Monotonic attention by scores, to which noise is added while training."""
    if sigmoid_noise > 0:
        noise = random_normal(shape(score), dtype=score.dtype, seed=seed)
        score += sigmoid_noise * noise
    stop = cast(score > 0, score.dtype) if mode == "hard" else sigmoid(score)
    return monotonic_attention(stop, previous_alignments, mode)


# ------------------------------------------------------------------------------------ memories
def prepare_memory(
    memory: Any,
    memory_sequence_length: Any = None,
    memory_mask: Any = None,
    check_inner_dims_defined: bool = True,
) -> Any:
    """The memory as tensors, zero behind the examples' ends.

    Args:
        memory: tensors [batch, places, ...].
        memory_sequence_length: how many places each example has.
        memory_mask: which places count, [batch, places], rather than a length.
        check_inner_dims_defined: whether the sizes of a place must be known.

    Raises:
        ValueError: they are not; or both a length and a mask are given.
    """
    if memory_sequence_length is not None and memory_mask is not None:
        raise ValueError("memory_sequence_length and memory_mask can't be provided at same time.")
    memory = nest.map_structure(lambda m: convert_to_tensor(m, name="memory"), memory)
    if check_inner_dims_defined:
        for part in nest.flatten(memory):
            if not part.shape[2:].is_fully_defined():
                raise ValueError(
                    f"Expected memory {part.name} to have fully defined inner dims, but saw "
                    f"shape: {part.shape}"
                )
    mask = _places_that_count(memory_sequence_length, memory_mask, nest.flatten(memory)[0])
    if mask is None:
        return memory

    def masked(part: Any) -> Any:
        units = [1] * (part.shape.ndims - 2)
        known = cast(mask, part.dtype)
        return part * reshape(known, concat([shape(known), units], 0) if units else shape(known))

    return nest.map_structure(masked, memory)


def _places_that_count(lengths: Any, mask: Any, memory: Any) -> Any:
    """A mask of booleans [batch, places], or None where all places count."""
    if mask is not None:
        return cast(mask, dtypes.bool)
    if lengths is None:
        return None
    lengths = convert_to_tensor(lengths, name="memory_sequence_length")
    return sequence_mask(lengths, maxlen=shape(memory)[1])


def mask_score(
    score: Any,
    memory_sequence_length: Any = None,
    memory_mask: Any = None,
    score_mask_value: Any = None,
) -> Any:
    """The scores, with `score_mask_value` behind the examples' ends."""
    checks = []
    if memory_sequence_length is not None:
        message = "All values in memory_sequence_length must be greater than zero."
        checks = [assert_positive(memory_sequence_length, message=message)]
    with control_dependencies(checks):
        mask = _places_that_count(memory_sequence_length, memory_mask, score)
    return score if mask is None else where(mask, score, score_mask_value * ones_like(score))


class AttentionMechanism:
    """What `AttentionWrapper` asks for attention."""

    @property
    def alignments_size(self) -> Any:
        """The number of places in the memory."""
        raise NotImplementedError

    @property
    def state_size(self) -> Any:
        """The size of the state."""
        raise NotImplementedError


class BaseAttentionMechanism(AttentionMechanism):
    """Attention over a memory [batch, places, ...] that is prepared once.

    Args:
        query_layer: a layer for queries, or None.
        memory: the memory.
        probability_fn: makes attention of scores and the state.
        memory_sequence_length: how many places each example has.
        memory_layer: a layer that makes keys of the memory, or None.
        check_inner_dims_defined: whether the sizes of a place must be known.
        score_mask_value: the score behind an example's end; minus infinity by default.
        custom_key_value_fn: takes keys and values, and gives others.
        name: a name for the operations.

    Raises:
        TypeError: a layer is none, or `probability_fn` cannot be called.
        ValueError: the memory's inner dimensions are not known.
    """

    def __init__(
        self, query_layer: Any, memory: Any, probability_fn: Probability,
        memory_sequence_length: Any = None, memory_layer: Any = None,
        check_inner_dims_defined: bool = True, score_mask_value: Any = None,
        custom_key_value_fn: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        for what, layer in (("query_layer", query_layer), ("memory_layer", memory_layer)):
            if layer is not None and not isinstance(layer, Layer):
                raise TypeError(f"{what} is not a Layer: {type(layer).__name__}")
        self._query_layer, self._memory_layer = query_layer, memory_layer
        self.dtype = None if memory_layer is None else memory_layer.dtype
        if not callable(probability_fn):
            raise TypeError(
                f"probability_fn must be callable, saw type: {type(probability_fn).__name__}"
            )
        if score_mask_value is None:
            score_mask_value = dtypes.as_dtype(self.dtype or "float32").as_numpy_dtype(-np.inf)
        lengths = memory_sequence_length
        self._probability_fn: Probability = lambda score, previous: probability_fn(
            mask_score(score, lengths, score_mask_value=score_mask_value), previous
        )
        with name_scope(name, "BaseAttentionMechanismInit", nest.flatten(memory)):
            self._values = prepare_memory(
                memory, lengths, check_inner_dims_defined=check_inner_dims_defined
            )
            self._keys = memory_layer(self._values) if memory_layer else self._values
            if custom_key_value_fn is not None:
                self._keys, self._values = custom_key_value_fn(self._keys, self._values)
            self._batch_size, self._alignments_size = (size_of(self._keys, axis) for axis in (0, 1))

    @property
    def memory_layer(self) -> Any:
        """The layer that makes keys of the memory."""
        return self._memory_layer

    @property
    def query_layer(self) -> Any:
        """The layer that a query goes through, or None."""
        return self._query_layer

    @property
    def values(self) -> Any:
        """The memory."""
        return self._values

    @property
    def keys(self) -> Any:
        """What queries are compared with."""
        return self._keys

    @property
    def batch_size(self) -> Any:
        """The number of examples."""
        return self._batch_size

    @property
    def alignments_size(self) -> Any:
        """The number of places in the memory."""
        return self._alignments_size

    @property
    def state_size(self) -> Any:
        """The number of places: the state is the attention of the step before."""
        return self._alignments_size

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """The attention before the first step: none."""
        return zero_states(self._alignments_size, batch_size, dtype)

    def initial_state(self, batch_size: Any, dtype: Any) -> Any:
        """The state before the first step."""
        return self.initial_alignments(batch_size, dtype)


class BaseMonotonicAttentionMechanism(BaseAttentionMechanism):
    """Attention that begins at the first place."""

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """All attention at the first place."""
        return one_hot(fill([batch_size], 0), self._alignments_size, dtype=dtype)
