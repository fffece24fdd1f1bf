"""Sparse tensors laid out anew: gradients, static shapes, errors."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def sparse(values=(1.0, 2.0, 3.0)):
    return tf.SparseTensor([[0, 1], [1, 0], [1, 2]], tf.constant(values), [2, 3])


def test_gradients_reach_values_and_default():
    values, default = tf.constant([1.0, 2.0, 3.0]), tf.constant(5.0)
    sp = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], values, [2, 3])
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    dense = tf.sparse_tensor_to_dense(sp, default_value=default)
    of_values, of_default = run(tf.gradients(dense * weights, [values, default]))
    assert of_values.tolist() == [1, 3, 5] and of_default == 0 + 2 + 4

    shuffled = tf.SparseTensor([[1, 2], [0, 1], [1, 0]], values, [2, 3])
    (found,) = run(tf.gradients(tf.sparse_reorder(shuffled).values * [1.0, 10.0, 100.0], values))
    assert found.tolist() == [100, 1, 10]

    filled, empty = tf.sparse_fill_empty_rows(
        tf.SparseTensor([[2, 0]], values[:1], [4, 2]), default
    )
    found = run(tf.gradients(filled.values * [1.0, 2.0, 4.0, 8.0], [values, default]))
    assert found[0].tolist() == [4, 0, 0] and found[1] == 11
    assert run(empty).tolist() == [True, True, False, True]

    part = tf.sparse_slice(sp, [1, 0], [1, 2])
    assert run(tf.gradients(part.values * 3.0, values))[0].tolist() == [0, 3, 0]


def test_one_value_for_all_places_gets_the_sum_of_the_gradients():
    value = tf.constant(2.0)
    dense = tf.sparse_to_dense([0, 2], [4], value)
    (found,) = run(tf.gradients(dense * [1.0, 10.0, 100.0, 1000.0], value))
    assert run(dense).tolist() == [2, 0, 2, 0] and found == 101


def test_static_shapes():
    assert tf.sparse_to_dense([[0, 1]], [2, 3], [1]).shape == (2, 3)
    reshaped = tf.sparse_reshape(sparse(), [-1, 2])
    assert reshaped.shape.as_list() == [3, 2] and reshaped.indices.shape.as_list() == [3, 2]
    assert tf.sparse_transpose(sparse()).shape.as_list() == [3, 2]
    assert tf.sparse_concat(0, [sparse(), sparse()]).shape.as_list() == [4, 3]
    assert tf.sparse_reorder(sparse()).shape.as_list() == [2, 3]
    open_ended = tf.sparse_placeholder(tf.float32, [None, None])
    assert tf.sparse_reshape(open_ended, [3, -1]).indices.shape.as_list() == [None, 2]


def test_errors_when_the_graph_is_built():
    with pytest.raises(ValueError, match=r"Cannot reshape a tensor with 6 elements to shape \[4"):
        tf.sparse_reshape(sparse(), [4, 2])
    with pytest.raises(ValueError, match="At most one dimension can be inferred"):
        tf.sparse_reshape(sparse(), [-1, -1])
    with pytest.raises(TypeError, match="Input must be a SparseTensor"):
        tf.sparse_reorder(tf.constant([1]))
    with pytest.raises(ValueError, match="Keyword arguments are required"):
        tf.sparse_split(2, sparse(), 1)
    with pytest.raises(ValueError, match="Requested new_shape should have dimension sizes >="):
        tf.sparse_reset_shape(sparse(), [2, 2])
    with pytest.raises(ValueError, match="must be equal"):
        tf.sparse_retain(sparse(), [True, False])


def test_sizes_are_checked_before_anything_is_made():
    shape = tf.placeholder(tf.int64, [2])
    dense = tf.sparse_to_dense(np.array([[0, 1]]), shape, [1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Dimension -1 must be >= 0"):
        run(dense, {shape: [2, -1]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than"):
        run(dense, {shape: [2**40, 2**40]})


def test_cells_keep_their_order_where_coordinates_are_too_large_for_a_flat_index():
    cells = np.array([[2**62, 1, 5], [3, 2**62, 0], [3, 7, 2**62]], np.int64)
    sp = tf.SparseTensor(cells, [1, 2, 3], [2**62 + 1] * 3)
    found = run(tf.sparse_reorder(sp))
    assert found.values.tolist() == [3, 2, 1] and found.indices.tolist() == cells[::-1].tolist()


def test_slices_and_joins_undo_each_other():
    sp = sparse()
    parts = tf.sparse_split(sp_input=sp, num_split=2, axis=1)
    assert [run(p.dense_shape).tolist() for p in parts] == [[2, 2], [2, 1]]
    joined = run(tf.sparse_concat(1, parts))
    assert joined.indices.tolist() == run(sp.indices).tolist()
    wide = tf.sparse_concat(
        0, [sp, tf.SparseTensor([[0, 4]], [9.0], [1, 5])], expand_nonconcat_dim=True
    )
    assert run(wide.dense_shape).tolist() == [3, 5] and run(wide.values).tolist() == [1, 2, 3, 9]


def test_strings():
    sp = tf.SparseTensor([[1], [0]], ["b", "a"], [3])
    dense = tf.sparse_tensor_to_dense(tf.sparse_reorder(sp), default_value="-")
    assert run(dense).tolist() == [b"a", b"b", b"-"]
    back = run(tf.sparse.from_dense(tf.constant(["a", "", "c"])))
    assert back.indices.tolist() == [[0], [2]] and back.values.tolist() == [b"a", b"c"]


def test_cells_outside_of_the_shape_are_reshaped_by_their_place() -> None:
    """TF asks whether the shapes fit, and not where the cells are."""
    values = np.arange(4, dtype=np.float32)
    x = tf.SparseTensor([[0, 0], [1, 5], [3, 1], [0, -5]], values, [2, 3])
    with tf.Session() as sess:
        assert sess.run(tf.sparse_reshape(x, [6])).indices.tolist() == [[0], [8], [10], [-5]]
        moved = sess.run(tf.sparse_reshape(x, [3, -1]))
        assert moved.indices.tolist() == [[0, 0], [4, 0], [5, 0], [-2, -1]]
        assert moved.dense_shape.tolist() == [3, 2]


def test_cells_outside_along_a_dimension_that_is_reduced_count() -> None:
    x = tf.SparseTensor([[0, 0], [0, 5], [1, -1]], np.array([1, 2, 4], np.float32), [2, 3])
    with tf.Session() as sess:
        assert sess.run(tf.sparse_reduce_sum(x, 1)).tolist() == [3.0, 4.0]
        assert sess.run(tf.sparse_reduce_max(x, 1, keepdims=True)).tolist() == [[2.0], [4.0]]
        assert sess.run(tf.sparse_reduce_sum(x)) == 7.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
            sess.run(tf.sparse_reduce_sum(x, 0))
        left = sess.run(tf.sparse_reduce_sum_sparse(x, 0))
        assert left.indices.tolist() == [[-1], [0], [5]]
        assert left.values.tolist() == [4.0, 1.0, 2.0]
