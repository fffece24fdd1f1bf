"""Sparse tensors as strings, variants and handles."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.ops.composed import sparse_values


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def sparse(values=(1.0, 2.0, 3.0)):
    return tf.SparseTensor([[0, 1], [1, 0], [1, 2]], list(values), [2, 3])


@pytest.mark.parametrize("kind", [tf.string, tf.variant])
@pytest.mark.parametrize("values", [(1.0, 2.0, 3.0), ("a", "b", "c"), (True, False, True)])
def test_there_and_back(kind, values):
    sp = sparse(values)
    back = sparse_values.deserialize_sparse(
        tf.serialize_sparse(sp, out_type=kind), sp.dtype, rank=2
    )
    assert back.indices.shape.as_list() == [None, 2]
    found, wanted = run([back, sp])
    for got, given in zip(found, wanted, strict=True):
        assert got.tolist() == given.tolist()


def test_entries_are_joined_to_the_largest_size():
    wide = tf.SparseTensor([[0, 4]], [9.0], [1, 5])
    rows = tf.stack([tf.serialize_sparse(sparse()), tf.serialize_sparse(wide)])
    found = run(tf.deserialize_many_sparse(rows, tf.float32))
    assert found.dense_shape.tolist() == [2, 2, 5] and found.indices[-1].tolist() == [1, 0, 4]
    many = tf.serialize_many_sparse(found)
    assert run(many).shape == (2, 3)
    again = run(tf.deserialize_many_sparse(many, tf.float32))
    assert again.indices.tolist() == found.indices.tolist()


def test_bytes_from_anywhere_are_checked():
    rows = tf.placeholder(tf.string, [None, 3])
    read = tf.deserialize_many_sparse(rows, tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse serialized proto"):
        run(read, {rows: [[b"\xff\xff\xff", b"", b""]]})
    good = run(tf.serialize_sparse(sparse()))
    wrong = run(tf.serialize_sparse(sparse((1, 2, 3))))
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="Requested SparseTensor of type float"
    ):
        run(read, {rows: [good, wrong]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least 1 serialized tensor"):
        run(read, {rows: np.zeros((0, 3), object)})


def test_a_handle_is_taken_once():
    handle = sparse_values.add_sparse_to_tensors_map(sparse())
    handles = tf.placeholder(tf.int64, [None])
    taken = sparse_values.take_many_sparse_from_tensors_map(handle.op, handles, rank=3)
    with tf.Session() as session:
        first, second = session.run(handle), session.run(handle)
        assert first != second
        found = session.run(taken, {handles: [second, first]})
        assert found.dense_shape.tolist() == [2, 2, 3] and found.values.tolist() == [1, 2, 3] * 2
        with pytest.raises(tf.errors.InvalidArgumentError, match="Unable to find SparseTensor"):
            session.run(taken, {handles: [first]})
    many = sparse_values.add_many_sparse_to_tensors_map(sparse())
    back = sparse_values.take_many_sparse_from_tensors_map(many.op, many, rank=2)
    assert run(back).indices.tolist() == [[0, 1], [1, 0], [1, 2]]
    with pytest.raises(TypeError, match="must be one of"):
        sparse_values.take_many_sparse_from_tensors_map(many.op.inputs[0].op, many)
