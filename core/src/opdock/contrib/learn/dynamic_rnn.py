"""The estimator of `tf.contrib.learn` of sequences of any length."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import opdock as tf
from opdock.contrib import layers
from opdock.contrib.learn import recurrent
from opdock.contrib.learn.estimator import Estimator
from opdock.contrib.learn.keys import ProblemType
from opdock.contrib.learn.model_fn import ModeKeys, ModelFnOps
from opdock.contrib.learn.recurrent import PredictionType, RNNKeys

__all__ = ["DynamicRnnEstimator", "model_fn_of_sequences", "output_alternatives"]


def output_alternatives(
    prediction_type: int, problem_type: int, prediction_dict: Mapping[str, Any]
) -> dict[str, Any] | None:
    """What of the predictions is served: all but the state, of sequences with one value.

    Raises:
        ValueError: there is no such type of predictions.
    """
    if prediction_type == PredictionType.MULTIPLE_VALUE:
        return None
    if prediction_type != PredictionType.SINGLE_VALUE:
        raise ValueError(f"Unrecognized prediction_type: {prediction_type}")
    served = {k: v for k, v in prediction_dict.items() if RNNKeys.STATE_PREFIX not in k}
    return {"dynamic_rnn_output": (problem_type, served)}


def model_fn_of_sequences(
    cell_type: Any, num_units: Any, target_column: Any, problem_type: int, prediction_type: int,
    optimizer: Any, sequence_feature_columns: Any, context_feature_columns: Any = None,
    predict_probabilities: bool = False, learning_rate: Any = None,
    gradient_clipping_norm: float | None = None, dropout_keep_probabilities: Any = None,
    sequence_length_key: str = RNNKeys.SEQUENCE_LENGTH_KEY, dtype: Any = tf.float32,
    parallel_iterations: int | None = None, swap_memory: bool = True,
    name: str = "DynamicRNNModel",
) -> Callable[..., ModelFnOps]:  # fmt: skip
    """A model function of sequences; see `DynamicRnnEstimator`.

    Raises:
        ValueError: no such problem or type of predictions, or probabilities of numbers.
    """
    recurrent.check_problem(problem_type, predict_probabilities)
    if prediction_type not in (PredictionType.SINGLE_VALUE, PredictionType.MULTIPLE_VALUE):
        raise ValueError(
            "prediction_type must be PredictionType.MULTIPLE_VALUE or "
            f"PredictionType.SINGLE_VALUE; got {prediction_type}"
        )
    each_step = prediction_type == PredictionType.MULTIPLE_VALUE

    def loss_of(activations: Any, labels: Any, lengths: Any, features: Any) -> Any:
        if each_step:
            return recurrent.loss_of_steps(target_column, activations, labels, lengths, features)
        with tf.name_scope("SingleValueLoss"):
            last = recurrent.select_last_activations(activations, lengths)
            return target_column.loss(last, labels, features)

    def model_fn(features: Any, labels: Any, mode: str) -> ModelFnOps:
        with tf.name_scope(name):
            lengths = features.get(sequence_length_key)
            steps = recurrent.build_sequence_input(
                features, sequence_feature_columns, context_feature_columns
            )
            dropout = dropout_keep_probabilities if mode == ModeKeys.TRAIN else None
            cell = recurrent.construct_rnn_cell(num_units, cell_type, dropout)
            activations, state = recurrent.construct_rnn(
                recurrent.dict_to_state_tuple(features, cell), steps, cell,
                target_column.num_label_columns, dtype, parallel_iterations, swap_memory,
            )  # fmt: skip
            asked = target_column, problem_type, predict_probabilities
            if each_step:
                made = recurrent.multi_value_predictions(activations, *asked)
            else:
                made = recurrent.single_value_predictions(activations, lengths, *asked)
            made |= recurrent.state_tuple_to_dict(state)
            loss = metrics = train_op = None
            if mode != ModeKeys.INFER:
                loss = loss_of(activations, labels, lengths, features)
                metrics = recurrent.get_eval_metric_ops(
                    problem_type, prediction_type, lengths, made, labels
                )
            if mode == ModeKeys.TRAIN:
                train_op = layers.optimize_loss(
                    loss=loss, global_step=None, learning_rate=learning_rate, optimizer=optimizer,
                    clip_gradients=gradient_clipping_norm, summaries=layers.OPTIMIZER_SUMMARIES,
                )  # fmt: skip
        served = output_alternatives(prediction_type, problem_type, made)
        return ModelFnOps(mode, made, loss, train_op, metrics, served)

    return model_fn


class DynamicRnnEstimator(Estimator):
    """Classes or numbers of sequences, or of each of their steps, by a recurrent cell.

    The feature "sequence_length" says how long sequences are, if it is there. Features
    "rnn_cell_state_i" are the parts of the first state, all of them or none; predictions with
    these keys are the last one.

    Args:
        problem_type: `ProblemType.CLASSIFICATION` or `LINEAR_REGRESSION`.
        prediction_type: whether there is a value for each step; one of `PredictionType`.
        sequence_feature_columns: columns of steps.
        context_feature_columns: columns of sequences, which are beside each step.
        num_classes: how many classes there are.
        num_units: the size of the cell, or a list of sizes, one for each layer.
        cell_type: "basic_rnn", "lstm", "gru", or a class of cells.
        optimizer, learning_rate: as of `tf.contrib.layers.optimize_loss`.
        predict_probabilities: whether predictions have the probabilities of classes.
        momentum: of the optimizer "Momentum".
        gradient_clipping_norm: the norm to which gradients are clipped; none if None.
        dropout_keep_probabilities: what training keeps before each layer, and after the last.
        model_dir, feature_engineering_fn, config: see `Estimator`.

    Raises:
        ValueError: no such problem or type of predictions, or classes without their number.
    """

    def __init__(
        self, problem_type: int, prediction_type: int, sequence_feature_columns: Any,
        context_feature_columns: Any = None, num_classes: int | None = None, num_units: Any = None,
        cell_type: Any = "basic_rnn", optimizer: Any = "SGD", learning_rate: Any = 0.1,
        predict_probabilities: bool = False, momentum: float | None = None,
        gradient_clipping_norm: float | None = 5.0, dropout_keep_probabilities: Any = None,
        model_dir: str | None = None, feature_engineering_fn: Any = None, config: Any = None,
    ) -> None:  # fmt: skip
        is_class = problem_type == ProblemType.CLASSIFICATION
        target = recurrent.target_of(problem_type, num_classes)
        if optimizer == "Momentum":
            optimizer = tf.train.MomentumOptimizer(learning_rate, momentum)
        single = prediction_type == PredictionType.SINGLE_VALUE
        name = f"{'Single' if single else 'Multi'}ValueDynamicRNN"
        model_fn = model_fn_of_sequences(
            cell_type, num_units, target, problem_type, prediction_type, optimizer,
            sequence_feature_columns, context_feature_columns, predict_probabilities,
            learning_rate, gradient_clipping_norm, dropout_keep_probabilities,
            name=f"{name}{'Classifier' if is_class else 'Regressor'}",
        )  # fmt: skip
        super().__init__(model_fn, model_dir, config, feature_engineering_fn=feature_engineering_fn)
