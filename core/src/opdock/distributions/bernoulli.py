"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.distributions.distribution import NOT_REPARAMETERIZED, Univariate, arguments
from opdock.distributions.divergence import RegisterKL
from opdock.distributions.helpers import embed_check_integer_casting_closed, get_logits_and_probs
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.cast import cast
from opdock.ops.elementary import sigmoid
from opdock.ops.fill import ones_like
from opdock.ops.identity import identity
from opdock.ops.loss import sigmoid_cross_entropy_with_logits
from opdock.ops.nn import softplus
from opdock.ops.random import random_uniform

__all__ = ["Bernoulli"]


class Bernoulli(Univariate):
    """Distributions over 0 and 1.

    Args:
        logits: the log-odds of 1.
        probs: the probability of 1; one of the two is given.
        dtype: the type of samples.
        validate_args: whether to check `probs`, and what probabilities are asked of, as steps run.
        allow_nan_stats: whether statistics that are not defined are NaN.
        name: a name for all ops.

    Raises:
        ValueError: both `logits` and `probs` are given, or neither.
        TypeError: what is given are no floats.
    """

    _PARAMETERS = ("logits",)

    def __init__(
        self, logits: Any = None, probs: Any = None, dtype: Any = dtypes.int32,
        validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Bernoulli",
    ) -> None:  # fmt: skip
        parameters = arguments(locals())
        with name_scope(name) as scope:
            self._logits, self._probs = get_logits_and_probs(
                logits, probs, validate_args=validate_args, name=scope
            )
        super().__init__(
            dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters,
            [self._logits, self._probs], scope,
        )  # fmt: skip

    @property
    def logits(self) -> Any:
        """The log-odds of 1."""
        return self._logits

    @property
    def probs(self) -> Any:
        """The probability of 1."""
        return self._probs

    def _sample_n(self, n: Any, seed: Any = None) -> Any:
        drawn = random_uniform(self._per_sample(n), dtype=self.probs.dtype, seed=seed)
        return cast(drawn < self.probs, self.dtype)

    def _log_prob(self, event: Any) -> Any:
        if self.validate_args:
            event = embed_check_integer_casting_closed(event, target_dtype=dtypes.bool)
        event = cast(event, self.logits.dtype)
        logits = self.logits
        if not (event.shape.is_fully_defined() and event.shape == logits.shape):
            # The cross entropy asks for one shape.
            logits, event = ones_like(event) * logits, ones_like(logits) * event
        return -sigmoid_cross_entropy_with_logits(labels=event, logits=logits)

    def _entropy(self) -> Any:
        return -self.logits * (sigmoid(self.logits) - 1) + softplus(-self.logits)

    def _mean(self) -> Any:
        return identity(self.probs)

    def _variance(self) -> Any:
        return self.probs * (1.0 - self.probs)

    def _mode(self) -> Any:
        return cast(self.probs > 0.5, self.dtype)


@RegisterKL(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(a: Any, b: Any, name: str | None = None) -> Any:
    with name_scope(name, "kl_bernoulli_bernoulli", [a.logits, b.logits]):
        zero = softplus(b.logits) - softplus(a.logits)
        one = softplus(-b.logits) - softplus(-a.logits)
        return sigmoid(a.logits) * one + sigmoid(-a.logits) * zero
