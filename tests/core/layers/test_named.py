"""Layers take activations, initializers, regularizers and constraints by tf.keras' names."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.layers import named

X = np.array([[-2.0, -0.25, 0.0, 0.5, 3.0]], np.float32)


@pytest.fixture(autouse=True)
def graph_of_its_own():
    with tf.Graph().as_default():
        yield


def run(fetches):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(fetches)


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("linear", X),
        ("relu", np.maximum(X, 0)),
        ("tanh", np.tanh(X)),
        ("sigmoid", 1 / (1 + np.exp(-X))),
        ("hard_sigmoid", np.clip(0.2 * X + 0.5, 0, 1)),
        ("exponential", np.exp(X)),
        ("softplus", np.log1p(np.exp(X))),
        ("softsign", X / (1 + np.abs(X))),
        ("elu", np.where(X > 0, X, np.expm1(X))),
        ("softmax", np.exp(X) / np.exp(X).sum()),
    ],
)
def test_activations(name, want):
    out = tf.layers.dense(
        X, 5, activation=name, kernel_initializer=tf.constant_initializer(np.eye(5))
    )
    np.testing.assert_allclose(run(out), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ("zeros", np.zeros((2, 2))),
        ("ones", np.ones((2, 2))),
        ("identity", np.eye(2)),
        ({"class_name": "Constant", "config": {"value": 3}}, np.full((2, 2), 3)),
    ],
)
def test_initializers(given, want):
    layer = tf.layers.Dense(2, kernel_initializer=given)
    layer(np.ones((1, 2), np.float32))
    np.testing.assert_array_equal(run(layer.kernel), want)


@pytest.mark.parametrize(
    "name",
    ["glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "lecun_normal", "lecun_uniform",
     "normal", "orthogonal", "random_normal", "random_uniform", "truncated_normal", "uniform"],
)  # fmt: skip
def test_random_initializers(name):
    layer = tf.layers.Dense(40, kernel_initializer=name)
    layer(np.ones((1, 50), np.float32))
    kernel = run(layer.kernel)
    assert kernel.shape == (50, 40)
    assert 0 < kernel.std() < 0.5
    if name in ("uniform", "random_uniform"):
        assert np.abs(kernel).max() <= 0.05


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ("l1", 0.01 * 6), ("l2", 0.01 * 14), ("l1_l2", 0.01 * 20),
        ({"class_name": "L1L2", "config": {"l1": 0.5, "l2": 0.25}}, 0.5 * 6 + 0.25 * 14),
    ],
)  # fmt: skip
def test_regularizers(given, want):
    tf.layers.dense(
        np.ones((1, 3), np.float32), 1, kernel_regularizer=given,
        kernel_initializer=tf.constant_initializer([1.0, -2.0, 3.0]),
    )  # fmt: skip
    (loss,) = tf.losses.get_regularization_losses()
    np.testing.assert_allclose(run(loss), want, rtol=1e-6)


def test_activity_is_regularized_by_name():
    tf.layers.dense(
        np.ones((2, 1), np.float32), 1, activity_regularizer="l2", kernel_initializer="ones"
    )
    (loss,) = tf.losses.get_regularization_losses()
    np.testing.assert_allclose(run(loss), 0.01, rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ("non_neg", [[3, 0], [4, 0]]),
        ("unit_norm", [[0.6, -0.6], [0.8, -0.8]]),
        ("max_norm", [[1.2, -1.2], [1.6, -1.6]]),
        ({"class_name": "MinMaxNorm", "config": {"min_value": 10, "max_value": 20}},
         [[6, -6], [8, -8]]),
    ],
)  # fmt: skip
def test_constraints_hold_after_an_update(given, want):
    layer = tf.layers.Dense(
        2, use_bias=False, kernel_constraint=given,
        kernel_initializer=tf.constant_initializer([[3.0, -3.0], [4.0, -4.0]]),
    )  # fmt: skip
    loss = tf.reduce_sum(layer(np.zeros((1, 2), np.float32)))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        np.testing.assert_allclose(sess.run(layer.kernel), want, rtol=1e-5)


def test_layers_of_a_program_take_names_too():
    class Scaled(tf.layers.Layer):
        def build(self, input_shape):
            self.scale = self.add_weight("scale", [1], initializer="ones", regularizer="l1")

        def call(self, inputs):
            return inputs * self.scale

    assert run(Scaled()(np.full((1, 1), 7, np.float32))) == 7
    assert len(tf.losses.get_regularization_losses()) == 1


def test_cells_take_the_name_of_their_activation():
    cell = tf.nn.rnn_cell.BasicRNNCell(1, activation="relu")
    out, _ = cell(np.full((1, 1), 5, np.float32), tf.zeros([1, 1]))
    assert out.op.type == "Relu"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"activation": "rleu"}, "Unknown activation function:rleu"),
        ({"kernel_initializer": "glorot"}, "Unknown initializer:glorot"),
        ({"kernel_regularizer": "l3"}, "Unknown regularizer:l3"),
        ({"bias_constraint": "positive"}, "Unknown constraint:positive"),
        ({"kernel_initializer": {"name": "Zeros"}}, "Improper config format"),
    ],
)
def test_names_that_there_are_not(arguments, words):
    with pytest.raises(ValueError, match=words):
        tf.layers.dense(X, 5, **arguments)


def test_what_is_no_activation():
    with pytest.raises(TypeError, match="Could not interpret activation function identifier: 5"):
        tf.layers.dense(X, 5, activation=5)


def test_functions_stay_what_they_are():
    assert named.activation(tf.nn.relu) is tf.nn.relu
    assert named.activation(None) is None
    zeros = tf.zeros_initializer()
    assert named.initializer(zeros) is zeros
