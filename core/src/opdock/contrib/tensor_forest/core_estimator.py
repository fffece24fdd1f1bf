"""The estimator of forests that stands on tensorflow-estimator.

Raises:
    AttributeError: that library is not installed; the message says how to get it.
"""

from __future__ import annotations

import importlib
from typing import Any

import opdock as tf
from opdock.contrib.tensor_forest.graphs import RandomForestGraphs
from opdock.contrib.tensor_forest.models import ALL_SERVING_KEY, forest_parts, with_outputs
from opdock.feature_column.functional import transform_features

__all__ = ["CoreTensorForestEstimator"]

_estimator: Any = importlib.import_module("opdock").estimator
_MEAN = tf.losses.Reduction.SUM_OVER_BATCH_SIZE


def _default_head(params: Any, weights_name: str | None) -> Any:
    """The head of a forest's kind of problem."""
    heads: Any = importlib.import_module("opdock").contrib.estimator
    given = {"weight_column": weights_name, "loss_reduction": _MEAN}
    if params.regression:
        return heads.regression_head(label_dimension=params.num_outputs, **given)
    if params.num_classes == 2:
        return heads.binary_classification_head(**given)
    return heads.multi_class_head(n_classes=params.num_classes, **given)


class CoreTensorForestEstimator(_estimator.Estimator):  # type: ignore[misc]
    """An estimator of a forest, of `tf.estimator`'s kind.

    Args:
        params: the forest's parameters.
        device_assigner: what says where trees are.
        model_dir, config: see `tf.estimator.Estimator`.
        feature_columns: columns of `tf.feature_column` that make the features.
        graph_builder_class: `RandomForestGraphs`, or what takes its place.
        weight_column: the feature that has weights.
        keys_column: the feature that is handed on to predictions.
        feature_engineering_fn: without a meaning.
        early_stopping_rounds: after how many steps without a better loss training ends; 0: never.
        early_stopping_loss_threshold: the share by which the loss has to fall.
        num_trainers: how many trainers share the trees.
        trainer_id: which of them this is.
        report_feature_importances: whether they are logged when training ends.
        local_eval: whether an evaluation leaves `device_assigner` out.
        version: without a meaning.
        head: the head; that of the kind of problem when None.
        include_all_in_serving: whether all predictions are exported.
    """

    def __init__(
        self, params: Any, device_assigner: Any = None, model_dir: str | None = None,
        feature_columns: Any = None, graph_builder_class: Any = RandomForestGraphs,
        config: Any = None, weight_column: str | None = None, keys_column: str | None = None,
        feature_engineering_fn: Any = None, early_stopping_rounds: int = 100,
        early_stopping_loss_threshold: float = 0.001, num_trainers: int = 1, trainer_id: int = 0,
        report_feature_importances: bool = False, local_eval: bool = False, version: Any = None,
        head: Any = None, include_all_in_serving: bool = False,
    ) -> None:  # fmt: skip
        params = params.fill()
        head = head or _default_head(params, weight_column)
        if config is not None:
            num_trainers = max(1, config.num_worker_replicas) if num_trainers == 1 else num_trainers
            trainer_id = trainer_id or config.global_id_in_cluster

        def model_fn(features: Any, labels: Any, mode: str) -> Any:
            named = dict(features) if isinstance(features, dict) else {"features": features}
            for column in feature_columns or ():
                named[column.name] = transform_features(named, [column])[column]
            alone = mode == "infer" or (local_eval and mode == "eval")
            parts = forest_parts(
                named, labels, mode, params, graph_builder_class,
                None if alone else device_assigner, weight_column, keys_column, num_trainers,
                trainer_id, report_feature_importances,
            )  # fmt: skip
            spec = head.create_estimator_spec(
                features=named, mode=mode, labels=labels, logits=parts.logits,
                train_op_fn=lambda loss: parts.train_op,
            )  # fmt: skip
            with_outputs(
                parts, spec.loss, spec.predictions, early_stopping_rounds,
                early_stopping_loss_threshold,
            )  # fmt: skip
            changed: dict[str, Any] = {"training_hooks": [*parts.hooks, *spec.training_hooks]}
            if include_all_in_serving:
                output = _estimator.export.PredictOutput(spec.predictions)
                changed["export_outputs"] = {ALL_SERVING_KEY: output}
            return spec._replace(**changed)

        super().__init__(model_fn=model_fn, model_dir=model_dir, config=config)
