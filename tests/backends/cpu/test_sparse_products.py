"""Products of sparse and dense matrices: one pass over the cells, by any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock_cpu.kernels import sparse_math

SIZE, WIDTH, CELLS = (60, 90), 33, 5000


def _cells(in_order: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.RandomState(7)
    indices = np.stack([rng.randint(0, n, CELLS) for n in SIZE], axis=1)
    if in_order:
        indices = indices[np.lexsort(indices.T[::-1])]
    return indices, rng.randn(CELLS).astype(np.float32)


def _product(indices: Any, values: Any, b: Any, adjoint: bool, threads: int) -> np.ndarray:
    config = tf.ConfigProto(intra_op_parallelism_threads=threads)
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        given = [tf.placeholder(a.dtype, a.shape) for a in (indices, values, b)]
        sparse = tf.SparseTensor(given[0], given[1], np.array(SIZE, np.int64))
        y = tf.sparse_tensor_dense_matmul(sparse, given[2], adjoint_a=adjoint)
        feeds = dict(zip(given, (indices, values, b), strict=True))
        found: np.ndarray = session.run(y, feeds)
        return found


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("adjoint", [False, True])
def test_code_and_scipy_agree_and_threads_change_no_bit(adjoint, in_order, monkeypatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    indices, values = _cells(in_order)
    b = np.random.RandomState(8).randn(SIZE[0 if adjoint else 1], WIDTH).astype(np.float32)
    dense = np.zeros(SIZE)
    np.add.at(dense, tuple(indices.T), values.astype(np.float64))
    expected = (dense.T if adjoint else dense) @ b

    made, ran = sparse_math._by_code, []

    def noted(*args: Any) -> Any:
        ran.append(made(*args))
        return ran[-1]

    monkeypatch.setattr(sparse_math, "_by_code", noted)
    by_code = [_product(indices, values, b, adjoint, threads) for threads in (1, 3)]
    assert all(found is not None for found in ran)
    assert len(ran) == 2
    np.testing.assert_array_equal(by_code[0], by_code[1])
    monkeypatch.setattr(sparse_math, "_by_code", lambda *args: None)
    by_scipy = _product(indices, values, b, adjoint, 1)
    for found in (by_code[0], by_scipy):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
