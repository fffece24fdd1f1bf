"""Gradient tapes over graphs."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def run(fetch):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetch)


def test_watched_tensors_and_variables():
    x, z = tf.constant(3.0), tf.constant(4.0)
    v = tf.Variable(2.0, use_resource=True)
    w = tf.Variable(5.0, trainable=False, use_resource=True)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x * v + z * w
    assert tape.watched_variables() == (v,)
    gradients = tape.gradient(y, {"x": x, "v": v, "w": w, "z": z})
    assert gradients["z"] is None and gradients["w"] is None
    assert run([gradients["x"], gradients["v"]]) == [12.0, 9.0]
    with pytest.raises(RuntimeError, match="once on non-persistent"):
        tape.gradient(y, x)


def test_unconnected_sources_as_zeros():
    x, z = tf.constant([3.0]), tf.constant([4.0, 5.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * 2.0
    assert run(tape.gradient(y, z, unconnected_gradients="zero")).tolist() == [0, 0]


def test_persistent_and_what_is_not_recorded():
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            factor = x * 10.0
        z = y * factor
    assert run([tape.gradient(y, x), tape.gradient(z, x), tape.gradient(z, y)]) == [6, 180, 30]
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        first = inner.gradient(y, x)
    assert run([first, outer.gradient(first, x)]) == [27.0, 18.0]


def test_output_gradients_and_what_cannot_be_watched():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(x)
        y = x * x
    assert run(tape.gradient(y, [x], output_gradients=tf.constant([10.0, 1.0]))[0]).tolist() == [
        20,
        4,
    ]
    with pytest.raises(ValueError, match=r"not tf\.Tensor"):
        tape.watch(3.0)


def test_jacobians():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    matrix = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.matmul(x, matrix)
    whole, by_example = tape.jacobian(y, x), tape.batch_jacobian(y, x)
    assert whole.shape.as_list() == [2, 3, 2, 2]
    found, examples = run([whole, by_example])
    want = np.einsum("ab,jc->acbj", np.eye(2), [[1, 2, 3], [4, 5, 6]])
    assert np.array_equal(found, want)
    assert np.array_equal(examples, np.tile(np.array([[1, 4], [2, 5], [3, 6]]), [2, 1, 1]))
    with pytest.raises(ValueError, match="Need first dimension"):
        tape.batch_jacobian(tf.zeros([3, 2]), x)
