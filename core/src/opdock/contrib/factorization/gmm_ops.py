"""Mixtures of Gaussians, fitted by expectation and maximization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.graph.variables.variable import Variable
from opdock.ops import check, control, state
from opdock.ops.argmax import argmax
from opdock.ops.arithmetic import squared_difference
from opdock.ops.array import expand_dims, reshape, squeeze
from opdock.ops.array import shape as shape_of
from opdock.ops.cast import cast
from opdock.ops.composed.embedding import embedding_lookup
from opdock.ops.composed.reduce_stats import reduce_logsumexp
from opdock.ops.decompositions import cholesky
from opdock.ops.diag import diag, diag_part, matrix_diag_part
from opdock.ops.elementary import exp, log, square
from opdock.ops.fill import ones
from opdock.ops.joining import concat, stack
from opdock.ops.linalg import matmul
from opdock.ops.matrix import transpose
from opdock.ops.random import random_uniform
from opdock.ops.reduce import reduce_mean, reduce_sum
from opdock.ops.solve import matrix_triangular_solve
from opdock.ops.sums import add_n
from opdock.ops.tiling import tile

__all__ = ["DIAG_COVARIANCE", "FULL_COVARIANCE", "GmmAlgorithm", "gmm"]

FULL_COVARIANCE: Final = "full"
DIAG_COVARIANCE: Final = "diag"
_LEAST_VARIANCE: Final = 1e-3
_TINY: Final = float(np.finfo(float).eps)


class GmmAlgorithm:
    """The nodes of a mixture of Gaussians: steps, assignments and likelihoods.

    Args:
        data: matrices [points, size], the parts of one batch.
        num_classes: the number of Gaussians.
        initial_means: a matrix [num_classes, size], or None for random points.
        params: what steps change: any of "w" (weights), "m" (means), "c" (covariances).
        covariance_type: "full", or "diag" for variances alone.
        random_seed: the seed of the choice of points.

    Raises:
        ValueError: there is no such type of covariances.
    """

    CLUSTERS_WEIGHT = "alphas"
    CLUSTERS_VARIABLE = "clusters"
    CLUSTERS_COVS_VARIABLE = "clusters_covs"

    def __init__(
        self, data: Sequence[Any], num_classes: int, initial_means: Any = None,
        params: str = "wmc", covariance_type: str = FULL_COVARIANCE, random_seed: int | None = 0,
    ) -> None:  # fmt: skip
        if covariance_type not in (DIAG_COVARIANCE, FULL_COVARIANCE):
            raise ValueError(
                f"Invalid covariance type: {covariance_type}; expected "
                f"{FULL_COVARIANCE!r} or {DIAG_COVARIANCE!r}"
            )
        self._count, self._params = num_classes, params
        self._full = covariance_type == FULL_COVARIANCE
        self._size = shape_of(data[0])[1]
        self._floor = diag(ones(stack([self._size]))) * _LEAST_VARIANCE
        # Shapes are known when the first batch is.
        nothing = convert_to_tensor([], dtypes.float32)
        self._means = Variable(nothing, name=self.CLUSTERS_VARIABLE, validate_shape=False)
        self._covs = Variable(nothing, name=self.CLUSTERS_COVS_VARIABLE, validate_shape=False)
        self._alpha = Variable(
            tile([1.0 / num_classes], [num_classes]), name=self.CLUSTERS_WEIGHT,
            validate_shape=False,
        )  # fmt: skip
        self._initialized = Variable(False, dtype=dtypes.bool, name="initialized")
        self._init_op = self._beginning(data, initial_means, random_seed)
        self._define(data)

    # ------------------------------------------------------------ what is asked for
    def init_ops(self) -> Any:
        """The operation that gives means and covariances their first values, once."""
        return self._init_op

    def training_ops(self) -> Any:
        """The operation of one step."""
        return self._train_op

    def is_initialized(self) -> Any:
        """Whether the first values have been given."""
        return self._initialized

    def alphas(self) -> Any:
        """The weights [classes]."""
        return self._alpha

    def clusters(self) -> Any:
        """The means [classes, 1, size]."""
        return self._means

    def covariances(self) -> Any:
        """The covariances [classes, size, size], or the variances [classes, size]."""
        return self._covs

    def assignments(self) -> list[Any]:
        """For each part of the data, the likeliest class of each point."""
        return [argmax(weights, 1) for weights in self._weights]

    def scores(self) -> Any:
        """The logarithm of the likelihood of each point [points, 1]."""
        return self._scores

    def log_likelihood_op(self) -> Any:
        """The sum of the likelihoods of all points, as its logarithm."""
        return self._log_likelihood

    # ------------------------------------------------------------ the beginning
    def _beginning(self, data: Sequence[Any], means: Any, seed: int | None) -> Any:
        if means is None:
            means = _some_points(data, self._count, seed)
        means = expand_dims(means, 1)
        cov = _covariance(data[0], not self._full) + self._floor
        each = expand_dims(cov if self._full else diag_part(cov), 0)
        covs = tile(each, [self._count, 1, 1] if self._full else [self._count, 1])

        def begin() -> Any:
            given = [
                state.assign(self._means, means, validate_shape=False),
                state.assign(self._covs, covs, validate_shape=False),
            ]
            with control_dependencies(given):
                return control.group(state.assign(self._initialized, True))

        done = control.cond(convert_to_tensor(self._initialized), control.no_op, begin)
        return control.group(done)

    # ------------------------------------------------------------ expectation
    def _define(self, data: Sequence[Any]) -> None:
        logs = [self._log_probabilities(part) + log(self._alpha) for part in data]
        totals = [reduce_logsumexp(one, axis=1, keepdims=True) for one in logs]
        pairs = list(zip(logs, totals, strict=True))
        self._weights = [exp(one - total) for one, total in pairs]
        self._train_op = self._maximized(data)
        self._log_likelihood = reduce_logsumexp(stack([reduce_logsumexp(t) for t in totals]))
        joint = [t + log(w) for t, w in zip(totals, self._weights, strict=True)]
        self._scores = reduce_logsumexp(concat(joint, 0), axis=1, keepdims=True)

    def _log_probabilities(self, part: Any) -> Any:
        """Of each point under each Gaussian [points, classes], without the weights."""
        points = expand_dims(part, 0)
        size = cast(self._size, dtypes.float32)
        if self._full:
            root = cholesky(self._covs + self._floor)
            determinant = 2.0 * reduce_sum(log(matrix_diag_part(root)), 1)
            away = transpose(points - self._means, [0, 2, 1])
            distance = reduce_sum(square(matrix_triangular_solve(root, away, lower=True)), 1)
        else:
            variances = convert_to_tensor(self._covs) + _LEAST_VARIANCE
            determinant = reduce_sum(log(variances), 1)
            squares = squared_difference(points, self._means)
            distance = squeeze(matmul(squares, expand_dims(1.0 / variances, 2)), [2])
        return -0.5 * (transpose(distance) + size * math.log(2 * math.pi) + determinant)

    # ------------------------------------------------------------ maximization
    def _maximized(self, data: Sequence[Any]) -> Any:
        """Weights, means and covariances from how much of each point belongs to each class."""
        parts = list(zip(self._weights, data, strict=True))
        owned = add_n([reduce_sum(w, 0) for w in self._weights])
        share = reshape(owned, [self._count, 1, 1]) + _TINY
        sums = add_n([expand_dims(matmul(w, x, transpose_a=True), 1) for w, x in parts])
        squares = add_n([self._products(w, x) for w, x in parts]) / share
        steps = []
        with control_dependencies(self._weights):
            if "w" in self._params:
                mean = owned / len(parts)
                steps.append(state.assign(self._alpha, mean / (reduce_sum(mean) + _TINY)))
            means = convert_to_tensor(self._means)
            if "m" in self._params:
                means = convert_to_tensor(state.assign(self._means, sums / share))
                steps.append(means)
            if "c" in self._params:
                covs = squares - matmul(means, means, transpose_a=True) + self._floor
                new = covs if self._full else matrix_diag_part(covs)
                with control_dependencies([means, new]):
                    steps.append(state.assign(self._covs, new, validate_shape=False))
        return control.group(*steps)

    def _products(self, weights: Any, points: Any) -> Any:
        """For each class the weighted sum of the points' products with themselves."""
        columns = expand_dims(transpose(weights), 2) * expand_dims(points, 0)
        return matmul(columns, tile(expand_dims(points, 0), [self._count, 1, 1]), transpose_a=True)


