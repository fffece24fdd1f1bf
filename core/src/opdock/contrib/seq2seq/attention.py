"""Attention: which parts of a memory fit a query (Bahdanau et al., Luong et al. 2015)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.graph.variables.initializers import (
    constant_initializer,
    ones_initializer,
    zeros_initializer,
)
from opdock.graph.variables.variable_scope import get_variable, variable_scope
from opdock.layers.base import Layer
from opdock.layers.core import Dense
from opdock.layers.rnn_base import zero_states
from opdock.ops.argmax import argmax
from opdock.ops.array import expand_dims, reshape, shape, squeeze
from opdock.ops.cast import cast
from opdock.ops.check import assert_positive
from opdock.ops.clip import clip_by_value
from opdock.ops.composed.functional import scan
from opdock.ops.composed.masks import sequence_mask
from opdock.ops.elementary import exp, log, rsqrt, sigmoid, square, tanh
from opdock.ops.fill import fill, ones, ones_like, zeros
from opdock.ops.joining import concat
from opdock.ops.linalg import matmul
from opdock.ops.matrix import transpose
from opdock.ops.random import random_normal
from opdock.ops.reduce import reduce_sum
from opdock.ops.scan import cumprod, cumsum
from opdock.ops.select import one_hot, where
from opdock.ops.xent import softmax
from opdock.util import nest

__all__ = [
    "AttentionMechanism", "BahdanauAttention", "BahdanauMonotonicAttention", "LuongAttention",
    "LuongMonotonicAttention", "hardmax", "monotonic_attention", "safe_cumprod",
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


def _monotonic(
    score: Any, previous: Any, sigmoid_noise: float, mode: str, seed: int | None = None
) -> Tensor:
    """Monotonic attention by scores, to which noise is added while training."""
    if sigmoid_noise > 0:
        noise = random_normal(shape(score), dtype=score.dtype, seed=seed)
        score += sigmoid_noise * noise
    stop = cast(score > 0, score.dtype) if mode == "hard" else sigmoid(score)
    return monotonic_attention(stop, previous, mode)


# ------------------------------------------------------------------------------------ memories
def _prepared(memory: Any, lengths: Any, check: bool) -> Any:
    """The memory as tensors, zero behind the examples' ends."""
    memory = nest.map_structure(lambda m: convert_to_tensor(m, name="memory"), memory)
    if check:
        for part in nest.flatten(memory):
            if not part.shape[2:].is_fully_defined():
                raise ValueError(
                    f"Expected memory {part.name} to have fully defined inner dims, but saw "
                    f"shape: {part.shape}"
                )
    if lengths is None:
        return memory
    first = nest.flatten(memory)[0]
    lengths = convert_to_tensor(lengths, name="memory_sequence_length")
    mask = sequence_mask(lengths, maxlen=shape(first)[1], dtype=first.dtype)

    def masked(part: Any) -> Any:
        units = [1] * (part.shape.ndims - 2)
        return part * reshape(mask, concat([shape(mask), units], 0) if units else shape(mask))

    return nest.map_structure(masked, memory)


def _masked(score: Any, lengths: Any, value: Any) -> Any:
    """The scores, with `value` behind the examples' ends."""
    if lengths is None:
        return score
    message = "All values in memory_sequence_length must be greater than zero."
    with control_dependencies([assert_positive(lengths, message=message)]):
        mask = sequence_mask(lengths, maxlen=shape(score)[1])
    return where(mask, score, value * ones_like(score))


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


