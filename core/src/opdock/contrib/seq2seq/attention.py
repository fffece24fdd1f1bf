"""Attention: which parts of a memory fit a query (Bahdanau et al., Luong et al. 2015)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.contrib.seq2seq.attention_base import (
    AttentionMechanism,
    BaseAttentionMechanism,
    BaseMonotonicAttentionMechanism,
    Probability,
    hardmax,
    monotonic_attention,
    monotonic_probability,
    safe_cumprod,
)
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.initializers import (
    constant_initializer,
    ones_initializer,
    zeros_initializer,
)
from opdock.graph.variables.variable_scope import get_variable, variable_scope
from opdock.layers.core import Dense
from opdock.ops.array import expand_dims, squeeze
from opdock.ops.elementary import rsqrt, square, tanh
from opdock.ops.linalg import matmul
from opdock.ops.reduce import reduce_sum
from opdock.ops.xent import softmax
from opdock.shapes import as_dimension

__all__ = [
    "AttentionMechanism", "BahdanauAttention", "BahdanauMonotonicAttention", "LuongAttention",
    "LuongMonotonicAttention", "hardmax", "monotonic_attention", "safe_cumprod",
]  # fmt: skip


def _dense(units: int, name: str, dtype: Any) -> Dense:
    return Dense(units, name=name, use_bias=False, dtype=dtype)


def _soft(probability_fn: Callable[[Any], Any] | None) -> Probability:
    chosen = probability_fn or softmax
    return lambda score, _: chosen(score)


# ------------------------------------------------------------------------------------ scores
def luong_score(query: Any, keys: Any, scale: Any) -> Tensor:
    """The products of a query with all keys."""
    depth, units = as_dimension(query.shape[-1]), as_dimension(keys.shape[-1])
    if depth != units:
        raise ValueError(
            "Incompatible or unknown inner dimensions between query and keys.  "
            f"Query ({query}) has units: {depth}.  Keys ({keys}) have units: {units}.  Perhaps "
            f"you need to set num_units to the keys' dimension ({units})?"
        )
    score = squeeze(matmul(expand_dims(query, 1), keys, transpose_b=True), [1])
    return score if scale is None else scale * score


def bahdanau_score(
    processed_query: Any,
    keys: Any,
    attention_v: Any,
    attention_g: Any = None,
    attention_b: Any = None,
) -> Tensor:
    """What a layer of one unit says of the sums of a query and each key.

    Args:
        processed_query: the query, through its layer: [batch, units].
        keys: the keys, [batch, places, units].
        attention_v: the layer's weights.
        attention_g: how long they are to be, where they are normalized.
        attention_b: what is added to each sum, where they are.
    """
    total = keys + expand_dims(processed_query, 1)
    if attention_g is not None and attention_b is not None:
        total += attention_b
        attention_v = attention_g * attention_v * rsqrt(reduce_sum(square(attention_v)))
    return reduce_sum(attention_v * tanh(total), [2])


def _bahdanau_weights(units: int, normalize: bool, dtype: Any) -> list[Any]:
    """The variables of `bahdanau_score`."""
    weights = [get_variable("attention_v", [units], dtype)]
    if normalize:
        start = constant_initializer(math.sqrt(1.0 / units))
        weights.append(get_variable("attention_g", (), dtype, start))
        weights.append(get_variable("attention_b", [units], dtype, zeros_initializer()))
    return weights


class LuongAttention(BaseAttentionMechanism):
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
            score_mask_value=score_mask_value, custom_key_value_fn=custom_key_value_fn, name=name,
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
        return luong_score(query, self._keys, scale)


class BahdanauAttention(BaseAttentionMechanism):
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
            score_mask_value=score_mask_value, custom_key_value_fn=custom_key_value_fn, name=name,
        )  # fmt: skip
        self._num_units, self._normalize, self._name = num_units, normalize, name

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """The attention of a query, and the next state."""
        with variable_scope(None, "bahdanau_attention", [query]):
            score = bahdanau_score(
                self.query_layer(query), self._keys,
                *_bahdanau_weights(self._num_units, self._normalize, query.dtype),
            )  # fmt: skip
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class LuongMonotonicAttention(BaseMonotonicAttentionMechanism):
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
            monotonic_probability, sigmoid_noise=sigmoid_noise, mode=mode, seed=sigmoid_noise_seed
        )
        super().__init__(
            None, memory, chosen, memory_sequence_length,
            _dense(num_units, "memory_layer", dtype or dtypes.float32),
            score_mask_value=score_mask_value, name=name,
        )  # fmt: skip
        self._scale, self._bias, self._name = scale, score_bias_init, name

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """The attention of a query [batch, units], and the next state."""
        with variable_scope(None, "luong_monotonic_attention", [query]):
            scale = None
            if self._scale:
                scale = get_variable("attention_g", (), query.dtype, ones_initializer())
            score = luong_score(query, self._keys, scale)
            score += get_variable("attention_score_bias", dtype=query.dtype, initializer=self._bias)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class BahdanauMonotonicAttention(BaseMonotonicAttentionMechanism):
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
            monotonic_probability, sigmoid_noise=sigmoid_noise, mode=mode, seed=sigmoid_noise_seed
        )
        super().__init__(
            _dense(num_units, "query_layer", dtype), memory, chosen, memory_sequence_length,
            _dense(num_units, "memory_layer", dtype), score_mask_value=score_mask_value, name=name,
        )  # fmt: skip
        self._num_units, self._normalize = num_units, normalize
        self._bias, self._name = score_bias_init, name

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """The attention of a query, and the next state."""
        with variable_scope(None, "bahdanau_monotonic_attention", [query]):
            score = bahdanau_score(
                self.query_layer(query), self._keys,
                *_bahdanau_weights(self._num_units, self._normalize, query.dtype),
            )  # fmt: skip
            score += get_variable("attention_score_bias", dtype=query.dtype, initializer=self._bias)
        alignments = self._probability_fn(score, state)
        return alignments, alignments
