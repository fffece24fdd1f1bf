"""Factorisations: what they must satisfy, in every type and size; errors; gradients."""

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


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def positive(*shape, dtype=np.float64):
    x = normal(*shape, dtype=dtype)
    return (x @ adjoint(x) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def close(got, want, scale=1.0):
    tolerance = 1e-4 if got.dtype.name in ("float32", "complex64") else 1e-9
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 5), (1, 1), (40, 40)])
def test_cholesky(dtype, shape):
    x = positive(*shape, dtype=dtype)
    factor = run(tf.cholesky(x))
    close(factor @ adjoint(factor), x, scale=50)
    assert np.array_equal(factor, np.tril(factor))
    above = x + np.triu(np.ones(shape, dtype), 1)
    assert np.array_equal(run(tf.cholesky(above)), factor)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 6, 4)])
@pytest.mark.parametrize("full", [False, True])
def test_qr(dtype, shape, full):
    x = normal(*shape, dtype=dtype)
    result = tf.qr(x, full_matrices=full)
    q, r = run([result.q, result.r])
    close(q @ r, x)
    close(
        adjoint(q) @ q,
        np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1])),
    )
    assert np.array_equal(r, np.triu(r)) and result.q.shape.as_list() == list(q.shape)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 3, 5)])
@pytest.mark.parametrize("full", [False, True])
def test_svd(dtype, shape, full):
    x = normal(*shape, dtype=dtype)
    s, u, v = run(tf.svd(x, full_matrices=full))
    p = s.shape[-1]
    close((u[..., :p] * s[..., None, :]) @ adjoint(v[..., :p]), x)
    assert s.dtype.kind == "f" and (np.diff(s) <= 0).all()
    assert u.shape[-1] == (shape[-2] if full else p) and v.shape[-1] == (shape[-1] if full else p)
    values = tf.svd(x, compute_uv=False)
    close(run(values), s)
    assert values.shape.as_list() == list(s.shape)


@pytest.mark.parametrize("dtype", TYPES)
def test_self_adjoint_eig(dtype):
    x = positive(2, 4, 4, dtype=dtype)
    e, v = run(tf.self_adjoint_eig(x))
    close(x @ v, v * e[..., None, :], scale=20)
    assert (np.diff(e.real) >= 0).all()
    close(run(tf.self_adjoint_eigvals(x)), e)
    lower = np.tril(x)
    close(run(tf.linalg.eigvalsh(lower)), e)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (1, 1), (70, 70)])
def test_lu(dtype, shape):
    x = normal(*shape, dtype=dtype)
    result = tf.linalg.lu(x, output_idx_type=tf.int64)
    packed, order = run([result.lu, result.p])
    assert order.dtype == np.int64
    lower = np.tril(packed, -1) + np.eye(shape[-1])
    rows = np.take_along_axis(x, order[..., None], -2)
    close((lower @ np.triu(packed)).astype(dtype), rows, scale=10)
    assert np.abs(np.tril(packed, -1)).max(initial=0) <= 1 + 1e-6
    close(run(tf.linalg.lu_reconstruct(*result)), x, scale=10)
    rhs = normal(*shape[:-1], 2, dtype=dtype, seed=1)
    close(x @ run(tf.linalg.lu_solve(*result, rhs)), rhs, scale=200)
    close(
        x @ run(tf.linalg.lu_matrix_inverse(*result)),
        np.broadcast_to(np.eye(shape[-1]), shape),
        scale=200,
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_a_matrix_that_is_not_finite_has_no_singular_values(dtype):
    x = normal(2, 4, 3, dtype=dtype)
    fine = x[0].copy()
    x[1, 2, 0] = np.nan
    for vectors in (False, True):
        found = run(tf.svd(x, compute_uv=vectors))
        alone = run(tf.svd(fine, compute_uv=vectors))
        pairs = zip(found, alone, strict=True) if vectors else [(found, alone)]
        for part, wanted in pairs:
            close(part[0], wanted)
            assert np.isnan(part[1]).all()


def test_empty_batches():
    x = tf.zeros([0, 3, 3])
    assert run(tf.cholesky(x)).shape == (0, 3, 3)
    assert run(tf.svd(x, compute_uv=False)).shape == (0, 3)
    assert [t.shape for t in run(list(tf.linalg.lu(x)))] == [(0, 3, 3), (0, 3)]
    assert [t.shape for t in run(list(tf.qr(tf.zeros([0, 3, 2]))))] == [(0, 3, 2), (0, 2, 2)]


def test_errors():
    x = tf.placeholder(tf.float32, [None, None])
    indefinite = {x: [[1, 0], [0, -1]]}
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="Cholesky decomposition was not successful"
    ):
        run(tf.cholesky(x), indefinite)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Input is not invertible"):
        run(tf.linalg.lu(x).p, {x: np.zeros((2, 2))})
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 2 and 3"):
        tf.cholesky(tf.zeros([2, 3]))
    with pytest.raises(ValueError, match="Shape must be at least rank 2 but is rank 1"):
        tf.svd(tf.zeros([3]))
    with pytest.raises(TypeError, match="has DataType int32 not in list of allowed values"):
        tf.qr(tf.zeros([2, 2], tf.int32))


