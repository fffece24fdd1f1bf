"""Distributions of counts: multinomial, and that with unknown probabilities."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.distributions.dirichlet import outer
from opdock.distributions.distribution import NOT_REPARAMETERIZED, Distribution, arguments
from opdock.distributions.helpers import (
    embed_check_categorical_event_shape,
    embed_check_nonnegative_integer_form,
    gen_new_seed,
    get_logits_and_probs,
    log_combinations,
)  # fmt: skip
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import expand_dims, reshape, shape
from opdock.ops.cast import cast
from opdock.ops.check import assert_equal, assert_positive
from opdock.ops.composed.functional import map_fn
from opdock.ops.control import with_dependencies
from opdock.ops.diag import matrix_set_diag
from opdock.ops.elementary import log, sqrt
from opdock.ops.fill import ones_like
from opdock.ops.identity import identity
from opdock.ops.joining import concat
from opdock.ops.matrix import transpose
from opdock.ops.random_dist import multinomial, random_gamma
from opdock.ops.reduce import reduce_sum
from opdock.ops.select import one_hot
from opdock.ops.special import lbeta
from opdock.ops.xent import log_softmax

__all__ = ["DirichletMultinomial", "Multinomial"]


class _Counts(Distribution):
    """What distributions of counts share: how many draws there are, and the check of counts."""

    _total_count: Any
    _SUM: str
    """What is said of counts that do not add up."""

    @property
    def total_count(self) -> Any:
        """How many draws there are."""
        return self._total_count

    def _checked(self, counts: Any) -> Any:
        if not self.validate_args:
            return counts
        counts = embed_check_nonnegative_integer_form(counts)
        check = assert_equal(self.total_count, reduce_sum(counts, -1), message=self._SUM)
        return with_dependencies([check], counts)


def _total_count(value: Any, validate: bool) -> Any:
    tensor = convert_to_tensor(value, name="total_count")
    return embed_check_nonnegative_integer_form(tensor) if validate else tensor


class Multinomial(_Counts):
    """Distributions of how often each of K classes comes in a number of draws.

    Args:
        total_count: the number of draws, a float tensor of shape [...].
        logits: unnormalized log-probabilities, of shape [..., K].
        probs: probabilities of that shape; one of the two is given.
        validate_args: whether to check all this, and what probabilities are asked of, as steps run.
        allow_nan_stats: whether statistics that are not defined are NaN.
        name: a name for all ops.

    Raises:
        ValueError: both `logits` and `probs` are given, or neither.
        TypeError: what is given are no floats.
    """

    _SUM = "counts must sum to `self.total_count`"

    def __init__(
        self, total_count: Any, logits: Any = None, probs: Any = None,
        validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Multinomial",
    ) -> None:  # fmt: skip
        parameters = arguments(locals())
        with name_scope(name, values=[total_count, logits, probs]) as scope:
            self._total_count = _total_count(total_count, validate_args)
            self._logits, self._probs = get_logits_and_probs(
                logits, probs, multidimensional=True, validate_args=validate_args, name=scope
            )
            self._mean_value = expand_dims(self._total_count, -1) * self._probs
        super().__init__(
            self._probs.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters,
            [self._total_count, self._logits, self._probs], scope,
        )  # fmt: skip

    @property
    def logits(self) -> Any:
        """The unnormalized log-probabilities."""
        return self._logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._probs

    def _batch_shape_tensor(self) -> Any:
        return shape(self._mean_value)[:-1]

    def _batch_shape(self) -> Any:
        return self._mean_value.shape.with_rank_at_least(1)[:-1]

    def _event_shape_tensor(self) -> Any:
        return shape(self._mean_value)[-1:]

    def _event_shape(self) -> Any:
        return self._mean_value.shape.with_rank_at_least(1)[-1:]

    def _sample_n(self, n: Any, seed: Any = None) -> Any:
        classes = self.event_shape_tensor()[0]
        draws = cast(self.total_count, dtypes.int32)
        draws = ones_like(self.logits[..., 0], dtype=dtypes.int32) * draws
        logits = ones_like(expand_dims(draws, -1), dtype=self.logits.dtype) * self.logits

        # Members of the batch draw different numbers of times, so each is a turn of a loop.
        def one_member(member: Any) -> Any:
            own_logits, own_draws = member
            drawn = multinomial(expand_dims(own_logits, 0), own_draws, seed)
            return reduce_sum(one_hot(reshape(drawn, [n, -1]), depth=classes), axis=-2)

        members = [reshape(logits, [-1, classes]), n * reshape(draws, [-1])]
        counts = transpose(map_fn(one_member, members, dtype=dtypes.float32), [1, 0, 2])
        full = concat([[n], self.batch_shape_tensor(), self.event_shape_tensor()], 0)
        return cast(reshape(counts, full), self.dtype)

    def _log_prob(self, counts: Any) -> Any:
        counts = self._checked(counts)
        ordered = reduce_sum(counts * log_softmax(self.logits), -1)
        return ordered + log_combinations(self.total_count, counts)

    def _mean(self) -> Any:
        return identity(self._mean_value)

    def _full_probs(self) -> Any:
        return self.probs * expand_dims(ones_like(self.total_count), -1)

    def _covariance(self) -> Any:
        return matrix_set_diag(-outer(self._mean_value, self._full_probs()), self._variance())

    def _variance(self) -> Any:
        return self._mean_value - self._mean_value * self._full_probs()


class DirichletMultinomial(_Counts):
    """Multinomial distributions whose probabilities come from a Dirichlet distribution.

    Args:
        total_count: the number of draws, a float tensor of shape [...].
        concentration: the parameter of each of K classes, above 0, of shape [..., K].
        validate_args: whether to check both, and what probabilities are asked of, as steps run.
        allow_nan_stats: whether statistics that are not defined are NaN.
        name: a name for all ops.

    Raises:
        ValueError: `validate_args` is set, and there is no dimension of at least two classes.
    """

    _SUM = "counts last-dimension must sum to `self.total_count`"

    def __init__(
        self, total_count: Any, concentration: Any, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "DirichletMultinomial",
    ) -> None:  # fmt: skip
        parameters = arguments(locals())
        with name_scope(name, values=[total_count, concentration]) as scope:
            self._total_count = _total_count(total_count, validate_args)
            self._concentration = convert_to_tensor(concentration, name="concentration")
            if validate_args:
                checked = embed_check_categorical_event_shape(self._concentration)
                message = "Concentration parameter must be positive."
                self._concentration = with_dependencies(
                    [assert_positive(checked, message=message)], checked
                )
            self._total_concentration = reduce_sum(self._concentration, -1)
        super().__init__(
            self._concentration.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats,
            parameters, [self._total_count, self._concentration], scope,
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

    def _sample_n(self, n: Any, seed: Any = None) -> Any:
        classes = self.event_shape_tensor()[0]
        draws = cast(self.total_count, dtypes.int32)
        weights = random_gamma([n], self.concentration, dtype=self.dtype, seed=seed)
        salted = gen_new_seed(seed, salt="dirichlet_multinomial")
        drawn = multinomial(reshape(log(weights), [-1, classes]), draws, seed=salted)
        counts = reduce_sum(one_hot(drawn, depth=classes), -2)
        full = concat([[n], self.batch_shape_tensor(), self.event_shape_tensor()], 0)
        return cast(reshape(counts, full), self.dtype)

    def _log_prob(self, counts: Any) -> Any:
        counts = self._checked(counts)
        ordered = lbeta(self.concentration + counts) - lbeta(self.concentration)
        return ordered + log_combinations(self.total_count, counts)

    def _mean(self) -> Any:
        return self.total_count * (self.concentration / expand_dims(self.total_concentration, -1))

    def _scale(self) -> Any:
        """The root of what the variances are larger by than those of known probabilities."""
        total = expand_dims(self.total_concentration, -1)
        return sqrt((1.0 + total / self.total_count) / (1.0 + total))

    def _covariance(self) -> Any:
        x = self._scale() * self._mean()
        return matrix_set_diag(-outer(x, x), self._variance())

    def _variance(self) -> Any:
        scale = self._scale()
        x = scale * self._mean()
        return x * (self.total_count * scale - x)
