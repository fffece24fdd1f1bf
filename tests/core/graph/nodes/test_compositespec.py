"""Specs of values made of several tensors."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.graph.nodes.typespec import type_spec_from_value


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_slices():
    spec = tf.IndexedSlicesSpec([5, 10, 15], dense_shape_dtype=tf.int32, indices_shape=[20])
    assert spec._component_specs == (
        tf.TensorSpec([20, 10, 15], tf.float32),
        tf.TensorSpec([20], tf.int64),
        tf.TensorSpec([3], tf.int32),
    )
    assert len(tf.IndexedSlicesSpec()._component_specs) == 2
    arrays = spec._from_components((np.zeros(2), np.zeros(2), np.zeros(1)))
    assert isinstance(arrays, tf.IndexedSlicesValue)


def test_slices_there_and_back():
    slices = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([2, 8]), tf.constant([9, 1]))
    spec = type_spec_from_value(slices)
    assert spec == tf.IndexedSlicesSpec([9, 1], tf.float32, tf.int32, tf.int32, [2])
    again = spec._from_components(spec._to_components(slices))
    assert again.values is slices.values and again.dense_shape is slices.dense_shape
    assert spec.value_type is tf.IndexedSlices


def test_sparse_tensors():
    sparse = tf.SparseTensor([[3], [7]], ["a", "b"], [10])
    spec = type_spec_from_value(sparse)
    assert spec == tf.SparseTensorSpec([10], tf.string)
    assert spec._component_specs == [
        tf.TensorSpec([None, 1], tf.int64),
        tf.TensorSpec([None], tf.string),
        tf.TensorSpec([1], tf.int64),
    ]
    value = tf.SparseTensorValue(np.zeros([2, 1], np.int64), np.zeros(2), np.array([4]))
    assert type_spec_from_value(value) == tf.SparseTensorSpec([4], tf.float64)
    assert spec._from_components(spec._to_components(sparse)).values is sparse.values
    assert isinstance(spec._from_components([np.zeros(1)] * 3), tf.SparseTensorValue)
    with pytest.raises(TypeError, match="Expected SparseTensor"):
        tf.SparseTensorSpec.from_value(3)


def test_rows_of_a_tensor_whose_shape_is_a_list() -> None:
    rows = tf.IndexedSlices(tf.constant([[2.0]]), tf.constant([1]), dense_shape=[3, 1])
    assert rows.shape.as_list() == [3, 1]
    with tf.Session() as session:
        assert session.run(tf.convert_to_tensor(rows)).tolist() == [[0.0], [2.0], [0.0]]
