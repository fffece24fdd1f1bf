"""Functions of one argument: names, sparse arguments, rounding, second derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def test_default_names():
    x = tf.constant([0.5])
    for function, name in (
        (tf.exp, "Exp"), (tf.negative, "Neg"), (tf.square, "Square"), (tf.sigmoid, "Sigmoid"),
        (tf.abs, "Abs"), (tf.log, "Log"), (tf.tanh, "Tanh"), (tf.is_nan, "IsNan"),
        (tf.log_sigmoid, "LogSigmoid"), (tf.asin, "Asin"), (tf.rsqrt, "Rsqrt"),
    ):  # fmt: skip
        assert function(x).op.name == name
    assert tf.exp(x, name="mine").op.name == "mine"


def test_rounding():
    x = tf.constant([-2.5, -1.5, 0.5, 1.5, 2.4])
    assert run(tf.round(x)).tolist() == [-2.0, -2.0, 0.0, 2.0, 2.0]
    assert run(tf.rint(x)).tolist() == [-2.0, -2.0, 0.0, 2.0, 2.0]
    assert run(tf.floor(x)).tolist() == [-3.0, -2.0, 0.0, 1.0, 2.0]
    assert run(tf.ceil(x)).tolist() == [-2.0, -1.0, 1.0, 2.0, 3.0]
    whole = tf.constant([1, 2])
    assert tf.round(whole) is whole


def test_types_without_a_meaning_are_refused():
    with pytest.raises(TypeError, match="not in list of allowed values"):
        tf.sqrt(tf.constant([1, 2]))
    with pytest.raises(TypeError, match="not in list of allowed values"):
        tf.floor(tf.constant([1, 2]))


def test_sparse_arguments_keep_their_indices():
    sparse = tf.SparseTensor([[0, 1]], [-2.0], [1, 3])
    for function, want in ((tf.abs, 2.0), (tf.negative, 2.0), (tf.square, 4.0), (tf.sign, -1.0)):
        out = function(sparse)
        assert isinstance(out, tf.SparseTensor) and out.indices is sparse.indices
        assert run(out.values).tolist() == [want]


def test_complex_modulus_has_the_type_of_the_parts():
    z = tf.constant([3 + 4j], tf.complex64)
    assert tf.abs(z).dtype == tf.float32 and run(tf.abs(z)).tolist() == [5.0]
    assert tf.abs(tf.cast(z, tf.complex128)).dtype == tf.float64


@pytest.mark.parametrize(
    ("function", "second"),
    [
        (tf.exp, lambda x: np.exp(x)),
        (tf.tanh, lambda x: -2 * np.tanh(x) * (1 - np.tanh(x) ** 2)),
        (tf.sqrt, lambda x: -0.25 * x**-1.5),
        (tf.rsqrt, lambda x: 0.75 * x**-2.5),
        (tf.reciprocal, lambda x: 2 * x**-3),
        (tf.log, lambda x: -(x**-2)),
        (tf.sin, lambda x: -np.sin(x)),
        (tf.lgamma, None),
    ],
)
def test_second_derivatives(function, second):
    x = tf.constant([0.7, 1.9], tf.float64)
    first = tf.gradients(function(x), x)[0]
    got = run(tf.gradients(first, x)[0])
    if second is None:
        from scipy.special import polygamma

        want = polygamma(1, [0.7, 1.9])
    else:
        want = second(np.array([0.7, 1.9]))
    np.testing.assert_allclose(got, want, rtol=1e-9)


def test_the_sigmoid_does_not_overflow():
    for kind in (tf.float16, tf.bfloat16, tf.float32, tf.float64):
        x = tf.cast(tf.constant([-1e4, -20.0, 0.0, 20.0, 1e4]), kind)
        got = run(tf.sigmoid(x)).astype(np.float64)
        np.testing.assert_allclose(got, [0, 2.06e-9, 0.5, 1, 1], rtol=2e-2, atol=1e-7)


def test_large_and_small_arrays_give_the_same_sigmoid():
    x = np.linspace(-9, 9, 5000).astype(np.float32)
    fed = tf.placeholder(tf.float32, [None])
    np.testing.assert_allclose(
        run(tf.sigmoid(fed), {fed: x})[:10], run(tf.sigmoid(fed), {fed: x[:10]}), rtol=1e-6
    )


def test_non_finite_numbers():
    x = tf.constant([np.nan, np.inf, -np.inf, 1.0])
    got = run([tf.is_nan(x), tf.is_inf(x), tf.is_finite(x)])
    assert [g.tolist() for g in got] == [
        [True, False, False, False], [False, True, True, False], [False, False, False, True],
    ]  # fmt: skip


def test_the_angle_of_a_point():
    assert run(tf.atan2(1.0, -1.0)) == pytest.approx(0.75 * np.pi)
