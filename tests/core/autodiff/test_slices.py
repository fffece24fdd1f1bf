"""Gradients as slices: dense ones among them, and indices of two types."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.autodiff.aggregate import as_slices


@pytest.mark.parametrize("known", [True, False])
def test_dense_gradients_are_all_rows(known):
    with tf.Graph().as_default(), tf.Session() as sess:
        dense = tf.placeholder(tf.float32, [3, 2] if known else [None, 2])
        some = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([2], tf.int64), tf.constant([3, 2]))
        made = as_slices([dense, some])
        assert [s.indices.dtype for s in made] == [tf.int64, tf.int64]
        rows = np.arange(6.0).reshape(3, 2)
        values, indices, shape = sess.run(made[0], {dense: rows})
        np.testing.assert_array_equal(values, rows)
        np.testing.assert_array_equal(indices, [0, 1, 2])
        np.testing.assert_array_equal(shape, [3, 2])
        assert [s.indices.dtype for s in as_slices([dense, dense])] == [tf.int32, tf.int32]


def test_only_tensors_and_slices():
    with tf.Graph().as_default():
        with pytest.raises(TypeError, match="list or tuple"):
            as_slices(tf.ones([2]))
        with pytest.raises(TypeError, match="Not a Tensor or IndexedSlices"):
            as_slices([np.ones(2)])
