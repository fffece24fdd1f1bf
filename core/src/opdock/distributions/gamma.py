"""The gamma distribution, and the exponential one, a gamma distribution of concentration 1."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from opdock.distributions.distribution import FULLY_REPARAMETERIZED, Univariate, arguments
from opdock.distributions.divergence import RegisterKL
from opdock.distributions.helpers import where_above_one
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.check import assert_positive
from opdock.ops.composed.check_static import assert_same_float_dtype
from opdock.ops.control import with_dependencies
from opdock.ops.elementary import log, sqrt, square
from opdock.ops.fill import ones
from opdock.ops.identity import identity
from opdock.ops.random import random_uniform
from opdock.ops.random_dist import random_gamma
from opdock.ops.special import digamma, igamma, lgamma
from opdock.ops.sums import xlogy

__all__ = ["Exponential", "Gamma"]


class Gamma(Univariate):
    """Gamma distributions; samples have gradients to both parameters.

    Args:
        concentration: the shape parameters, above 0.
        rate: the inverse scales, above 0; the two broadcast.
        validate_args: whether to check both, and what probabilities are asked of, as steps run.
        allow_nan_stats: whether the mode is NaN where ``concentration <= 1``; the step fails if
            not.
        name: a name for all ops.

    Raises:
        ValueError: the parameters are of different types, or no floats.
    """

    _PARAMETERS: ClassVar[tuple[str, ...]] = ("concentration", "rate")

    def __init__(
        self, concentration: Any, rate: Any, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "Gamma",
    ) -> None:  # fmt: skip
        parameters = arguments(locals())
        with name_scope(name, values=[concentration, rate]) as scope:
            given = (concentration, rate) if validate_args else ()
            with control_dependencies([assert_positive(value) for value in given]):
                self._concentration = identity(concentration, name="concentration")
                self._rate = identity(rate, name="rate")
                assert_same_float_dtype([self._concentration, self._rate])
        super().__init__(
            self._concentration.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats,
            parameters, [self._concentration, self._rate], scope,
        )  # fmt: skip

    @property
    def concentration(self) -> Any:
        """The shape parameters."""
        return self._concentration

    @property
    def rate(self) -> Any:
        """The inverse scales."""
        return self._rate

    def _checked(self, x: Any) -> Any:
        assert_same_float_dtype(tensors=[x], dtype=self.dtype)
        return with_dependencies([assert_positive(x)], x) if self.validate_args else x

    def _sample_n(self, n: Any, seed: Any = None) -> Any:
        return random_gamma([n], self.concentration, self.rate, self.dtype, seed)

    def _log_prob(self, x: Any) -> Any:
        x = self._checked(x)
        log_normalization = lgamma(self.concentration) - self.concentration * log(self.rate)
        return xlogy(self.concentration - 1.0, x) - self.rate * x - log_normalization

    def _cdf(self, x: Any) -> Any:
        return igamma(self.concentration, self.rate * self._checked(x))

    def _entropy(self) -> Any:
        slope = (1.0 - self.concentration) * digamma(self.concentration)
        return self.concentration - log(self.rate) + lgamma(self.concentration) + slope

    def _mean(self) -> Any:
        return self.concentration / self.rate

    def _variance(self) -> Any:
        return self.concentration / square(self.rate)

    def _stddev(self) -> Any:
        return sqrt(self.concentration) / self.rate

    def _mode(self) -> Any:
        said = "mode not defined when any concentration <= 1"
        mode = (self.concentration - 1.0) / self.rate
        return where_above_one(mode, [(self.concentration, said)], self.allow_nan_stats)


class Exponential(Gamma):
    """Exponential distributions.

    Args:
        rate: the inverse means, above 0.
        validate_args: whether to check `rate`, and what probabilities are asked of, as steps run.
        allow_nan_stats: whether statistics that are not defined are NaN.
        name: a name for all ops.

    Raises:
        TypeError: `rate` is no float.
    """

    _PARAMETERS = ("rate",)

    def __init__(
        self, rate: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "Exponential",
    ) -> None:  # fmt: skip
        parameters = arguments(locals())
        with name_scope(name, values=[rate]) as scope:
            rate = convert_to_tensor(rate, name="rate")
            one = ones([], dtype=rate.dtype)
        super().__init__(one, rate, validate_args, allow_nan_stats, scope)
        self._parameters = parameters

    def _log_survival_function(self, value: Any) -> Any:
        return self._log_prob(value) - log(self.rate)

    def _sample_n(self, n: Any, seed: Any = None) -> Any:
        # Above 0, where the logarithm has its pole.
        tiny = np.finfo(self.dtype.as_numpy_dtype).tiny
        drawn = random_uniform(self._per_sample(n), tiny, 1.0, self.dtype, seed=seed)
        return -log(drawn) / self.rate


@RegisterKL(Gamma, Gamma)
def _kl_gamma_gamma(a: Any, b: Any, name: str | None = None) -> Any:
    with name_scope(name, "kl_gamma_gamma", [a.concentration, a.rate, b.concentration, b.rate]):
        return (
            (a.concentration - b.concentration) * digamma(a.concentration)
            + lgamma(b.concentration) - lgamma(a.concentration)
            + b.concentration * log(a.rate) - b.concentration * log(b.rate)
            + a.concentration * (b.rate / a.rate - 1.0)
        )  # fmt: skip
