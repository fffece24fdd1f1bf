"""What a model of TensorFlow's first year is trained for: a loss, predictions and metrics.

The heads of `tf.contrib.learn` have taken its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from opdock import dtypes, metrics
from opdock.graph.nodes.scopes import control_dependencies
from opdock.ops.argmax import argmax
from opdock.ops.array import expand_dims, rank, reshape, shape, squeeze
from opdock.ops.cast import cast
from opdock.ops.check import Assert
from opdock.ops.compare import greater_equal, less_equal
from opdock.ops.elementary import sigmoid
from opdock.ops.fill import zeros_like
from opdock.ops.identity import identity
from opdock.ops.joining import concat
from opdock.ops.loss import sigmoid_cross_entropy_with_logits
from opdock.ops.nn import relu
from opdock.ops.reduce import reduce_mean, reduce_sum
from opdock.ops.xent import softmax, sparse_softmax_cross_entropy_with_logits

__all__ = [
    "ProblemType", "TargetColumn", "binary_svm_target", "get_default_binary_metrics_for_eval",
    "multi_class_target", "regression_target",
]  # fmt: skip

_Metric = Callable[..., tuple[Any, Any]]


class ProblemType:
    """The kind of problem that a model solves, by which signatures of exports are chosen."""

    UNSPECIFIED: Final = 0
    CLASSIFICATION: Final = 1
    LINEAR_REGRESSION: Final = 2
    LOGISTIC_REGRESSION: Final = 3


def regression_target(
    label_name: str | None = None, weight_column_name: str | None = None, label_dimension: int = 1
) -> TargetColumn:
    """Numbers, by the mean of squares.

    Args:
        label_name: the key of the labels, where they are a dict.
        weight_column_name: the feature that says how much an example counts.
        label_dimension: how many numbers an example has.
    """
    return _Regression(
        _squares, label_dimension, label_name, weight_column_name, ProblemType.LINEAR_REGRESSION
    )


def multi_class_target(
    n_classes: int, label_name: str | None = None, weight_column_name: str | None = None
) -> TargetColumn:
    """One of several classes, by the cross entropy.

    Args:
        n_classes: how many there are; two have one logit.
        label_name, weight_column_name: see `regression_target`.

    Raises:
        ValueError: there are fewer than two classes.
    """
    if n_classes < 2:
        raise ValueError("n_classes must be > 1 for classification.")
    loss, columns = (_of_two, 1) if n_classes == 2 else (_of_several, n_classes)
    return _Classes(loss, columns, label_name, weight_column_name, ProblemType.CLASSIFICATION)


def binary_svm_target(
    label_name: str | None = None, weight_column_name: str | None = None
) -> TargetColumn:
    """One of two classes, by the hinge loss.

    Args:
        label_name, weight_column_name: see `regression_target`.
    """
    return _Margin(_hinge, 1, label_name, weight_column_name, ProblemType.CLASSIFICATION)


class TargetColumn:
    """What the functions of this module give.

    Args:
        loss_fn: the losses of logits and labels, example by example.
        num_label_columns: how many logits an example has.
        label_name, weight_column_name: see `regression_target`.
        problem_type: one of `ProblemType`.
    """

    def __init__(
        self, loss_fn: Callable[[Any, Any], Any], num_label_columns: int, label_name: str | None,
        weight_column_name: str | None, problem_type: Any,
    ) -> None:  # fmt: skip
        self._loss_fn, self.num_label_columns = loss_fn, num_label_columns
        self.label_name, self.weight_column_name = label_name, weight_column_name
        self.problem_type = problem_type

    def logits_to_predictions(self, logits: Any, proba: bool = False) -> Any:
        """What the model says; probabilities, where there are some and `proba` asks for them."""
        raise NotImplementedError

    def get_eval_ops(
        self, features: Any, logits: Any, labels: Any, metrics: Any = None
    ) -> dict[str, Any]:
        """Metrics by name, each a value and an operation that brings it up to date."""
        raise NotImplementedError

    def get_weight_tensor(self, features: Mapping[str, Any]) -> Any:
        """How much each example counts, or None."""
        if not self.weight_column_name:
            return None
        return reshape(cast(features[self.weight_column_name], dtypes.float32), [-1])

    def training_loss(
        self, logits: Any, target: Any, features: Any, name: str = "training_loss"
    ) -> Any:
        """The weighted losses, divided by the number of examples.

        Args:
            logits: a float tensor.
            target: the labels, or a dict that has them.
            features: a dict of tensors.
            name: a name for the operation.
        """
        losses, weights = self._losses(logits, target, features)
        if weights is not None:
            losses = reshape(losses, [-1]) * weights
        return reduce_mean(losses, name=name)

    def loss(self, logits: Any, target: Any, features: Any) -> Any:
        """The weighted losses, divided by the weights; see `training_loss`."""
        losses, weights = self._losses(logits, target, features)
        if weights is None:
            return reduce_mean(losses, name="loss")
        total = reduce_sum(reshape(losses, [-1]) * weights) / reduce_sum(weights)
        return identity(total, name="loss")

    def _losses(self, logits: Any, target: Any, features: Any) -> tuple[Any, Any]:
        labels = target[self.label_name] if isinstance(target, dict) else target
        return self._loss_fn(logits, labels), self.get_weight_tensor(features)

    def _run(self, asked: Any, predictions: Any, labels: Any, features: Any) -> dict[str, Any]:
        weights = self.get_weight_tensor(features)
        given = {} if weights is None else {"weights": weights}
        labels = cast(labels, predictions.dtype)
        return {name: metric(predictions, labels, **given) for name, metric in asked.items()}


class _Regression(TargetColumn):
    def logits_to_predictions(self, logits: Any, proba: bool = False) -> Any:
        return squeeze(logits, axis=[1]) if self.num_label_columns == 1 else logits

    def get_eval_ops(
        self, features: Any, logits: Any, labels: Any, metrics: Any = None
    ) -> dict[str, Any]:
        said = self.logits_to_predictions(logits)
        result = {"loss": _mean(self.loss(logits, labels, features))}
        return {**result, **self._run(metrics or {}, said, labels, features)}


class _Classes(TargetColumn):
    def logits_to_predictions(self, logits: Any, proba: bool = False) -> Any:
        if self.num_label_columns == 1:
            logits = concat([zeros_like(logits), logits], 1)
        return softmax(logits) if proba else argmax(logits, 1)

    def get_eval_ops(
        self, features: Any, logits: Any, labels: Any, metrics: Any = None
    ) -> dict[str, Any]:
        result = {"loss": _mean(self.loss(logits, labels, features))}
        if self.num_label_columns == 1:
            said, truth = sigmoid(logits), cast(labels, dtypes.float32)
            for name, metric in get_default_binary_metrics_for_eval([0.5]).items():
                result[name] = metric(said, truth)
        if metrics is None:
            metrics = {("accuracy", "classes"): _accuracy}
        by_kind: dict[str, dict[str, _Metric]] = {"classes": {}, "probabilities": {}}
        for key, metric in metrics.items():
            name, kind = _named(key)
            by_kind[kind][name] = metric
        for kind, asked in by_kind.items():
            if asked:
                said = self.logits_to_predictions(logits, proba=kind == "probabilities")
                result.update(self._run(asked, said, labels, features))
        return result


class _Margin(_Classes):
    def logits_to_predictions(self, logits: Any, proba: bool = False) -> Any:
        if proba:
            raise ValueError("logits to probabilities is not supported for a binary SVM target")
        return super().logits_to_predictions(logits)


def _named(key: Any) -> tuple[str, str]:
    """A metric's name, and what it looks at: classes, unless the key says otherwise."""
    if isinstance(key, str):
        return key, "classes"
    if not isinstance(key, tuple):
        raise ValueError(f"Ignoring metric {key}. Its name is not in the correct form.")
    if len(key) != 2:
        raise ValueError(
            f"Ignoring metric {key}. It returned a tuple with len {len(key)}, expected 2."
        )
    if key[1] not in ("classes", "probabilities"):
        raise ValueError(
            f"Ignoring metric {key}. The 2nd element of its name should be either 'classes' or "
            "'probabilities'."
        )
    return key


