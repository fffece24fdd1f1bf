"""A metric of `tf.contrib.learn`, and which predictions, labels and weights it is of."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

__all__ = ["MetricSpec", "metric_ops"]

# What functions call the arguments of a metric.
_LABELS: Final = ("labels", "label", "targets", "target")
_PREDICTIONS: Final = ("predictions", "prediction", "logits", "logit")
_WEIGHTS: Final = ("weights", "weight")


class MetricSpec:
    """A metric function with the keys of what it is given.

    Args:
        metric_fn: a function whose arguments are named labels, predictions and weights, or nearly
            so. It is given no labels where none is named so, and predictions as the first other
            argument where none is.
        prediction_key: which prediction; needed where there are several.
        label_key: which labels, likewise.
        weight_key: the feature that has the weights.

    Raises:
        ValueError: the function takes no labels or weights and there is a key for them, or several
            of its arguments may be the same.
    """

    def __init__(
        self, metric_fn: Callable[..., Any], prediction_key: str | None = None,
        label_key: str | None = None, weight_key: str | None = None,
    ) -> None:  # fmt: skip
        self._metric_fn = metric_fn
        self._prediction_key = prediction_key
        self._label_key = label_key
        self._weight_key = weight_key
        self._arguments = _arguments(metric_fn)
        self._labels_name = self._named(_LABELS, label_key)
        self._predictions_name = self._named(_PREDICTIONS)
        self._weights_name = self._named(_WEIGHTS, weight_key)

    def _named(self, known: tuple[str, ...], key: str | None = None) -> str | None:
        """What the function calls one of its arguments; None if it has none such."""
        found = [name for name in self._arguments if name in known]
        if len(found) > 1:
            raise ValueError(f"Ambiguous arguments {found}, must provide only one of {known}.")
        if not found and key is not None:
            raise ValueError(f"{known} missing from {self._metric_fn}{self._arguments}.")
        return found[0] if found else None

    prediction_key = property(lambda self: self._prediction_key, doc="Which prediction.")
    label_key = property(lambda self: self._label_key, doc="Which labels.")
    weight_key = property(lambda self: self._weight_key, doc="Which feature has the weights.")
    metric_fn = property(lambda self: self._metric_fn, doc="The function.")

    def __str__(self) -> str:
        fn = self._metric_fn
        while hasattr(fn, "func"):
            fn = fn.func
        return (
            f"MetricSpec(metric_fn={getattr(fn, '__name__', fn)}, "
            f"prediction_key={self._prediction_key}, label_key={self._label_key}, "
            f"weight_key={self._weight_key})"
        )

    def create_metric_ops(self, inputs: Any, labels: Any, predictions: Any) -> Any:
        """What the function makes of these.

        Args:
            inputs: features, a tensor or by key.
            labels, predictions: likewise.

        Raises:
            ValueError: a key names nothing, or there are several and no key.
        """
        said = _of(predictions, self._prediction_key, "prediction_key", "predictions")
        known = _of(labels, self._label_key, "label_key", "labels")
        named: dict[Any, Any] = {}
        first: list[Any] = []
        if self._weight_key:
            named[self._weights_name] = _of(inputs, self._weight_key, "weight_key", "inputs")
        if self._predictions_name is not None:
            named[self._predictions_name] = said
        else:
            first.append(said)
        if self._labels_name is not None:
            # Predictions come by position, so labels before them do too.
            if first and self._labels_name == self._arguments[0]:
                first.insert(0, known)
            else:
                named[self._labels_name] = known
        return self._metric_fn(*first, **named)


def _arguments(fn: Callable[..., Any]) -> tuple[str, ...]:
    """The names of what a function still takes."""
    if isinstance(fn, functools.partial):
        return tuple(name for name in _arguments(fn.func) if name not in fn.keywords)
    try:
        return tuple(inspect.signature(fn).parameters)
    except (TypeError, ValueError):  # a builtin says nothing of its arguments
        return ()


def _of(values: Any, key: str | None, key_name: str, name: str) -> Any:
    if key is None:
        if not isinstance(values, Mapping):
            return values
        if len(values) == 1:
            return next(iter(values.values()))
        raise ValueError(
            f"MetricSpec without specified {key_name} requires {name} tensor or single element "
            f"dictionary, got {values}"
        )
    if not isinstance(values, Mapping):
        raise ValueError(
            f"MetricSpec with {key_name} specified requires {name} dict, got {name} of type "
            f"{type(values)} ({key_name}={key!r})"
        )
    if key not in values:
        raise KeyError(f"MetricSpec with {key_name} {key!r}: not in {name}, {list(values)}")
    return values[key]


def metric_ops(
    metrics: Mapping[Any, Any], features: Any, labels: Any, predictions: Any
) -> dict[Any, Any]:
    """What metrics make of the results of a model, by the names of the metrics.

    Args:
        metrics: `MetricSpec`s by name; or functions of predictions and labels, by name or by
            (name, prediction).
        features, labels, predictions: tensors, or tensors by key.

    Raises:
        ValueError: the metrics do not fit what there is.
    """
    alone = labels
    if isinstance(labels, Mapping) and len(labels) == 1:
        alone = next(iter(labels.values()))
    made = {}
    for name, metric in sorted(metrics.items(), key=lambda item: str(item[0])):
        if isinstance(metric, MetricSpec):
            made[name] = metric.create_metric_ops(features, labels, predictions)
        elif isinstance(name, tuple):
            if len(name) != 2:
                raise ValueError(
                    f"Invalid metric for {name}. It returned a tuple with len {len(name)}, "
                    "expected 2."
                )
            if not isinstance(predictions, Mapping):
                raise ValueError(
                    "Metrics passed provide (name, prediction), but predictions are not dict. "
                    f"Metrics: {metrics}, Predictions: {predictions}."
                )
            both = isinstance(labels, Mapping) and name[1] in labels
            made[name[0]] = metric(predictions[name[1]], labels[name[1]] if both else alone)
        elif isinstance(predictions, Mapping):
            raise ValueError(
                "Metrics passed provide only name, no prediction, but predictions are dict. "
                f"Metrics: {metrics}, Labels: {alone}."
            )
        else:
            made[name] = metric(predictions, alone)
    return made
