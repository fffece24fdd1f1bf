"""`ExponentialMovingAverage`: shadows, names, debiasing, what is restored under which name."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.train import moving_averages


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.mark.parametrize("resource", [False, True])
def test_of_a_variable(resource):
    v = tf.Variable(10.0, name="v", use_resource=resource)
    ema = tf.train.ExponentialMovingAverage(0.9)
    update = ema.apply([v])
    average = ema.average(v)
    assert average.op.name == "v/ExponentialMovingAverage"
    assert ema.average_name(v) == "v/ExponentialMovingAverage"
    assert average in tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)
    assert v in tf.moving_average_variables()
    assert average not in tf.trainable_variables()
    want = 10.0
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(average) == 10
        for k in range(1, 4):
            session.run(v.assign(float(k)))
            session.run(update)
            want = 0.9 * want + 0.1 * k
            np.testing.assert_allclose(session.run(average), want, rtol=1e-6)


def test_of_a_tensor_starts_at_zero():
    x = tf.placeholder(tf.float32, [], name="x")
    ema = tf.train.ExponentialMovingAverage(0.5)
    update = ema.apply([x])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(update, {x: 4.0})
        assert session.run(ema.average(x)) == 2
        assert ema.average_name(x) == "x/ExponentialMovingAverage"


def test_zero_debias():
    x = tf.placeholder(tf.float32, [], name="x")
    ema = tf.train.ExponentialMovingAverage(0.5, zero_debias=True)
    update = ema.apply([x])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(update, {x: 4.0})
        np.testing.assert_allclose(session.run(ema.average(x)), 4, rtol=1e-6)
        session.run(update, {x: 1.0})
        np.testing.assert_allclose(session.run(ema.average(x)), (1 + 0.5 * 4) / 1.5, rtol=1e-6)


def test_num_updates_lowers_the_decay_at_first():
    v = tf.Variable(0.0)
    n = tf.placeholder(tf.float32, [])
    ema = tf.train.ExponentialMovingAverage(0.9, num_updates=n)
    update = ema.apply([v])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(v.assign(1.0))
        session.run(update, {n: 0.0})
        np.testing.assert_allclose(session.run(ema.average(v)), 0.9, rtol=1e-6)


def test_all_trainable_variables_by_default():
    a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, trainable=False, name="b")
    ema = tf.train.ExponentialMovingAverage(0.9, name="Mine")
    assert ema.name == "Mine"
    ema.apply()
    assert ema.average(a).op.name == "a/Mine"
    assert ema.average(b) is None
    names = ema.variables_to_restore()
    assert names["a/Mine"] is a
    assert names["b"] is b


def test_errors():
    ema = tf.train.ExponentialMovingAverage(0.9)
    with pytest.raises(TypeError, match="float"):
        ema.apply([tf.Variable(1)])


def test_several_debiased_averages_of_one_variable():
    with tf.Graph().as_default(), tf.Session() as sess:
        with tf.variable_scope("s"):
            v = tf.Variable([0.0], name="v")
            moves = [moving_averages.assign_moving_average(v, [x], 0.5) for x in (1.0, 3.0)]
        names = {u.op.name for u in tf.global_variables()} - {"s/v"}
        kept = ("biased", "local_step", "biased_1", "local_step_1")
        assert names == {f"s/s/v/{name}" for name in kept}
        sess.run(tf.global_variables_initializer())
        for move, value in zip(moves, (1.0, 3.0), strict=True):
            sess.run(move)
            assert sess.run(v) == [value]


def test_weighted_averages():
    with tf.Graph().as_default(), tf.Session() as sess:
        value, weight = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
        average = moving_averages.weighted_moving_average(value, 0.5, weight)
        sess.run(tf.global_variables_initializer())
        found = [sess.run(average, {value: v, weight: w}) for v, w in ((4.0, 1.0), (1.0, 2.0))]
        # (4/4 + 2/2) over (1/4 + 2/2)
        np.testing.assert_allclose(found, [4.0, 1.6])
        assert {v.op.name for v in tf.global_variables()} == {
            "WeightedMovingAvg/value_x_weight", "WeightedMovingAvg/weight",
        }  # fmt: skip
