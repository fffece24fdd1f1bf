"""k-means as an estimator of `tf.contrib.learn`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np

import opdock as tf
from opdock.contrib.learn.estimator import Estimator
from opdock.contrib.learn.model_fn import ModelFnOps
from opdock.ops.composed import clustering
from opdock.ops.composed.clustering import KMeans
from opdock.train.loops.hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

__all__ = ["Begin", "KMeansClustering"]


class _LittleChange(SessionRunHook):
    """Ends a training when the loss changes by less than a part of itself."""

    def __init__(self, tolerance: float) -> None:
        self._tolerance = tolerance
        self._last: Any = None
        self._loss: Any = None

    def begin(self) -> None:
        self._loss = tf.get_default_graph().get_tensor_by_name(f"{KMeansClustering.LOSS_OP_NAME}:0")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        loss, last = run_values.results, self._last
        if last is not None and abs(loss - last) / (1 + abs(last)) < self._tolerance:
            run_context.request_stop()
        self._last = loss


class Begin(SessionRunHook):
    """Gives a model its first centers or means when a session begins without them."""

    def __init__(self, init_op: Any, initialized: Any) -> None:
        self._init_op, self._initialized = init_op, initialized

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs the operation until there is all: it chooses some centers of each batch."""
        while not session.run(self._initialized):
            session.run(self._init_op)


class KMeansClustering(Estimator):
    """Clusters of points around centers.

    Args:
        num_clusters: how many there are.
        model_dir: where checkpoints go.
        initial_clusters: how the first centers are chosen, or these centers.
        distance_metric: "squared_euclidean" or "cosine".
        random_seed: the seed of that choice.
        use_mini_batch: whether centers move by each batch, not by all points.
        mini_batch_steps_per_iteration: after how many batches they move.
        kmeans_plus_plus_num_retries: how many points are drawn for each center of k-means++.
        relative_tolerance: what change of the loss ends a training, as a part of it; none if None.
        config: a `RunConfig`.
    """

    SQUARED_EUCLIDEAN_DISTANCE: Final = clustering.SQUARED_EUCLIDEAN_DISTANCE
    COSINE_DISTANCE: Final = clustering.COSINE_DISTANCE
    RANDOM_INIT: Final = clustering.RANDOM_INIT
    KMEANS_PLUS_PLUS_INIT: Final = clustering.KMEANS_PLUS_PLUS_INIT
    SCORES: Final = "scores"
    CLUSTER_IDX: Final = "cluster_idx"
    CLUSTERS: Final = "clusters"
    ALL_SCORES: Final = "all_scores"
    LOSS_OP_NAME: Final = "kmeans_loss"

    def __init__(
        self, num_clusters: int, model_dir: str | None = None, initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE, random_seed: int | None = 0,
        use_mini_batch: bool = True, mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2, relative_tolerance: float | None = None,
        config: Any = None,
    ) -> None:  # fmt: skip
        def clusters(points: Any) -> Any:
            return KMeans(
                points, num_clusters, initial_clusters=initial_clusters,
                distance_metric=distance_metric, use_mini_batch=use_mini_batch,
                mini_batch_steps_per_iteration=mini_batch_steps_per_iteration,
                random_seed=random_seed, kmeans_plus_plus_num_retries=kmeans_plus_plus_num_retries,
            ).training_graph()  # fmt: skip

        model_fn = _model_fn(clusters, relative_tolerance)
        super().__init__(model_fn=model_fn, model_dir=model_dir, config=config)

    def predict_cluster_idx(self, input_fn: Callable[[], Any] | None = None) -> Iterator[Any]:
        """The cluster of each point."""
        for result in self.predict(input_fn=input_fn, outputs=[self.CLUSTER_IDX]):
            yield result[self.CLUSTER_IDX]

    def score(self, input_fn: Callable[[], Any] | None = None, steps: int | None = None) -> Any:
        """The sum of the distances of points to their centers."""
        return np.sum(self.evaluate(input_fn=input_fn, steps=steps)[self.SCORES])

    def transform(
        self, input_fn: Callable[[], Any] | None = None, as_iterable: bool = False
    ) -> Any:
        """The distances of each point to all centers."""
        found = self.predict(input_fn=input_fn, outputs=[self.ALL_SCORES], as_iterable=as_iterable)
        return found if as_iterable else found[self.ALL_SCORES]

    def clusters(self) -> Any:
        """The centers."""
        return self.get_variable_value(self.CLUSTERS)


def _model_fn(clusters: Callable[[Any], Any], tolerance: float | None) -> Callable[..., Any]:
    def model_fn(features: Any, labels: Any, mode: str) -> ModelFnOps:
        assert labels is None, labels
        points = features
        if isinstance(features, Mapping):
            points = tf.concat([features[key] for key in sorted(features)], 1)
        scores, indices, losses, initialized, init_op, step = clusters(points)
        counted = tf.assign_add(tf.train.get_global_step(), 1)
        loss = tf.reduce_sum(losses, name=KMeansClustering.LOSS_OP_NAME)
        tf.summary.scalar("loss/raw", loss)
        with tf.control_dependencies([step, counted]):
            trained = tf.identity(loss)
        hooks: list[SessionRunHook] = [Begin(init_op, initialized)]
        if tolerance is not None:
            hooks.append(_LittleChange(tolerance))
        return ModelFnOps(
            mode,
            {KMeansClustering.ALL_SCORES: scores[0], KMeansClustering.CLUSTER_IDX: indices[0]},
            loss, trained, {KMeansClustering.SCORES: loss}, training_hooks=hooks,
        )  # fmt: skip

    return model_fn
