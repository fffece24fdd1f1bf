"""The model of the ready-made estimators: a linear part, a deep part, or the sum of both."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import opdock as tf
from opdock.contrib import layers
from opdock.contrib.layers import feature_column as columns
from opdock.contrib.layers.feature_column.base import FeatureColumn
from opdock.contrib.learn.head import Head
from opdock.contrib.learn.model_fn import ModeKeys, ModelFnOps

__all__ = ["Deep", "Nothing", "Part", "Wide", "model_fn_of"]

_MIN_SLICE: Final = 64 << 20
_LINEAR_RATE: Final = 0.2
_DEEP_RATE: Final = 0.05
_BIAS_RATE: Final = 0.3


@dataclass(frozen=True)
class Wide:
    """The linear part: one weight for each value of a column."""

    feature_columns: Any
    optimizer: Any = None
    joint_weights: bool = False
    scope: str = "linear"

    def logits(self, features: dict[Any, Any], head: Head, mode: str, shards: int) -> Any:
        """[examples, logits]"""
        del mode
        with tf.variable_scope(self.scope, partitioner=_partitioner(shards, _MIN_SLICE)) as scope:
            if not _are_own(self.feature_columns):
                return tf.feature_column.linear_model(
                    features, self.feature_columns, units=head.logits_dimension,
                    weight_collections=[self.scope],
                )  # fmt: skip
            make: Callable[..., Any] = columns.weighted_sum_from_feature_columns
            if self.joint_weights:
                make = columns.joint_weighted_sum_from_feature_columns
            logits, _, _ = make(
                columns_to_tensors=features, feature_columns=self.feature_columns,
                num_outputs=head.logits_dimension, weight_collections=[self.scope], scope=scope,
            )  # fmt: skip
            return logits

    def chosen_optimizer(self) -> Any:
        """The user's, or FTRL with a rate for so many columns."""
        rate = min(_LINEAR_RATE, 1.0 / math.sqrt(len(list(self.feature_columns))))
        return _optimizer(self.optimizer or tf.train.FtrlOptimizer(rate), _LINEAR_RATE)

    def variables(self) -> list[Any]:
        """What is trained."""
        return list(dict.fromkeys(tf.get_collection(self.scope)))

    def multipliers(self) -> dict[Any, float]:
        """What the gradients of variables are multiplied by."""
        return {}


@dataclass(frozen=True)
class Deep:
    """The deep part: fully connected layers over the columns side by side."""

    feature_columns: Any
    hidden_units: Any
    optimizer: Any = None
    activation_fn: Any = None
    dropout: float | None = None
    embedding_lr_multipliers: dict[Any, float] | None = None
    input_layer_min_slice_size: int | None = None
    scope: str = "dnn"

    def logits(self, features: dict[Any, Any], head: Head, mode: str, shards: int) -> Any:
        """[examples, logits]"""
        weights = [self.scope]
        activation = self.activation_fn or tf.nn.relu
        if isinstance(activation, str):
            activation = getattr(tf.nn, activation)
        with tf.variable_scope(self.scope, partitioner=_partitioner(shards, 256 << 10)):
            net = self._input(features, shards)
            for i, units in enumerate(self.hidden_units):
                with tf.variable_scope(f"hiddenlayer_{i}") as scope:
                    net = layers.fully_connected(
                        net, units, activation_fn=activation, variables_collections=weights,
                        scope=scope,
                    )  # fmt: skip
                    if self.dropout is not None and mode == ModeKeys.TRAIN:
                        net = layers.dropout(net, keep_prob=1.0 - self.dropout)
                _tell(net, scope.name)
            with tf.variable_scope("logits") as scope:
                logits = layers.fully_connected(
                    net, head.logits_dimension, activation_fn=None, variables_collections=weights,
                    scope=scope,
                )  # fmt: skip
            _tell(logits, scope.name)
            return logits

    def _input(self, features: dict[Any, Any], shards: int) -> Any:
        partitioner = _partitioner(shards, self.input_layer_min_slice_size or _MIN_SLICE)
        with tf.variable_scope("input_from_feature_columns", partitioner=partitioner) as scope:
            if _are_own(self.feature_columns):
                return columns.input_from_feature_columns(
                    columns_to_tensors=features, feature_columns=self.feature_columns,
                    weight_collections=[self.scope], scope=scope,
                )  # fmt: skip
            return tf.feature_column.input_layer(
                features, self.feature_columns, weight_collections=[self.scope]
            )

    def chosen_optimizer(self) -> Any:
        """The user's, or Adagrad."""
        return _optimizer(self.optimizer or "Adagrad", _DEEP_RATE)

    def variables(self) -> list[Any]:
        """What is trained."""
        return list(dict.fromkeys(tf.get_collection(self.scope)))

    def multipliers(self) -> dict[Any, float]:
        """What the gradients of embeddings are multiplied by, by variable."""
        found: dict[Any, float] = {}
        for column, factor in (self.embedding_lr_multipliers or {}).items():
            where = f"{self.scope}/input_from_feature_columns/{column.name}/"
            mine = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, where)
            found |= dict.fromkeys(mine, factor)
        return found


