"""Heads of `tf.contrib.learn`: what models make of logits in each mode.

A head is the last layer of a model: it says how many logits there are, and has the loss, the
predictions and the metrics of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import opdock as tf
from opdock.contrib import layers, lookup
from opdock.contrib.learn.keys import MetricKey, PredictionKey, ProblemType
from opdock.contrib.learn.model_fn import ModeKeys, ModelFnOps
from opdock.graph.nodes.composite import convert_to_tensor_or_sparse_tensor
from opdock.ops.composed.weights_broadcast import broadcast_weights

__all__ = [
    "Head", "multi_class_head", "no_op_train_fn", "poisson_regression_head", "regression_head",
]  # fmt: skip


def no_op_train_fn(loss: Any) -> Any:
    """A training function for those who train by other means."""
    del loss
    return tf.no_op()


class Head(ABC):
    """What a model makes of its logits."""

    @property
    @abstractmethod
    def logits_dimension(self) -> int:
        """How many logits an example has."""

    @abstractmethod
    def create_model_fn_ops(
        self, features: Any, mode: str, labels: Any = None,
        train_op_fn: Callable[[Any], Any] | None = None, logits: Any = None,
        logits_input: Any = None, scope: Any = None,
    ) -> ModelFnOps:  # fmt: skip
        """What a model function returns.

        Args:
            features: tensors by key.
            mode: one of `ModeKeys`.
            labels: a tensor, or tensors by key; None in the mode INFER.
            train_op_fn: a function of the loss, which gives the operation of training.
            logits: [examples, `logits_dimension`]; this or `logits_input`.
            logits_input: what a last layer makes logits of.
            scope: the variable scope.

        Raises:
            ValueError: neither or both of the logits, no such mode, or TRAIN without a function.
        """


class SingleHead(Head):
    """A head of one problem, of which subclasses have loss, predictions and metrics."""

    problem_type: int
    default_scope: str
    sdca_loss: str | None = None
    """What dual coordinate ascent calls its loss, where it can train it."""

    def __init__(
        self, dimension: int, label_name: str | None, weight_column_name: str | None,
        enable_centered_bias: bool, head_name: str | None,
    ) -> None:  # fmt: skip
        if dimension is None or dimension < 1:
            raise ValueError(f"Invalid logits_dimension {dimension}.")
        self._dimension = dimension
        self.label_name = label_name
        self.weight_column_name = weight_column_name
        self.enable_centered_bias = enable_centered_bias
        self.head_name = head_name

    @property
    def logits_dimension(self) -> int:
        """How many logits an example has."""
        return self._dimension

    def create_model_fn_ops(
        self, features: Any, mode: str, labels: Any = None,
        train_op_fn: Callable[[Any], Any] | None = None, logits: Any = None,
        logits_input: Any = None, scope: Any = None,
    ) -> ModelFnOps:  # fmt: skip
        """See `Head`."""
        if mode not in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.INFER):
            raise ValueError(f"mode={mode} unrecognized.")
        with tf.variable_scope(scope, default_name=self.head_name or self.default_scope):
            logits = self._logits(logits, logits_input)
            bias = self._centered_bias() if self.enable_centered_bias else None
            if bias is not None:
                logits = tf.nn.bias_add(logits, bias)
            predictions = self._predictions(logits)
            outputs = {self.head_name: (self.problem_type, self._served(predictions))}
            if mode == ModeKeys.INFER or labels is None:
                return ModelFnOps(
                    mode=mode, predictions=predictions, output_alternatives=outputs
                )  # fmt: skip
            labels = self._labels(labels)
            weights = self._weights(features)
            loss, average = self._loss(labels, logits, weights)
            with tf.name_scope(""):  # what it is called does not tell where the head is
                tf.summary.scalar(self._key(MetricKey.LOSS), average)
            train_op = None
            if mode == ModeKeys.TRAIN:
                if train_op_fn is None:
                    raise ValueError("train_op_fn can not be None in TRAIN mode")
                train_op = train_op_fn(loss)
                if bias is not None:
                    train_op = tf.group(train_op, self._bias_step(bias, labels, logits, weights))
            metrics = {MetricKey.LOSS: tf.metrics.mean(average)}
            metrics |= self._metrics(predictions, labels, weights)
            return ModelFnOps(
                mode=mode,
                predictions=predictions,
                loss=loss,
                train_op=train_op,
                eval_metric_ops={self._key(k): v for k, v in metrics.items()},
                output_alternatives=outputs,
            )

    def _logits(self, logits: Any, logits_input: Any) -> Any:
        if logits is not None and logits_input is not None:
            raise ValueError("Both logits and logits_input supplied.")
        if logits is None:
            if logits_input is None:
                raise ValueError("Neither logits nor logits_input supplied.")
            return layers.fully_connected(
                logits_input, self._dimension, activation_fn=None, scope="logits"
            )
        logits = tf.convert_to_tensor(logits, name="logits")
        if logits.shape.dims is not None:
            logits.shape.dims[-1].assert_is_compatible_with(self._dimension)
        return logits

    def _labels(self, labels: Any) -> Any:
        if isinstance(labels, Mapping):
            if self.label_name is None and len(labels) != 1:
                raise ValueError(f"The head has no label_name, and there are {list(labels)}.")
            labels = labels[self.label_name or next(iter(labels))]
        labels = convert_to_tensor_or_sparse_tensor(labels)
        if isinstance(labels, tf.SparseTensor):
            labels = self._dense(labels)
        return tf.expand_dims(labels, 1) if labels.shape.ndims == 1 else labels

    def _dense(self, labels: Any) -> Any:
        """What sparse labels are, where a head takes any."""
        raise ValueError("SparseTensor is not supported.")

    def _weights(self, features: Any) -> Any:
        if not self.weight_column_name:
            return None
        if self.weight_column_name not in features:
            raise ValueError(f"Weights {self.weight_column_name} missing from features.")
        weights = tf.cast(features[self.weight_column_name], tf.float32)
        return tf.reshape(weights, (-1, 1)) if weights.shape.ndims == 1 else weights

    def _key(self, name: str) -> str:
        return f"{name}/{self.head_name}" if self.head_name else name

    def _centered_bias(self) -> Any:
        bias: Any = tf.Variable(tf.zeros([self._dimension]), name="centered_bias_weight")
        for i in range(self._dimension):
            tf.summary.scalar(self._key(f"centered_bias/bias_{i}"), bias[i])
        return bias

    def _bias_step(self, bias: Any, labels: Any, logits: Any, weights: Any) -> Any:
        """The bias is trained by itself, as if there were nothing else."""
        alone = tf.zeros_like(logits) + bias
        loss, _ = self._loss(labels, alone, weights)
        return tf.train.AdagradOptimizer(0.1).minimize(loss, var_list=[bias])

    @abstractmethod
    def _loss(self, labels: Any, logits: Any, weights: Any) -> tuple[Any, Any]:
        """The loss that is trained, and the average that is told."""

    @abstractmethod
    def _predictions(self, logits: Any) -> dict[str, Any]:
        """Predictions by their keys."""

    def _served(self, predictions: dict[str, Any]) -> dict[str, Any]:
        """Predictions as a SavedModel gives them."""
        return predictions

    def _metrics(self, predictions: Any, labels: Any, weights: Any) -> dict[str, Any]:
        """Metrics beside the loss, by their keys."""
        return {}


def weighted(losses: Any, weights: Any) -> tuple[Any, Any]:
    """The sum over the number of examples, which is trained, and over that of the weights."""
    if weights is None:
        loss = tf.reduce_mean(losses, name="loss")
        return loss, loss
    weights = broadcast_weights(weights, losses)
    weighted = losses * weights
    average = tf.div(tf.reduce_sum(weighted), tf.reduce_sum(weights), name="weighted_average_loss")
    return tf.reduce_mean(weighted, name="loss"), average


class _RegressionHead(SingleHead):
    """Numbers, by the squares of their differences."""

    problem_type = ProblemType.LINEAR_REGRESSION
    default_scope = "regression_head"
    sdca_loss: str | None = "squared_loss"

    def __init__(self, link_fn: Callable[[Any], Any], *settings: Any) -> None:
        super().__init__(*settings)
        self._link_fn = link_fn

    def _loss(self, labels: Any, logits: Any, weights: Any) -> tuple[Any, Any]:
        logits.shape.assert_is_compatible_with(labels.shape)
        return weighted(tf.squared_difference(logits, tf.cast(labels, tf.float32)), weights)

    def _predictions(self, logits: Any) -> dict[str, Any]:
        if self.logits_dimension == 1:
            logits = tf.squeeze(logits, axis=[1], name=PredictionKey.SCORES)
        return {PredictionKey.SCORES: self._link_fn(logits)}


class _PoissonHead(_RegressionHead):
    """Counts, whose rates are the exponentials of the logits."""

    sdca_loss = "poisson_loss"

    def _loss(self, labels: Any, logits: Any, weights: Any) -> tuple[Any, Any]:
        logits.shape.assert_is_compatible_with(labels.shape)
        losses = tf.nn.log_poisson_loss(tf.cast(labels, tf.float32), logits, compute_full_loss=True)
        return weighted(losses, weights)


class ClassHead(SingleHead):
    """What heads of classes share: an own loss, and the metrics of a class against the others."""

    def __init__(
        self, loss_fn: Callable[..., Any] | None, thresholds: Sequence[float] | None, *settings: Any
    ) -> None:
        super().__init__(*settings)
        self._loss_fn = loss_fn
        self._thresholds = thresholds or (0.5,)

    def _loss(self, labels: Any, logits: Any, weights: Any) -> tuple[Any, Any]:
        if self._loss_fn is None:
            return weighted(self._losses(labels, logits), weights)
        given = () if weights is None else (weights,)
        loss = self._loss_fn(labels, logits, *given)
        return loss, loss

    @abstractmethod
    def _losses(self, labels: Any, logits: Any) -> Any:
        """The losses of each example."""

    def _served(self, predictions: dict[str, Any]) -> dict[str, Any]:
        """Probabilities, and what each of them is that of: servers want both of one shape."""
        chances = predictions[PredictionKey.PROBABILITIES]
        names = self._class_names(tf.shape(chances)[1])
        each = tf.tile(tf.expand_dims(names, 0), [tf.shape(chances)[0], 1], name="classes_tensor")
        return {PredictionKey.PROBABILITIES: chances, PredictionKey.CLASSES: each}

    def _class_names(self, count: Any) -> Any:
        return tf.as_string(tf.range(count))


class _BinaryLogisticHead(ClassHead):
    """Two classes, by one logit."""

    problem_type = ProblemType.LOGISTIC_REGRESSION
    default_scope = "binary_logistic_head"
    sdca_loss = "logistic_loss"

    def _losses(self, labels: Any, logits: Any) -> Any:
        return tf.nn.sigmoid_cross_entropy_with_logits(
            labels=tf.cast(labels, tf.float32), logits=logits
        )

    def _predictions(self, logits: Any) -> dict[str, Any]:
        both = tf.concat((tf.zeros_like(logits), logits), 1)
        return {
            PredictionKey.LOGITS: logits,
            PredictionKey.LOGISTIC: tf.sigmoid(logits, name=PredictionKey.LOGISTIC),
            PredictionKey.PROBABILITIES: tf.nn.softmax(both, name=PredictionKey.PROBABILITIES),
            PredictionKey.CLASSES: tf.argmax(both, 1, name=PredictionKey.CLASSES),
        }

    def _metrics(self, predictions: Any, labels: Any, weights: Any) -> dict[str, Any]:
        logistic = predictions[PredictionKey.LOGISTIC]
        classes = tf.expand_dims(predictions[PredictionKey.CLASSES], 1)
        label_mean = tf.metrics.mean(tf.cast(labels, tf.float32), weights)
        is_label = tf.cast(labels, tf.bool)
        found: dict[str, Any] = {
            MetricKey.ACCURACY: tf.metrics.accuracy(labels, classes, weights),
            MetricKey.PREDICTION_MEAN: tf.metrics.mean(logistic, weights),
            MetricKey.LABEL_MEAN: label_mean,
            MetricKey.ACCURACY_BASELINE: label_mean,
            MetricKey.AUC: tf.metrics.auc(is_label, logistic, weights),
            MetricKey.AUC_PR: tf.metrics.auc(is_label, logistic, weights, curve="PR"),
        }
        for threshold in self._thresholds:
            said = tf.cast(logistic >= threshold, tf.float32)
            precision = tf.metrics.precision_at_thresholds(is_label, logistic, [threshold], weights)
            recall = tf.metrics.recall_at_thresholds(is_label, logistic, [threshold], weights)
            found[MetricKey.ACCURACY_MEAN % threshold] = tf.metrics.accuracy(labels, said, weights)
            found[MetricKey.PRECISION_MEAN % threshold] = tuple(map(tf.squeeze, precision))
            found[MetricKey.RECALL_MEAN % threshold] = tuple(map(tf.squeeze, recall))
        return found


class _MultiClassHead(ClassHead):
    """More classes, by a logit each."""

    problem_type = ProblemType.CLASSIFICATION
    default_scope = "multi_class_head"

    def __init__(
        self, metric_class_ids: Sequence[int] | None, label_keys: Sequence[str] | None,
        *settings: Any,
    ) -> None:  # fmt: skip
        super().__init__(*settings)
        self._metric_class_ids = tuple(metric_class_ids or ())
        self._label_keys = label_keys

    def _labels(self, labels: Any) -> Any:
        labels = super()._labels(labels)
        if self._label_keys is None:
            return labels
        table = lookup.index_table_from_tensor(
            tf.constant(self._label_keys), name="label_id_lookup"
        )
        return table.lookup(labels)

    def _class_names(self, count: Any) -> Any:
        return super()._class_names(count) if self._label_keys is None else self._label_keys

    def _losses(self, labels: Any, logits: Any) -> Any:
        if not labels.dtype.is_integer:
            raise ValueError(f"Labels dtype should be integer Instead got {labels.dtype}.")
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.squeeze(labels, axis=[1]), logits=logits
        )
        return tf.expand_dims(losses, 1)

    def _predictions(self, logits: Any) -> dict[str, Any]:
        classes = tf.argmax(logits, 1, name=PredictionKey.CLASSES)
        if self._label_keys is not None:
            table = lookup.index_to_string_table_from_tensor(
                tf.constant(self._label_keys), name="class_string_lookup"
            )
            classes = table.lookup(classes)
        return {
            PredictionKey.LOGITS: logits,
            PredictionKey.PROBABILITIES: tf.nn.softmax(logits, name=PredictionKey.PROBABILITIES),
            PredictionKey.CLASSES: classes,
        }

    def _metrics(self, predictions: Any, labels: Any, weights: Any) -> dict[str, Any]:
        probabilities = predictions[PredictionKey.PROBABILITIES]
        classes = tf.expand_dims(tf.argmax(predictions[PredictionKey.LOGITS], 1), 1)
        found = {MetricKey.ACCURACY: tf.metrics.accuracy(labels, classes, weights)}
        for i in self._metric_class_ids:
            mine = probabilities[:, i : i + 1]
            is_mine = tf.equal(tf.cast(labels, tf.int64), i)
            mean = tf.metrics.mean
            found |= {
                MetricKey.CLASS_PREDICTION_MEAN % i: mean(
                    tf.cast(tf.equal(classes, i), tf.float32), weights
                ),
                MetricKey.CLASS_PROBABILITY_MEAN % i: mean(mine, weights),
                MetricKey.CLASS_LOGITS_MEAN % i: mean(
                    predictions[PredictionKey.LOGITS][:, i : i + 1], weights
                ),
                MetricKey.CLASS_LABEL_MEAN % i: mean(tf.cast(is_mine, tf.float32), weights),
                MetricKey.CLASS_AUC % i: tf.metrics.auc(is_mine, mine, weights),
                MetricKey.CLASS_AUC_PR % i: tf.metrics.auc(is_mine, mine, weights, curve="PR"),
            }
        return found


def poisson_regression_head(
    label_name: str | None = None, weight_column_name: str | None = None,
    label_dimension: int = 1, enable_centered_bias: bool = False, head_name: str | None = None,
) -> Head:  # fmt: skip
    """A head of counts, by their Poisson likelihood; its arguments are `regression_head`'s."""
    return _PoissonHead(
        tf.exp, label_dimension, label_name, weight_column_name, enable_centered_bias, head_name
    )


