"""Scans: the four directions, empty input, errors, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


@pytest.mark.parametrize(
    ("exclusive", "reverse", "wanted"),
    [
        (False, False, [1, 3, 6]), (True, False, [0, 1, 3]),
        (False, True, [6, 5, 3]), (True, True, [5, 3, 0]),
    ],
)  # fmt: skip
def test_directions(exclusive, reverse, wanted):
    total = tf.cumsum([1, 2, 3], exclusive=exclusive, reverse=reverse)
    assert run(total).tolist() == wanted and total.op.name == "Cumsum"


def test_products_and_axes():
    x = tf.constant([[1, 2], [3, 4]])
    assert run(tf.cumprod(x)).tolist() == [[1, 2], [3, 8]]
    assert run(tf.cumprod(x, -1, exclusive=True)).tolist() == [[1, 1], [1, 3]]
    assert run(tf.cumsum(tf.zeros([2, 0]), 1)).shape == (2, 0)
    assert run(tf.cumsum(tf.zeros([2, 0]), 1, exclusive=True)).shape == (2, 0)


def test_narrow_types():
    assert run(tf.cumsum(tf.constant([100, 100], tf.int8))).tolist() == [100, -56]
    x = tf.constant(np.full(3000, 1, np.float16))
    assert run(tf.cumsum(x))[-1] == 3000


def test_logsumexp_does_not_overflow():
    x = np.array([1000.0, 1000.0, -1000.0], np.float32)
    out = run(tf.math.cumulative_logsumexp(x))
    np.testing.assert_allclose(out, [1000, 1000 + np.log(2), 1000 + np.log(2)])
    assert run(tf.math.cumulative_logsumexp(x, exclusive=True))[0] == np.finfo(np.float32).min


def test_wrong_axes():
    axis = tf.placeholder(tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"scan axis in the range \[-1, 1\)"):
        run(tf.cumsum([1.0], axis), {axis: 1})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"must be a scalar, not \[1\]"):
        run(tf.cumsum([1.0], axis), {axis: [0]})


def test_gradients():
    x = tf.constant([2.0, 3.0, 4.0])
    assert run(tf.gradients(tf.cumsum(x), x)[0]).tolist() == [3, 2, 1]
    assert run(tf.gradients(tf.cumsum(x, exclusive=True, reverse=True), x)[0]).tolist() == [0, 1, 2]
    assert run(tf.gradients(tf.cumprod(x), x)[0]).tolist() == [1 + 3 + 12, 2 + 8, 6]
    once = tf.gradients(tf.cumsum(x * x), x)[0]
    assert run(tf.gradients(once, x)[0]).tolist() == [6, 4, 2]
    probabilities = run(tf.gradients(tf.math.cumulative_logsumexp(x)[2], x)[0])
    np.testing.assert_allclose(
        probabilities, np.exp([2, 3, 4]) / np.exp([2, 3, 4]).sum(), rtol=1e-5
    )