# ------------------------------------------------------------------------------------ losses
def _column(labels: Any) -> Any:
    return expand_dims(labels, axis=1) if labels.shape.ndims == 1 else labels


def _squares(logits: Any, labels: Any) -> Any:
    labels = _column(labels)
    logits.shape.assert_is_compatible_with(labels.shape)
    return (logits - cast(labels, dtypes.float32)) ** 2


def _of_two(logits: Any, labels: Any) -> Any:
    truth = cast(_column(labels), dtypes.float32)
    return sigmoid_cross_entropy_with_logits(labels=truth, logits=logits)


def _of_several(logits: Any, labels: Any) -> Any:
    if not labels.dtype.is_integer:
        raise ValueError(f"Target's dtype should be integer Instead got {labels.dtype}.")
    if labels.shape.ndims == 2:
        labels = squeeze(labels, axis=[1])
    return sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def _hinge(logits: Any, labels: Any) -> Any:
    told = "target's shape should be either [batch_size, 1] or [batch_size]"
    with control_dependencies([Assert(less_equal(rank(labels), 2), [told])]):
        truth = cast(reshape(labels, [shape(labels)[0], 1]), dtypes.float32)
    return relu(1 - (2 * truth - 1) * logits)


# ------------------------------------------------------------------------------------ metrics
def _mean(values: Any, weights: Any = None) -> tuple[Any, Any]:
    return metrics.mean(values, weights)


