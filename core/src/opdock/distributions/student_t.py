"""Student's t-distribution."""

from __future__ import annotations

import math
from typing import Any

from opdock.distributions.distribution import FULLY_REPARAMETERIZED, Univariate, arguments
from opdock.distributions.helpers import gen_new_seed, where_above_one
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.check import assert_positive
from opdock.ops.composed.check_static import assert_same_float_dtype
from opdock.ops.elementary import abs as absolute
from opdock.ops.elementary import log, log1p, rsqrt, square
from opdock.ops.fill import ones, ones_like
from opdock.ops.identity import identity
from opdock.ops.joining import stack
from opdock.ops.random import random_normal
from opdock.ops.random_dist import random_gamma
from opdock.ops.select import where_v2
from opdock.ops.special import betainc, digamma, lbeta, lgamma

__all__ = ["StudentT"]


class StudentT(Univariate):
    """Student's t-distributions, moved and scaled.

    Args:
        df: the degrees of freedom, above 0.
        loc: the centres.
        scale: the scales, of which the sign does not matter; the three broadcast.
        validate_args: whether to check `df` when the graph runs.
        allow_nan_stats: whether the mean is NaN where ``df <= 1``; the step fails if not.
        name: a name for all ops.

    Raises:
        ValueError: the parameters are of different types, or no floats.
    """

    _PARAMETERS = ("df", "loc", "scale")

    def __init__(
        self, df: Any, loc: Any, scale: Any, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "StudentT",
    ) -> None:  # fmt: skip
        parameters = arguments(locals())
        with name_scope(name, values=[df, loc, scale]) as scope:
            with control_dependencies([assert_positive(df)] if validate_args else []):
                self._df = identity(df, name="df")
                self._loc = identity(loc, name="loc")
                self._scale = identity(scale, name="scale")
                assert_same_float_dtype([self._df, self._loc, self._scale])
        super().__init__(
            self._scale.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats,
            parameters, [self._df, self._loc, self._scale], scope,
        )  # fmt: skip

    @property
    def df(self) -> Any:
        """The degrees of freedom."""
        return self._df

    @property
    def loc(self) -> Any:
        """The centres."""
        return self._loc

    @property
    def scale(self) -> Any:
        """The scales."""
        return self._scale

    def _ones(self) -> Any:
        return ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _sample_n(self, n: Any, seed: Any = None) -> Any:
        normal = random_normal(self._per_sample(n), dtype=self.dtype, seed=seed)
        df = self.df * self._ones()
        salted = gen_new_seed(seed, salt="student_t")
        chi2 = random_gamma([n], 0.5 * df, beta=0.5, dtype=self.dtype, seed=salted)
        return normal * rsqrt(chi2 / df) * self.scale + self.loc

    def _log_prob(self, x: Any) -> Any:
        y = (x - self.loc) / self.scale
        log_normalization = (
            log(absolute(self.scale)) + 0.5 * log(self.df) + 0.5 * math.log(math.pi)
            + lgamma(0.5 * self.df) - lgamma(0.5 * (self.df + 1.0))
        )  # fmt: skip
        return -0.5 * (self.df + 1.0) * log1p(square(y) / self.df) - log_normalization

    def _cdf(self, x: Any) -> Any:
        y = (x - self.loc) / absolute(self.scale)
        x_t = self.df / (square(y) + self.df)
        lower = 0.5 * betainc(0.5 * self.df, 0.5, x_t)
        return where_v2(y < 0.0, lower, 1.0 - lower)

    def _entropy(self) -> Any:
        half, one = 0.5 * self.df * self._ones(), self._ones()
        log_beta = lbeta(stack([half, 0.5 * one], axis=-1))
        slope = digamma(0.5 * (self.df + 1.0)) - digamma(0.5 * self.df)
        return (
            log(absolute(self.scale)) + 0.5 * log(self.df) + log_beta
            + 0.5 * (self.df + 1.0) * slope
        )  # fmt: skip

    def _mean(self) -> Any:
        said = "mean not defined for components of df <= 1"
        return where_above_one(self.loc * self._ones(), [(self.df, said)], self.allow_nan_stats)

    def _variance(self) -> Any:
        # Where df is at most 2 the variance is infinite; no division by zero before the choice.
        finite = self.df > 2.0
        denominator = where_v2(finite, self.df - 2.0, ones_like(self.df))
        value = self._ones() * square(self.scale) * self.df / denominator
        variance = where_v2(finite, value, constant(math.inf, dtype=self.dtype))
        said = "variance not defined for components of df <= 1"
        return where_above_one(variance, [(self.df, said)], self.allow_nan_stats)

    def _mode(self) -> Any:
        return identity(self.loc)
