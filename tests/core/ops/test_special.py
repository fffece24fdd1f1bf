"""Special functions: the public ones that are made of several nodes, and their gradients."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special as scipy

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def test_bessel_functions_without_the_exponential():
    x = np.array([-3.0, 0.0, 0.5, 5.0])
    np.testing.assert_allclose(run(tf.math.bessel_i0(x)), scipy.i0(x), rtol=1e-12)
    np.testing.assert_allclose(run(tf.math.bessel_i1(x)), scipy.i1(x), rtol=1e-12)


def test_log_beta_of_the_last_axis():
    x = np.array([[1.0, 2.0, 3.0], [0.5, 0.5, 4.0]])
    want = scipy.gammaln(x).sum(-1) - scipy.gammaln(x.sum(-1))
    np.testing.assert_allclose(run(tf.lbeta(x)), want, rtol=1e-12)


def test_inverse_error_function():
    np.testing.assert_allclose(run(tf.erf(tf.math.erfinv([0.1, -0.7]))), [0.1, -0.7], rtol=1e-6)
    np.testing.assert_allclose(run(tf.math.ndtri([0.5, 0.975])), [0, 1.959964], atol=1e-6)


def test_next_representable_number():
    got = run(tf.math.nextafter(tf.constant([1.0, 1.0]), tf.constant([2.0, 0.0])))
    assert got.tolist() == [np.nextafter(np.float32(1), np.float32(2)), np.float32(1) - 2**-24]


@pytest.mark.parametrize(("a", "x"), [(2.5, 1.2), (0.7, 3.0), (6.0, 6.0)])
def test_gradients_of_the_incomplete_gamma_function(a, x):
    left, right = tf.constant(a, tf.float64), tf.constant(x, tf.float64)
    da, dx = run(tf.gradients(tf.igamma(left, right), [left, right]))
    h = 1e-6
    near = (scipy.gammainc(a + h, x) - scipy.gammainc(a - h, x)) / (2 * h)
    assert da == pytest.approx(near, rel=1e-6)
    assert dx == pytest.approx(x ** (a - 1) * np.exp(-x) / scipy.gamma(a), rel=1e-9)
    minus = run(tf.gradients(tf.igammac(left, right), [left, right]))
    np.testing.assert_allclose(minus, [-da, -dx])


def test_parameters_without_a_derivative_give_none():
    x, q = tf.constant(3.0), tf.constant(2.0)
    dx, dq = tf.gradients(tf.zeta(x, q), [x, q])
    assert dx is None and run(dq) == pytest.approx(-3 * scipy.zeta(4, 2), rel=1e-5)
    n = tf.constant(1.0)
    assert tf.gradients(tf.polygamma(n, q), n) == [None]
    a, b, z = (tf.constant(v) for v in (2.0, 3.0, 0.25))
    da, db, dz = tf.gradients(tf.betainc(a, b, z), [a, b, z])
    assert da is None and db is None
    assert run(dz) == pytest.approx(0.25 * 0.75**2 / scipy.beta(2, 3), rel=1e-5)


def test_the_bessel_gradient_at_zero():
    x = tf.constant([0.0, 1.0], tf.float64)
    got = run(tf.gradients(tf.math.bessel_i1e(x), x)[0])
    np.testing.assert_allclose(got, [0.5, scipy.i0e(1) - 2 * scipy.i1e(1)], rtol=1e-9)


def test_betainc_broadcasts_scalars_only():
    assert tf.betainc(1.0, tf.zeros([3]), 0.5).shape.as_list() == [3]
    assert tf.betainc(1.0, 2.0, 0.5).shape.as_list() == []
    with pytest.raises(ValueError, match="must be equal"):
        tf.betainc(tf.zeros([2]), tf.zeros([3]), 0.5)
