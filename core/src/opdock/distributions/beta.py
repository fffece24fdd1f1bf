"""The beta distribution."""

from __future__ import annotations

from typing import Any

from opdock.distributions.distribution import FULLY_REPARAMETERIZED, Univariate, arguments
from opdock.distributions.divergence import RegisterKL
from opdock.distributions.helpers import gen_new_seed, where_above_one
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.check import assert_less, assert_positive
from opdock.ops.composed.check_static import assert_same_float_dtype
from opdock.ops.control import with_dependencies
from opdock.ops.elementary import log1p
from opdock.ops.fill import ones, ones_like
from opdock.ops.random_dist import random_gamma
from opdock.ops.special import betainc, digamma, lgamma
from opdock.ops.sums import xlogy

__all__ = ["Beta"]


class Beta(Univariate):
    """Beta distributions: of probabilities, after counts of ones and zeros.

    Args:
        concentration1: the mean count of ones, plus 1; above 0.
        concentration0: the mean count of zeros, plus 1; above 0. The two broadcast.
        validate_args: whether to check both, and what probabilities are asked of, as steps run.
        allow_nan_stats: whether the mode is NaN where a parameter is at most 1; the step fails if
            not.
        name: a name for all ops.

    Raises:
        ValueError: the parameters are of different types, or no floats.
    """

    _PARAMETERS = ("concentration1", "concentration0")

    def __init__(
        self, concentration1: Any = None, concentration0: Any = None, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "Beta",
    ) -> None:  # fmt: skip
        parameters = arguments(locals())
        with name_scope(name, values=[concentration1, concentration0]) as scope:
            self._concentration1 = _concentration(concentration1, validate_args, "concentration1")
            self._concentration0 = _concentration(concentration0, validate_args, "concentration0")
            assert_same_float_dtype([self._concentration1, self._concentration0])
            self._total_concentration = self._concentration1 + self._concentration0
        parents = [self._concentration1, self._concentration0, self._total_concentration]
        super().__init__(
            self._total_concentration.dtype, FULLY_REPARAMETERIZED, validate_args,
            allow_nan_stats, parameters, parents, scope,
        )  # fmt: skip

    @property
    def concentration1(self) -> Any:
        """The parameter of ones."""
        return self._concentration1

    @property
    def concentration0(self) -> Any:
        """The parameter of zeros."""
        return self._concentration0

    @property
    def total_concentration(self) -> Any:
        """The sum of both."""
        return self._total_concentration

    def _checked(self, x: Any) -> Any:
        if not self.validate_args:
            return x
        one = ones([], dtype=self.dtype)
        checks = [
            assert_positive(x, message="sample must be positive"),
            assert_less(x, one, message="sample must be less than `1`."),
        ]
        return with_dependencies(checks, x)

    def _sample_n(self, n: Any, seed: Any = None) -> Any:
        full = ones_like(self.total_concentration)
        one = random_gamma([n], full * self.concentration1, dtype=self.dtype, seed=seed)
        salted = gen_new_seed(seed, "beta")
        zero = random_gamma([n], full * self.concentration0, dtype=self.dtype, seed=salted)
        return one / (one + zero)

    def _log_normalization(self) -> Any:
        """The logarithm of the beta function."""
        apart = lgamma(self.concentration1) + lgamma(self.concentration0)
        return apart - lgamma(self.total_concentration)

    def _log_prob(self, x: Any) -> Any:
        x = self._checked(x)
        ones_and_zeros = xlogy(self.concentration1 - 1.0, x) + (self.concentration0 - 1.0) * log1p(
            -x
        )
        return ones_and_zeros - self._log_normalization()

    def _cdf(self, x: Any) -> Any:
        return betainc(self.concentration1, self.concentration0, x)

    def _entropy(self) -> Any:
        return (
            self._log_normalization()
            - (self.concentration1 - 1.0) * digamma(self.concentration1)
            - (self.concentration0 - 1.0) * digamma(self.concentration0)
            + (self.total_concentration - 2.0) * digamma(self.total_concentration)
        )

    def _mean(self) -> Any:
        return self.concentration1 / self.total_concentration

    def _variance(self) -> Any:
        mean = self._mean()
        return mean * (1.0 - mean) / (1.0 + self.total_concentration)

    def _mode(self) -> Any:
        limits = [
            (self.concentration1, "Mode undefined for concentration1 <= 1."),
            (self.concentration0, "Mode undefined for concentration0 <= 1."),
        ]
        mode = (self.concentration1 - 1.0) / (self.total_concentration - 2.0)
        return where_above_one(mode, limits, self.allow_nan_stats)


def _concentration(value: Any, validate: bool, name: str) -> Any:
    tensor = convert_to_tensor(value, name=name)
    if not validate:
        return tensor
    message = "Concentration parameter must be positive."
    return with_dependencies([assert_positive(tensor, message=message)], tensor)


@RegisterKL(Beta, Beta)
def _kl_beta_beta(a: Any, b: Any, name: str | None = None) -> Any:
    parameters = ("concentration1", "concentration0", "total_concentration")
    own = {key: getattr(a, key) for key in parameters}
    others = {key: getattr(b, key) for key in parameters}
    with name_scope(name, "kl_beta_beta", [*own.values(), *others.values()]):
        slopes = {key: digamma(value) * (others[key] - value) for key, value in own.items()}
        return (
            b._log_normalization() - a._log_normalization()
            - slopes["concentration1"] - slopes["concentration0"] + slopes["total_concentration"]
        )  # fmt: skip
