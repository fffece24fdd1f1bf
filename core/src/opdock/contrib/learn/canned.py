"""The ready-made estimators of `tf.contrib.learn`: linear, deep, and both together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from opdock.contrib.learn.canned_model import Deep, Nothing, Part, Wide, model_fn_of
from opdock.contrib.learn.dual_ascent import ascent_of
from opdock.contrib.learn.estimator import Estimator
from opdock.contrib.learn.head import Head, multi_class_head, regression_head
from opdock.contrib.learn.hinge_head import binary_svm_head
from opdock.contrib.learn.keys import PredictionKey
from opdock.contrib.learn.metric_spec import MetricSpec
from opdock.contrib.linear_optimizer import SDCAOptimizer

__all__ = [
    "SVM", "DNNClassifier", "DNNEstimator", "DNNLinearCombinedClassifier",
    "DNNLinearCombinedEstimator", "DNNLinearCombinedRegressor", "DNNRegressor", "DebugClassifier",
    "DebugRegressor", "LinearClassifier", "LinearEstimator", "LinearRegressor",
]  # fmt: skip


_SCORES: Final = PredictionKey.SCORES


class _Canned(Estimator):
    """An estimator of parts and a head, with what predicts one thing."""

    default_output: str | None = None

    def __init__(
        self, head: Head, parts: Sequence[Part], gradient_clip_norm: float | None,
        model_dir: str | None, config: Any, feature_engineering_fn: Any,
    ) -> None:  # fmt: skip
        first = parts[0]
        if isinstance(first, Wide) and isinstance(first.optimizer, SDCAOptimizer):
            model_fn = ascent_of(head, first, first.optimizer)
        else:
            model_fn = model_fn_of(head, parts, gradient_clip_norm)
        super().__init__(model_fn, model_dir, config, feature_engineering_fn=feature_engineering_fn)

    def predict(
        self, x: Any = None, input_fn: Any = None, batch_size: int | None = None,
        outputs: Any = None, as_iterable: bool = True, iterate_batches: bool = False,
    ) -> Any:  # fmt: skip
        """See `BaseEstimator.predict`; without `outputs`, the classes or the scores."""
        if not outputs and self.default_output is not None:
            return self._one(self.default_output, x, input_fn, batch_size, as_iterable)
        return super().predict(x, input_fn, batch_size, outputs, as_iterable, iterate_batches)

    def _one(
        self, key: str, x: Any, input_fn: Any, batch_size: int | None, as_iterable: bool
    ) -> Any:
        found = super().predict(x, input_fn, batch_size, [key], as_iterable)
        return _of_each(found, key) if as_iterable else found[key]


def _of_each(predictions: Iterator[Any], key: str) -> Iterator[Any]:
    return (prediction[key] for prediction in predictions)


class _Classifier(_Canned):
    default_output: str | None = PredictionKey.CLASSES

    def predict_classes(
        self, x: Any = None, input_fn: Any = None, batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:  # fmt: skip
        """The class of each example."""
        return self._one(PredictionKey.CLASSES, x, input_fn, batch_size, as_iterable)

    def predict_proba(
        self, x: Any = None, input_fn: Any = None, batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:  # fmt: skip
        """The probabilities of all classes for each example."""
        return self._one(PredictionKey.PROBABILITIES, x, input_fn, batch_size, as_iterable)


class _Regressor(_Canned):
    default_output: str | None = PredictionKey.SCORES

    def predict_scores(
        self, x: Any = None, input_fn: Any = None, batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:  # fmt: skip
        """The numbers of each example."""
        return self._one(PredictionKey.SCORES, x, input_fn, batch_size, as_iterable)

    def _evaluate_model(
        self, input_fn: Callable[[], Any], steps: int | None, feed_fn: Any, metrics: Any,
        name: str | None, checkpoint_path: str | None, hooks: Any, log_progress: bool,
    ) -> dict[str, Any]:  # fmt: skip
        # There is but one prediction, so a metric need not name it.
        whole = {
            key if isinstance(key, tuple) or isinstance(m, MetricSpec) else (key, _SCORES): m
            for key, m in metrics.items()
        }
        return super()._evaluate_model(
            input_fn, steps, feed_fn, whole, name, checkpoint_path, hooks, log_progress
        )


class LinearClassifier(_Classifier):
    """Classes by sums of weights; see `multi_class_head`, `Wide` and `BaseEstimator`."""

    def __init__(
        self, feature_columns: Any, model_dir: str | None = None, n_classes: int = 2,
        weight_column_name: str | None = None, optimizer: Any = None,
        gradient_clip_norm: float | None = None, enable_centered_bias: bool = False,
        _joint_weight: bool = False, config: Any = None, feature_engineering_fn: Any = None,
        label_keys: Any = None,
    ) -> None:  # fmt: skip
        head = multi_class_head(
            n_classes, weight_column_name=weight_column_name,
            enable_centered_bias=enable_centered_bias, label_keys=label_keys,
        )  # fmt: skip
        part = Wide(_columns(feature_columns), optimizer, _joint_weight)
        super().__init__(
            head, [part], gradient_clip_norm, model_dir, config, feature_engineering_fn
        )  # fmt: skip


class LinearRegressor(_Regressor):
    """Numbers by sums of weights; see `regression_head`, `Wide` and `BaseEstimator`."""

    def __init__(
        self, feature_columns: Any, model_dir: str | None = None,
        weight_column_name: str | None = None, optimizer: Any = None,
        gradient_clip_norm: float | None = None, enable_centered_bias: bool = False,
        label_dimension: int = 1, _joint_weights: bool = False, config: Any = None,
        feature_engineering_fn: Any = None,
    ) -> None:  # fmt: skip
        head = regression_head(
            weight_column_name=weight_column_name, label_dimension=label_dimension,
            enable_centered_bias=enable_centered_bias,
        )  # fmt: skip
        part = Wide(_columns(feature_columns), optimizer, _joint_weights)
        super().__init__(
            head, [part], gradient_clip_norm, model_dir, config, feature_engineering_fn
        )  # fmt: skip


class LinearEstimator(_Canned):
    """A head over sums of weights; see `Wide` and `BaseEstimator`."""

    def __init__(
        self, feature_columns: Any, head: Head, model_dir: str | None = None,
        weight_column_name: str | None = None, optimizer: Any = None,
        gradient_clip_norm: float | None = None, _joint_weights: bool = False, config: Any = None,
        feature_engineering_fn: Any = None,
    ) -> None:  # fmt: skip
        del weight_column_name  # the head has its own
        if isinstance(optimizer, SDCAOptimizer):
            raise ValueError("LinearEstimator does not support SDCA optimizer.")
        part = Wide(_columns(feature_columns), optimizer, _joint_weights)
        super().__init__(
            head, [part], gradient_clip_norm, model_dir, config, feature_engineering_fn
        )  # fmt: skip


class SVM(_Classifier):
    """Two classes by a linear support vector machine, which dual coordinate ascent trains.

    Args:
        example_id_column: the feature that has a string for each example, unlike all others.
        feature_columns: the columns, of numbers and of ids.
        weight_column_name: the feature that has the weights of examples.
        model_dir: where checkpoints go.
        l1_regularization, l2_regularization, num_loss_partitions: see `SDCAOptimizer`.
        kernels: None.
        config: a `RunConfig`.
        feature_engineering_fn: see `Estimator`.

    Raises:
        ValueError: kernels are given, or no columns.
    """

    default_output = None

    def __init__(
        self, example_id_column: str, feature_columns: Any, weight_column_name: str | None = None,
        model_dir: str | None = None, l1_regularization: float = 0.0,
        l2_regularization: float = 0.0, num_loss_partitions: int = 1, kernels: Any = None,
        config: Any = None, feature_engineering_fn: Any = None,
    ) -> None:  # fmt: skip
        if kernels is not None:
            raise ValueError("Kernel SVMs are not currently supported.")
        optimizer = SDCAOptimizer(
            example_id_column, num_loss_partitions,
            symmetric_l1_regularization=l1_regularization,
            symmetric_l2_regularization=l2_regularization,
        )  # fmt: skip
        head = binary_svm_head(weight_column_name=weight_column_name)
        part = Wide(_columns(feature_columns), optimizer)
        super().__init__(head, [part], None, model_dir, config, feature_engineering_fn)


class DNNClassifier(_Classifier):
    """Classes by fully connected layers; see `multi_class_head`, `Deep` and `BaseEstimator`."""

    def __init__(
        self, hidden_units: Any, feature_columns: Any, model_dir: str | None = None,
        n_classes: int = 2, weight_column_name: str | None = None, optimizer: Any = None,
        activation_fn: Any = None, dropout: float | None = None,
        gradient_clip_norm: float | None = None, enable_centered_bias: bool = False,
        config: Any = None, feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None, input_layer_min_slice_size: int | None = None,
        label_keys: Any = None,
    ) -> None:  # fmt: skip
        head = multi_class_head(
            n_classes, weight_column_name=weight_column_name,
            enable_centered_bias=enable_centered_bias, label_keys=label_keys,
        )  # fmt: skip
        part = Deep(
            _columns(feature_columns), hidden_units, optimizer, activation_fn, dropout,
            embedding_lr_multipliers, input_layer_min_slice_size,
        )  # fmt: skip
        super().__init__(
            head, [part], gradient_clip_norm, model_dir, config, feature_engineering_fn
        )  # fmt: skip


class DNNRegressor(_Regressor):
    """Numbers by fully connected layers; see `regression_head`, `Deep` and `BaseEstimator`."""

    def __init__(
        self, hidden_units: Any, feature_columns: Any, model_dir: str | None = None,
        weight_column_name: str | None = None, optimizer: Any = None, activation_fn: Any = None,
        dropout: float | None = None, gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False, config: Any = None,
        feature_engineering_fn: Any = None, label_dimension: int = 1,
        embedding_lr_multipliers: Any = None, input_layer_min_slice_size: int | None = None,
    ) -> None:  # fmt: skip
        head = regression_head(
            weight_column_name=weight_column_name, label_dimension=label_dimension,
            enable_centered_bias=enable_centered_bias,
        )  # fmt: skip
        part = Deep(
            _columns(feature_columns), hidden_units, optimizer, activation_fn, dropout,
            embedding_lr_multipliers, input_layer_min_slice_size,
        )  # fmt: skip
        super().__init__(
            head, [part], gradient_clip_norm, model_dir, config, feature_engineering_fn
        )  # fmt: skip


class DNNEstimator(_Canned):
    """A head over fully connected layers; see `Deep` and `BaseEstimator`."""

    def __init__(
        self, head: Head, hidden_units: Any, feature_columns: Any, model_dir: str | None = None,
        optimizer: Any = None, activation_fn: Any = None, dropout: float | None = None,
        gradient_clip_norm: float | None = None, config: Any = None,
        feature_engineering_fn: Any = None, embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: int | None = None,
    ) -> None:  # fmt: skip
        part = Deep(
            _columns(feature_columns), hidden_units, optimizer, activation_fn, dropout,
            embedding_lr_multipliers, input_layer_min_slice_size,
        )  # fmt: skip
        super().__init__(
            head, [part], gradient_clip_norm, model_dir, config, feature_engineering_fn
        )  # fmt: skip


class DNNLinearCombinedEstimator(_Canned):
    """A head over the sum of a linear and a deep part, each with its optimizer.

    Raises:
        ValueError: no columns at all, or deep ones without hidden units.
    """

    def __init__(
        self, head: Head, model_dir: str | None = None, linear_feature_columns: Any = None,
        linear_optimizer: Any = None, _joint_linear_weights: bool = False,
        dnn_feature_columns: Any = None, dnn_optimizer: Any = None, dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = None, dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None, config: Any = None,
        feature_engineering_fn: Any = None, embedding_lr_multipliers: Any = None,
        fix_global_step_increment_bug: bool = False,
        input_layer_min_slice_size: int | None = None,
    ) -> None:  # fmt: skip
        del fix_global_step_increment_bug  # a step counts once
        parts: list[Wide | Deep] = []
        if dnn_feature_columns:
            if not dnn_hidden_units:
                raise ValueError(
                    "dnn_hidden_units must be defined when dnn_feature_columns is specified."
                )
            parts.append(
                Deep(
                    _columns(dnn_feature_columns), dnn_hidden_units, dnn_optimizer,
                    dnn_activation_fn, dnn_dropout, embedding_lr_multipliers,
                    input_layer_min_slice_size,
                )
            )  # fmt: skip
        if linear_feature_columns:
            linear = _columns(linear_feature_columns)
            parts.append(Wide(linear, linear_optimizer, _joint_linear_weights))
        if not parts:
            raise ValueError(
                "Either linear_feature_columns or dnn_feature_columns must be defined."
            )
        super().__init__(head, parts, gradient_clip_norm, model_dir, config, feature_engineering_fn)


class DNNLinearCombinedClassifier(DNNLinearCombinedEstimator, _Classifier):
    """Classes by both parts; see `multi_class_head` and `DNNLinearCombinedEstimator`."""

    def __init__(
        self, model_dir: str | None = None, n_classes: int = 2,
        weight_column_name: str | None = None, linear_feature_columns: Any = None,
        linear_optimizer: Any = None, _joint_linear_weights: bool = False,
        dnn_feature_columns: Any = None, dnn_optimizer: Any = None, dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = None, dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None, enable_centered_bias: bool = False,
        config: Any = None, feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None, input_layer_min_slice_size: int | None = None,
        label_keys: Any = None, fix_global_step_increment_bug: bool = False,
    ) -> None:  # fmt: skip
        head = multi_class_head(
            n_classes, weight_column_name=weight_column_name,
            enable_centered_bias=enable_centered_bias, label_keys=label_keys,
        )  # fmt: skip
        super().__init__(
            head, model_dir, linear_feature_columns, linear_optimizer, _joint_linear_weights,
            dnn_feature_columns, dnn_optimizer, dnn_hidden_units, dnn_activation_fn, dnn_dropout,
            gradient_clip_norm, config, feature_engineering_fn, embedding_lr_multipliers,
            fix_global_step_increment_bug, input_layer_min_slice_size,
        )  # fmt: skip


class DNNLinearCombinedRegressor(DNNLinearCombinedEstimator, _Regressor):
    """Numbers by both parts; see `regression_head` and `DNNLinearCombinedEstimator`."""

    def __init__(
        self, model_dir: str | None = None, weight_column_name: str | None = None,
        linear_feature_columns: Any = None, linear_optimizer: Any = None,
        _joint_linear_weights: bool = False, dnn_feature_columns: Any = None,
        dnn_optimizer: Any = None, dnn_hidden_units: Any = None, dnn_activation_fn: Any = None,
        dnn_dropout: float | None = None, gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False, label_dimension: int = 1, config: Any = None,
        feature_engineering_fn: Any = None, embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: int | None = None,
        fix_global_step_increment_bug: bool = False,
    ) -> None:  # fmt: skip
        head = regression_head(
            weight_column_name=weight_column_name, label_dimension=label_dimension,
            enable_centered_bias=enable_centered_bias,
        )  # fmt: skip
        super().__init__(
            head, model_dir, linear_feature_columns, linear_optimizer, _joint_linear_weights,
            dnn_feature_columns, dnn_optimizer, dnn_hidden_units, dnn_activation_fn, dnn_dropout,
            gradient_clip_norm, config, feature_engineering_fn, embedding_lr_multipliers,
            fix_global_step_increment_bug, input_layer_min_slice_size,
        )  # fmt: skip


class DebugClassifier(_Classifier):
    """How often the classes were there, whatever the features: what a real one has to surpass.

    See `multi_class_head`, `Nothing` and `BaseEstimator`.
    """

    default_output = None

    def __init__(
        self, model_dir: str | None = None, n_classes: int = 2,
        weight_column_name: str | None = None, config: Any = None,
        feature_engineering_fn: Any = None, label_keys: Any = None,
    ) -> None:  # fmt: skip
        head = multi_class_head(
            n_classes, weight_column_name=weight_column_name, enable_centered_bias=True,
            label_keys=label_keys,
        )  # fmt: skip
        super().__init__(head, [Nothing()], None, model_dir, config, feature_engineering_fn)


class DebugRegressor(_Regressor):
    """The mean of the numbers, whatever the features; see `DebugClassifier`."""

    default_output = None

    def __init__(
        self, model_dir: str | None = None, label_dimension: int = 1,
        weight_column_name: str | None = None, config: Any = None,
        feature_engineering_fn: Any = None,
    ) -> None:  # fmt: skip
        head = regression_head(
            weight_column_name=weight_column_name, label_dimension=label_dimension,
            enable_centered_bias=True,
        )  # fmt: skip
        super().__init__(head, [Nothing()], None, model_dir, config, feature_engineering_fn)


def _columns(given: Any) -> tuple[Any, ...]:
    """The columns, which an iterator gives once; ValueError where there are none."""
    found = tuple(given or ())
    if not found:
        raise ValueError("feature_columns must be defined: the model has no input.")
    return found
