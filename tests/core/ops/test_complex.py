"""Complex numbers: parts, types, gradients by TF's convention."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def test_parts():
    z = tf.constant([1 + 2j, -3j], tf.complex128)
    assert run(tf.real(z)).tolist() == [1, 0] and run(tf.imag(z)).tolist() == [2, -3]
    assert run(tf.conj(z)).tolist() == [1 - 2j, 3j]
    np.testing.assert_allclose(run(tf.angle(z)), [np.arctan2(2, 1), -np.pi / 2])
    assert tf.real(z).dtype == tf.float64
    assert tf.real(tf.cast(z, tf.complex64)).dtype == tf.float32


def test_real_numbers_are_complex_numbers_too():
    x = tf.constant([1.5])
    assert tf.real(x) is x and tf.conj(x) is x
    assert run([tf.imag(x), tf.angle(x)])[0].tolist() == [0.0]
    with pytest.raises(TypeError, match="Expected numeric or variant"):
        tf.conj(tf.constant(["s"]))


def test_making_them():
    z = tf.complex(tf.constant([np.inf, 1.0]), tf.constant(np.nan))
    got = run(z)
    assert got.dtype == np.complex64
    assert got.real.tolist() == [np.inf, 1.0] and np.isnan(got.imag).all()
    assert tf.complex(np.float64(1), np.float64(2)).dtype == tf.complex128
    with pytest.raises(TypeError, match="incorrect types: float32 float64"):
        tf.complex(tf.constant(1.0), tf.constant(1.0, tf.float64))


def test_gradients_of_functions_of_parts():
    re, im = tf.constant([3.0]), tf.constant([4.0])
    z = tf.complex(re, im)
    grads = run(tf.gradients(tf.abs(z), [re, im]))
    np.testing.assert_allclose(np.ravel(grads), [0.6, 0.8], rtol=1e-6)
    grads = run(tf.gradients(tf.angle(z), [re, im]))
    np.testing.assert_allclose(np.ravel(grads), [-4 / 25, 3 / 25], rtol=1e-6)
    grads = run(tf.gradients(tf.real(z * z), [re, im]))
    np.testing.assert_allclose(np.ravel(grads), [6.0, -8.0], rtol=1e-6)


def test_the_modulus_is_differentiated_twice():
    x = tf.constant(2.0)
    once = tf.gradients(tf.abs(tf.complex(tf.cos(x), 1.0)), x)[0]
    # With r = sqrt(cos(x)^2 + 1): r'' = (sin(x)^2 - cos(x)^2) / r - (cos(x) sin(x))^2 / r^3.
    c, s = np.cos(2.0), np.sin(2.0)
    r = np.sqrt(c * c + 1)
    expected = (s * s - c * c) / r - (c * s) ** 2 / r**3
    np.testing.assert_allclose(run(tf.gradients(once, x)[0]), expected, rtol=1e-5)
    zero = tf.constant(0j, tf.complex64)
    assert run(tf.gradients(tf.abs(zero), zero)[0]) == 0
