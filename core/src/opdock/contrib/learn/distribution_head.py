"""The head of `tf.contrib.distributions` for regression with a whole distribution as prediction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import opdock as tf
from opdock.contrib.learn.head import _RegressionHead, weighted

__all__ = ["estimator_head_distribution_regression"]


class _DistributionHead(_RegressionHead):
    """Labels are as likely as a distribution says that a model's logits are parameters of."""

    sdca_loss = None

    def __init__(self, make_distribution_fn: Callable[[Any], Any], *settings: Any) -> None:
        if not callable(make_distribution_fn):
            raise TypeError("`make_distribution_fn` must be a callable function.")
        super().__init__(lambda logits: self.distribution(logits).mean(), *settings)
        self._make = make_distribution_fn
        self.distributions: dict[Any, Any] = {}

    def distribution(self, logits: Any, name: str | None = None) -> Any:
        """The distribution of these logits, which is made once."""
        with tf.name_scope(name, "distribution", [logits]):
            if logits not in self.distributions:
                self.distributions[logits] = self._make(logits)
            return self.distributions[logits]

    def _loss(self, labels: Any, logits: Any, weights: Any) -> tuple[Any, Any]:
        made = self.distribution(logits)
        shape = tf.concat([tf.shape(labels)[:-1], made.event_shape_tensor()], 0)
        return weighted(-made.log_prob(tf.reshape(labels, shape)), weights)


def estimator_head_distribution_regression(
    make_distribution_fn: Callable[[Any], Any],
    label_dimension: int = 1,
    logits_dimension: int | None = None,
    label_name: str | None = None,
    weight_column_name: str | None = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
) -> Any:
    """A head of `tf.contrib.learn` whose loss is how unlikely a distribution finds the labels.

    Args:
        make_distribution_fn: makes a distribution of logits.
        label_dimension: how many labels an example has.
        logits_dimension: how many logits; as many as labels by default.
        label_name: the key of the labels, where there are several.
        weight_column_name: the feature that has the weights.
        enable_centered_bias: whether a bias is learned by itself.
        head_name: what keys of metrics and the scope of variables end with.

    Returns:
        A head, which keeps its `distributions` by their logits.

    Raises:
        TypeError: `make_distribution_fn` cannot be called.
    """
    return _DistributionHead(
        make_distribution_fn, logits_dimension or label_dimension, label_name, weight_column_name,
        enable_centered_bias, head_name,
    )  # fmt: skip
