"""The estimators of `tf.contrib.factorization`: that of k-means is over tensorflow-estimator.

Raises:
    AttributeError: that library is not installed; the message says how to get it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from opdock.contrib.factorization.gmm_ops import DIAG_COVARIANCE, FULL_COVARIANCE, GmmAlgorithm, gmm
from opdock.contrib.framework.variables import local_variable
from opdock.contrib.learn.estimator import Estimator
from opdock.contrib.learn.kmeans import Begin
from opdock.contrib.learn.model_fn import ModelFnOps
from opdock.ops import control, state
from opdock.ops.composed.clustering import RANDOM_INIT, SQUARED_EUCLIDEAN_DISTANCE
from opdock.ops.joining import concat
from opdock.train.checkpoint_utils import load_variable
from opdock.train.training_util import get_global_step

__all__ = ["GMM", "KMeansClustering"]

_tf: Any = importlib.import_module("opdock")


class KMeansClustering(_tf.estimator.experimental.KMeans):  # type: ignore[misc]
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


class GMM(Estimator):
    """A mixture of Gaussians.

    Args:
        num_clusters: the number of Gaussians.
        model_dir: where checkpoints and logs go.
        random_seed: the seed of the choice of the first means.
        params: what steps change: any of "w" (weights), "m" (means), "c" (covariances).
        initial_clusters: the first means [num_clusters, size], or "random".
        covariance_type: "full" or "diag".
        config: a `tf.contrib.learn.RunConfig`.
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

    def predict_assignments(
        self, input_fn: Any = None, batch_size: int | None = None, outputs: Any = None
    ) -> Iterator[Any]:
        """The likeliest Gaussian of each point; the arguments are those of `predict`."""
        for result in self.predict(input_fn=input_fn, batch_size=batch_size, outputs=outputs):
            yield result[GMM.ASSIGNMENTS]

    def score(
        self, input_fn: Any = None, batch_size: int | None = None, steps: int | None = None
    ) -> Any:
        """The logarithm of the likelihood of the last batch; the arguments are `evaluate`'s."""
        results = self.evaluate(input_fn=input_fn, batch_size=batch_size, steps=steps)
        return np.log(np.sum(np.exp(results[GMM.SCORES])))

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
    def model_fn(features: Any, labels: Any, mode: Any) -> ModelFnOps:
        if isinstance(features, Mapping):
            features = concat([features[key] for key in sorted(features)], 1)
        loss, scores, assigned, step, init_op, initialized = gmm(
            features, initial, count, seed, covariance_type, params
        )
        counted = state.assign_add(get_global_step(), 1)
        return ModelFnOps(
            mode, predictions={GMM.ASSIGNMENTS: assigned[0][0]}, loss=loss,
            train_op=control.group(step, counted, loss),
            eval_metric_ops={GMM.SCORES: scores, GMM.LOG_LIKELIHOOD: _summed(loss)},
            training_hooks=[Begin(init_op, initialized)],
        )  # fmt: skip

    return model_fn


def _summed(value: Any) -> tuple[Any, Any]:
    """A metric, the sum of a scalar over the steps, and its update."""
    total = local_variable(0.0)
    return total, state.assign_add(total, value)
