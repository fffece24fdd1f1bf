"""The uniform distribution."""

from __future__ import annotations

import math
from typing import Any

from opdock.distributions.distribution import FULLY_REPARAMETERIZED, Univariate, arguments
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.array import broadcast_dynamic_shape, shape
from opdock.ops.check import assert_less
from opdock.ops.compare import logical_or
from opdock.ops.composed.check_static import assert_same_float_dtype
from opdock.ops.elementary import is_nan, log, square
from opdock.ops.fill import ones, ones_like, zeros_like
from opdock.ops.identity import identity
from opdock.ops.random import random_uniform
from opdock.ops.select import where_v2

__all__ = ["Uniform"]


class Uniform(Univariate):
    """Uniform distributions over ``low <= x < high``.

    Args:
        low: the lower bounds.
        high: the upper bounds; the two broadcast.
        validate_args: whether to check ``low < high`` when the graph runs.
        allow_nan_stats: whether statistics that are not defined are NaN.
        name: a name for all ops.

    Raises:
        ValueError: the parameters are of different types, or no floats.
        InvalidArgumentError: ``low >= high``, where both are constants and `validate_args` is set.
    """

    _PARAMETERS = ("low", "high")

    def __init__(
        self, low: Any = 0.0, high: Any = 1.0, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "Uniform",
    ) -> None:  # fmt: skip
        parameters = arguments(locals())
        with name_scope(name, values=[low, high]) as scope:
            message = "uniform not defined when low >= high."
            checks = [assert_less(low, high, message=message)] if validate_args else []
            with control_dependencies(checks):
                self._low = identity(low, name="low")
                self._high = identity(high, name="high")
                assert_same_float_dtype([self._low, self._high])
        super().__init__(
            self._low.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats,
            parameters, [self._low, self._high], scope,
        )  # fmt: skip

    @property
    def low(self) -> Any:
        """The lower bounds."""
        return self._low

    @property
    def high(self) -> Any:
        """The upper bounds."""
        return self._high

    def range(self, name: str = "range") -> Any:
        """The widths, ``high - low``."""
        with self._name_scope(name):
            return self.high - self.low

    def _sample_n(self, n: Any, seed: Any = None) -> Any:
        drawn = random_uniform(self._per_sample(n), dtype=self.dtype, seed=seed)
        return self.low + self.range() * drawn

    def _prob(self, x: Any) -> Any:
        x = x * ones(self.batch_shape_tensor(), dtype=x.dtype)
        outside = logical_or(x < self.low, x >= self.high)
        density = where_v2(outside, zeros_like(x), ones_like(x) / self.range())
        return where_v2(is_nan(x), x, density)

    def _cdf(self, x: Any) -> Any:
        full = broadcast_dynamic_shape(shape(x), self.batch_shape_tensor())
        one = ones(full, dtype=self.dtype)
        inside = (x * one - self.low) / self.range()
        return where_v2(x >= self.high, one, where_v2(x < self.low, zeros_like(one), inside))

    def _entropy(self) -> Any:
        return log(self.range())

    def _mean(self) -> Any:
        return (self.low + self.high) / 2.0

    def _variance(self) -> Any:
        return square(self.range()) / 12.0

    def _stddev(self) -> Any:
        return self.range() / math.sqrt(12.0)
