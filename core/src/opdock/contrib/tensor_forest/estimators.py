"""The estimators of forests that stand on `tf.contrib.learn`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import opdock as tf
from opdock.contrib.layers.feature_column.inputs import transform_features
from opdock.contrib.learn.estimator import Estimator
from opdock.contrib.learn.head import multi_class_head, regression_head
from opdock.contrib.learn.keys import PredictionKey, ProblemType
from opdock.contrib.learn.model_fn import ModeKeys, ModelFnOps
from opdock.contrib.tensor_forest.graphs import RandomForestGraphs
from opdock.contrib.tensor_forest.models import ALL_SERVING_KEY, forest_parts, with_outputs

__all__ = ["MultiForestMultiHeadEstimator", "TensorForestEstimator"]


def default_head(params: Any, weights_name: str | None, name: str | None = None) -> Any:
    """The head of a forest's kind of problem."""
    given: dict[str, Any] = {"weight_column_name": weights_name, "head_name": name}
    if params.regression:
        return regression_head(label_dimension=params.num_outputs, **given)
    return multi_class_head(params.num_classes, **given)


def model_fn_of_forest(
    params: Any, graph_builder_class: Any, device_assigner: Any, feature_columns: Any = None,
    weights_name: str | None = None, model_head: Any = None, keys_name: str | None = None,
    early_stopping_rounds: int = 100, early_stopping_loss_threshold: float = 0.001,
    num_trainers: int = 1, trainer_id: int = 0, report_feature_importances: bool = False,
    local_eval: bool = False, head_scope: str | None = None, include_all_in_serving: bool = False,
) -> Callable[[Any, Any, str], ModelFnOps]:  # fmt: skip
    """The model function of a forest, for an estimator of `tf.contrib.learn`.

    Args:
        params: the forest's parameters, filled.
        graph_builder_class: `RandomForestGraphs`, or what takes its place.
        device_assigner: what says where trees are.
        feature_columns: columns of `tf.contrib.layers` that make the features.
        weights_name: the feature that has weights.
        model_head: the head; that of the kind of problem when None.
        keys_name: the feature that is handed on to predictions.
        early_stopping_rounds: after how many steps without a better loss training ends; 0: never.
        early_stopping_loss_threshold: the share by which the loss has to fall.
        num_trainers: how many trainers share the trees.
        trainer_id: which of them this is.
        report_feature_importances: whether they are logged when training ends.
        local_eval: whether an evaluation leaves `device_assigner` out.
        head_scope: the scope of the head's operations.
        include_all_in_serving: whether all predictions are exported too.
    """
    head = model_head or default_head(params, weights_name)

    def model_fn(features: Any, labels: Any, mode: str) -> ModelFnOps:
        named = dict(features) if isinstance(features, dict) else {"features": features}
        if feature_columns:
            named.update(transform_features(named, feature_columns))
        alone = mode == ModeKeys.INFER or (local_eval and mode == ModeKeys.EVAL)
        parts = forest_parts(
            named, labels, mode, params, graph_builder_class, None if alone else device_assigner,
            weights_name, keys_name, num_trainers, trainer_id, report_feature_importances,
        )  # fmt: skip
        ops: ModelFnOps = head.create_model_fn_ops(
            features=named, labels=labels, mode=mode, logits=parts.logits, scope=head_scope,
            train_op_fn=lambda loss: parts.train_op,
        )  # fmt: skip
        with_outputs(
            parts, ops.loss, ops.predictions, early_stopping_rounds, early_stopping_loss_threshold
        )
        ops.training_hooks.extend(parts.hooks)
        if include_all_in_serving:
            alternatives = dict(ops.output_alternatives or {})
            alternatives[ALL_SERVING_KEY] = (ProblemType.UNSPECIFIED, ops.predictions)
            ops = ops._replace(output_alternatives=alternatives)
        return ops

    return model_fn


