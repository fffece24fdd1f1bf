"""`tf.contrib.solvers`: iterative solutions beside NumPy's direct ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import opdock as tf

solvers = tf.contrib.solvers


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def _matrix(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(3).uniform(-1, 1, (rows, columns))


def _placed(value: np.ndarray, known: bool, feeds: dict) -> tf.Tensor:
    if known:
        return tf.constant(value)
    place = tf.placeholder(value.dtype)
    feeds[place] = value
    return place


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("size", [1, 6])
@pytest.mark.parametrize("kind", ["none", "identity", "jacobi"])
def test_conjugate_gradients_solve(kind: str, size: int, known: bool) -> None:
    root = _matrix(size, size)
    matrix = root @ root.T + np.eye(size)
    rhs = _matrix(size, 1)[:, 0]
    feeds: dict = {}
    placed = _placed(matrix, known, feeds)
    operator = solvers.util.create_operator(placed)
    conditioner = {
        "none": None,
        "identity": solvers.util.identity_operator(placed),
        "jacobi": solvers.util.create_operator(tf.constant(np.diag(1 / matrix.diagonal()))),
    }[kind]
    solve = solvers.linear_equations.conjugate_gradient
    found = solve(operator, _placed(rhs, known, feeds), conditioner, tol=1e-10, max_iter=50)
    began = solve(operator, rhs, conditioner, x=np.linalg.solve(matrix, rhs) + 0.1, tol=1e-10)
    with tf.Session() as sess:
        end, other = sess.run([found, began], feeds)
    np.testing.assert_allclose(end.x, np.linalg.solve(matrix, rhs), rtol=1e-7)
    np.testing.assert_allclose(other.x, end.x, rtol=1e-7)
    assert end.x.shape == end.r.shape == end.p.shape == (size,)
    assert 1 <= end.i <= size + 1


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("rows", "columns"), [(8, 5), (3, 7), (4, 4), (3, 1), (1, 3)])
def test_least_squares_are_least(rows: int, columns: int, known: bool) -> None:
    matrix, rhs = _matrix(rows, columns), _matrix(rows, 1)[:, 0]
    feeds: dict = {}
    operator = solvers.util.create_operator(_placed(matrix, known, feeds))
    state = solvers.least_squares.cgls(operator, _placed(rhs, known, feeds), tol=1e-12, max_iter=40)
    with tf.Session() as sess:
        end = sess.run(state) if known else sess.run(state, feeds)
    np.testing.assert_allclose(end.x, np.linalg.lstsq(matrix, rhs, rcond=None)[0], rtol=1e-6)
    np.testing.assert_allclose(end.r, rhs - matrix @ end.x, atol=1e-10)
    assert end.x.shape == end.p.shape == (columns,)


def test_steps_end_where_they_are_told_to() -> None:
    matrix = _matrix(8, 5)
    operator = solvers.util.create_operator(tf.constant(matrix))
    state = solvers.least_squares.cgls(operator, np.ones(8), tol=0.0, max_iter=tf.constant(2))
    with tf.Session() as sess:
        assert sess.run(state.i) == 2


@pytest.mark.parametrize("orthogonalize", [True, False])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("rows", "columns", "steps"), [(7, 4, 3), (5, 8, 5), (4, 4, 1), (1, 3, 1)])
def test_a_bidiagonalization_is_one(
    rows: int, columns: int, steps: int, known: bool, orthogonalize: bool
) -> None:
    matrix = _matrix(rows, columns)
    feeds: dict = {}
    operator = solvers.util.create_operator(_placed(matrix, known, feeds))
    start = np.arange(1.0, rows + 1)
    lanczos = solvers.lanczos
    state = lanczos.lanczos_bidiag(
        operator, steps, orthogonalize=orthogonalize, starting_vector=tf.constant(start)
    )
    below = lanczos.bidiag_matmul(state.u, state.alpha, state.beta)
    beside = lanczos.bidiag_matmul(state.v, state.alpha, state.beta, adjoint_b=True)
    with tf.Session() as sess:
        end, below, beside = sess.run([state, below, beside], feeds)
    u, v = end.u, end.v
    np.testing.assert_allclose(u[:, 0], start / np.linalg.norm(start))
    np.testing.assert_allclose(matrix.T @ u[:, :-1], beside, atol=1e-10)
    if steps < rows:  # there is no direction left that u could end with
        np.testing.assert_allclose(matrix @ v, below, atol=1e-10)
        np.testing.assert_allclose(u.T @ u, np.eye(steps + 1), atol=1e-10)
    np.testing.assert_allclose(v.T @ v, np.eye(steps), atol=1e-10)


def test_a_basis_stays_orthogonal_where_rounding_would_turn_it() -> None:
    rng = np.random.default_rng(5)
    left, right = (np.linalg.qr(rng.normal(size=(30, 30)))[0] for _ in range(2))
    matrix = (left * np.logspace(0, -6, 30)) @ right
    operator = solvers.util.create_operator(tf.constant(matrix))
    state = solvers.lanczos.lanczos_bidiag(operator, 20, starting_vector=tf.ones([30], tf.float64))
    with tf.Session() as sess:
        u, v = sess.run([state.u, state.v])
    np.testing.assert_allclose(u.T @ u, np.eye(21), atol=1e-12)
    np.testing.assert_allclose(v.T @ v, np.eye(20), atol=1e-12)