class _Attention(AttentionMechanism):
    """Attention over a memory [batch, places, ...] that is prepared once."""

    def __init__(
        self, query_layer: Any, memory: Any, probability_fn: Probability, lengths: Any = None,
        memory_layer: Any = None, check_inner_dims_defined: bool = True, mask_value: Any = None,
        custom_key_value_fn: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        for what, layer in (("query_layer", query_layer), ("memory_layer", memory_layer)):
            if layer is not None and not isinstance(layer, Layer):
                raise TypeError(f"{what} is not a Layer: {type(layer).__name__}")
        self._query_layer, self._memory_layer = query_layer, memory_layer
        self.dtype = memory_layer.dtype
        if not callable(probability_fn):
            raise TypeError(
                f"probability_fn must be callable, saw type: {type(probability_fn).__name__}"
            )
        if mask_value is None:
            mask_value = dtypes.as_dtype(self.dtype or "float32").as_numpy_dtype(-np.inf)
        self._probability_fn: Probability = lambda score, previous: probability_fn(
            _masked(score, lengths, mask_value), previous
        )
        with name_scope(name, "BaseAttentionMechanismInit", nest.flatten(memory)):
            self._values = _prepared(memory, lengths, check_inner_dims_defined)
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


class _Monotonic(_Attention):
    """Attention that begins at the first place."""

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """All attention at the first place."""
        return one_hot(fill([batch_size], 0), self._alignments_size, dtype=dtype)


def _dense(units: int, name: str, dtype: Any) -> Dense:
    return Dense(units, name=name, use_bias=False, dtype=dtype)


def _soft(probability_fn: Callable[[Any], Any] | None) -> Probability:
    chosen = probability_fn or softmax
    return lambda score, _: chosen(score)


# ------------------------------------------------------------------------------------ scores
def _luong_score(query: Any, keys: Any, scale: Any) -> Tensor:
    """The products of a query with all keys."""
    depth, units = query.shape[-1], keys.shape[-1]
    if depth != units:
        raise ValueError(
            "Incompatible or unknown inner dimensions between query and keys.  "
            f"Query ({query}) has units: {depth}.  Keys ({keys}) have units: {units}.  Perhaps "
            f"you need to set num_units to the keys' dimension ({units})?"
        )
    score = squeeze(matmul(expand_dims(query, 1), keys, transpose_b=True), [1])
    return score if scale is None else scale * score


def _bahdanau_score(query: Any, keys: Any, units: int, normalize: bool, dtype: Any) -> Tensor:
    """What a layer of one unit says of the sums of a query and each key."""
    v = get_variable("attention_v", [units], dtype)
    total = keys + expand_dims(query, 1)
    if normalize:
        start = constant_initializer(math.sqrt(1.0 / units))
        g = get_variable("attention_g", (), dtype, start)
        total += get_variable("attention_b", [units], dtype, zeros_initializer())
        v = g * v * rsqrt(reduce_sum(square(v)))
    return reduce_sum(v * tanh(total), [2])


class LuongAttention(_Attention):
    """Scores are products of query and keys.

    Args:
        num_units: the size of a key, which is that of a query.
        memory: a tensor [batch, places, ...].
        memory_sequence_length: an int vector: how many places each example has.
        scale: whether scores are multiplied by a variable.
        probability_fn: makes attention of scores; softmax by default.
        score_mask_value: the score behind an example's end; minus infinity by default.
        dtype: the type of the variables; float32 by default.
        custom_key_value_fn: takes keys and values, and gives others.
        name: a name for the operations.

    Raises:
        TypeError: `probability_fn` cannot be called.
        ValueError: the memory's inner dimensions are not known.
    """

    def __init__(
        self, num_units: int, memory: Any, memory_sequence_length: Any = None,
        scale: bool = False, probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: Any = None, dtype: Any = None, custom_key_value_fn: Any = None,
        name: str = "LuongAttention",
    ) -> None:  # fmt: skip
        super().__init__(
            None, memory, _soft(probability_fn), memory_sequence_length,
            _dense(num_units, "memory_layer", dtype or dtypes.float32),
            mask_value=score_mask_value, custom_key_value_fn=custom_key_value_fn, name=name,
        )  # fmt: skip
        self._num_units, self._scale, self._name = num_units, scale, name

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """The attention of a query [batch, units], and the next state."""
        with variable_scope(None, "luong_attention", [query]):
            alignments = self._probability_fn(self._score(query), state)
        return alignments, alignments

    def _score(self, query: Any) -> Tensor:
        scale = None
        if self._scale:
            scale = get_variable("attention_g", (), query.dtype, ones_initializer())
        return _luong_score(query, self._keys, scale)


class BahdanauAttention(_Attention):
    """Scores are those of a layer over the sum of query and keys.

    Args:
        num_units: the size of that layer.
        memory: a tensor [batch, places, ...].
        memory_sequence_length: an int vector: how many places each example has.
        normalize: whether the layer's weights are normalized (Salimans & Kingma 2016).
        probability_fn: makes attention of scores; softmax by default.
        score_mask_value: the score behind an example's end; minus infinity by default.
        dtype: the type of the variables; float32 by default.
        custom_key_value_fn: takes keys and values, and gives others.
        name: a name for the operations.

    Raises:
        TypeError: `probability_fn` cannot be called.
        ValueError: the memory's inner dimensions are not known.
    """

    def __init__(
        self, num_units: int, memory: Any, memory_sequence_length: Any = None,
        normalize: bool = False, probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: Any = None, dtype: Any = None, custom_key_value_fn: Any = None,
        name: str = "BahdanauAttention",
    ) -> None:  # fmt: skip
        dtype = dtype or dtypes.float32
        super().__init__(
            _dense(num_units, "query_layer", dtype), memory, _soft(probability_fn),
            memory_sequence_length, _dense(num_units, "memory_layer", dtype),
            mask_value=score_mask_value, custom_key_value_fn=custom_key_value_fn, name=name,
        )  # fmt: skip
        self._num_units, self._normalize, self._name = num_units, normalize, name

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """The attention of a query, and the next state."""
        with variable_scope(None, "bahdanau_attention", [query]):
            score = _bahdanau_score(
                self.query_layer(query), self._keys, self._num_units, self._normalize, query.dtype
            )
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class LuongMonotonicAttention(_Monotonic):
    """`LuongAttention` that goes forwards alone.

    Args:
        num_units: the size of a key, which is that of a query.
        memory: a tensor [batch, places, ...].
        memory_sequence_length: an int vector: how many places each example has.
        scale: whether scores are multiplied by a variable.
        score_mask_value: the score behind an example's end; minus infinity by default.
        sigmoid_noise: the deviation of noise that is added to scores.
        sigmoid_noise_seed: its seed.
        score_bias_init: the start of what is added to scores.
        mode: see `monotonic_attention`.
        dtype: the type of the variables; float32 by default.
        name: a name for the operations.
    """

    def __init__(
        self, num_units: int, memory: Any, memory_sequence_length: Any = None,
        scale: bool = False, score_mask_value: Any = None, sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None, score_bias_init: Any = 0.0,
        mode: str = "parallel", dtype: Any = None, name: str = "LuongMonotonicAttention",
    ) -> None:  # fmt: skip
        chosen = functools.partial(
            _monotonic, sigmoid_noise=sigmoid_noise, mode=mode, seed=sigmoid_noise_seed
        )
        super().__init__(
            None, memory, chosen, memory_sequence_length,
            _dense(num_units, "memory_layer", dtype or dtypes.float32),
            mask_value=score_mask_value, name=name,
        )  # fmt: skip
        self._scale, self._bias, self._name = scale, score_bias_init, name

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """The attention of a query [batch, units], and the next state."""
        with variable_scope(None, "luong_monotonic_attention", [query]):
            scale = None
            if self._scale:
                scale = get_variable("attention_g", (), query.dtype, ones_initializer())
            score = _luong_score(query, self._keys, scale)
            score += get_variable("attention_score_bias", dtype=query.dtype, initializer=self._bias)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class BahdanauMonotonicAttention(_Monotonic):
    """`BahdanauAttention` that goes forwards alone.

    Args:
        num_units: the size of the layer that scores.
        memory: a tensor [batch, places, ...].
        memory_sequence_length: an int vector: how many places each example has.
        normalize: whether the layer's weights are normalized.
        score_mask_value: the score behind an example's end; minus infinity by default.
        sigmoid_noise: the deviation of noise that is added to scores.
        sigmoid_noise_seed: its seed.
        score_bias_init: the start of what is added to scores.
        mode: see `monotonic_attention`.
        dtype: the type of the variables; float32 by default.
        name: a name for the operations.
    """

    def __init__(
        self, num_units: int, memory: Any, memory_sequence_length: Any = None,
        normalize: bool = False, score_mask_value: Any = None, sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None, score_bias_init: Any = 0.0,
        mode: str = "parallel", dtype: Any = None, name: str = "BahdanauMonotonicAttention",
    ) -> None:  # fmt: skip
        dtype = dtype or dtypes.float32
        chosen = functools.partial(
            _monotonic, sigmoid_noise=sigmoid_noise, mode=mode, seed=sigmoid_noise_seed
        )
        super().__init__(
            _dense(num_units, "query_layer", dtype), memory, chosen, memory_sequence_length,
            _dense(num_units, "memory_layer", dtype), mask_value=score_mask_value, name=name,
        )  # fmt: skip
        self._num_units, self._normalize = num_units, normalize
        self._bias, self._name = score_bias_init, name

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """The attention of a query, and the next state."""
        with variable_scope(None, "bahdanau_monotonic_attention", [query]):
            score = _bahdanau_score(
                self.query_layer(query), self._keys, self._num_units, self._normalize, query.dtype
            )
            score += get_variable("attention_score_bias", dtype=query.dtype, initializer=self._bias)
        alignments = self._probability_fn(score, state)
        return alignments, alignments
