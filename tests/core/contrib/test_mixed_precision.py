"""`tf.contrib.mixed_precision`: scales of losses, and steps that are left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import opdock as tf
from opdock.contrib import mixed_precision


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def test_a_scale_grows_and_shrinks() -> None:
    manager = mixed_precision.ExponentialUpdateLossScaleManager(8.0, 2, 2, incr_ratio=4)
    finite = tf.placeholder(tf.bool, [])
    update, scale = manager.update_loss_scale(finite), manager.get_loss_scale()
    found = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for good in (True, True, True, False, True, False, False):
            sess.run(update, {finite: good})
            found.append(sess.run(scale))
    # A bad step begins the count of good ones anew, and not the other way round.
    assert found == pytest.approx([8, 32, 32, 32, 32, 25.6, 25.6])


@pytest.mark.parametrize(("first", "good", "last"), [(1.5, False, 1.0), (3e38, True, 3e38)])
def test_a_scale_stays_a_number_and_is_never_less_than_one(
    first: float, good: bool, last: float
) -> None:
    manager = mixed_precision.ExponentialUpdateLossScaleManager(first, 1, 1, decr_ratio=0.1)
    update = manager.update_loss_scale(tf.constant(good))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(update)
        assert sess.run(manager.get_loss_scale()) == pytest.approx(last)


def test_a_fixed_scale() -> None:
    with pytest.raises(ValueError, match="loss scale must be at least 1"):
        mixed_precision.FixedLossScaleManager(0.5)
    manager = mixed_precision.FixedLossScaleManager(16)
    with tf.Session() as sess:
        sess.run(manager.update_loss_scale(tf.constant(False)))
        assert sess.run(manager.get_loss_scale()) == 16.0


def test_gradients_are_freed_of_the_scale_and_steps_of_no_numbers_left_out() -> None:
    weight = tf.get_variable("w", initializer=1.0)
    unused = tf.get_variable("unused", initializer=1.0)
    factor = tf.placeholder(tf.float32, [])
    loss = tf.cast(weight, tf.float16) * tf.cast(factor, tf.float16)
    optimizer = mixed_precision.LossScaleOptimizer(
        tf.train.GradientDescentOptimizer(1.0), mixed_precision.FixedLossScaleManager(1024)
    )
    step = tf.train.create_global_step()
    pairs: Any = optimizer.compute_gradients(loss, [weight, unused])
    assert pairs[1] == (None, unused)
    train = optimizer.apply_gradients(pairs, step)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train, {factor: 0.25})
        assert sess.run([weight, step]) == [0.75, 1]
        sess.run(train, {factor: float("inf")})
        assert sess.run([weight, step]) == [0.75, 1]
