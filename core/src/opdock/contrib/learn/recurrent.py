"""What the recurrent estimators of `tf.contrib.learn` share: cells, states, and single steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import opdock as tf
from opdock.contrib import layers, rnn
from opdock.contrib.framework import nest
from opdock.contrib.learn.keys import PredictionKey, ProblemType

__all__ = [
    "PredictionType", "RNNKeys", "apply_dropout", "build_sequence_input", "check_problem",
    "construct_rnn", "construct_rnn_cell", "dict_to_state_tuple", "get_eval_metric_ops",
    "loss_of_steps", "mask_activations_and_labels", "multi_value_predictions",
    "select_last_activations", "single_value_predictions", "state_name", "state_tuple_to_dict",
    "target_of",
]  # fmt: skip


class RNNKeys:
    """The keys of features and predictions that are the model's own."""

    FINAL_STATE_KEY: Final = "final_state"
    LABELS_KEY: Final = "__labels__"
    SEQUENCE_LENGTH_KEY: Final = "sequence_length"
    STATE_PREFIX: Final = "rnn_cell_state"


class PredictionType:
    """Whether a sequence has one value, or each of its steps."""

    SINGLE_VALUE: Final = 1
    MULTIPLE_VALUE: Final = 2


# ------------------------------------------------------------------------------- problems
def check_problem(problem_type: int, predict_probabilities: bool = False) -> None:
    """ValueError where there is no such problem, or probabilities are asked of numbers."""
    if problem_type not in (ProblemType.CLASSIFICATION, ProblemType.LINEAR_REGRESSION):
        raise ValueError(
            "problem_type must be ProblemType.LINEAR_REGRESSION or ProblemType.CLASSIFICATION; "
            f"got {problem_type}"
        )
    if predict_probabilities and problem_type != ProblemType.CLASSIFICATION:
        raise ValueError(
            "predict_probabilities can only be set to True for problem_type "
            f"ProblemType.CLASSIFICATION; got {problem_type}."
        )


def target_of(problem_type: int, num_classes: int | None) -> Any:
    """What makes losses and predictions of values; ValueError for classes without their number."""
    if problem_type != ProblemType.CLASSIFICATION:
        return layers.regression_target()
    if not num_classes:
        raise ValueError("For CLASSIFICATION problem_type, num_classes must be specified.")
    return layers.multi_class_target(num_classes)


# ---------------------------------------------------------------------------------- cells
_CELLS: Final = {"basic_rnn": rnn.BasicRNNCell, "lstm": rnn.LSTMCell, "gru": rnn.GRUCell}


def construct_rnn_cell(
    num_units: Any, cell_type: Any = "basic_rnn", dropout_keep_probabilities: Any = None
) -> Any:
    """A cell, or layers of cells.

    Args:
        num_units: the size of a cell, or a list of sizes, one for each layer.
        cell_type: "basic_rnn", "lstm", "gru", or a class of cells.
        dropout_keep_probabilities: see `apply_dropout`; no dropout if None.

    Raises:
        ValueError: there is no such kind of cells.
    """
    sizes = num_units if isinstance(num_units, list | tuple) else [num_units]
    kind = _CELLS.get(cell_type, cell_type)
    if not (isinstance(kind, type) and issubclass(kind, rnn.RNNCell)):
        raise ValueError(f"The supported cell types are {list(_CELLS)}; got {cell_type}")
    cells = [kind(num_units=size) for size in sizes]
    if dropout_keep_probabilities:
        cells = apply_dropout(cells, dropout_keep_probabilities)
    return cells[0] if len(cells) == 1 else rnn.MultiRNNCell(cells)


def apply_dropout(
    cells: Sequence[Any], dropout_keep_probabilities: Sequence[Any], random_seed: int | None = None
) -> list[Any]:
    """Cells with dropout before each of them, and after the last.

    Args:
        cells: the cells.
        dropout_keep_probabilities: what is kept before each cell, and after the last one.
        random_seed: the seed of the choice.

    Raises:
        ValueError: there are not as many probabilities.
    """
    before, after = dropout_keep_probabilities[:-1], dropout_keep_probabilities[-1]
    if len(before) != len(cells):
        raise ValueError(
            "The number of dropout probabilities must be one greater than the number of cells. "
            f"Got {len(cells)} cells and {len(dropout_keep_probabilities)} dropout probabilities."
        )
    kept = [1.0] * (len(cells) - 1) + [after]
    return [
        rnn.DropoutWrapper(cell, first, last, seed=random_seed)
        for cell, first, last in zip(cells, before, kept, strict=True)
    ]


