"""The results of a model that an export offers, each with the signature that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from opdock import dtypes
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.saved_model import signature_def_utils


class ExportOutput:
    """Results that know the signature they are served under."""

    _SEPARATOR_CHAR: ClassVar = "/"

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """The SignatureDef from these inputs to the results."""
        raise NotImplementedError


def _name(key: Any, what: str) -> str:
    if isinstance(key, tuple):
        key = ExportOutput._SEPARATOR_CHAR.join(key)
    if not isinstance(key, str):
        raise ValueError(f"{what} output key must be a string; got {key}.")
    return key


def _named(outputs: Any, default: str, what: str) -> dict[str, Tensor]:
    """Results by name; a single one gets the name `default`."""
    if not isinstance(outputs, dict):
        outputs = {default: outputs}
    named = {_name(key, what): value for key, value in outputs.items()}
    for value in named.values():
        if not isinstance(value, Tensor):
            raise ValueError(f"{what} output value must be a Tensor; got {value}.")
    return named


def _serialized(receiver_tensors: Mapping[str, Any], what: str) -> Any:
    """The one input, serialized examples, that classification and regression have."""
    inputs = list(receiver_tensors.values())
    if len(inputs) != 1 or dtypes.as_dtype(inputs[0].dtype) != dtypes.string:
        raise ValueError(f"{what} input must be a single string Tensor; got {receiver_tensors}")
    return inputs[0]


def _is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype.is_floating


class ClassificationOutput(ExportOutput):
    """Classes, or their scores, or both.

    Args:
        scores: a float tensor [batch, n], or None.
        classes: a string tensor [batch, n], or None.

    Raises:
        ValueError: a type is another one, or both are None.
    """

    def __init__(self, scores: Any = None, classes: Any = None) -> None:
        if scores is not None and not _is_float(scores):
            raise ValueError(f"Classification scores must be a float32 Tensor; got {scores}")
        words = isinstance(classes, Tensor) and classes.dtype.base_dtype == dtypes.string
        if classes is not None and not words:
            raise ValueError(f"Classification classes must be a string Tensor; got {classes}")
        if scores is None and classes is None:
            raise ValueError("At least one of scores and classes must be set.")
        self.scores = scores
        self.classes = classes

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """The signature of method classify."""
        examples = _serialized(receiver_tensors, "Classification")
        return signature_def_utils.classification_signature_def(examples, self.classes, self.scores)


class RegressionOutput(ExportOutput):
    """Numbers.

    Raises:
        ValueError: `value` is no float tensor.
    """

    def __init__(self, value: Any) -> None:
        if not _is_float(value):
            raise ValueError(f"Regression output value must be a float32 Tensor; got {value}")
        self.value = value

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """The signature of method regress."""
        examples = _serialized(receiver_tensors, "Regression")
        return signature_def_utils.regression_signature_def(examples, self.value)


class PredictOutput(ExportOutput):
    """Any results: a tensor, or tensors by name.

    Raises:
        ValueError: a key is no string, or a value no tensor.
    """

    def __init__(self, outputs: Any) -> None:
        self.outputs = _named(outputs, "output", "Prediction")

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """The signature of method predict."""
        return signature_def_utils.predict_signature_def(receiver_tensors, self.outputs)


class _SupervisedOutput(ExportOutput):
    """Loss, predictions and metrics, of a training or evaluation step.

    Raises:
        ValueError: a key is no string, or a value no tensor.
    """

    LOSS_NAME = "loss"
    PREDICTIONS_NAME = "predictions"
    METRICS_NAME = "metrics"
    METRIC_VALUE_SUFFIX = "value"
    METRIC_UPDATE_SUFFIX = "update_op"
    _signature: ClassVar[Callable[..., Any]]

    def __init__(self, loss: Any = None, predictions: Any = None, metrics: Any = None) -> None:
        self.loss = self._part(loss, self.LOSS_NAME)
        self.predictions = self._part(predictions, self.PREDICTIONS_NAME)
        self.metrics = None if metrics is None else self._measured(metrics)

    def _part(self, outputs: Any, name: str) -> dict[str, Tensor] | None:
        if outputs is None:
            return None
        return {self._below(k, name): v for k, v in _named(outputs, name, name).items()}

    def _below(self, key: str, name: str) -> str:
        return key if key.startswith(name) else f"{name}{self._SEPARATOR_CHAR}{key}"

    def _measured(self, metrics: Any) -> dict[str, Tensor]:
        if not isinstance(metrics, dict):
            metrics = {self.METRICS_NAME: metrics}
        outputs: dict[str, Tensor] = {}
        for given, pair in metrics.items():
            value, update = pair if isinstance(pair, tuple) else (pair.result(), *pair.updates)
            key = self._below(_name(given, self.METRICS_NAME), self.METRICS_NAME)
            if not isinstance(value, Tensor):
                raise ValueError(f"{key} output value must be a Tensor; got {value}.")
            if not isinstance(update, Tensor | Operation):
                raise ValueError(f"{key} update_op must be a Tensor or Operation; got {update}.")
            if isinstance(update, Operation):
                with control_dependencies([update]):
                    update = constant([], name="metric_op_wrapper")
            outputs[f"{key}/{self.METRIC_VALUE_SUFFIX}"] = value
            outputs[f"{key}/{self.METRIC_UPDATE_SUFFIX}"] = update
        return outputs

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """The signature of the step."""
        make = type(self)._signature
        return make(receiver_tensors, self.loss, self.predictions, self.metrics)


class TrainOutput(_SupervisedOutput):
    """The results of a training step."""

    _signature = staticmethod(signature_def_utils.supervised_train_signature_def)


class EvalOutput(_SupervisedOutput):
    """The results of an evaluation step."""

    _signature = staticmethod(signature_def_utils.supervised_eval_signature_def)
