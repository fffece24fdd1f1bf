"""The estimator of `tf.contrib.learn` of long sequences, which are trained a segment at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import opdock as tf
from opdock.contrib import layers, training
from opdock.contrib.framework import nest
from opdock.contrib.learn import recurrent
from opdock.contrib.learn.estimator import Estimator
from opdock.contrib.learn.keys import ProblemType
from opdock.contrib.learn.model_fn import ModeKeys, ModelFnOps
from opdock.contrib.learn.recurrent import PredictionType, RNNKeys, state_name

__all__ = [
    "StateSavingRnnEstimator", "construct_state_saving_rnn", "features_by_step",
    "model_fn_of_segments", "sequences_and_context",
]  # fmt: skip


def construct_state_saving_rnn(
    cell: Any, inputs: Any, num_label_columns: int, state_saver: Any, state_name: Any,
    scope: str = "rnn",
) -> tuple[Any, Any]:  # fmt: skip
    """A cell over the steps of segments, with a layer over its outputs.

    Args:
        cell: the cell.
        inputs: a list of the steps' tensors [examples, values].
        num_label_columns: how many values each step has then.
        state_saver: where the states come from and go to; see `tf.nn.static_state_saving_rnn`.
        state_name: its names for them, nested as the cell's states are.
        scope: the name scope.

    Returns:
        Activations [examples, steps, num_label_columns], and the last state.
    """
    with tf.name_scope(scope):
        outputs, state = tf.nn.static_state_saving_rnn(
            cell=cell, inputs=inputs, state_saver=state_saver, state_name=state_name, scope=scope
        )
        activations = layers.fully_connected(
            tf.stack(outputs, axis=1), num_label_columns, activation_fn=None
        )
        parts = [tf.identity(part, RNNKeys.FINAL_STATE_KEY) for part in nest.flatten(state)]
        return activations, nest.pack_sequence_as(state, parts)


def sequences_and_context(
    features: Mapping[str, Any], labels: Any, mode: str, sequence_feature_columns: Any,
    context_feature_columns: Any,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """The features of steps, labels among them, and those of whole sequences.

    Raises:
        ValueError: a feature is not there.
    """
    sequences = _chosen(features, sequence_feature_columns, "sequence")
    if mode != ModeKeys.INFER:
        sequences[RNNKeys.LABELS_KEY] = labels
    return sequences, _chosen(features, context_feature_columns or (), "context")


def _chosen(features: Mapping[str, Any], columns: Any, kind: str) -> dict[str, Any]:
    names = dict.fromkeys(name for column in columns for name in column.config)
    for name in names:
        if features.get(name) is None:
            raise ValueError(f"No key in features for {kind} feature: {name}")
    return {name: features[name] for name in names}


def _names_of_states(cell: Any) -> Any:
    """A name for each state of a cell, nested as `tf.nn.static_state_saving_rnn` asks for them."""
    size = cell.state_size
    if isinstance(size, tf.TensorShape):
        raise TypeError("cell.state_size of type TensorShape is not supported.")
    if isinstance(size, int):
        return state_name(0)
    if isinstance(size, tf.nn.rnn_cell.LSTMStateTuple):
        return _of_lstm(0)
    if isinstance(size[0], tf.nn.rnn_cell.LSTMStateTuple):
        return [_of_lstm(i) for i in range(len(size))]
    return [state_name(i) for i in range(len(size))]


def _of_lstm(i: int) -> list[str]:
    return [f"{state_name(i)}_c", f"{state_name(i)}_h"]


def features_by_step(
    sequence_features: dict[str, Any], context_features: Mapping[str, Any],
    sequence_feature_columns: Any, num_unroll: int,
) -> list[Any]:  # fmt: skip
    """The steps' tensors [examples, values], with the context's values in each.

    Args:
        sequence_features: tensors [examples, steps, ...] by name.
        context_features: tensors [examples, 1] by name.
        sequence_feature_columns: columns of steps.
        num_unroll: how many steps there are.
    """
    for feature in sequence_features.values():
        if isinstance(feature, tf.SparseTensor):
            feature.dense_shape.set_shape([3])
    steps = layers.sequence_input_from_feature_columns(
        columns_to_tensors=sequence_features, feature_columns=sequence_feature_columns
    )
    steps.set_shape([None, num_unroll, None])
    if context_features:
        whole = tf.concat([context_features[name] for name in sorted(context_features)], 1)
        repeated = tf.tile(tf.expand_dims(whole, 1), [1, num_unroll, 1])
        steps = tf.concat([steps, repeated], axis=2)
    return list(tf.unstack(steps, axis=1))


def model_fn_of_segments(
    cell_type: Any, target_column: Any, problem_type: int, optimizer: Any, num_unroll: int,
    num_units: Any, num_threads: int, queue_capacity: int, batch_size: int,
    sequence_feature_columns: Any, context_feature_columns: Any = None,
    predict_probabilities: bool = False, learning_rate: Any = None,
    gradient_clipping_norm: float | None = None, dropout_keep_probabilities: Any = None,
    name: str = "StateSavingRNNModel", seed: int | None = None,
) -> Callable[..., ModelFnOps]:  # fmt: skip
    """A model function of segments of sequences; see `StateSavingRnnEstimator`.

    Raises:
        ValueError: no such problem, probabilities of numbers, or no steps.
    """
    recurrent.check_problem(problem_type, predict_probabilities)
    if num_unroll <= 0:
        raise ValueError(f"num_unroll must be positive; got {num_unroll}.")

    def batch_of(cell: Any, features: Any, labels: Any, mode: str) -> Any:
        names = nest.flatten(_names_of_states(cell))
        zeros = nest.flatten(cell.zero_state(1, dtype=tf.float32))
        sequences, context = sequences_and_context(
            features, labels, mode, sequence_feature_columns, context_feature_columns
        )
        return training.batch_sequences_with_states(
            input_key="key", input_sequences=sequences, input_context=context, input_length=None,
            initial_states={n: tf.squeeze(z, axis=0) for n, z in zip(names, zeros, strict=True)},
            num_unroll=num_unroll, batch_size=batch_size, pad=True, make_keys_unique=True,
            make_keys_unique_seed=seed, num_threads=num_threads, capacity=queue_capacity,
        )  # fmt: skip

    def model_fn(features: Any, labels: Any, mode: str) -> ModelFnOps:
        with tf.name_scope(name):
            dropout = dropout_keep_probabilities if mode == ModeKeys.TRAIN else None
            cell = recurrent.construct_rnn_cell(num_units, cell_type, dropout)
            batch = batch_of(cell, features, labels, mode)
            sequences = batch.sequences
            if mode != ModeKeys.INFER:
                labels = sequences.pop(RNNKeys.LABELS_KEY)
            steps = features_by_step(sequences, batch.context, sequence_feature_columns, num_unroll)
            activations, state = construct_state_saving_rnn(
                cell, steps, target_column.num_label_columns, batch, _names_of_states(cell)
            )
            made = recurrent.multi_value_predictions(
                activations, target_column, problem_type, predict_probabilities
            )
            loss = metrics = train_op = None
            if mode != ModeKeys.INFER:
                loss = recurrent.loss_of_steps(
                    target_column, activations, labels, batch.length, features
                )
                metrics = recurrent.get_eval_metric_ops(
                    problem_type, PredictionType.MULTIPLE_VALUE, batch.length, made, labels
                )
            made |= recurrent.state_tuple_to_dict(state)
            if mode == ModeKeys.TRAIN:
                train_op = layers.optimize_loss(
                    loss=loss, global_step=None, learning_rate=learning_rate, optimizer=optimizer,
                    clip_gradients=gradient_clipping_norm, summaries=layers.OPTIMIZER_SUMMARIES,
                )  # fmt: skip
        return ModelFnOps(mode, made, loss, train_op, metrics)

    return model_fn


class StateSavingRnnEstimator(Estimator):
    """Classes or numbers of the steps of sequences of any length, by a recurrent cell.

    The input function gives one sequence a step. A queue cuts them into segments of `num_unroll`
    steps, and a segment begins with the state that the one before it has left.

    Args:
        problem_type: `ProblemType.CLASSIFICATION` or `LINEAR_REGRESSION`.
        num_unroll: how many steps a segment has.
        batch_size: how many segments, of different sequences, a step of training takes.
        sequence_feature_columns: columns of steps.
        context_feature_columns: columns of numbers of sequences, which are beside each step.
        num_classes: how many classes there are.
        num_units: the size of the cell, or a list of sizes, one for each layer.
        cell_type: "basic_rnn", "lstm", "gru", or a class of cells.
        optimizer_type, learning_rate: as of `tf.contrib.layers.optimize_loss`.
        predict_probabilities: whether predictions have the probabilities of classes.
        momentum: of the optimizer "Momentum".
        gradient_clipping_norm: the norm to which gradients are clipped; none if None.
        dropout_keep_probabilities: what training keeps before each layer, and after the last.
        model_dir, config, feature_engineering_fn: see `Estimator`.
        num_threads: how many threads bring sequences to the queue.
        queue_capacity: how many sequences are in the queue at most.
        seed: of the keys that sequences get.

    Raises:
        ValueError: no such problem, or classes without their number.
    """

    def __init__(
        self, problem_type: int, num_unroll: int, batch_size: int, sequence_feature_columns: Any,
        context_feature_columns: Any = None, num_classes: int | None = None, num_units: Any = None,
        cell_type: Any = "basic_rnn", optimizer_type: Any = "SGD", learning_rate: Any = 0.1,
        predict_probabilities: bool = False, momentum: float | None = None,
        gradient_clipping_norm: float | None = 5.0, dropout_keep_probabilities: Any = None,
        model_dir: str | None = None, config: Any = None, feature_engineering_fn: Any = None,
        num_threads: int = 3, queue_capacity: int = 1000, seed: int | None = None,
    ) -> None:  # fmt: skip
        recurrent.check_problem(problem_type)
        if optimizer_type == "Momentum":
            optimizer_type = tf.train.MomentumOptimizer(learning_rate, momentum)
        is_class = problem_type == ProblemType.CLASSIFICATION
        model_fn = model_fn_of_segments(
            cell_type, recurrent.target_of(problem_type, num_classes), problem_type,
            optimizer_type, num_unroll, num_units, num_threads, queue_capacity, batch_size,
            sequence_feature_columns, context_feature_columns, predict_probabilities,
            learning_rate, gradient_clipping_norm, dropout_keep_probabilities,
            f"MultiValueStateSavingRNN{'Classifier' if is_class else 'Regressor'}", seed,
        )  # fmt: skip
        super().__init__(model_fn, model_dir, config, feature_engineering_fn=feature_engineering_fn)
