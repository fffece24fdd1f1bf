"""The model of linear estimators that an `SDCAOptimizer` trains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import opdock as tf
from opdock.contrib import layers
from opdock.contrib.layers import feature_column as columns
from opdock.contrib.learn.canned_model import Wide
from opdock.contrib.learn.head import Head, SingleHead
from opdock.contrib.learn.model_fn import ModelFnOps
from opdock.contrib.linear_optimizer import SDCAOptimizer

__all__ = ["ascent_of"]

_BIAS = "tf_virtual_bias_column"


def ascent_of(head: Head, part: Wide, optimizer: SDCAOptimizer) -> Callable[..., ModelFnOps]:
    """The model function of a linear part and a head of one logit.

    Args:
        head: what is made of the logits.
        part: the columns.
        optimizer: what trains them, and the bias with them.

    Raises:
        ValueError: a head of another loss or of several logits, joint weights, a centered bias,
            or a column with the bias's name.
    """
    if not isinstance(head, SingleHead) or head.sdca_loss is None or head.logits_dimension != 1:
        raise ValueError(f"SDCAOptimizer does not train the logits of {type(head).__name__}.")
    if head.enable_centered_bias:
        raise ValueError("enable_centered_bias is not supported with SDCA")
    if part.joint_weights:
        raise ValueError("_joint_weights is incompatible with the SDCAOptimizer.")
    if any(column.name == _BIAS for column in part.feature_columns):
        raise ValueError(f"{_BIAS} is a reserved column name.")
    loss_type, weight_column_name = head.sdca_loss, head.weight_column_name

    def model_fn(features: Any, labels: Any, mode: str, params: Any = None) -> ModelFnOps:
        del params
        with tf.variable_scope(part.scope, partitioner=optimizer.partitioner) as scope:
            made = {**features, **columns.transform_features(features, part.feature_columns)}
            logits, variables, bias = columns.weighted_sum_from_feature_columns(
                columns_to_tensors=made, feature_columns=part.feature_columns, num_outputs=1,
                scope=scope,
            )  # fmt: skip

        def train(loss: Any) -> Any:
            del loss  # its dual is what grows
            # To the algorithm the bias is the weight of a feature that is 1 for all.
            always = layers.real_valued_column(_BIAS)
            made[always] = tf.ones([tf.size(labels), 1])
            model, step = optimizer.get_train_step(
                {**variables, always: [bias]}, weight_column_name, loss_type, made, labels,
                tf.train.get_global_step(),
            )  # fmt: skip
            return model.update_weights(step)

        return head.create_model_fn_ops(made, mode, labels, train, logits)

    return model_fn
