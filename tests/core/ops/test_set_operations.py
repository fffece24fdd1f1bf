"""Rows as sets: dense, sparse and both."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def rows(value):
    """A sparse value as a dictionary of its rows."""
    found = {}
    for place, v in zip(value.indices.tolist(), value.values.tolist(), strict=True):
        found.setdefault(tuple(place[:-1]), []).append(v)
    return found


A = [[3, 1, 3], [4, 5, 6]]
B = [[9, 3], [4, 4]]
SPARSE_B = tf.SparseTensorValue([[0, 0], [0, 1], [1, 0]], [9, 3, 4], [2, 2])


@pytest.mark.parametrize("b", [B, SPARSE_B], ids=["dense", "sparse"])
def test_operations_row_by_row(b):
    for function, want in (
        (tf.sets.set_intersection, {(0,): [3], (1,): [4]}),
        (tf.sets.set_difference, {(0,): [1], (1,): [5, 6]}),
        (tf.sets.set_union, {(0,): [1, 3, 9], (1,): [4, 5, 6]}),
    ):
        assert rows(run(function(A, b))) == want
    assert rows(run(tf.sets.difference(A, b, aminusb=False))) == {(0,): [9]}
    # Sparse before dense is the same question with the places changed.
    assert rows(run(tf.sets.difference(b, A))) == {(0,): [9]}


def test_both_sparse_and_strings():
    a = tf.SparseTensor([[0, 0], [1, 0]], [b"x", b"y"], [2, 1])
    b = tf.SparseTensor([[1, 0], [1, 1]], [b"y", b"a"], [2, 2])
    union = run(tf.sets.union(a, b))
    assert rows(union) == {(0,): [b"x"], (1,): [b"a", b"y"]}
    assert union.dense_shape.tolist() == [2, 2]
    assert run(tf.sets.size(tf.sets.union(a, b))).tolist() == [1, 2]


def test_shapes_known_before_the_run():
    a = tf.placeholder(tf.int64, [None, 4, 3])
    found = tf.sets.set_union(a, tf.placeholder(tf.int64))
    assert found.indices.shape.as_list() == [None, 3]
    assert found.dense_shape.shape.as_list() == [3]
    assert found.values.shape.as_list() == [None]


def test_what_is_refused():
    with pytest.raises(TypeError, match="Expected `SparseTensor`"):
        tf.sets.set_size(A)
    with pytest.raises(TypeError, match="invalid dtype"):
        tf.sets.set_union([[1.0]], [[1.0]])
    with pytest.raises(TypeError, match="Types don't match"):
        tf.sets.set_union(A, np.array(B, np.int64))
    with pytest.raises(ValueError, match="at least rank 2"):
        tf.sets.set_union([1], [2])
    unsorted = tf.SparseTensor([[1, 0], [0, 0]], [1, 2], [2, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of order"):
        run(tf.sets.set_size(unsorted))
