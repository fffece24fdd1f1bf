"""Heads of `tf.contrib.learn` beside one another: several problems, and losses of none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import opdock as tf
from opdock.contrib.learn.head import Head, no_op_train_fn
from opdock.contrib.learn.keys import MetricKey
from opdock.contrib.learn.model_fn import ModeKeys, ModelFnOps

__all__ = ["loss_only_head", "multi_head"]


class _LossOnlyHead(Head):
    """A loss that asks for no logits and no labels, and predicts nothing."""

    def __init__(self, loss_fn: Callable[[], Any], head_name: str | None = None) -> None:
        self._loss_fn = loss_fn
        self.head_name = head_name or "loss_only_head"

    @property
    def logits_dimension(self) -> int:
        """None are asked for."""
        return 0

    def create_model_fn_ops(
        self, features: Any, mode: str, labels: Any = None,
        train_op_fn: Callable[[Any], Any] | None = None, logits: Any = None,
        logits_input: Any = None, scope: Any = None,
    ) -> ModelFnOps:  # fmt: skip
        """See `Head`; of the tensors, none is used."""
        ModeKeys.validate(mode)
        if mode == ModeKeys.INFER:
            return ModelFnOps(mode, predictions={})
        with tf.variable_scope(scope, default_name=self.head_name):
            loss = self._loss_fn()
            if isinstance(loss, list):
                loss = tf.add_n(loss)
            with tf.name_scope(""):  # what it is called does not tell where the head is
                tf.summary.scalar(f"{MetricKey.LOSS}/{self.head_name}", loss)
            train_op = _given(train_op_fn)(loss) if mode == ModeKeys.TRAIN else None
        return ModelFnOps(mode, predictions={}, loss=loss, train_op=train_op)


class _MultiHead(Head):
    """Heads whose losses are added, and whose logits are side by side."""

    def __init__(self, heads: Sequence[Any], loss_weights: Sequence[float] | None) -> None:
        for head in heads:
            if not head.head_name:
                raise ValueError("Members of MultiHead must have names.")
        self._heads = list(heads)
        self._loss_weights = loss_weights

    @property
    def logits_dimension(self) -> int:
        """How many logits all heads have together."""
        return sum(head.logits_dimension for head in self._heads)

    def create_model_fn_ops(
        self, features: Any, mode: str, labels: Any = None,
        train_op_fn: Callable[[Any], Any] | None = None, logits: Any = None,
        logits_input: Any = None, scope: Any = None,
    ) -> ModelFnOps:  # fmt: skip
        """See `Head`; the logits of the heads may also be given by the heads' names."""
        ModeKeys.validate(mode)
        made = [
            head.create_model_fn_ops(
                features=features, mode=mode, labels=labels, train_op_fn=no_op_train_fn,
                logits=mine, logits_input=logits_input, scope=scope,
            )
            for head, mine in zip(self._heads, self._each(logits), strict=True)
        ]  # fmt: skip
        predictions = {
            (head.head_name, key): value
            for head, ops in zip(self._heads, made, strict=True)
            for key, value in (ops.predictions or {}).items()
        }
        if mode == ModeKeys.INFER:
            outputs: dict[Any, Any] = {}
            for ops in made:
                outputs |= ops.output_alternatives or {}
            return ModelFnOps(mode, predictions, output_alternatives=outputs)
        metrics = {key: value for ops in made for key, value in ops.eval_metric_ops.items()}
        loss = self._joint_loss([ops.loss for ops in made])
        if mode == ModeKeys.EVAL:
            return ModelFnOps(mode, predictions, loss, eval_metric_ops=metrics)
        # A head may train something of its own, as its bias.
        train_op = tf.group(_given(train_op_fn)(loss), *(ops.train_op for ops in made))
        return ModelFnOps(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)

    def _each(self, logits: Any) -> Iterator[Any]:
        """The logits of each head, or None where they are made of what comes before them."""
        begin = 0
        for head in self._heads:
            size = head.logits_dimension
            if logits is None or size == 0:
                yield None
            elif isinstance(logits, Mapping):
                yield logits[head.head_name]
            else:
                yield tf.slice(logits, [0, begin], [-1, size])
            begin += size

    def _joint_loss(self, losses: list[Any]) -> Any:
        if self._loss_weights:
            losses = [
                loss * weight for loss, weight in zip(losses, self._loss_weights, strict=True)
            ]
        return tf.add_n(losses)


def _given(train_op_fn: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    if train_op_fn is None:
        raise ValueError("train_op_fn can not be None in TRAIN mode.")
    return train_op_fn


def loss_only_head(loss_fn: Callable[[], Any], head_name: str | None = None) -> Head:
    """A head of a loss that no label has a part in, as a regularizer is; see `multi_head`.

    Args:
        loss_fn: a function without arguments that gives a scalar, or a list of them to be added.
        head_name: what its summary's name ends with; "loss_only_head" if None.
    """
    return _LossOnlyHead(loss_fn, head_name)


def multi_head(heads: Sequence[Head], loss_weights: Sequence[float] | None = None) -> Head:
    """A head of several problems at once.

    The predictions of a head are under pairs of its name and their keys.

    Args:
        heads: the heads, each with a name.
        loss_weights: what their losses are multiplied by before they are added; 1 if None.

    Raises:
        ValueError: a head has no name, or there are not as many weights.
    """
    if loss_weights and len(loss_weights) != len(heads):
        raise ValueError("heads and loss_weights must have same size")
    return _MultiHead(heads, loss_weights)
