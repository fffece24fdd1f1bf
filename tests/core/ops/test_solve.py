"""Inverses, determinants, linear systems: values in every type, errors, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

TYPES = [np.float32, np.float64, np.complex64, np.complex128]


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def normal(*shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    out = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        out = out + 1j * rng.standard_normal(shape)
    return out.astype(dtype)


def dominant(*shape, dtype=np.float64):
    return (normal(*shape, dtype=dtype) + 2 * shape[-1] * np.eye(shape[-1])).astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def close(got, want):
    tolerance = 1e-4 if got.dtype.name in ("float32", "complex64") else 1e-9
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4)])
def test_inverse_and_determinant(dtype, shape):
    x = dominant(*shape, dtype=dtype)
    close(run(tf.matrix_inverse(x)), np.linalg.inv(x))
    close(run(tf.matrix_inverse(x, adjoint=True)), np.linalg.inv(adjoint(x)))
    close(run(tf.matrix_determinant(x)), np.linalg.det(x))
    sign, logarithm = run(tf.linalg.slogdet(x))
    close(sign * np.exp(logarithm), np.linalg.det(x))
    assert sign.dtype == logarithm.dtype == dtype


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (120, 120)])
def test_systems(dtype, flag, shape):
    x, rhs = dominant(*shape, dtype=dtype), normal(*shape[:-1], 2, dtype=dtype, seed=1)
    turned = adjoint(x) if flag else x
    close(run(tf.matrix_solve(x, rhs, adjoint=flag)), np.linalg.solve(turned, rhs))
    for lower in (False, True):
        triangle = np.tril(x) if lower else np.triu(x)
        wanted = np.linalg.solve(adjoint(triangle) if flag else triangle, rhs)
        close(run(tf.matrix_triangular_solve(x, rhs, lower=lower, adjoint=flag)), wanted)


@pytest.mark.parametrize("shape", [(6, 3), (3, 6), (2, 6, 3)])
def test_least_squares(shape):
    x, rhs = normal(*shape), normal(*shape[:-1], 2, seed=1)
    wanted = np.linalg.pinv(x) @ rhs
    close(run(tf.matrix_solve_ls(x, rhs)), wanted)
    close(run(tf.matrix_solve_ls(x, rhs, fast=False)), wanted)
    unknown = tf.placeholder(tf.float64)
    close(run(tf.matrix_solve_ls(unknown, rhs), {unknown: x}), wanted)
    ridge = np.linalg.solve(adjoint(x) @ x + 0.5 * np.eye(shape[-1]), adjoint(x) @ rhs)
    close(run(tf.matrix_solve_ls(x, rhs, l2_regularizer=0.5)), ridge)


def test_least_squares_op_is_kept_for_many_small_systems():
    assert (
        tf.matrix_solve_ls(tf.zeros([5000, 4, 4]), tf.zeros([5000, 4, 1])).op.type
        == "MatrixSolveLs"
    )
    assert tf.matrix_solve_ls(tf.zeros([4, 4]), tf.zeros([4, 1])).op.type != "MatrixSolveLs"


def test_rank_deficient_least_squares():
    x = np.array([[1.0, 1.0], [1.0, 1.0], [2.0, 2.0]])
    close(
        run(tf.matrix_solve_ls(x, np.ones((3, 1)), fast=False)), np.linalg.pinv(x) @ np.ones((3, 1))
    )


def test_cholesky_solve():
    x = normal(2, 3, 3)
    x = x @ adjoint(x) + 3 * np.eye(3)
    rhs = normal(2, 3, 2, seed=1)
    close(run(tf.cholesky_solve(tf.cholesky(x), rhs)), np.linalg.solve(x, rhs))


def test_empty_systems():
    assert run(tf.matrix_inverse(tf.zeros([0, 2, 2]))).shape == (0, 2, 2)
    assert run(tf.matrix_determinant(tf.zeros([3, 0, 0]))).tolist() == [1, 1, 1]
    assert run(tf.matrix_solve(tf.zeros([2, 2]) + tf.eye(2), tf.zeros([2, 0]))).shape == (2, 0)


def test_errors():
    x = tf.placeholder(tf.float32)
    singular = {x: np.zeros((2, 2))}
    for fetch, message in (
        (tf.matrix_inverse(x), "Input is not invertible"),
        (tf.matrix_solve(x, tf.ones([2, 1])), "Input matrix is not invertible"),
        (tf.matrix_triangular_solve(x, tf.ones([2, 1])), "Input matrix is not invertible"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            run(fetch, singular)
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 2 and 3"):
        tf.matrix_solve(tf.eye(2), tf.ones([3, 1]))
    with pytest.raises(ValueError, match="Gradient not defined for fast=False"):
        y = tf.placeholder(tf.float32, [3, 2])
        tf.gradients(tf.matrix_solve_ls(y, tf.ones([3, 1]), fast=False), y)


# ---------------------------------------------------------------- three diagonals
def full(diagonals):
    upper, main, lower = (diagonals[..., i, :] for i in range(3))
    n = main.shape[-1]
    out = np.zeros((*main.shape, n), diagonals.dtype)
    for i in range(n):
        out[..., i, i] = main[..., i]
        if i + 1 < n:
            out[..., i, i + 1], out[..., i + 1, i] = upper[..., i], lower[..., i + 1]
    return out


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("batch", [(), (2,)])
def test_tridiagonal(dtype, batch):
    diagonals = normal(*batch, 3, 6, dtype=dtype)
    rhs = normal(*batch, 6, 2, dtype=dtype, seed=1)
    matrix = full(diagonals)
    product = run(tf.linalg.tridiagonal_matmul(diagonals, rhs))
    close(product, matrix @ rhs)
    solved = run(tf.linalg.tridiagonal_solve(diagonals, rhs))
    np.testing.assert_allclose(
        matrix @ solved, rhs, atol=1e-3 if dtype in (np.float32, np.complex64) else 1e-9
    )


def test_tridiagonal_forms():
    diagonals = normal(3, 5) + np.array([[0.0], [4.0], [0.0]])
    rhs = normal(5, 2, seed=1)
    wanted = np.linalg.solve(full(diagonals), rhs)
    upper, main, lower = diagonals[0, :-1], diagonals[1], diagonals[2, 1:]
    solve = tf.linalg.tridiagonal_solve
    close(run(solve((upper, main, lower), rhs, diagonals_format="sequence")), wanted)
    close(run(solve(full(diagonals), rhs, diagonals_format="matrix")), wanted)
    close(run(solve(diagonals, rhs.T.copy(), transpose_rhs=True)), wanted.T)
    close(run(solve(diagonals, rhs[:, 0])), wanted[:, 0])
    close(run(solve(diagonals, rhs, partial_pivoting=False)), wanted)
    with pytest.raises(ValueError, match="Unrecognized diagonals_format: dense"):
        solve(diagonals, rhs, diagonals_format="dense")
    with pytest.raises(ValueError, match="Expected diagonals to be a sequence of length 3"):
        solve((upper, main), rhs, diagonals_format="sequence")


@pytest.mark.parametrize("static", [[5, None], [None, 5], [None, None], None])
def test_tridiagonal_matrices_of_unknown_size(static):
    matrix = full(normal(3, 5) + np.array([[0.0], [4.0], [0.0]]))
    rhs = normal(5, 2, seed=1)
    given, right = tf.placeholder(tf.float64, static), tf.placeholder(tf.float64, [None, 2])
    solved = tf.linalg.tridiagonal_solve(given, right, diagonals_format="matrix")
    with tf.Session() as session:
        found = session.run(solved, {given: matrix, right: rhs})
    close(found, np.linalg.solve(matrix, rhs))
    assert given.shape.as_list() == static if static else given.shape.ndims is None


def test_pivoting_solves_what_elimination_alone_cannot():
    diagonals = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0], [0.0, 1.0, 3.0]])
    rhs = np.ones((3, 1))
    close(run(tf.linalg.tridiagonal_solve(diagonals, rhs)), np.linalg.solve(full(diagonals), rhs))
    with pytest.raises(tf.errors.InvalidArgumentError, match="requires pivoting"):
        run(tf.linalg.tridiagonal_solve(diagonals, rhs, partial_pivoting=False))


# ---------------------------------------------------------------- gradients
def check_gradient(fn, *values):
    """Derivatives along one direction each against central differences."""
    inputs = [tf.placeholder(v.dtype, v.shape) for v in values]
    out = fn(*inputs)
    outs = list(out) if isinstance(out, (list, tuple)) else [out]
    weights = [normal(*o.shape.as_list(), dtype=o.dtype.as_numpy_dtype, seed=9) for o in outs]
    slopes = tf.gradients(outs, inputs, grad_ys=[tf.constant(w) for w in weights])
    feeds = dict(zip(inputs, values, strict=True))
    with tf.Session() as session:
        for x, value, slope in zip(inputs, values, slopes, strict=True):
            step, h = normal(*value.shape, dtype=value.dtype, seed=5), 1e-6
            got = np.vdot(session.run(slope, feeds), step).real
            after = session.run(outs, feeds | {x: value + h * step})
            before = session.run(outs, feeds | {x: value - h * step})
            wanted = sum(
                np.vdot(w, (a - b) / (2 * h)).real
                for w, a, b in zip(weights, after, before, strict=True)
            )
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_gradients(dtype):
    x, rhs = dominant(2, 3, 3, dtype=dtype), normal(2, 3, 2, dtype=dtype, seed=1)
    check_gradient(tf.matrix_inverse, x)
    check_gradient(lambda t: tf.matrix_inverse(t, adjoint=True), x)
    check_gradient(tf.matrix_determinant, x)
    check_gradient(tf.linalg.slogdet, x)
    for flag in (False, True):
        check_gradient(lambda a, b, flag=flag: tf.matrix_solve(a, b, adjoint=flag), x, rhs)
        check_gradient(
            lambda a, b, flag=flag: tf.matrix_triangular_solve(a, b, adjoint=flag), x, rhs
        )
        check_gradient(
            lambda a, b, flag=flag: tf.matrix_triangular_solve(a, b, lower=False, adjoint=flag),
            x,
            rhs,
        )
    diagonals = normal(2, 3, 4, dtype=dtype) + np.array([[0], [5], [0]])
    columns = normal(2, 4, 2, dtype=dtype, seed=1)
    check_gradient(tf.linalg.tridiagonal_solve, diagonals, columns)
    check_gradient(tf.linalg.tridiagonal_matmul, diagonals, columns)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5)])
def test_gradients_of_least_squares(shape):
    x, rhs = normal(*shape), normal(shape[0], 2, seed=1)
    check_gradient(lambda a, b: tf.matrix_solve_ls(a, b, l2_regularizer=0.3), x, rhs)
    strength = np.array(0.3)
    matrix = tf.placeholder(tf.float64)
    direct = tf.raw_ops.MatrixSolveLs
    check_gradient(lambda a, b, s: direct(matrix=a, rhs=b, l2_regularizer=s), x, rhs, strength)
    # Which way to go is decided when it runs.
    out = direct(matrix=matrix, rhs=tf.constant(rhs), l2_regularizer=0.3)
    known = tf.constant(x)
    wanted = tf.gradients(direct(matrix=known, rhs=tf.constant(rhs), l2_regularizer=0.3), known)[0]
    np.testing.assert_allclose(
        run(tf.gradients(out, matrix)[0], {matrix: x}), run(wanted), rtol=1e-9
    )
