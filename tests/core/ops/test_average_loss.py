"""Losses of examples as one number: weights, ranks, replicas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf


def run(fetch: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetch, feeds)


@pytest.mark.parametrize(
    ("weights", "want"),
    [(None, 4.0), (0.5, 2.0), ([1.0, 0.0, 2.0], 14.0 / 3), ([[1.0], [0.0], [2.0]], 14.0 / 3)],
)
def test_weights_of_one_more_dimension_or_none(weights: Any, want: float) -> None:
    loss = tf.nn.compute_average_loss([2.0, 4.0, 6.0], weights)
    np.testing.assert_allclose(run(loss), want, rtol=1e-6)
    fed, given = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    loss = tf.nn.compute_average_loss(fed, None if weights is None else given)
    feeds = {fed: [2.0, 4.0, 6.0], **({} if weights is None else {given: weights})}
    np.testing.assert_allclose(run(loss, feeds), want, rtol=1e-6)


def test_weights_of_examples_are_those_of_all_their_parts() -> None:
    loss = tf.nn.compute_average_loss(np.float32([[1, 2], [3, 4]]), [1.0, 10.0])
    assert run(loss) == (3.0 + 70.0) / 2
    loss = tf.nn.compute_average_loss(np.array([1.0, 3.0]), global_batch_size=8)
    assert loss.dtype is tf.float64 and run(loss) == 0.5


def test_what_does_not_fit_is_told() -> None:
    with pytest.raises(ValueError, match="at least rank 1"):
        tf.nn.compute_average_loss(2.0)
    with pytest.raises(ValueError, match="weights can not be broadcast to values"):
        tf.nn.compute_average_loss([2.5, 6.2, 5.0], [0.2, 0.8])
    fed = tf.placeholder(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least rank 1"):
        run(tf.nn.compute_average_loss(fed), {fed: 2.0})


def test_replicas_share_a_batch() -> None:
    strategy = tf.distribute.MirroredStrategy(["/device:CPU:0", "/device:CPU:1"])
    with strategy.scope():
        for function in (tf.nn.compute_average_loss, tf.nn.scale_regularization_loss):
            with pytest.raises(RuntimeError, match=f"`{function.__name__}` in cross replica"):
                function([2.0, 3.0])
            each = strategy.experimental_run_v2(function, args=(tf.constant([2.0, 3.0]),))
            total = strategy.reduce("SUM", each, axis=None)
            with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
                assert session.run(total) == (2.5 if "average" in function.__name__ else 5.0)
