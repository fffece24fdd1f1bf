"""Crosses of features, with the numbers that TensorFlow gives."""

from __future__ import annotations

import pytest

import opdock as tf


def test_crosses():
    columns = [tf.constant([["a", "b"], ["c", "d"]]), tf.constant([[1], [2]])]
    with tf.Session() as session:
        found = session.run(tf.sparse.cross(columns))
        assert found.values.tolist() == [b"a_X_1", b"b_X_1", b"c_X_2", b"d_X_2"]
        assert found.indices.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
        hashed = session.run(tf.sparse.cross_hashed(columns, num_buckets=100))
        assert hashed.dense_shape.tolist() == [2, 2]
        assert ((hashed.values >= 0) & (hashed.values < 100)).all()


def test_hashes_are_those_of_tensorflow():
    # From TensorFlow's own test of the op.
    columns = [tf.constant([[f"batch1-FC{i}-F1"]]) for i in (1, 2, 3)]
    with tf.Session() as session:
        found = session.run(tf.sparse.cross_hashed(columns, num_buckets=100))
        assert found.values.tolist() == [83]
        found = session.run(tf.sparse.cross_hashed(columns, num_buckets=0))
        assert found.values.tolist() == [1971693436396284976]


def test_arguments():
    with pytest.raises(TypeError, match="Inputs must be a list"):
        tf.sparse.cross(tf.constant([["a"]]))
    with pytest.raises(TypeError, match="All inputs must be SparseTensors"):
        tf.sparse.cross([["a"]])
