"""`tf.constant` of a TensorProto, which has its type and its shape itself."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.arange(6.0).reshape(2, 3), tf.float64),
        ([b"a", b"bc"], tf.string),
        ([1, 2], tf.int16),
        (1.5, tf.half),
        ([1.5, 2], tf.bfloat16),
        (np.zeros([0, 3]), tf.float32),
    ],
)
@pytest.mark.parametrize("make", [tf.constant, tf.convert_to_tensor])
def test_a_proto_is_a_constant_as_it_says(value, dtype, make) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = make(tf.make_tensor_proto(value, dtype))
        assert found.dtype == dtype and found.shape == np.shape(value)
        expected = np.asarray(value, object if dtype == tf.string else np.float64)
        got = session.run(found)
        np.testing.assert_array_equal(got if dtype == tf.string else got.astype(float), expected)


def test_what_is_said_beside_it_does_not_count() -> None:
    """As in TensorFlow."""
    with tf.Graph().as_default():
        found = tf.constant(tf.make_tensor_proto([1, 2]), tf.float32, [3])
        assert found.dtype == tf.int32 and found.shape == [2]