# --------------------------------------------------------------------------------- states
def state_name(i: int) -> str:
    """The key of a part of the state."""
    return f"{RNNKeys.STATE_PREFIX}_{i}"


def state_tuple_to_dict(state: Any) -> dict[str, Any]:
    """The parts of a state by their keys, in the order in which they are nested."""
    with tf.name_scope("state_tuple_to_dict"):
        parts = {state_name(i): part for i, part in enumerate(nest.flatten(state))}
        return {
            name: None if part is None else tf.identity(part, name=name)
            for name, part in parts.items()
        }


def dict_to_state_tuple(input_dict: Mapping[str, Any], cell: Any) -> Any:
    """The state that has these parts, or None where there are none.

    Args:
        input_dict: tensors by key, and others.
        cell: whose state it is.

    Raises:
        ValueError: some parts are there and others are not.
    """
    sizes = nest.flatten(cell.state_size)
    given = [input_dict.get(state_name(i)) for i in range(len(sizes))]
    known = [part for part in given if part is not None]
    if not known:
        return None
    if len(known) != len(sizes):
        raise ValueError(
            "RNN state was partially specified. "
            f"Expected zero or {len(sizes)} state Tensors; got {len(known)}"
        )
    with tf.name_scope("dict_to_state_tuple"):
        parts = [_checked(part, size, i) for i, (part, size) in enumerate(zip(known, sizes))]
    return nest.pack_sequence_as(cell.zero_state(batch_size=1, dtype=tf.bool), parts)


def _checked(part: Any, size: int, i: int) -> Any:
    part = tf.convert_to_tensor(part)
    rank = tf.assert_rank(part, 2, name=f"check_state_{i}_rank")
    width = tf.assert_equal(tf.shape(part)[1], size, name=f"check_state_{i}_shape")
    with tf.control_dependencies([check for check in (rank, width) if check is not None]):
        return tf.identity(part, name=state_name(i))


# ------------------------------------------------------------------------- input and steps
def build_sequence_input(
    features: Mapping[Any, Any], sequence_feature_columns: Any, context_feature_columns: Any,
    weight_collections: Any = None, scope: Any = None,
) -> Any:  # fmt: skip
    """The columns of sequences side by side, with those of examples beside each step.

    Args:
        features: tensors by key.
        sequence_feature_columns: columns of steps.
        context_feature_columns: columns of examples, or None.
        weight_collections: collections for the variables.
        scope: the variable scope.

    Returns:
        A tensor [examples, steps, values].
    """
    columns = [*sequence_feature_columns, *(context_feature_columns or ())]
    made = {**features, **layers.transform_features(dict(features), columns)}
    steps = layers.sequence_input_from_feature_columns(
        columns_to_tensors=made, feature_columns=sequence_feature_columns,
        weight_collections=weight_collections, scope=scope,
    )  # fmt: skip
    if context_feature_columns is None:
        return steps
    context = layers.input_from_feature_columns(
        columns_to_tensors=made, feature_columns=context_feature_columns,
        weight_collections=weight_collections, scope=scope,
    )  # fmt: skip
    return _beside_each_step(steps, context)


def _beside_each_step(steps: Any, context: Any) -> Any:
    """[examples, steps, values of both]; ValueError where the ranks are not 3 and 2."""
    for name, given, rank in (("sequence_input", steps, 3), ("context_input", context, 2)):
        if given.shape.ndims not in (None, rank):
            raise ValueError(f"{name} must have rank {rank}, not {given.shape.ndims}")
    repeated = tf.tile(tf.expand_dims(context, 1), [1, tf.shape(steps)[1], 1])
    return tf.concat([steps, repeated], 2)


def construct_rnn(
    initial_state: Any, sequence_input: Any, cell: Any, num_label_columns: int,
    dtype: Any = tf.float32, parallel_iterations: int | None = 32, swap_memory: bool = True,
) -> tuple[Any, Any]:  # fmt: skip
    """A cell over the steps of sequences, with a layer over its outputs.

    Args:
        initial_state: the state before the first step; zero if None.
        sequence_input: [examples, steps, values].
        cell: the cell.
        num_label_columns: how many values each step has then.
        dtype, parallel_iterations, swap_memory: see `tf.nn.dynamic_rnn`.

    Returns:
        Activations [examples, steps, num_label_columns], and the last state.
    """
    with tf.name_scope("RNN"):
        outputs, state = tf.nn.dynamic_rnn(
            cell=cell, inputs=sequence_input, initial_state=initial_state, dtype=dtype,
            parallel_iterations=parallel_iterations, swap_memory=swap_memory,
        )  # fmt: skip
        return layers.fully_connected(outputs, num_label_columns, activation_fn=None), state


