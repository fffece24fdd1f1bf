"""What subclasses of optimizers rely on, and losses that are functions."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


NAMES = [n for n in dir(tf.train) if n.endswith("Optimizer") and n != "Optimizer"]


@pytest.mark.parametrize("name", NAMES)
def test_each_optimizer_descends_directly_from_the_base(name: str) -> None:
    assert getattr(tf.train, name).__base__ is tf.train.Optimizer


def test_a_base_without_updates_says_so() -> None:
    class Lazy(tf.train.Optimizer):
        def __init__(self) -> None:
            super().__init__(False, "Lazy")

    v = tf.Variable(1.0)
    with pytest.raises(NotImplementedError):
        Lazy().minimize(v * v)


def test_a_function_as_loss() -> None:
    a, b = tf.Variable(3.0), tf.Variable(5.0)
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    pairs = optimizer.compute_gradients(lambda: a * a)
    assert [v for _, v in pairs] == [a]
    train = optimizer.minimize(lambda: a * a + b, var_list=[a, b])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(pairs)[0][0] == 6.0
        sess.run(train)
        assert sess.run([a, b]) == [0.0, 4.5]


@pytest.mark.parametrize("fetched", ["result", "operation"])
def test_a_sparse_update_is_whole_whatever_is_fetched(fetched: str) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        var, slot = tf.Variable([5.0, 1.0]), tf.Variable([10.0, 1.0])
        update = tf.raw_ops.SparseApplyAdagrad(
            var=var._ref(), accum=slot._ref(), lr=2.0, grad=[1.5], indices=[0]
        )
        sess.run(tf.global_variables_initializer())
        sess.run(update if fetched == "result" else update.op)
        moved, kept = sess.run([var, slot])
    np.testing.assert_allclose(kept, [12.25, 1.0])
    np.testing.assert_allclose(moved, [5.0 - 3.0 / 3.5, 1.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("Adadelta", "_lr"), ("Adagrad", "_learning_rate"), ("Adam", "_lr"),
        ("Ftrl", "_learning_rate"), ("GradientDescent", "_learning_rate"),
        ("ProximalAdagrad", "_learning_rate"), ("ProximalGradientDescent", "_learning_rate"),
        ("RMSProp", "_learning_rate"),
    ],
)  # fmt: skip
def test_the_rate_has_tensorflow_s_name(kind, name):
    """Programs read it there, protected as it is."""
    assert getattr(getattr(tf.train, f"{kind}Optimizer")(0.25), name) == 0.25
