"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

from opdock.distributions.distribution import FULLY_REPARAMETERIZED, Univariate, arguments
from opdock.distributions.divergence import RegisterKL
from opdock.distributions.helpers import log_ndtr, ndtr, ndtri
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.arithmetic import squared_difference
from opdock.ops.check import assert_positive
from opdock.ops.composed.check_static import assert_same_float_dtype
from opdock.ops.elementary import log, square
from opdock.ops.fill import ones_like
from opdock.ops.identity import identity
from opdock.ops.random import random_normal

__all__ = ["Normal"]


class Normal(Univariate):
    """Normal distributions.

    Args:
        loc: the means.
        scale: the standard deviations, above 0; the two broadcast.
        validate_args: whether to check `scale` when the graph runs.
        allow_nan_stats: whether statistics that are not defined are NaN.
        name: a name for all ops.

    Raises:
        ValueError: the parameters are of different types, or no floats.
    """

    _PARAMETERS = ("loc", "scale")

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "Normal",
    ) -> None:  # fmt: skip
        parameters = arguments(locals())
        with name_scope(name, values=[loc, scale]) as scope:
            with control_dependencies([assert_positive(scale)] if validate_args else []):
                self._loc = identity(loc, name="loc")
                self._scale = identity(scale, name="scale")
                assert_same_float_dtype([self._loc, self._scale])
        super().__init__(
            self._scale.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats,
            parameters, [self._loc, self._scale], scope,
        )  # fmt: skip

    @property
    def loc(self) -> Any:
        """The means."""
        return self._loc

    @property
    def scale(self) -> Any:
        """The standard deviations."""
        return self._scale

    def _z(self, x: Any) -> Any:
        with name_scope("standardize", values=[x]):
            return (x - self.loc) / self.scale

    def _sample_n(self, n: Any, seed: Any = None) -> Any:
        drawn = random_normal(self._per_sample(n), dtype=self.loc.dtype, seed=seed)
        return drawn * self.scale + self.loc

    def _log_prob(self, x: Any) -> Any:
        log_normalization = 0.5 * math.log(2.0 * math.pi) + log(self.scale)
        return -0.5 * square(self._z(x)) - log_normalization

    def _log_cdf(self, x: Any) -> Any:
        return log_ndtr(self._z(x))

    def _cdf(self, x: Any) -> Any:
        return ndtr(self._z(x))

    def _log_survival_function(self, x: Any) -> Any:
        return log_ndtr(-self._z(x))

    def _survival_function(self, x: Any) -> Any:
        return ndtr(-self._z(x))

    def _quantile(self, p: Any) -> Any:
        return ndtri(p) * self.scale + self.loc

    def _entropy(self) -> Any:
        return 0.5 * math.log(2.0 * math.pi * math.e) + log(self._stddev())

    def _mean(self) -> Any:
        return self.loc * ones_like(self.scale)

    def _stddev(self) -> Any:
        return self.scale * ones_like(self.loc)

    def _mode(self) -> Any:
        return self._mean()


@RegisterKL(Normal, Normal)
def _kl_normal_normal(a: Any, b: Any, name: str | None = None) -> Any:
    with name_scope(name, "kl_normal_normal", [a.loc, b.loc]):
        variance = square(b.scale)
        ratio = square(a.scale) / variance
        distance = squared_difference(a.loc, b.loc) / (2.0 * variance)
        return distance + 0.5 * (ratio - 1.0 - log(ratio))