def regression_head(
    label_name: str | None = None, weight_column_name: str | None = None,
    label_dimension: int = 1, enable_centered_bias: bool = False, head_name: str | None = None,
    link_fn: Callable[[Any], Any] | None = None,
) -> Head:  # fmt: skip
    """A head of numbers, whose loss is the mean of squares.

    Args:
        label_name: the key of the labels, where there are several.
        weight_column_name: the feature that has the weights of examples.
        label_dimension: how many numbers an example has.
        enable_centered_bias: whether a bias is trained by itself.
        head_name: what metrics' names end with.
        link_fn: what makes predictions of logits.
    """
    return _RegressionHead(
        link_fn or tf.identity, label_dimension, label_name, weight_column_name,
        enable_centered_bias, head_name,
    )  # fmt: skip


def multi_class_head(
    n_classes: int, label_name: str | None = None, weight_column_name: str | None = None,
    enable_centered_bias: bool = False, head_name: str | None = None,
    thresholds: Sequence[float] | None = None, metric_class_ids: Sequence[int] | None = None,
    loss_fn: Callable[..., Any] | None = None, label_keys: Sequence[str] | None = None,
) -> Head:  # fmt: skip
    """A head of classes: one logit for two, else one each.

    Args:
        n_classes: how many there are.
        label_name, weight_column_name, enable_centered_bias, head_name: see `regression_head`.
        thresholds: the probabilities from which the second of two classes is meant, in metrics.
        metric_class_ids: the classes that have metrics of their own, where there are more than two.
        loss_fn: a function of labels, logits and weights, in the place of cross entropy.
        label_keys: what labels are called, where they are no numbers.

    Raises:
        ValueError: fewer than two classes, or what two classes cannot have.
    """
    if n_classes is None or n_classes < 2:
        raise ValueError(f"n_classes must be > 1 for classification: {n_classes}.")
    named = (label_name, weight_column_name, enable_centered_bias, head_name)
    if n_classes == 2:
        if metric_class_ids:
            raise ValueError("metric_class_ids invalid for n_classes==2.")
        if label_keys:
            raise ValueError("label_keys is not supported for n_classes=2.")
        return _BinaryLogisticHead(loss_fn, thresholds, 1, *named)
    if label_keys and len(label_keys) != n_classes:
        raise ValueError(f"Length of label_keys must equal n_classes: {label_keys}, {n_classes}.")
    if any(not 0 <= i < n_classes for i in metric_class_ids or ()):
        raise ValueError(f"metric_class_ids ({metric_class_ids}) not in [0, {n_classes})")
    return _MultiClassHead(metric_class_ids, label_keys, loss_fn, thresholds, n_classes, *named)
