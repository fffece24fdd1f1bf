"""Matrices of low rank by weighted alternating least squares, beside the equations in NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf

factorization = tf.contrib.factorization
RNG = np.random.RandomState(3)
ROWS, COLUMNS, SIZE = 5, 7, 2
SEEN = RNG.rand(ROWS, COLUMNS) < 0.6
SEEN[:, 0] = SEEN[0] = True  # each row and column has something
MATRIX = np.where(SEEN, RNG.randn(ROWS, COLUMNS), 0).astype(np.float32)
U, V = (RNG.randn(n, SIZE).astype(np.float32) for n in (ROWS, COLUMNS))
ROW_WEIGHTS, COLUMN_WEIGHTS = RNG.rand(ROWS) + 0.5, RNG.rand(COLUMNS) + 0.5
UNSEEN, REGULAR = 0.2, 0.05
WEIGHTS = UNSEEN + SEEN * np.outer(ROW_WEIGHTS, COLUMN_WEIGHTS)


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def sparse(matrix: Any, rows: Any = None) -> Any:
    """A sparse matrix, or some of its rows."""
    row, column = np.nonzero(
        matrix if rows is None else matrix * np.isin(np.arange(ROWS), rows)[:, None]
    )
    return tf.SparseTensor(np.stack([row, column], 1), matrix[row, column], matrix.shape)


def solved(weights: Any, matrix: Any, fixed: Any, before: Any = None) -> Any:
    """The rows that are least squares, one after the other.

    What is not observed may still be of the factors `before` the last sweep.
    """
    unseen = fixed if before is None else before
    each = []
    for w, a in zip(weights, matrix, strict=True):
        left = fixed.T @ ((w - UNSEEN)[:, None] * fixed) + UNSEEN * unseen.T @ unseen
        each.append(np.linalg.solve(left + REGULAR * np.eye(SIZE), fixed.T @ (w * a)))
    return np.stack(each)


def squares(weights: Any, u: Any, v: Any) -> float:
    return float((weights * (MATRIX - u @ v.T) ** 2).sum())


def model(shards: int = 1, cache: bool = True, **kwargs: Any) -> Any:
    def parts(values: Any, count: int) -> Any:
        return np.array_split(values, count) if count > 1 else values

    weights = {
        "row_weights": parts(ROW_WEIGHTS, shards), "col_weights": parts(COLUMN_WEIGHTS, shards)
    }  # fmt: skip
    return factorization.WALSModel(
        ROWS, COLUMNS, SIZE, UNSEEN, REGULAR, row_init=parts(U, shards), col_init=parts(V, shards),
        num_row_shards=shards, num_col_shards=shards, use_factors_weights_cache=cache,
        use_gramian_cache=cache, **{**weights, **kwargs},
    )  # fmt: skip


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("shards", [1, 2, 3])
@pytest.mark.parametrize("transposed", [True, False])
def test_sweeps_solve_the_equations_of_each_row(shards: int, cache: bool, transposed: bool) -> None:
    made = model(shards, cache)
    given = sparse(MATRIX.T if transposed else MATRIX)
    rows = made.update_row_factors(given, transpose_input=transposed)
    columns = made.update_col_factors(given, transpose_input=transposed)
    u = solved(WEIGHTS, MATRIX, V)
    v = solved(WEIGHTS.T, MATRIX.T, u)
    with tf.Session() as sess:
        sess.run(made.initialize_op)
        sess.run(made.worker_init)
        sess.run(made.row_update_prep_gramian_op)
        sess.run(made.initialize_row_update_op)
        found, _, loss, regular, total = sess.run(rows)
        # Rows come in the order in which the entries name them.
        np.testing.assert_allclose(np.sort(found, 0), np.sort(u, 0), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(
            np.concatenate(sess.run(made.row_factors)), u, rtol=1e-3, atol=1e-4
        )
        np.testing.assert_allclose(loss, squares(WEIGHTS, u, V), rtol=1e-3)
        np.testing.assert_allclose(regular, REGULAR * ((u**2).sum() + (V**2).sum()), rtol=1e-3)
        np.testing.assert_allclose(total, WEIGHTS.sum(), rtol=1e-4)
        sess.run(made.col_update_prep_gramian_op)
        sess.run(made.initialize_col_update_op)
        loss = sess.run(columns)[2]
        np.testing.assert_allclose(
            np.concatenate(sess.run(made.col_factors)), v, rtol=1e-3, atol=1e-4
        )
        np.testing.assert_allclose(loss, squares(WEIGHTS, u, v), rtol=1e-3)


def test_rows_in_batches_and_rows_that_are_not_of_the_matrix() -> None:
    made = model()
    some = [1, 3]
    update = made.update_row_factors(sparse(MATRIX, some))
    projected = made.project_row_factors(sparse(MATRIX, some), projection_weights=ROW_WEIGHTS[some])
    u = solved(WEIGHTS, MATRIX, V)
    with tf.Session() as sess:
        sess.run([made.initialize_op])
        for op in (
            made.worker_init,
            made.row_update_prep_gramian_op,
            made.initialize_row_update_op,
        ):
            sess.run(op)
        np.testing.assert_allclose(sess.run(projected), u[some], rtol=1e-3, atol=1e-4)
        np.testing.assert_array_equal(sess.run(made.row_factors)[0], U)
        loss = sess.run(update)[2]
        kept = sess.run(made.row_factors)[0]
    np.testing.assert_allclose(
        kept, np.where(np.isin(np.arange(ROWS), some)[:, None], u, U), rtol=1e-3
    )
    each = (WEIGHTS * (MATRIX - u @ V.T) ** 2).sum(1)
    np.testing.assert_allclose(loss, each[some].mean() * ROWS, rtol=1e-3)


def test_without_weights_all_entries_weigh_the_same() -> None:
    made = model(row_weights=None, col_weights=None)
    update = made.update_row_factors(sparse(MATRIX))
    with tf.Session() as sess:
        sess.run(made.initialize_op)
        for op in (
            made.worker_init,
            made.row_update_prep_gramian_op,
            made.initialize_row_update_op,
        ):
            sess.run(op)
        _, _, loss, _, total = sess.run(update)
        kept = sess.run(made.row_factors)[0]
    alike = np.full_like(WEIGHTS, UNSEEN)
    u = solved(alike, MATRIX, V)
    np.testing.assert_allclose(kept, u, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose([loss, total], [squares(alike, u, V), alike.sum()], rtol=1e-3)


def test_weights_are_those_of_entries_or_of_rows_and_factors() -> None:
    row, column = np.nonzero(SEEN)
    entries = np.stack([row, column], 1)
    by_row = V, COLUMN_WEIGHTS, UNSEEN, ROW_WEIGHTS, entries, MATRIX[SEEN], []
    weights = np.outer(ROW_WEIGHTS, COLUMN_WEIGHTS)[SEEN]
    by_entry = V, [], UNSEEN, [], entries[:, ::-1], MATRIX[SEEN], weights
    op = factorization.wals_compute_partial_lhs_and_rhs
    left = np.einsum("ij,jk,jl->ikl", SEEN * np.outer(ROW_WEIGHTS, COLUMN_WEIGHTS), V, V)
    with tf.Session() as sess:
        for found in sess.run([op(*by_row, ROWS, False), op(*by_entry, ROWS, tf.constant(True))]):
            np.testing.assert_allclose(found[0], left, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(found[1], (WEIGHTS * MATRIX) @ V, rtol=1e-4, atol=1e-5)
        both = op(
            V, COLUMN_WEIGHTS, UNSEEN, ROW_WEIGHTS, entries, MATRIX[SEEN], weights, ROWS, False
        )
        with pytest.raises(tf.errors.InvalidArgumentError, match="but not both"):
            sess.run(both)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_cells_of_a_product(first: bool, second: bool) -> None:
    a, b = U.T if first else U, V if second else V.T
    cells = [[4, 0], [0, 6], [4, 0]]
    static = factorization.masked_matmul(a, b, cells, first, second)
    asked = factorization.masked_matmul(a, b, cells, tf.constant(first) & True, tf.constant(second))
    with tf.Session() as sess:
        for found in sess.run([static, asked]):
            np.testing.assert_allclose(found, [(U @ V.T)[i, j] for i, j in cells], rtol=1e-5)


def test_what_is_no_model_says_so() -> None:
    with pytest.raises(ValueError, match="Invalid weight initialization argument"):
        model(row_weights=-1)
    with pytest.raises(ValueError, match="either both None or both given"):
        model(row_weights=None)
    with pytest.raises(ValueError, match="2 values for the 1 shards"):
        factorization.WALSModel(ROWS, COLUMNS, SIZE, row_init=[U, U])
    with pytest.raises(TypeError, match="no SparseTensor"):
        model().update_row_factors(tf.constant(MATRIX))


def test_the_estimator_sweeps_by_turns_and_projects(tmp_path: Any) -> None:
    Estimator = factorization.WALSMatrixFactorization

    def data(project: bool | None = None) -> Any:
        def input_fn() -> Any:
            features = {
                Estimator.INPUT_ROWS: sparse(MATRIX), Estimator.INPUT_COLS: sparse(MATRIX.T)
            }  # fmt: skip
            if project is not None:
                features[Estimator.PROJECT_ROW] = tf.constant(project)
                weights = ROW_WEIGHTS if project else COLUMN_WEIGHTS
                features[Estimator.PROJECTION_WEIGHTS] = tf.constant(weights, tf.float32)
            return features, None

        return input_fn

    made = Estimator(
        ROWS, COLUMNS, SIZE, UNSEEN, REGULAR, row_init=U, col_init=V, row_weights=ROW_WEIGHTS,
        col_weights=COLUMN_WEIGHTS, max_sweeps=6, model_dir=str(tmp_path),
    )  # fmt: skip
    made.fit(input_fn=data())
    u, v = U, V
    for _ in range(3):
        u = solved(WEIGHTS, MATRIX, v)
        before, v = v, solved(WEIGHTS.T, MATRIX.T, u)
    np.testing.assert_allclose(made.get_col_factors()[0], v, rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(made.get_row_factors()[0], u, rtol=1e-2, atol=1e-3)
    assert made.get_variable_value(Estimator.COMPLETED_SWEEPS) == 6
    weight = made.get_variable_value(Estimator.RWSE) ** 2 * WEIGHTS.sum()
    np.testing.assert_allclose(weight, squares(WEIGHTS, u, v), rtol=1e-2)
    rows = np.stack(list(made.get_projections(data(project=True))))
    # The products of the columns' factors are those with which the last sweep of rows began.
    np.testing.assert_allclose(rows, solved(WEIGHTS, MATRIX, v, before), rtol=1e-2, atol=1e-3)
    loss = made.evaluate(input_fn=data(project=False), steps=1)["loss"]
    again = solved(WEIGHTS.T, MATRIX.T, u)
    wanted = squares(WEIGHTS, u, again) + REGULAR * ((u**2).sum() + (again**2).sum())
    np.testing.assert_allclose(loss, wanted, rtol=1e-2)