def _covariance(x: Any, diag: bool) -> Any:
    """The covariance of points, or their variances alone."""
    count = cast(shape_of(x)[0], dtypes.float32)
    x -= reduce_mean(x, 0, keepdims=True)
    if diag:
        return reduce_sum(square(x), 0, keepdims=True) / (count - 1)
    return matmul(x, x, transpose_a=True) / (count - 1)


def _some_points(data: Sequence[Any], count: int, seed: int | None) -> Any:
    number = add_n([shape_of(part)[0] for part in data])
    with control_dependencies([check.assert_less_equal(count, number)]):
        indices = random_uniform([count], 0, cast(number, dtypes.int64), dtypes.int64, seed=seed)
    return embedding_lookup(list(data), indices, partition_strategy="div")


def gmm(
    inp: Any, initial_clusters: Any, num_clusters: int, random_seed: int | None,
    covariance_type: str = FULL_COVARIANCE, params: str = "wmc",
) -> tuple[Any, ...]:  # fmt: skip
    """The graph of a mixture of Gaussians.

    Args:
        inp: a matrix [points, size], or a list of such parts.
        initial_clusters: the first means as an array, or "random".
        num_clusters: the number of Gaussians.
        random_seed: the seed of the choice of points.
        covariance_type: "full" or "diag".
        params: see `GmmAlgorithm`.

    Returns:
        The logarithm of the likelihood, that of each point, a list with the list of assignments,
        the operations of a step and of the beginning, and whether that was made.
    """
    means = None
    if isinstance(initial_clusters, Tensor) or not isinstance(initial_clusters, str):
        means = convert_to_tensor(initial_clusters, dtypes.float32)
    elif initial_clusters != "random":
        raise ValueError(f"initial_clusters is an array or 'random', not {initial_clusters!r}")
    parts = inp if isinstance(inp, list) else [inp]
    tool = GmmAlgorithm(parts, num_clusters, means, params, covariance_type, random_seed)
    return (
        tool.log_likelihood_op(), tool.scores(), [tool.assignments()], tool.training_ops(),
        tool.init_ops(), tool.is_initialized(),
    )  # fmt: skip
