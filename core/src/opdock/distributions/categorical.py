"""The categorical distribution."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.distributions.distribution import NOT_REPARAMETERIZED, Distribution, arguments
from opdock.distributions.divergence import RegisterKL
from opdock.distributions.helpers import (
    embed_check_categorical_event_shape,
    embed_check_integer_casting_closed,
    get_logits_and_probs,
)  # fmt: skip
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.argmax import argmax
from opdock.ops.array import expand_dims, rank, reshape, shape
from opdock.ops.cast import cast
from opdock.ops.composed.masks import sequence_mask
from opdock.ops.fill import ones, ones_like, zeros_like
from opdock.ops.identity import identity
from opdock.ops.joining import concat
from opdock.ops.matrix import transpose
from opdock.ops.random_dist import multinomial
from opdock.ops.reduce import reduce_sum
from opdock.ops.select import where
from opdock.ops.xent import log_softmax, softmax, sparse_softmax_cross_entropy_with_logits
from opdock.shapes import TensorShape

__all__ = ["Categorical"]


class Categorical(Distribution):
    """Distributions over the numbers 0 to K - 1.

    Args:
        logits: unnormalized log-probabilities, of shape [..., K].
        probs: probabilities of that shape; one of the two is given.
        dtype: the type of samples.
        validate_args: whether to check the parameter, and what probabilities are asked of, as
            steps run.
        allow_nan_stats: whether statistics that are not defined are NaN.
        name: a name for all ops.

    Raises:
        ValueError: both `logits` and `probs` are given, or neither, or they have no dimension.
        TypeError: what is given are no floats.
    """

    def __init__(
        self, logits: Any = None, probs: Any = None, dtype: Any = dtypes.int32,
        validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Categorical",
    ) -> None:  # fmt: skip
        parameters = arguments(locals())
        with name_scope(name, values=[logits, probs]) as scope:
            self._logits, self._probs = get_logits_and_probs(
                logits, probs, multidimensional=True, validate_args=validate_args, name=scope
            )
            if validate_args:
                self._logits = embed_check_categorical_event_shape(self._logits)
            known = self._logits.shape.with_rank_at_least(1)
            dynamic = shape(self._logits, name="logits_shape")
            with name_scope("batch_rank"):
                static_rank = None if known.ndims is None else constant(known.ndims - 1)
                self._batch_rank = rank(self._logits) - 1 if static_rank is None else static_rank
            events = None if known.ndims is None else known.as_list()[-1]
            self._event_size = (
                dynamic[-1] if events is None else constant(events, name="event_size")
            )
            self._batch_shape_value = (
                constant(known[:-1].as_list(), dtypes.int32, name="batch_shape")
                if known[:-1].is_fully_defined() else dynamic[:-1]
            )  # fmt: skip
        super().__init__(
            dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters,
            [self._logits, self._probs], scope,
        )  # fmt: skip

    @property
    def event_size(self) -> Any:
        """K, an int32 scalar."""
        return self._event_size

    @property
    def logits(self) -> Any:
        """The unnormalized log-probabilities."""
        return self._logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._probs

    def _batch_shape_tensor(self) -> Any:
        return identity(self._batch_shape_value)

    def _batch_shape(self) -> Any:
        return self.logits.shape[:-1]

    def _event_shape_tensor(self) -> Any:
        return constant([], dtype=dtypes.int32)

    def _event_shape(self) -> Any:
        return TensorShape([])

    def _sample_n(self, n: Any, seed: Any = None) -> Any:
        flat = self.logits
        if flat.shape.ndims != 2:
            flat = reshape(flat, [-1, self.event_size])
        drawn_as = dtypes.int64 if self.dtype.size > 4 else dtypes.int32
        drawn = transpose(multinomial(flat, n, seed=seed, output_dtype=drawn_as))
        return cast(reshape(drawn, concat([[n], self.batch_shape_tensor()], 0)), self.dtype)

    def _beside(self, k: Any, parameter: Any) -> tuple[Any, Any]:
        """Events, checked, and a parameter, with one batch shape.

        Raises:
            TypeError: the events are no numbers.
        """
        k = convert_to_tensor(k, name="k")
        if self.validate_args:
            k = embed_check_integer_casting_closed(k, target_dtype=dtypes.int32)
        if k.dtype.is_floating:
            k = cast(k, dtypes.int32)
        elif not k.dtype.is_integer:
            raise TypeError(
                f"`value` should have integer `dtype` or `self.dtype` ({self.dtype.base_dtype})"
            )
        batch = parameter.shape[:-1]
        if batch.is_fully_defined() and k.shape.is_fully_defined() and batch == k.shape:
            return k, parameter
        parameter = parameter * ones_like(expand_dims(k, -1), dtype=parameter.dtype)
        k = k * ones(shape(parameter)[:-1], dtype=k.dtype)
        if parameter.shape.ndims is not None:
            k.set_shape(parameter.shape[:-1])
        return k, parameter

    def _cdf(self, k: Any) -> Any:
        k, probs = self._beside(k, self.probs)
        flat = reshape(probs, [-1, self.event_size])
        # The sum is exclusive, as TensorFlow's is: the probability of less than k.
        below = sequence_mask(reshape(k, [-1]), self.event_size)
        return reshape(reduce_sum(where(below, flat, zeros_like(flat)), axis=-1), shape(k))

    def _log_prob(self, k: Any) -> Any:
        k, logits = self._beside(k, self.logits)
        return -sparse_softmax_cross_entropy_with_logits(labels=k, logits=logits)

    def _entropy(self) -> Any:
        return -reduce_sum(log_softmax(self.logits) * self.probs, axis=-1)

    def _mode(self) -> Any:
        mode = cast(argmax(self.logits, axis=self._batch_rank), self.dtype)
        mode.set_shape(self.batch_shape)
        return mode


@RegisterKL(Categorical, Categorical)
def _kl_categorical_categorical(a: Any, b: Any, name: str | None = None) -> Any:
    with name_scope(name, "kl_categorical_categorical", [a.logits, b.logits]):
        difference = log_softmax(a.logits) - log_softmax(b.logits)
        return reduce_sum(softmax(a.logits) * difference, axis=-1)