def select_last_activations(activations: Any, sequence_lengths: Any) -> Any:
    """[examples, values]: the last step of each sequence; that of the longest if None."""
    with tf.name_scope("select_last_activations"):
        activations = tf.convert_to_tensor(activations)
        if sequence_lengths is None:
            return activations[:, -1]
        rows = tf.range(tf.shape(activations)[0])
        last = tf.cast(sequence_lengths, tf.int32) - 1
        return tf.gather_nd(activations, tf.stack([rows, last], 1))


def mask_activations_and_labels(
    activations: Any, labels: Any, sequence_lengths: Any
) -> tuple[Any, Any]:
    """The steps that sequences have, one after the other, and their labels.

    Args:
        activations: [examples, steps, ...].
        labels: [examples, steps].
        sequence_lengths: [examples]; all steps if None.
    """
    with tf.name_scope("mask_activations_and_labels"):
        shape = tf.shape(labels)
        if sequence_lengths is None:
            count = shape[0] * shape[1]
            return tf.reshape(activations, [count, -1]), tf.reshape(labels, [count])
        mask = tf.sequence_mask(sequence_lengths, shape[1])
        return tf.boolean_mask(activations, mask), tf.boolean_mask(labels, mask)


def loss_of_steps(
    target_column: Any, activations: Any, labels: Any, sequence_lengths: Any, features: Any
) -> Any:
    """The loss of all steps that sequences have; see `mask_activations_and_labels`."""
    with tf.name_scope("MultiValueLoss"):
        masked = mask_activations_and_labels(activations, labels, sequence_lengths)
        return target_column.loss(*masked, features)


# ----------------------------------------------------------------------------- predictions
def _key(problem_type: int) -> str:
    is_class = problem_type == ProblemType.CLASSIFICATION
    return PredictionKey.CLASSES if is_class else PredictionKey.SCORES


def single_value_predictions(
    activations: Any, sequence_length: Any, target_column: Any, problem_type: int,
    predict_probabilities: bool,
) -> dict[str, Any]:  # fmt: skip
    """Predictions of each sequence, from its last step; see `multi_value_predictions`."""
    with tf.name_scope("SingleValuePrediction"):
        last = select_last_activations(activations, sequence_length)
        if not predict_probabilities:
            return {_key(problem_type): target_column.logits_to_predictions(last, proba=False)}
        chances = target_column.logits_to_predictions(last, proba=True)
        return {
            PredictionKey.PROBABILITIES: chances,
            _key(problem_type): tf.argmax(chances, 1),
        }


def multi_value_predictions(
    activations: Any, target_column: Any, problem_type: int, predict_probabilities: bool
) -> dict[str, Any]:
    """Predictions of each step, also of those after the end of a sequence.

    Args:
        activations: [examples, steps, values].
        target_column: what makes predictions of values.
        problem_type: one of `ProblemType`.
        predict_probabilities: whether the probabilities of classes are there as well.
    """
    with tf.name_scope("MultiValuePrediction"):
        shape = tf.shape(activations)
        flat = tf.reshape(activations, [-1, shape[2]])
        made: dict[str, Any] = {}
        if predict_probabilities:
            chances = target_column.logits_to_predictions(flat, proba=True)
            predictions = tf.argmax(chances, 1)
            # Two classes have one logit and two probabilities.
            each = tf.concat([shape[:2], tf.shape(chances)[1:]], 0)
            name = PredictionKey.PROBABILITIES
            made[name] = tf.reshape(chances, each, name=name)
        else:
            predictions = target_column.logits_to_predictions(flat, proba=False)
        name = _key(problem_type)
        made[name] = tf.reshape(predictions, shape[:2], name=name)
        return made


def get_eval_metric_ops(
    problem_type: int, prediction_type: int, sequence_length: Any,
    prediction_dict: Mapping[str, Any], labels: Any,
) -> dict[str, Any]:  # fmt: skip
    """The accuracy of classes, over the steps that sequences have; of numbers, nothing."""
    if problem_type != ProblemType.CLASSIFICATION:
        return {}
    classes = prediction_dict[PredictionKey.CLASSES]
    if prediction_type == PredictionType.MULTIPLE_VALUE:
        classes, labels = mask_activations_and_labels(classes, labels, sequence_length)
    return {"accuracy": tf.metrics.accuracy(labels, classes)}
