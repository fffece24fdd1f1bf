"""Initializers: ranges, moments, shapes, types, configuration."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def draw(initializer, shape=(300, 200), dtype=tf.float32):
    with tf.Session() as session:
        return session.run(initializer(list(shape), dtype))


@pytest.mark.parametrize(
    ("make", "deviation", "limit"),
    [
        (lambda: tf.glorot_uniform_initializer(seed=1), np.sqrt(2 / 500), np.sqrt(6 / 500)),
        (lambda: tf.glorot_normal_initializer(seed=1), np.sqrt(2 / 500), 2.3 * np.sqrt(2 / 500)),
        (lambda: tf.initializers.he_normal(seed=1), np.sqrt(2 / 300), 2.3 * np.sqrt(2 / 300)),
        (lambda: tf.initializers.he_uniform(seed=1), np.sqrt(2 / 300), np.sqrt(6 / 300)),
        (lambda: tf.initializers.lecun_normal(seed=1), np.sqrt(1 / 300), 2.3 * np.sqrt(1 / 300)),
        (lambda: tf.initializers.lecun_uniform(seed=1), np.sqrt(1 / 300), np.sqrt(3 / 300)),
        (lambda: tf.random_uniform_initializer(-1, 1, seed=1), 1 / np.sqrt(3), 1),
        (lambda: tf.random_normal_initializer(stddev=2.0, seed=1), 2, 20),
        (lambda: tf.truncated_normal_initializer(stddev=1.0, seed=1), 0.8796, 2),
        (lambda: tf.variance_scaling_initializer(2.0, "fan_out", "uniform", seed=1),
         np.sqrt(2 / 200), np.sqrt(6 / 200)),
    ],
)  # fmt: skip
def test_distributions(make, deviation, limit):
    got = draw(make())
    assert got.dtype == np.float32
    assert abs(got.mean()) < 0.02 * deviation * 5
    np.testing.assert_allclose(got.std(), deviation, rtol=0.02)
    assert np.abs(got).max() <= limit * 1.0001
    np.testing.assert_array_equal(got, draw(make()))


@pytest.mark.parametrize(
    ("initializer", "want"),
    [
        (tf.zeros_initializer(), [[0, 0], [0, 0]]),
        (tf.ones_initializer(), [[1, 1], [1, 1]]),
        (tf.constant_initializer(3), [[3, 3], [3, 3]]),
        (tf.constant_initializer([1, 2, 3, 4]), [[1, 2], [3, 4]]),
        (tf.constant_initializer([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (tf.initializers.identity(gain=2.0), [[2, 0], [0, 2]]),
    ],
)
def test_fixed_values(initializer, want):
    np.testing.assert_array_equal(draw(initializer, (2, 2)), want)


def test_orthogonal_nodes_have_tensorflows_names():
    made = tf.get_variable("v", [2, 3], initializer=tf.orthogonal_initializer())
    names = [op.name for op in tf.get_default_graph().get_operations()]
    within = [name.removeprefix("v/Initializer/") for name in names if "/Initializer/" in name]
    assert made.initial_value.op.name == "v/Initializer/mul_1"
    assert within[5:] == [
        "random_normal", "Qr", "DiagPart", "Sign", "mul", "matrix_transpose/transpose/perm",
        "matrix_transpose/transpose", "Reshape/shape", "Reshape", "mul_1/x", "mul_1",
    ]  # fmt: skip


def test_orthogonal():
    got = draw(tf.orthogonal_initializer(gain=2.0, seed=1), (20, 10))
    np.testing.assert_allclose(got.T @ got, 4 * np.eye(10), atol=1e-4)


def test_types():
    assert draw(tf.ones_initializer(), (2,), tf.int32).dtype == np.int32
    assert draw(tf.glorot_uniform_initializer(), (2, 2), tf.float64).dtype == np.float64
    assert tf.ones_initializer(dtype=tf.float64)([2]).dtype is tf.float64
    with pytest.raises(ValueError):
        tf.glorot_uniform_initializer(dtype=tf.int32)


def test_wrong_arguments():
    with pytest.raises(ValueError):
        tf.variance_scaling_initializer(-1.0)
    with pytest.raises(ValueError, match="mode"):
        tf.variance_scaling_initializer(mode="fan_sideways")
    with pytest.raises(ValueError, match="distribution"):
        tf.variance_scaling_initializer(distribution="zipf")
    with pytest.raises((TypeError, ValueError)):
        tf.constant_initializer(object())
    with pytest.raises(ValueError):
        tf.orthogonal_initializer()([3])


def test_configuration_round_trip():
    made = tf.variance_scaling_initializer(2.0, "fan_out", "uniform", seed=5)
    again = type(made).from_config(made.get_config())
    np.testing.assert_array_equal(draw(made, (3, 4)), draw(again, (3, 4)))
