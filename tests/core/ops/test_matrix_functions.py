"""Functions of matrices against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def normal(*shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    out = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        out = out + 1j * rng.standard_normal(shape)
    return out.astype(dtype)


def exponential(x):
    """The exponential by its series, after halving often enough."""
    small, total = x.astype(np.complex128) / 2**12, np.eye(x.shape[-1])
    term = total
    for k in range(1, 12):
        term = term @ small / k
        total = total + term
    for _ in range(12):
        total = total @ total
    return total


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("scale", [0.0, 1e-3, 0.1, 0.5, 1.0, 3.0])
def test_expm(dtype, scale):
    x = (normal(3, 4, 4, dtype=dtype) * np.array([1.0, 0.1, 2.0])[:, None, None] * scale).astype(
        dtype
    )
    wanted = exponential(x)
    wanted = wanted if np.dtype(dtype).kind == "c" else wanted.real
    tolerance = 2e-4 if dtype in (np.float32, np.complex64) else 1e-8
    got = run(tf.linalg.expm(x))
    assert got.dtype == dtype
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max())


def test_expm_of_small_infinite_and_unknown_matrices():
    assert run(tf.linalg.expm([[0.0]])).tolist() == [[1.0]]
    assert run(tf.linalg.expm(tf.zeros([2, 0, 0]))).shape == (2, 0, 0)
    assert np.isnan(run(tf.linalg.expm([[np.inf, 0.0], [0.0, 1.0]]))).any()
    x = tf.placeholder(tf.float64)
    value = normal(2, 3, 3)
    np.testing.assert_allclose(
        run(tf.linalg.expm(x), {x: value}), exponential(value).real, rtol=1e-8
    )


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_square_roots_and_logarithms(dtype):
    x = normal(2, 4, 4, dtype=dtype) + 6 * np.eye(4)
    root = run(tf.linalg.sqrtm(x))
    np.testing.assert_allclose(root @ root, x, rtol=1e-8, atol=1e-8)
    logarithm = run(tf.linalg.logm(x.astype(np.complex128)))
    np.testing.assert_allclose(exponential(logarithm), x, rtol=1e-6, atol=1e-6)


def test_functions_of_defective_matrices():
    x = np.array([[4.0, 1.0, 0.0], [0.0, 4.0, 1.0], [0.0, 0.0, 4.0]])
    root = run(tf.matrix_square_root(x))
    np.testing.assert_allclose(root @ root, x, atol=1e-10)
    logarithm = run(tf.linalg.logm(x.astype(np.complex128)))
    np.testing.assert_allclose(exponential(logarithm), x, atol=1e-8)


def test_a_real_matrix_without_a_real_root_has_none_and_others_of_its_batch_do():
    x = tf.placeholder(tf.float32, [None, 2, 2])
    root = run(tf.linalg.sqrtm(x), {x: [[[-1, 0], [0, 1]], [[4, 0], [0, 9]], [[0, 1], [0, 0]]]})
    assert np.isnan(root[[0, 2]]).all()
    np.testing.assert_allclose(root[1], [[2, 0], [0, 3]], atol=1e-6)
    assert tf.linalg.sqrtm is tf.matrix_square_root
    assert tf.linalg.sqrtm.__name__ == "matrix_square_root"


def test_gradient_of_the_square_root():
    value, step, h = normal(2, 3, 3) + 6 * np.eye(3), normal(2, 3, 3, seed=1), 1e-6
    x = tf.placeholder(tf.float64, value.shape)
    root, weights = tf.linalg.sqrtm(x), normal(2, 3, 3, seed=2)
    slope = tf.gradients(root, x, grad_ys=tf.constant(weights))[0]
    with tf.Session() as session:
        got = (session.run(slope, {x: value}) * step).sum()
        change = session.run(root, {x: value + h * step}) - session.run(root, {x: value - h * step})
    np.testing.assert_allclose(got, (weights * change).sum() / (2 * h), rtol=1e-6)


def test_gradient_of_the_exponential():
    value, step, h = normal(3, 3), normal(3, 3, seed=1), 1e-6
    x = tf.placeholder(tf.float64, value.shape)
    out = tf.linalg.expm(x)
    slope = tf.gradients(out, x)[0]
    with tf.Session() as session:
        got = (session.run(slope, {x: value}) * step).sum()
        change = session.run(out, {x: value + h * step}) - session.run(out, {x: value - h * step})
    np.testing.assert_allclose(got, change.sum() / (2 * h), rtol=1e-6)


def test_logdet_rank_and_pseudo_inverse():
    x = normal(2, 3, 3)
    positive = x @ np.swapaxes(x, 1, 2) + np.eye(3)
    np.testing.assert_allclose(
        run(tf.linalg.logdet(positive)), np.linalg.slogdet(positive)[1], rtol=1e-9
    )
    flat = np.array([[1.0, 2.0], [2.0, 4.0], [0.0, 0.0]])
    assert run(tf.linalg.matrix_rank(flat)) == 1 and run(tf.linalg.matrix_rank(x)).tolist() == [
        3,
        3,
    ]
    np.testing.assert_allclose(run(tf.linalg.pinv(flat)), np.linalg.pinv(flat), atol=1e-12)
    unknown = tf.placeholder(tf.float64)
    assert run(tf.linalg.matrix_rank(unknown), {unknown: flat}) == 1
    assert run(tf.linalg.adjoint([[1 + 2j, 3]])).tolist() == [[1 - 2j], [3]]