@dataclass(frozen=True)
class Nothing:
    """No part at all: what a head has of its own is all that learns."""

    scope: str = ""

    def logits(self, features: dict[Any, Any], head: Head, mode: str, shards: int) -> Any:
        """[examples, logits], all zero.

        Raises:
            ValueError: there are no features.
        """
        del mode, shards
        if not features:
            raise ValueError("Features cannot be empty.")
        first, *others = [tf.shape(feature)[0] for feature in features.values()]
        with tf.control_dependencies([tf.assert_equal(first, other) for other in others]):
            return tf.zeros([first, head.logits_dimension])

    def chosen_optimizer(self) -> Any:
        """Adagrad."""
        return tf.train.AdagradOptimizer(_BIAS_RATE)

    def variables(self) -> list[Any]:
        """What is trained."""
        return tf.trainable_variables()

    def multipliers(self) -> dict[Any, float]:
        """What the gradients of variables are multiplied by."""
        return {}


Part = Wide | Deep | Nothing


def model_fn_of(
    head: Head, parts: Sequence[Part], gradient_clip_norm: float | None = None
) -> Callable[..., ModelFnOps]:
    """The model function of some parts.

    Args:
        head: what is made of the logits.
        parts: what they are the sum of; each is trained by its own optimizer.
        gradient_clip_norm: the norm to which the gradients of a part are clipped.
    """

    def model_fn(
        features: Any, labels: Any, mode: str, params: Any = None, config: Any = None
    ) -> ModelFnOps:
        del params
        by_key = features if isinstance(features, dict) else {"": features}
        shards = config.num_ps_replicas if config else 0
        logits = [part.logits(by_key, head, mode, shards) for part in parts]

        def train(loss: Any) -> Any:
            updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
            with tf.control_dependencies(updates):
                loss = tf.identity(loss)
            steps = [_step(part, loss, gradient_clip_norm) for part in parts]
            with tf.control_dependencies(steps):
                return tf.assign_add(tf.train.get_global_step(), 1).op

        with contextlib.ExitStack() as scopes:
            if len(parts) == 1:
                # What a head has is below what a part has that is alone, by its name as well: the
                # bias is a variable that takes its name from the operations' scope.
                alone = parts[0].scope
                scopes.enter_context(tf.variable_scope(alone, auxiliary_name_scope=False))
                scopes.enter_context(tf.name_scope(f"{alone}/"))
            return head.create_model_fn_ops(
                features=by_key,
                mode=mode,
                labels=labels,
                train_op_fn=train,
                logits=logits[0] if len(logits) == 1 else tf.add_n(logits),
            )

    return model_fn


def _step(part: Part, loss: Any, clip_norm: float | None) -> Any:
    """A step of the variables of one part."""
    variables = part.variables()
    gradients = tf.gradients(loss, variables)
    factors = part.multipliers()
    gradients = [
        g if g is None or v not in factors else _scaled(g, factors[v])
        for g, v in zip(gradients, variables, strict=True)
    ]
    if clip_norm:
        gradients, _ = tf.clip_by_global_norm(gradients, clip_norm)
    return part.chosen_optimizer().apply_gradients(zip(gradients, variables, strict=True))


def _scaled(gradient: Any, factor: float) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        values = gradient.values * factor
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return gradient * factor


def _optimizer(given: Any, rate: float) -> Any:
    """An optimizer from its name, a function that makes one, or itself.

    Raises:
        ValueError: no optimizer has this name.
    """
    if not isinstance(given, str):
        return given() if callable(given) else given
    train = tf.train
    known = {
        "Adagrad": train.AdagradOptimizer,
        "Adam": train.AdamOptimizer,
        "Ftrl": train.FtrlOptimizer,
        "Momentum": lambda rate: train.MomentumOptimizer(rate, momentum=0.9),
        "RMSProp": train.RMSPropOptimizer,
        "SGD": train.GradientDescentOptimizer,
    }
    if given not in known:
        raise ValueError(f"Optimizer name should be one of {list(known)}, you provided {given}.")
    return known[given](rate)


def _are_own(feature_columns: Any) -> bool:
    """Whether all are contrib's; `tf.feature_column`'s have functions of their own."""
    return all(isinstance(c, FeatureColumn) for c in feature_columns)


def _partitioner(shards: int, min_slice_size: int) -> Any:
    return tf.min_max_variable_partitioner(max_partitions=shards, min_slice_size=min_slice_size)


def _tell(value: Any, tag: str) -> None:
    tf.summary.scalar(f"{tag}/fraction_of_zero_values", tf.nn.zero_fraction(value))
    tf.summary.histogram(f"{tag}/activation", value)
