"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

from opdock.distributions.distribution import FULLY_REPARAMETERIZED, Distribution, arguments
from opdock.distributions.divergence import RegisterKL
from opdock.distributions.helpers import where_above_one
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import expand_dims, shape
from opdock.ops.cast import cast
from opdock.ops.check import assert_less, assert_near, assert_positive
from opdock.ops.composed.check_static import assert_rank_at_least
from opdock.ops.control import with_dependencies
from opdock.ops.diag import matrix_set_diag
from opdock.ops.elementary import rsqrt
from opdock.ops.fill import ones
from opdock.ops.linalg import matmul
from opdock.ops.random_dist import random_gamma
from opdock.ops.reduce import reduce_sum
from opdock.ops.special import digamma, lbeta
from opdock.ops.sums import xlogy

__all__ = ["Dirichlet", "outer"]


class Dirichlet(Distribution):
    """Dirichlet distributions: of the probabilities of K classes, after counts of each.

    Args:
        concentration: the mean counts, plus 1; above 0, of shape [..., K].
        validate_args: whether to check it, and what probabilities are asked of, as steps run.
        allow_nan_stats: whether the mode is NaN where a parameter is at most 1; the step fails if
            not.
        name: a name for all ops.
    """

    def __init__(
        self, concentration: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "Dirichlet",
    ) -> None:  # fmt: skip
        parameters = arguments(locals())
        with name_scope(name, values=[concentration]) as scope:
            self._concentration = convert_to_tensor(concentration, name="concentration")
            if validate_args:
                self._concentration = _checked_concentration(self._concentration)
            self._total_concentration = reduce_sum(self._concentration, -1)
        super().__init__(
            self._concentration.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats,
            parameters, [self._concentration, self._total_concentration], scope,
        )  # fmt: skip

    @property
    def concentration(self) -> Any:
        """The parameter of each class."""
        return self._concentration

    @property
    def total_concentration(self) -> Any:
        """The sum of all classes' parameters."""
        return self._total_concentration

    def _batch_shape_tensor(self) -> Any:
        return shape(self.total_concentration)

    def _batch_shape(self) -> Any:
        return self.total_concentration.shape

    def _event_shape_tensor(self) -> Any:
        return shape(self.concentration)[-1:]

    def _event_shape(self) -> Any:
        return self.concentration.shape.with_rank_at_least(1)[-1:]

    def _classes(self) -> Any:
        return cast(self.event_shape_tensor()[0], self.dtype)

    def _checked(self, x: Any) -> Any:
        if not self.validate_args:
            return x
        one = ones([], dtype=self.dtype)
        checks = [
            assert_positive(x, message="samples must be positive"),
            assert_near(one, reduce_sum(x, -1), message="sample last-dimension must sum to `1`"),
        ]
        return with_dependencies(checks, x)

    def _sample_n(self, n: Any, seed: Any = None) -> Any:
        drawn = random_gamma([n], self.concentration, dtype=self.dtype, seed=seed)
        return drawn / reduce_sum(drawn, -1, keepdims=True)

    def _log_prob(self, x: Any) -> Any:
        classes = xlogy(self.concentration - 1.0, self._checked(x))
        return reduce_sum(classes, -1) - lbeta(self.concentration)

    def _entropy(self) -> Any:
        total = self.total_concentration
        slopes = (self.concentration - 1.0) * digamma(self.concentration)
        return (
            lbeta(self.concentration) + (total - self._classes()) * digamma(total)
            - reduce_sum(slopes, axis=-1)
        )  # fmt: skip

    def _mean(self) -> Any:
        return self.concentration / expand_dims(self.total_concentration, -1)

    def _scale(self) -> Any:
        """The root of what the variances are smaller by than those of one draw."""
        return rsqrt(1.0 + expand_dims(self.total_concentration, -1))

    def _covariance(self) -> Any:
        x = self._scale() * self._mean()
        return matrix_set_diag(-outer(x, x), self._variance())

    def _variance(self) -> Any:
        scale = self._scale()
        x = scale * self._mean()
        return x * (scale - x)

    def _mode(self) -> Any:
        mode = (self.concentration - 1.0) / (
            expand_dims(self.total_concentration, -1) - self._classes()
        )
        limits = [(self.concentration, "Mode undefined when any concentration <= 1")]
        return where_above_one(mode, limits, self.allow_nan_stats, per_event=True)


def outer(a: Any, b: Any) -> Any:
    """The products of all pairs of entries of two batches of vectors."""
    return matmul(expand_dims(a, -1), expand_dims(b, -2))


def _checked_concentration(x: Any) -> Any:
    said = "Concentration parameter must "
    checks = [
        assert_positive(x, message=said + "be positive."),
        assert_rank_at_least(x, 1, message=said + "have >=1 dimensions."),
        assert_less(1, shape(x)[-1], message=said + "have event_size >= 2."),
    ]
    return with_dependencies(checks, x)


@RegisterKL(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(a: Any, b: Any, name: str | None = None) -> Any:
    with name_scope(name, "kl_dirichlet_dirichlet", [a.concentration, b.concentration]):
        total = reduce_sum(a.concentration, axis=-1, keepdims=True)
        slopes = digamma(a.concentration) - digamma(total)
        difference = reduce_sum((a.concentration - b.concentration) * slopes, axis=-1)
        return difference - lbeta(a.concentration) + lbeta(b.concentration)
