"""`tf.contrib.linear_optimizer`: dual coordinate ascent over the columns of linear models.

`SdcaModel`, which this steers, is the library tensorflow-estimator's.
"""

from __future__ import annotations

from typing import Any

import opdock as tf
from opdock.contrib.layers.feature_column.base import FeatureColumn, IdColumn
from opdock.contrib.layers.feature_column.numeric import RealValuedColumn

__all__ = ["SDCAOptimizer"]

_MIN_L2 = 1.0
"""The least that the algorithm converges with; TensorFlow raises what is less to it as well."""


class SDCAOptimizer:
    """What trains the linear models of `tf.contrib.learn` by stochastic dual coordinate ascent.

    Args:
        example_id_column: the feature that has a string for each example, unlike all others.
        num_loss_partitions: how many steps run at once, in all workers; with fewer than there are
            it may not converge.
        num_table_shards: into how many parts the table of examples is divided.
        symmetric_l1_regularization: the factor of the sum of absolute weights.
        symmetric_l2_regularization: that of the sum of their squares; less than 1 is taken for 1.
        adaptive: whether examples that change more are looked at more often.
        partitioner: how weights are divided.
    """

    def __init__(
        self, example_id_column: str, num_loss_partitions: int = 1,
        num_table_shards: int | None = None, symmetric_l1_regularization: float = 0.0,
        symmetric_l2_regularization: float = 1.0, adaptive: bool = True, partitioner: Any = None,
    ) -> None:  # fmt: skip
        self.example_id_column = example_id_column
        self.num_loss_partitions = num_loss_partitions
        self.num_table_shards = num_table_shards
        self.symmetric_l1_regularization = symmetric_l1_regularization
        self.symmetric_l2_regularization = symmetric_l2_regularization
        self.adaptive = adaptive
        self.partitioner = partitioner

    def get_name(self) -> str:
        """What it is called."""
        return "SDCAOptimizer"

    def get_train_step(
        self, columns_to_variables: dict[Any, list[Any]], weight_column_name: str | None,
        loss_type: str, features: dict[Any, Any], targets: Any, global_step: Any,
    ) -> tuple[Any, Any]:  # fmt: skip
        """The model that is trained, and the operation of a step.

        Args:
            columns_to_variables: column -> the parts of its weights.
            weight_column_name: the feature with the weights of examples; all 1 if None.
            loss_type: as `SdcaModel` calls it.
            features: tensors by key, and what columns make of them by column.
            targets: the labels.
            global_step: what counts the steps.

        Raises:
            ValueError: a column that is neither numbers nor ids, or a negative l2.
            AttributeError: tensorflow-estimator is not installed; the error says how it is.
        """
        if self.symmetric_l2_regularization < 0.0:
            raise ValueError("symmetric_l2_regularization should be non-negative.")
        dense, sparse = [], []
        dense_weights, sparse_weights = [], []
        for column in sorted(columns_to_variables, key=lambda column: str(column.key)):
            made, parts = features[column], columns_to_variables[column]
            if isinstance(column, RealValuedColumn):
                dense.append(tf.reshape(made, [tf.shape(made)[0], -1]))
                dense_weights.append(parts[0])
            elif isinstance(column, IdColumn):
                sparse.append(_distinct(column, made))
                sparse_weights.append(parts if len(parts) > 1 else parts[0])
            else:
                told = f"SDCAOptimizer does not support column type {type(column).__name__}."
                raise ValueError(told)
        labels = tf.cast(tf.reshape(targets, [-1]), tf.float32)
        weights = tf.ones_like(labels)
        if weight_column_name:
            weights = tf.reshape(features[weight_column_name], [-1])
        examples = {
            "sparse_features": sparse,
            "dense_features": dense,
            "example_labels": labels,
            "example_weights": weights,
            "example_ids": features[self.example_id_column],
        }
        variables = {
            "sparse_features_weights": sparse_weights,
            "dense_features_weights": dense_weights,
        }
        options = {
            "symmetric_l1_regularization": self.symmetric_l1_regularization,
            "symmetric_l2_regularization": max(self.symmetric_l2_regularization, _MIN_L2),
            "adaptive": self.adaptive,
            "num_loss_partitions": self.num_loss_partitions,
            "num_table_shards": self.num_table_shards,
            "loss_type": loss_type,
        }
        model = _library().SdcaModel(examples, variables, options)
        return model, model.minimize(global_step=global_step)


def _library() -> Any:
    """This module, in which the names of tensorflow-estimator are found."""
    return tf.contrib.linear_optimizer


def _distinct(column: FeatureColumn, made: Any) -> Any:
    """The ids of each example, each once: the weights of those that it has again are added."""
    found = column._wide_embedding_lookup_arguments(made)
    given, weights = found.input_tensor, found.weight_tensor
    ids = tf.cast(tf.reshape(given.values, [-1]), tf.int64)
    rows = given.indices[:, 0]
    ones = tf.ones_like(ids, tf.float32)
    amounts = ones if weights is None else tf.reshape(tf.cast(weights.values, tf.float32), [-1])
    is_id = ids >= 0  # a text that no vocabulary has is -1
    ids, rows, amounts = (tf.boolean_mask(each, is_id) for each in (ids, rows, amounts))
    pairs, where = tf.unique(rows * found.vocab_size + ids)
    return _library().SparseFeatureColumn(
        pairs // found.vocab_size,
        pairs % found.vocab_size,
        tf.unsorted_segment_sum(amounts, where, tf.size(pairs)),
    )
