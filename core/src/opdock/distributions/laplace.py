"""The Laplace distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opdock.distributions.distribution import FULLY_REPARAMETERIZED, Univariate, arguments
from opdock.distributions.helpers import log_cdf_laplace
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.check import assert_positive
from opdock.ops.composed.check_static import assert_same_float_dtype
from opdock.ops.elementary import abs as absolute
from opdock.ops.elementary import exp, log, log1p, sign
from opdock.ops.fill import zeros_like
from opdock.ops.identity import identity
from opdock.ops.random import random_uniform

__all__ = ["Laplace"]


class Laplace(Univariate):
    """Laplace distributions: exponential to both sides.

    Args:
        loc: the means.
        scale: the mean distances from them, above 0; the two broadcast.
        validate_args: whether to check `scale` when the graph runs.
        allow_nan_stats: whether statistics that are not defined are NaN.
        name: a name for all ops.

    Raises:
        ValueError: the parameters are of different types, or no floats.
    """

    _PARAMETERS = ("loc", "scale")

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "Laplace",
    ) -> None:  # fmt: skip
        parameters = arguments(locals())
        with name_scope(name, values=[loc, scale]) as scope:
            with control_dependencies([assert_positive(scale)] if validate_args else []):
                self._loc = identity(loc, name="loc")
                self._scale = identity(scale, name="scale")
                assert_same_float_dtype([self._loc, self._scale])
        super().__init__(
            self._loc.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats,
            parameters, [self._loc, self._scale], scope,
        )  # fmt: skip

    @property
    def loc(self) -> Any:
        """The means."""
        return self._loc

    @property
    def scale(self) -> Any:
        """The mean distances from them."""
        return self._scale

    def _z(self, x: Any) -> Any:
        return (x - self.loc) / self.scale

    def _sample_n(self, n: Any, seed: Any = None) -> Any:
        # Above -1, where the logarithm below has its pole.
        number = self.dtype.as_numpy_dtype
        low = np.nextafter(number(-1), number(0))
        drawn = random_uniform(self._per_sample(n), low, 1.0, self.dtype, seed=seed)
        return self.loc - self.scale * sign(drawn) * log1p(-absolute(drawn))

    def _log_prob(self, x: Any) -> Any:
        return -absolute(self._z(x)) - (math.log(2.0) + log(self.scale))

    def _log_cdf(self, x: Any) -> Any:
        return log_cdf_laplace(self._z(x))

    def _log_survival_function(self, x: Any) -> Any:
        return log_cdf_laplace(-self._z(x))

    def _cdf(self, x: Any) -> Any:
        z = self._z(x)
        return 0.5 + 0.5 * sign(z) * (1.0 - exp(-absolute(z)))

    def _entropy(self) -> Any:
        return math.log(2.0) + 1.0 + log(self.scale + zeros_like(self.loc))

    def _mean(self) -> Any:
        return self.loc + zeros_like(self.scale)

    def _stddev(self) -> Any:
        return math.sqrt(2.0) * self.scale + zeros_like(self.loc)

    def _mode(self) -> Any:
        return self._mean()