# ---------------------------------------------------------------- gradients
def check_gradient(fn, value, direction, rtol=1e-6):
    """The derivative along one direction against a central difference."""
    x = tf.placeholder(value.dtype, value.shape)
    out = fn(x)
    outs = list(out) if isinstance(out, (list, tuple)) else [out]
    outs = [o for o in outs if not o.dtype.is_integer]
    weights = [normal(*o.shape.as_list(), dtype=o.dtype.as_numpy_dtype, seed=9) for o in outs]
    slope = tf.gradients(outs, x, grad_ys=[tf.constant(w) for w in weights])[0]
    with tf.Session() as session:
        got = np.vdot(session.run(slope, {x: value}), direction).real
        h = 1e-6
        after = session.run(outs, {x: value + h * direction})
        before = session.run(outs, {x: value - h * direction})
    wanted = sum(
        np.vdot(w, (a - b) / (2 * h)).real for w, a, b in zip(weights, after, before, strict=True)
    )
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_gradients_of_self_adjoint_input(dtype):
    x = positive(2, 4, 4, dtype=dtype)
    step = normal(2, 4, 4, dtype=dtype, seed=3)
    step = step + adjoint(step)
    check_gradient(tf.cholesky, x, step)
    check_gradient(tf.self_adjoint_eigvals, x, step)
    if dtype == np.float64:
        check_gradient(tf.self_adjoint_eig, x, step)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 3, 4)])
def test_gradients_of_svd(shape):
    x, step = normal(*shape), normal(*shape, seed=3)
    check_gradient(lambda t: tf.svd(t, compute_uv=False), x, step)
    check_gradient(tf.svd, x, step)
    if abs(shape[-1] - shape[-2]) <= 1:
        check_gradient(lambda t: tf.svd(t, full_matrices=True), x, step)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 5, 3)])
def test_gradient_of_qr(shape):
    check_gradient(tf.qr, normal(*shape), normal(*shape, seed=3))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_gradient_of_lu(dtype):
    check_gradient(
        lambda t: tf.linalg.lu(t).lu,
        normal(2, 4, 4, dtype=dtype),
        normal(2, 4, 4, dtype=dtype, seed=3),
    )


def test_gradients_that_tf_lacks_say_so():
    x = tf.placeholder(tf.complex64, [2, 2])
    with pytest.raises(NotImplementedError, match="QrGrad not implemented for dtype: complex64"):
        tf.gradients(tf.abs(tf.qr(x).q), x)
    wide = tf.placeholder(tf.float32, [2, 3])
    with pytest.raises(NotImplementedError, match="ncols > nrows"):
        tf.gradients(tf.qr(wide).q, wide)
    tall = tf.placeholder(tf.float32, [5, 2])
    with pytest.raises(NotImplementedError, match="when full_matrices is True"):
        tf.gradients(tf.svd(tall, full_matrices=True)[1], tall)
