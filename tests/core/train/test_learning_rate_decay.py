"""Learning-rate schedules against their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

import opdock as tf

STEPS = [0, 1, 5, 9, 10, 11, 25, 100]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def cosine(fraction):
    return 0.5 * (1 + math.cos(math.pi * fraction))


def restarts(step, first=10, t_mul=2.0, m_mul=0.5, alpha=0.1):
    done, length, weight = 0.0, float(first), 1.0
    while step >= done + length:
        done, length, weight = done + length, length * t_mul, weight * m_mul
    return (1 - alpha) * weight * cosine((step - done) / length) + alpha


T = tf.train
CASES = {
    "exponential": (lambda s: T.exponential_decay(0.5, s, 10, 0.9),
                    lambda t: 0.5 * 0.9 ** (t / 10)),
    "exponential stairs": (lambda s: T.exponential_decay(0.5, s, 10, 0.9, staircase=True),
                           lambda t: 0.5 * 0.9 ** (t // 10)),
    "natural exp": (lambda s: T.natural_exp_decay(0.5, s, 10, 0.3),
                    lambda t: 0.5 * math.exp(-0.3 * t / 10)),
    "natural exp stairs": (lambda s: T.natural_exp_decay(0.5, s, 10, 0.3, staircase=True),
                           lambda t: 0.5 * math.exp(-0.3 * (t // 10))),
    "inverse time": (lambda s: T.inverse_time_decay(0.5, s, 10, 0.3),
                     lambda t: 0.5 / (1 + 0.3 * t / 10)),
    "inverse time stairs": (lambda s: T.inverse_time_decay(0.5, s, 10, 0.3, staircase=True),
                            lambda t: 0.5 / (1 + 0.3 * (t // 10))),
    "polynomial": (lambda s: T.polynomial_decay(0.5, s, 20, 0.1, power=2.0),
                   lambda t: 0.4 * (1 - min(t, 20) / 20) ** 2 + 0.1),
    "polynomial cycle": (lambda s: T.polynomial_decay(0.5, s, 20, 0.1, cycle=True),
                         lambda t: 0.4 * (1 - t / (20 * max(1, math.ceil(t / 20)))) + 0.1),
    "cosine": (lambda s: T.cosine_decay(0.5, s, 20, alpha=0.1),
               lambda t: 0.5 * (0.9 * cosine(min(t, 20) / 20) + 0.1)),
    "restarts": (lambda s: T.cosine_decay_restarts(0.5, s, 10, 2.0, 0.5, 0.1),
                 lambda t: 0.5 * restarts(t)),
    "restarts equal": (lambda s: T.cosine_decay_restarts(0.5, s, 10, 1.0, 0.5, 0.1),
                       lambda t: 0.5 * restarts(t, t_mul=1.0)),
    "linear cosine": (
        lambda s: T.linear_cosine_decay(0.5, s, 20, alpha=0.1, beta=0.01),
        lambda t: 0.5 * ((0.1 + (20 - min(t, 20)) / 20) * cosine(min(t, 20) / 20) + 0.01)),
    "piecewise": (lambda s: T.piecewise_constant(s, [5, 10], [1.0, 0.5, 0.25]),
                  lambda t: 1.0 if t <= 5 else 0.5 if t <= 10 else 0.25),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_formula(name, dtype):
    make, formula = CASES[name]
    step = tf.placeholder(dtype, [])
    rate = make(step)
    assert rate.dtype is tf.float32
    with tf.Session() as session:
        got = [session.run(rate, {step: t}) for t in STEPS]
    np.testing.assert_allclose(got, [formula(t) for t in STEPS], rtol=2e-5, atol=1e-6)


def test_a_schedule_of_a_global_step_variable():
    counter = tf.train.get_or_create_global_step()
    rate = T.exponential_decay(1.0, counter, 1, 0.5)
    w = tf.Variable(0.0)
    step = T.GradientDescentOptimizer(rate).minimize(w * 1.0, global_step=counter)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(step)
        assert session.run([w, rate]) == [-1.75, 0.125]


def test_noise_is_seeded_and_stays_near():
    tf.set_random_seed(1)
    step = tf.placeholder(tf.int32, [])
    noisy = T.noisy_linear_cosine_decay(0.5, step, 20)
    with tf.Session() as session:
        assert 0 <= session.run(noisy, {step: 1}) < 3


def test_errors():
    step = tf.constant(1)
    with pytest.raises(ValueError, match="global_step is required"):
        T.exponential_decay(0.5, None, 10, 0.9)
    with pytest.raises(ValueError, match="length of boundaries"):
        T.piecewise_constant(step, [1, 2], [1.0, 2.0])
    with pytest.raises(ValueError):
        T.piecewise_constant(step, [1], [1.0, 2])


def test_rates_have_the_names_by_which_programs_fetch_them():
    with tf.Graph().as_default():
        step = tf.constant(7)
        made = [
            tf.train.exponential_decay(0.1, step, 3, 0.9),
            tf.train.natural_exp_decay(0.1, step, 3, 0.9),
            tf.train.inverse_time_decay(0.1, step, 3, 0.9),
            tf.train.polynomial_decay(0.1, step, 3),
            tf.train.cosine_decay(0.1, step, 30),
            tf.train.cosine_decay_restarts(0.1, step, 3),
            tf.train.linear_cosine_decay(0.1, step, 30),
        ]
    # As in TensorFlow, natural_exp_decay is an exponential decay.
    assert [rate.op.name for rate in made] == [
        "ExponentialDecay", "ExponentialDecay_1", "InverseTimeDecay", "PolynomialDecay",
        "CosineDecay/Mul_3", "SGDRDecay", "LinearCosineDecay",
    ]  # fmt: skip
