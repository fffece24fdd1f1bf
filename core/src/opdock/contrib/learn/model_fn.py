"""What model functions of `tf.contrib.learn` are asked for, and what they return."""

from __future__ import annotations

import importlib
from typing import Any, Final, NamedTuple, Self

import opdock as tf
from opdock.contrib.layers.target_column import ProblemType
from opdock.contrib.learn.keys import MetricKey, PredictionKey
from opdock.graph.nodes.composite import convert_to_tensor_or_sparse_tensor
from opdock.train.loops.hook import SessionRunHook

__all__ = ["ModeKeys", "ModelFnOps"]

_SERVING: Final = "serving_default"


class ModeKeys:
    """The modes in which a model is built."""

    TRAIN: Final = "train"
    EVAL: Final = "eval"
    INFER: Final = "infer"

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises ValueError for any other mode."""
        if key not in (cls.TRAIN, cls.EVAL, cls.INFER):
            raise ValueError(f"Invalid mode {key}.")


class _Fields(NamedTuple):
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: dict[Any, Any]
    output_alternatives: dict[Any, Any] | None
    training_chief_hooks: list[SessionRunHook]
    training_hooks: list[SessionRunHook]
    scaffold: Any
    mode: str


class ModelFnOps(_Fields):
    """What a model function built.

    Args:
        mode: one of `ModeKeys`.
        predictions: a tensor, or tensors by name.
        loss: a scalar.
        train_op: the operation of one step of training.
        eval_metric_ops: pairs of a value and its update by name.
        output_alternatives: (problem type, tensors by name) by the names of heads.
        training_chief_hooks: hooks for the chief's training.
        training_hooks: hooks for the training of each worker.
        scaffold: a `tf.train.Scaffold`.

    Raises:
        ValueError: the mode needs what is not given, or the loss is no scalar.
        TypeError: a hook is none.
    """

    __slots__ = ()

    def __new__(
        cls, mode: str, predictions: Any = None, loss: Any = None, train_op: Any = None,
        eval_metric_ops: dict[Any, Any] | None = None,
        output_alternatives: dict[Any, Any] | None = None,
        training_chief_hooks: Any = None, training_hooks: Any = None, scaffold: Any = None,
    ) -> Self:  # fmt: skip
        """Checks what was built; see the class."""
        ModeKeys.validate(mode)
        if train_op is None and mode == ModeKeys.TRAIN:
            raise ValueError("Missing train_op.")
        if train_op is not None and not isinstance(train_op, tf.Operation):
            train_op = tf.convert_to_tensor(train_op).op
        if loss is None and mode != ModeKeys.INFER:
            raise ValueError("Missing loss.")
        if predictions is None and mode != ModeKeys.TRAIN:
            raise ValueError("Missing predictions.")
        if eval_metric_ops is not None and not isinstance(eval_metric_ops, dict):
            raise ValueError("eval_metric_ops must be a dict.")
        hooks = [*(training_hooks or ()), *(training_chief_hooks or ())]
        for hook in hooks:
            if not isinstance(hook, SessionRunHook):
                raise TypeError(
                    "All hooks returned from model_fn must be SessionRunHook instances, got "
                    f"instance of {type(hook)}: {hook}"
                )
        return super().__new__(
            cls, _tensors(predictions), _scalar(loss), train_op,
            {} if eval_metric_ops is None else eval_metric_ops, output_alternatives,
            list(training_chief_hooks or ()), list(training_hooks or ()), scaffold, mode,
        )  # fmt: skip

    def estimator_spec(self, default_serving_output_alternative_key: Any = None) -> Any:
        """The `tf.estimator.EstimatorSpec` that says the same.

        Args:
            default_serving_output_alternative_key: of several heads, the one that is served where
                a request names none.

        Raises:
            ValueError: a problem type is unknown.
        """
        heads = dict(self.output_alternatives or {})
        if len(heads) > 1:
            heads.setdefault(_SERVING, heads[default_serving_output_alternative_key])
        metrics = {k: v for k, v in self.eval_metric_ops.items() if k != MetricKey.LOSS}
        return _estimator().EstimatorSpec(
            mode=self.mode,  # the same words in both
            predictions=self.predictions,
            loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops=metrics,
            export_outputs={k: _export_output(*head) for k, head in heads.items()} or None,
            training_chief_hooks=self.training_chief_hooks,
            training_hooks=self.training_hooks,
            scaffold=self.scaffold,
        )


def _estimator() -> Any:
    """`tf.estimator`, a library that comes when it is asked for."""
    return importlib.import_module("opdock").estimator


def _export_output(problem_type: Any, predictions: dict[Any, Any]) -> Any:
    scores = predictions.get(PredictionKey.SCORES)
    if scores is None:
        scores = predictions.get(PredictionKey.PROBABILITIES)
    export = _estimator().export
    if problem_type == ProblemType.LINEAR_REGRESSION:
        return export.RegressionOutput(scores)
    if problem_type in (ProblemType.CLASSIFICATION, ProblemType.LOGISTIC_REGRESSION):
        classes = predictions.get(PredictionKey.CLASSES)
        if classes is not None and classes.dtype != tf.string:
            tf.logging.warning("classes is not string, and classes are served as strings only.")
            classes = None
        return export.ClassificationOutput(scores=scores, classes=classes)
    if problem_type == ProblemType.UNSPECIFIED:
        return export.PredictOutput(predictions)
    raise ValueError(f"Unknown problem_type={problem_type}")


def _scalar(loss: Any) -> Any:
    if loss is None:
        return None
    loss = tf.convert_to_tensor(loss)
    if loss.shape.num_elements() not in (None, 1):
        raise ValueError(f"Loss must be scalar: {loss}.")
    return loss if loss.shape.is_compatible_with([]) else tf.reshape(loss, [])


def _tensors(predictions: Any) -> Any:
    if predictions is None:
        return None
    if isinstance(predictions, dict):
        return {k: convert_to_tensor_or_sparse_tensor(v) for k, v in predictions.items()}
    return convert_to_tensor_or_sparse_tensor(predictions)