class TensorForestEstimator(Estimator):
    """An estimator of a forest.

    Args:
        params: the forest's parameters.
        device_assigner: what says where trees are.
        model_dir, config, feature_engineering_fn: see `tf.contrib.learn.Estimator`.
        feature_columns: columns of `tf.contrib.layers` that make the features.
        graph_builder_class: `RandomForestGraphs`, or what takes its place.
        weight_column: the feature that has weights.
        keys_column: the feature that is handed on to predictions.
        early_stopping_rounds: after how many steps without a better loss training ends; 0: never.
        early_stopping_loss_threshold: the share by which the loss has to fall.
        num_trainers: how many trainers share the trees.
        trainer_id: which of them this is.
        report_feature_importances: whether they are logged when training ends.
        local_eval: whether an evaluation leaves `device_assigner` out.
        version: without a meaning.
        head: the head; that of the kind of problem when None.
        include_all_in_serving: whether all predictions are exported too.
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
        super().__init__(
            model_fn=model_fn_of_forest(
                params.fill(), graph_builder_class, device_assigner, feature_columns,
                weight_column, head, keys_column, early_stopping_rounds,
                early_stopping_loss_threshold, trainers(num_trainers, config), trainer_id,
                report_feature_importances, local_eval,
                include_all_in_serving=include_all_in_serving,
            ),
            model_dir=model_dir, config=config, feature_engineering_fn=feature_engineering_fn,
        )  # fmt: skip


def trainers(given: int, config: Any) -> int:
    """How many trainers share the trees: a configuration of several workers says so as well."""
    if given == 1 and config is not None:
        return max(1, int(config.num_worker_replicas))
    return given


class MultiForestMultiHeadEstimator(Estimator):
    """An estimator of several forests, one for each column of the labels.

    Args:
        params_list: the parameters of each forest.
        device_assigner, model_dir, feature_columns, graph_builder_class, config, weight_column,
            keys_column, feature_engineering_fn, early_stopping_rounds, num_trainers, trainer_id,
            report_feature_importances, local_eval: see `TensorForestEstimator`.
    """

    def __init__(
        self, params_list: Sequence[Any], device_assigner: Any = None,
        model_dir: str | None = None, feature_columns: Any = None,
        graph_builder_class: Any = RandomForestGraphs, config: Any = None,
        weight_column: str | None = None, keys_column: str | None = None,
        feature_engineering_fn: Any = None, early_stopping_rounds: int = 100,
        num_trainers: int = 1, trainer_id: int = 0, report_feature_importances: bool = False,
        local_eval: bool = False,
    ) -> None:  # fmt: skip
        model_fns = [
            model_fn_of_forest(
                params.fill(), graph_builder_class, device_assigner, feature_columns,
                weight_column, default_head(params, weight_column, f"head{i}"), keys_column,
                early_stopping_rounds, num_trainers=trainers(num_trainers, config),
                trainer_id=trainer_id, report_feature_importances=report_feature_importances,
                local_eval=local_eval, head_scope=f"output{i}",
            )
            for i, params in enumerate(params_list)
        ]  # fmt: skip
        super().__init__(
            model_fn=combined_model_fn(model_fns), model_dir=model_dir, config=config,
            feature_engineering_fn=feature_engineering_fn,
        )  # fmt: skip


def combined_model_fn(
    model_fns: Sequence[Callable[[Any, Any, str], ModelFnOps]],
) -> Callable[[Any, Any, str], ModelFnOps]:
    """A model function of several, each for a column of the labels.

    Their losses are averaged and their steps taken together; probabilities stand side by side, and
    classes make a column each.
    """

    def model_fn(features: Any, labels: Any, mode: str) -> ModelFnOps:
        every = []
        for i, each in enumerate(model_fns):
            with tf.variable_scope(f"label_{i}"):
                column = None if labels is None else labels[:, i : i + 1]
                every.append(each(features, column, mode))
        predictions, loss, train_op = {}, None, None
        if mode != ModeKeys.TRAIN:
            key = PredictionKey.PROBABILITIES
            predictions[key] = tf.concat([ops.predictions[key] for ops in every], 1)
            key = PredictionKey.CLASSES
            predictions[key] = tf.stack([ops.predictions[key] for ops in every], 1)
        if mode != ModeKeys.INFER:
            loss = tf.reduce_sum(tf.stack([ops.loss for ops in every])) / len(every)
        if mode == ModeKeys.TRAIN:
            train_op = tf.group(*(ops.train_op for ops in every))
        return ModelFnOps(
            mode=mode, predictions=predictions, loss=loss, train_op=train_op,
            training_hooks=[hook for ops in every for hook in ops.training_hooks],
        )  # fmt: skip

    return model_fn