def _accuracy(predictions: Any, labels: Any, weights: Any = None) -> tuple[Any, Any]:
    return metrics.accuracy(labels, predictions, weights)


def get_default_binary_metrics_for_eval(thresholds: list[float]) -> dict[str, _Metric]:
    """Metrics of probabilities and labels of two classes, by name.

    Args:
        thresholds: from which probabilities on an example is said to be of the second class.

    Returns:
        A dict of functions of predictions, labels and weights.
    """

    def of_labels(predictions: Any, labels: Any, weights: Any = None) -> tuple[Any, Any]:
        return _mean(labels, weights)

    def of_predictions(predictions: Any, labels: Any, weights: Any = None) -> tuple[Any, Any]:
        return _mean(predictions, weights)

    def auc(predictions: Any, labels: Any, weights: Any = None) -> tuple[Any, Any]:
        return metrics.auc(labels, predictions, weights)

    found: dict[str, _Metric] = {
        "labels/prediction_mean": of_predictions, "labels/actual_target_mean": of_labels,
        "accuracy/baseline_target_mean": of_labels, "auc": auc,
    }  # fmt: skip
    for threshold in thresholds:
        found[f"accuracy/threshold_{threshold:f}_mean"] = _accuracy_at(threshold)
        for name, metric in (
            ("precision", metrics.precision_at_thresholds),
            ("recall", metrics.recall_at_thresholds),
        ):
            found[f"{name}/positive_threshold_{threshold:f}_mean"] = _at(metric, threshold)
    return found


def _accuracy_at(threshold: float) -> _Metric:
    def metric(predictions: Any, labels: Any, weights: Any = None) -> tuple[Any, Any]:
        return _accuracy(cast(greater_equal(predictions, threshold), dtypes.float32), labels,
                         weights)  # fmt: skip

    return metric


def _at(function: Callable[..., tuple[Any, Any]], threshold: float) -> _Metric:
    def metric(predictions: Any, labels: Any, weights: Any = None) -> tuple[Any, Any]:
        value, update = function(labels, predictions, [threshold], weights)
        return squeeze(value), update

    return metric
