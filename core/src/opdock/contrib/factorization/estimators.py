"""The estimators of `tf.contrib.factorization`, over tensorflow-estimator.

Raises:
    AttributeError: that library is not installed; the message says how to get it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from opdock.contrib.factorization.gmm_ops import DIAG_COVARIANCE, FULL_COVARIANCE, GmmAlgorithm, gmm
from opdock.graph.nodes.scopes import control_dependencies
from opdock.metrics.mean import mean
from opdock.ops import control, state
from opdock.ops.composed.clustering import RANDOM_INIT, SQUARED_EUCLIDEAN_DISTANCE
from opdock.ops.identity import identity
from opdock.ops.joining import concat
from opdock.train.checkpoint_utils import load_variable
from opdock.train.loops.hook import SessionRunHook
from opdock.train.training_util import get_global_step

__all__ = ["GMM", "KMeansClustering"]

_tf: Any = importlib.import_module("opdock")
_estimator: Any = _tf.estimator


class KMeansClustering(_estimator.experimental.KMeans):  # type: ignore[misc]
    """`tf.estimator.experimental.KMeans` with the seed under the name that contrib gave it.

    Args:
        random_seed: the seed of the choice of centers.
        num_clusters, model_dir, initial_clusters, distance_metric, use_mini_batch,
            mini_batch_steps_per_iteration, kmeans_plus_plus_num_retries, relative_tolerance,
            config, feature_columns: see there.
    """

    def __init__(
        self, num_clusters: int, model_dir: Any = None, initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE, random_seed: int | None = 0,
        use_mini_batch: bool = True, mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2, relative_tolerance: float | None = None,
        config: Any = None, feature_columns: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_clusters, model_dir=model_dir, initial_clusters=initial_clusters,
            distance_metric=distance_metric, seed=random_seed, use_mini_batch=use_mini_batch,
            mini_batch_steps_per_iteration=mini_batch_steps_per_iteration,
            kmeans_plus_plus_num_retries=kmeans_plus_plus_num_retries,
            relative_tolerance=relative_tolerance, config=config,
            feature_columns=feature_columns,
        )  # fmt: skip

    def transform(self, input_fn: Any) -> Iterator[Any]:
        """The distances of each point to all centers: squared ones, where there it has roots."""
        yield from self._predict_one_key(input_fn, self.ALL_DISTANCES)


class _Begin(SessionRunHook):
    """Gives a mixture its first means when a session begins without them."""

    def __init__(self, init_op: Any, initialized: Any) -> None:
        self._init_op, self._initialized = init_op, initialized

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs the operation."""
        if not session.run(self._initialized):
            session.run(self._init_op)


class GMM(_estimator.Estimator):  # type: ignore[misc]
    """A mixture of Gaussians.

    Args:
        num_clusters: the number of Gaussians.
        model_dir: where checkpoints and logs go.
        random_seed: the seed of the choice of the first means.
        params: what steps change: any of "w" (weights), "m" (means), "c" (covariances).
        initial_clusters: the first means [num_clusters, size], or "random".
        covariance_type: "full" or "diag".
        config: see `tf.estimator.Estimator`.
    """

    SCORES = "scores"
    LOG_LIKELIHOOD = "loss"
    ASSIGNMENTS = "assignments"

    def __init__(
        self, num_clusters: int, model_dir: Any = None, random_seed: int | None = 0,
        params: str = "wmc", initial_clusters: Any = "random",
        covariance_type: str = FULL_COVARIANCE, config: Any = None,
    ) -> None:  # fmt: skip
        if covariance_type not in (FULL_COVARIANCE, DIAG_COVARIANCE):
            raise ValueError(f"Invalid covariance type: {covariance_type}")
        given = (initial_clusters, num_clusters, random_seed, covariance_type, params)
        super().__init__(model_fn=_mixture(*given), model_dir=model_dir, config=config)

    def fit(
        self, x: Any = None, y: Any = None, input_fn: Any = None, steps: int | None = None,
        batch_size: int | None = None, monitors: Any = None, max_steps: int | None = None,
    ) -> Any:  # fmt: skip
        """Trains, as contrib's estimators are told to.

        Raises:
            ValueError: data is given as `x`, `y` and `batch_size` in place of `input_fn`.
        """
        if x is not None or y is not None or batch_size is not None:
            raise ValueError("GMM takes its data from input_fn")
        return self.train(input_fn, hooks=monitors, steps=steps, max_steps=max_steps)

    def predict_assignments(self, input_fn: Any = None) -> Iterator[Any]:
        """The likeliest Gaussian of each point."""
        for result in self.predict(input_fn=input_fn):
            yield result[GMM.ASSIGNMENTS]

    def score(self, input_fn: Any = None, steps: int | None = None) -> Any:
        """The mean, over the batches, of the logarithm of their likelihood."""
        return self.evaluate(input_fn=input_fn, steps=steps)[GMM.LOG_LIKELIHOOD]

    def weights(self) -> Any:
        """The weights of the Gaussians."""
        return load_variable(self.model_dir, GmmAlgorithm.CLUSTERS_WEIGHT)

    def clusters(self) -> Any:
        """Their means [num_clusters, size]."""
        return np.squeeze(load_variable(self.model_dir, GmmAlgorithm.CLUSTERS_VARIABLE), 1)

    def covariances(self) -> Any:
        """Their covariances."""
        return load_variable(self.model_dir, GmmAlgorithm.CLUSTERS_COVS_VARIABLE)


def _mixture(
    initial: Any, count: int, seed: int | None, covariance_type: str, params: str
) -> Callable[..., Any]:
    def model_fn(features: Any, labels: Any, mode: Any) -> Any:
        if isinstance(features, Mapping):
            features = concat([features[key] for key in sorted(features)], 1)
        loss, scores, assigned, step, init_op, initialized = gmm(
            features, initial, count, seed, covariance_type, params
        )
        counted = state.assign_add(get_global_step(), 1)
        with control_dependencies([step, counted]):
            done = identity(loss)
        return _estimator.EstimatorSpec(
            mode, predictions={GMM.ASSIGNMENTS: assigned[0][0]}, loss=loss,
            train_op=control.group(done), eval_metric_ops={GMM.SCORES: mean(scores)},
            training_hooks=[_Begin(init_op, initialized)],
        )  # fmt: skip

    return model_fn
