"""`tf.contrib.layers.optimize_loss`, with what is around a step of training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.contrib import layers


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def _model() -> tuple[Any, Any]:
    weight = tf.get_variable("w", initializer=10.0)
    return weight, tf.abs(weight * 5.0)


def _step(train: Any, *more: Any) -> Any:
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        loss = sess.run(train)
        return [loss, *sess.run(list(more))]


@pytest.mark.parametrize(
    "optimizer",
    [
        "SGD",
        tf.train.GradientDescentOptimizer,
        tf.train.GradientDescentOptimizer(0.1),
        lambda rate: tf.train.GradientDescentOptimizer(rate),
    ],
)
def test_a_step(optimizer: Any) -> None:
    weight, loss = _model()
    step = tf.train.create_global_step()
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(tf.get_variable(
        "seen", initializer=0, trainable=False), 1))  # fmt: skip
    train = layers.optimize_loss(loss, None, 0.1, optimizer)
    assert _step(train, weight, step, "seen:0") == [50.0, 9.5, 1, 1]
    assert tf.get_variable_scope().name == ""
    rate = [v.op.name for v in tf.global_variables() if "learning_rate" in v.name]
    assert rate == ["OptimizeLoss/learning_rate"]


def test_gradients_are_multiplied_clipped_and_told_of() -> None:
    weight, loss = _model()
    step = tf.train.create_global_step()
    train = layers.optimize_loss(
        loss, step, 0.1, "SGD", gradient_multipliers={weight: 4.0}, clip_gradients=2.0,
        summaries=layers.OPTIMIZER_SUMMARIES, increment_global_step=False,
        learning_rate_decay_fn=lambda rate, _: rate / 2, name="train",
    )  # fmt: skip
    (told,) = _step(tf.summary.merge_all())
    found = {v.tag: v.simple_value for v in tf.summary.Summary.FromString(told).value}
    assert found["train/global_norm/gradient_norm"] == 20.0
    assert found["train/global_norm/clipped_gradient_norm"] == 2.0
    assert found["train/gradient_norm/w_0"] == 2.0
    assert found["train/learning_rate_1"] == pytest.approx(0.05)
    assert found["train/loss"] == 50.0
    assert "train/gradients/w_0" in found
    np.testing.assert_allclose(_step(train, weight, step), [50.0, 9.9, 0], rtol=1e-6)


def test_slices_are_scaled_and_noise_is_added() -> None:
    table = tf.get_variable("table", [3, 2], initializer=tf.ones_initializer())
    loss = tf.reduce_sum(tf.gather(table, [1]))
    train = layers.optimize_loss(loss, None, 1.0, "SGD", gradient_multipliers={"table:0": 0.5})
    assert _step(train, table)[1].tolist() == [[1, 1], [0.5, 0.5], [1, 1]]
    weight, loss = _model()
    noisy = layers.optimize_loss(
        loss, None, 0.1, "SGD", gradient_noise_scale=10.0, variables=[weight]
    )
    assert _step(noisy, weight)[1] != 9.5


def test_large_gradients_are_cut_to_what_is_usual() -> None:
    weight, loss = _model()
    clip = layers.adaptive_clipping_fn(std_factor=0.0, decay=0.5, static_max_norm=1.0)
    train = layers.optimize_loss(loss, None, 1.0, "SGD", clip_gradients=clip)
    assert _step(train, weight)[1] == pytest.approx(9.0)
    names = [v.op.name for v in tf.global_variables()]
    assert "OptimizeLoss/AdaptiveMaxNorm/sq_mean" in names


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"learning_rate": -0.1}, "Invalid learning_rate -0.1"),
        ({"learning_rate": "fast"}, "Learning rate should be 0d Tensor or float"),
        ({"learning_rate": None}, "Learning rate is None, but should be specified"),
        ({"optimizer": "best"}, "Optimizer name should be one of"),
        ({"optimizer": 5}, "Unrecognized optimizer: should be string"),
        ({"optimizer": lambda _: "no"}, "function should return subclass of Optimizer"),
        ({"clip_gradients": "much"}, "Unknown type"),
        ({"summaries": ["weather"]}, "Summaries should be one of"),
        ({"learning_rate_decay_fn": lambda rate, _: rate}, "global_step is required"),
    ],
)
def test_what_cannot_be(given: dict[str, Any], told: str) -> None:
    _, loss = _model()
    with pytest.raises(ValueError, match=told):
        layers.optimize_loss(loss, None, **{"learning_rate": 0.1, "optimizer": "SGD", **given})
