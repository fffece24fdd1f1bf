"""What model functions of `tf.contrib.learn` are asked for, and what they return."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Self

import opdock as tf
from opdock.graph.nodes.composite import convert_to_tensor_or_sparse_tensor
from opdock.train.loops.hook import SessionRunHook

__all__ = ["ModeKeys", "ModelFnOps"]


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
