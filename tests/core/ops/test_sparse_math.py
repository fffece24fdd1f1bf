"""Sparse tensors in arithmetic: operators, sums, extremes, products, softmax, reductions."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def pair():
    a = tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 3])
    b = tf.SparseTensor([[0, 0], [1, 0]], [4.0, -2.0], [2, 3])
    return a, b


def dense(sp):
    return run(tf.sparse_tensor_to_dense(sp)).tolist()


def test_sums():
    a, b = pair()
    assert dense(tf.sparse_add(a, b)) == [[4, 1, 0], [0, 0, 0]]
    assert run(tf.sparse_add(a, b).values).tolist() == [4, 1, 0]
    assert run(tf.sparse_add(a, b, threshold=0.5).values).tolist() == [4, 1]
    assert run(tf.sparse_add(np.ones((2, 3), np.float32), a)).tolist() == [[1, 2, 1], [3, 1, 1]]
    with pytest.raises(TypeError, match="At least one input should be SparseTensor"):
        tf.sparse_add(1.0, 2.0)
    with pytest.raises(ValueError, match="Cannot specify both"):
        tf.sparse_add(a, b, threshold=1, thresh=1)


def test_sum_gradients():
    a, b = pair()
    total = tf.sparse_add(a, b)
    found = run(tf.gradients(total.values * [1.0, 10.0, 100.0], [a.values, b.values]))
    assert [g.tolist() for g in found] == [[10, 100], [1, 100]]


def test_extremes_count_absent_cells_as_zeros():
    a, b = pair()
    assert dense(tf.sparse_maximum(a, b)) == [[4, 1, 0], [2, 0, 0]]
    assert dense(tf.sparse_minimum(a, b)) == [[0, 0, 0], [-2, 0, 0]]


@pytest.mark.parametrize("adjoint_a", [False, True])
@pytest.mark.parametrize("adjoint_b", [False, True])
def test_products_and_their_gradients(adjoint_a, adjoint_b):
    cells, values = [[0, 1], [1, 0], [1, 2], [1, 2]], np.array([1.0, 2, 3, 4], np.float32)
    a = np.zeros((2, 3), np.float32)
    for cell, value in zip(cells, values, strict=True):
        a[tuple(cell)] += value
    inner = 2 if adjoint_a else 3
    b = (
        np.random.RandomState(0)
        .randn(*((4, inner) if adjoint_b else (inner, 4)))
        .astype(np.float32)
    )
    left, right = (a.T if adjoint_a else a), (b.T if adjoint_b else b)
    v, d = tf.constant(values), tf.constant(b)
    out = tf.sparse_tensor_dense_matmul(tf.SparseTensor(cells, v, [2, 3]), d, adjoint_a, adjoint_b)
    found, of_v, of_d = run([out, *tf.gradients(out, [v, d])])
    np.testing.assert_allclose(found, left @ right, rtol=1e-5)
    ones = np.ones_like(found)
    of_left, of_right = ones @ right.T, left.T @ ones
    of_a = of_left.T if adjoint_a else of_left
    np.testing.assert_allclose(of_v, [of_a[tuple(c)] for c in cells], rtol=1e-5)
    np.testing.assert_allclose(of_d, of_right.T if adjoint_b else of_right, rtol=1e-5)
    assert out.shape == found.shape


def test_a_product_says_what_does_not_fit():
    a, _ = pair()
    with pytest.raises(ValueError, match="must be equal, but are 3 and 2"):
        tf.sparse_tensor_dense_matmul(a, np.ones((2, 2), np.float32))
    cells = tf.placeholder(tf.int64, [1, 2])
    out = tf.sparse_tensor_dense_matmul(tf.SparseTensor(cells, [1.0], [2, 3]), tf.ones([3, 1]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"k \(3\) from index\[0,1\]"):
        run(out, {cells: [[0, 3]]})


def test_operators_with_dense_tensors():
    a, _ = pair()
    scaled = a * tf.constant([[2.0, 3.0, 4.0]])
    assert run(scaled.values).tolist() == [3, 4]
    assert run((tf.constant(3.0) * a).values).tolist() == [3, 6]
    whole = tf.SparseTensor([[0]], [7], [2])
    halves = whole / tf.constant([2, 1])
    assert halves.dtype == tf.float64 and run(halves.values).tolist() == [3.5]
    with pytest.raises(TypeError, match="Invalid dtype"):
        tf.SparseTensor([[0]], [True], [2]) / tf.constant([True, True])


def test_softmax():
    sp = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [5.0, 0.0, np.log(3.0)], [2, 3])
    out = tf.sparse_softmax(sp)
    np.testing.assert_allclose(run(out.values), [1, 0.25, 0.75], rtol=1e-6)
    (found,) = run(tf.gradients(out.values * [0.0, 0.0, 1.0], sp.values))
    np.testing.assert_allclose(found, [0, -0.1875, 0.1875], rtol=1e-5)


def test_reductions_leave_absent_cells_out():
    sp = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [-1.0, -2.0, -3.0], [3, 3])
    assert run(tf.sparse_reduce_max(sp, 1)).tolist() == [-1, -2, 0]
    assert run(tf.sparse_reduce_sum(sp)) == -6
    kept = tf.sparse_reduce_sum(sp, axis=[0], keepdims=True)
    assert run(kept).tolist() == [[-2, -1, -3]] and kept.shape == (1, 3)
    cells = run(tf.sparse_reduce_sum_sparse(sp, 1))
    assert cells.indices.tolist() == [[0], [1]] and cells.values.tolist() == [-1, -5]
    (found,) = run(tf.gradients(tf.sparse_reduce_sum(sp, -1) * [1.0, 10.0, 100.0], sp.values))
    assert found.tolist() == [1, 10, 10]
    with pytest.raises(ValueError, match="Cannot specify both"):
        tf.sparse_reduce_sum(sp, axis=0, reduction_axes=0)


def test_control_flow_carries_sparse_tensors():
    a, b = pair()
    flag = tf.placeholder(tf.bool, [])
    chosen = tf.cond(flag, lambda: a, lambda: tf.sparse_maximum(a, b))
    assert run(chosen, {flag: True}).values.tolist() == [1, 2]
    assert run(chosen, {flag: False}).values.tolist() == [4, 1, 2]
    _, doubled = tf.while_loop(
        lambda i, sp: i < 3, lambda i, sp: (i + 1, sp * tf.constant(2.0)), [0, a]
    )
    assert run(doubled).values.tolist() == [8, 16]


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_products_of_cells_in_any_order(ordered, adjoint):
    """Cells in the order of rows, and others, repeated ones and empty rows among them."""
    rng = np.random.default_rng(3)
    cells = rng.integers(0, [5, 4], (12, 2))
    cells = cells[cells[:, 0] != 2]
    if ordered:
        cells = cells[np.argsort(cells[:, 0], kind="stable")]
    values = rng.normal(size=len(cells)) + 1j * rng.normal(size=len(cells))
    dense = np.zeros((5, 4), complex)
    np.add.at(dense, tuple(cells.T), values)
    dense = dense.conj().T if adjoint else dense
    other = rng.normal(size=(dense.shape[1], 3)).astype(complex)
    product = tf.sparse_tensor_dense_matmul(
        tf.SparseTensor(cells, values, [5, 4]), other, adjoint_a=adjoint
    )
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(product), dense @ other)


def test_sums_of_tensors_that_repeat_cells():
    """As TensorFlow pairs them: the first of one with the first of the other."""
    cells = [[0, 1], [0, 1], [1, 2]]
    x, y = tf.constant([1.0, 2.0, 3.0]), tf.constant([10.0, 20.0])
    a = tf.SparseTensor(cells, x, [2, 3])
    twice, mixed = tf.sparse.add(a, a), tf.sparse.add(a, tf.SparseTensor(cells[1:], y, [2, 3]))
    grads = tf.gradients(mixed.values * [1.0, 2.0, 3.0], [x, y])
    with tf.Session() as session:
        both, sums, largest, back = session.run([twice, mixed, tf.sparse.maximum(a, a), grads])
    assert both.indices.tolist() == sums.indices.tolist() == largest.indices.tolist() == cells
    assert both.values.tolist() == [2.0, 4.0, 6.0]
    assert sums.values.tolist() == [11.0, 2.0, 23.0]
    assert largest.values.tolist() == [1.0, 2.0, 3.0]
    assert back[0].tolist() == [1.0, 2.0, 3.0] and back[1].tolist() == [1.0, 3.0]


def reduced(op, indices, values, shape, axes):
    return op(
        input_indices=indices, input_values=values, input_shape=shape,
        reduction_axes=np.array(axes, np.int32), keep_dims=False, name=None,
    )  # fmt: skip


@pytest.mark.parametrize("order", ["sorted", "shuffled", "repeated"])
@pytest.mark.parametrize("axes", [[0], [1], [2], [0, 2], [-1, 1], [0, 1, 2], []])
@pytest.mark.parametrize("count", [60, 17, 1, 0])
def test_reductions_of_cells_in_any_order(count, axes, order):
    """All cells of a tensor, some, one and none; those that are missing do not count."""
    rng = np.random.default_rng(count)
    place = np.sort(rng.choice(60, count, replace=False))
    if order != "sorted":
        place = rng.permutation(place)
    if order == "repeated":
        place = np.concatenate([place, place])
    indices = np.stack(np.unravel_index(place, (3, 4, 5)), 1).astype(np.int64)
    values = rng.integers(-9, 0, len(place)).astype(np.float32)
    whole, largest = np.zeros((3, 4, 5)), np.full((3, 4, 5), -np.inf)
    np.add.at(whole, tuple(indices.T), values)
    np.maximum.at(largest, tuple(indices.T), values)
    largest = largest.max(tuple(axes))
    sums, maxima, cells = (
        reduced(getattr(tf.raw_ops, op), indices, values, [3, 4, 5], axes)
        for op in ("SparseReduceSum", "SparseReduceMax", "SparseReduceSumSparse")
    )
    sums, maxima, cells = run([sums, maxima, cells])
    np.testing.assert_array_equal(sums, whole.sum(tuple(axes)))
    np.testing.assert_array_equal(maxima, np.where(np.isinf(largest), 0, largest))
    again = np.zeros_like(sums)
    for cell, value in zip(cells[0].tolist(), cells[1], strict=True):
        again[tuple(cell)] = value
    np.testing.assert_array_equal(again, sums)
    assert len(cells[1]) == np.isfinite(largest).sum()


@pytest.mark.parametrize("seed", range(4))
def test_softmax_of_cells_in_any_order(seed):
    rng = np.random.default_rng(seed)
    place = rng.choice(24, 15, replace=False)
    place = np.sort(place) if seed % 2 else place
    indices = np.stack(np.unravel_index(place, (2, 3, 4)), 1)
    values = rng.normal(0, 3, 15)
    found = run(tf.sparse_softmax(tf.SparseTensor(indices, values, (2, 3, 4))))
    for row in {tuple(i) for i in indices[:, :-1].tolist()}:
        mine = (indices[:, :-1] == row).all(1)
        powers = np.exp(values[mine])
        np.testing.assert_allclose(found.values[mine], powers / powers.sum(), rtol=1e-12)


@pytest.mark.parametrize("row", [[-1, 0], [2, 0], [2**62, 0]])
def test_cells_of_rows_that_the_sum_does_not_have_are_told(row):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[.\] = .* out of bounds"):
        run(reduced(tf.raw_ops.SparseReduceSum, np.array([[0, 0], row]), [1.0, 2.0], [2, 3], [1]))
