"""The model function of forests, for both kinds of estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import opdock as tf
from opdock.api import logging
from opdock.train.loops.hook import SessionRunArgs, SessionRunHook

__all__ = ["TensorForestLossHook", "TensorForestRunOpAtEndHook", "forest_parts", "with_outputs"]

KEYS_NAME: Final = "keys"
LOSS_NAME: Final = "rf_training_loss"
TREE_PATHS_PREDICTION_KEY: Final = "tree_paths"
VARIANCE_PREDICTION_KEY: Final = "prediction_variance"
ALL_SERVING_KEY: Final = "tensorforest_all"
EPSILON: Final = 0.000001


class TensorForestRunOpAtEndHook(SessionRunHook):
    """Runs tensors when training ends, and logs what they are.

    Args:
        op_dict: the tensors by what they are called.
    """

    def __init__(self, op_dict: dict[str, Any]) -> None:
        self._ops = op_dict

    def end(self, session: Any) -> None:
        """Runs them, in the order of their names."""
        for name, op in sorted(self._ops.items()):
            logging.info("%s: %s", name, session.run(op))


class TensorForestLossHook(SessionRunHook):
    """Ends training when the loss has not fallen for a number of steps.

    Args:
        early_stopping_rounds: the number of steps.
        early_stopping_loss_threshold: the share by which the loss has to fall.
        loss_op: the loss; the one that is called `LOSS_NAME` when None.
    """

    def __init__(
        self, early_stopping_rounds: int, early_stopping_loss_threshold: float | None = None,
        loss_op: Any = None,
    ) -> None:  # fmt: skip
        self.early_stopping_rounds = early_stopping_rounds
        self.early_stopping_loss_threshold = early_stopping_loss_threshold or 0.0
        self.loss_op = loss_op
        self.min_loss: Any = None
        self.last_step = -1
        self.steps = 0

    def before_run(self, run_context: Any) -> SessionRunArgs:
        """Asks for the step and the loss."""
        loss = self.loss_op
        if loss is None:
            loss = run_context.session.graph.get_operation_by_name(LOSS_NAME).outputs[0]
        return SessionRunArgs({"global_step": tf.train.get_global_step(), "current_loss": loss})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Counts the steps without a better loss."""
        loss, step = (run_values.results[key] for key in ("current_loss", "global_step"))
        self.steps += 1
        if self.last_step == -1 or self.last_step > step:  # it may go back after a recovery
            self.last_step, self.steps, self.min_loss = step, 0, None
            return
        self.last_step = step
        best = self.min_loss
        if best is None or loss < best - best * self.early_stopping_loss_threshold:
            self.min_loss, self.steps = loss, 0
        if self.steps > self.early_stopping_rounds:
            logging.info("TensorForestLossHook requesting stop.")
            run_context.request_stop()


class _Parts:
    """What a model function needs of a forest in one mode."""

    def __init__(self, features: dict[str, Any], logits: Any, extra: dict[str, Any]) -> None:
        self.features, self.logits, self.extra = features, logits, extra
        self.train_op: Any = None
        self.hooks: list[SessionRunHook] = []


def forest_parts(
    features: Any, labels: Any, mode: str, params: Any, graph_builder: Callable[..., Any],
    device_assigner: Any, weights_name: str | None, keys_name: str | None, num_trainers: int,
    trainer_id: int, report_feature_importances: bool,
) -> _Parts:  # fmt: skip
    """Makes the graph of a forest for a mode of an estimator.

    Args:
        features: features by name, as columns have made them.
        labels: the labels, or None.
        mode: the mode; "train" trains.
        params: the forest's parameters, filled.
        graph_builder: `RandomForestGraphs`, or what takes its place.
        device_assigner: what says where trees are.
        weights_name: the feature that has weights.
        keys_name: the feature that is handed on to predictions.
        num_trainers: how many trainers share the trees.
        trainer_id: which of them this is.
        report_feature_importances: whether they are logged when training ends.
    """
    weights = features.pop(weights_name, None) if weights_name else None
    keys = features.pop(keys_name, None) if keys_name else None
    builder = graph_builder(params, device_assigner=device_assigner)
    logits, paths, variance = builder.inference_graph(features)
    tf.summary.scalar("average_tree_size", builder.average_size())
    if not params.regression and params.num_classes == 2:
        # A probability may be 0 or 1, whose logits would be infinite.
        second = logits[:, 1:2]
        logits = tf.log(tf.maximum(second / tf.maximum(1.0 - second, EPSILON), EPSILON))
    extra = {VARIANCE_PREDICTION_KEY: variance}
    if keys is not None and keys_name is not None:
        extra[keys_name] = keys
    if params.inference_tree_paths:
        extra[TREE_PATHS_PREDICTION_KEY] = paths
    parts = _Parts(features, logits, extra)
    if labels is not None and mode == "train":
        with tf.control_dependencies([logits.op]):
            step = builder.training_graph(
                features, labels, input_weights=weights, num_trainers=num_trainers,
                trainer_id=trainer_id,
            )  # fmt: skip
            parts.train_op = tf.group(step, tf.assign_add(tf.train.get_global_step(), 1))
    if weights is not None and weights_name is not None:
        features[weights_name] = weights
    if report_feature_importances:
        importances = {"feature_importances": builder.feature_importances()}
        parts.hooks.append(TensorForestRunOpAtEndHook(importances))
    return parts


def with_outputs(parts: _Parts, loss: Any, predictions: Any, rounds: int, least: float) -> None:
    """Adds what a head does not know of: predictions that are only a forest's, and its hooks.

    Args:
        parts: the forest's parts.
        loss: the head's loss.
        predictions: the head's predictions by name.
        rounds: after how many steps without a better loss training ends; 0 for never.
        least: the share by which the loss has to fall.
    """
    if rounds:
        parts.hooks.append(TensorForestLossHook(rounds, least, loss_op=loss))
    if predictions is not None:
        predictions.update(parts.extra)
