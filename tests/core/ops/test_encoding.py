"""Strings from and to tensors: TensorProtos, and what public functions take."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

TYPES = [
    tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int8, tf.uint8, tf.int16, tf.uint16,
    tf.int32, tf.int64, tf.complex64, tf.complex128, tf.bool,
]  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.name)
def test_a_tensor_comes_back(dtype):
    values = np.array([[0, 1], [2, 3]]).astype(dtype.as_numpy_dtype)
    text = tf.io.serialize_tensor(tf.constant(values))
    assert text.shape == ()
    with tf.Session() as sess:
        message, again = sess.run([text, tf.io.parse_tensor(text, dtype)])
    np.testing.assert_array_equal(again, values)
    proto = type(tf.AttrValue().tensor).FromString(message)
    np.testing.assert_array_equal(tf.make_ndarray(proto), values)


def test_strings_come_back():
    text = tf.io.serialize_tensor(tf.constant([b"a\xff", b""]))
    with tf.Session() as sess:
        assert sess.run(tf.parse_tensor(text, tf.string)).tolist() == [b"a\xff", b""]


def test_another_type_is_told():
    text = tf.io.serialize_tensor(tf.constant([1.0]))
    with tf.Session() as sess:
        with pytest.raises(
            tf.errors.InvalidArgumentError,
            match=r"Type mismatch between parsed tensor \(float\) and dtype \(int32\)",
        ):
            sess.run(tf.parse_tensor(text, tf.int32))
        with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse `serialized`"):
            sess.run(tf.parse_tensor("no message", tf.int32))


def test_a_message_cannot_ask_for_memory_that_it_does_not_fill():
    proto = type(tf.AttrValue().tensor)(dtype=1)
    proto.tensor_shape.dim.add(size=1 << 60)
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError):
        sess.run(tf.parse_tensor(proto.SerializeToString(), tf.float32))


def test_old_names_of_arguments():
    with tf.Session() as sess:
        assert sess.run(tf.string_to_number(input=["2"], out_type=tf.int32)).tolist() == [2]
        assert sess.run(tf.decode_raw(bytes=[b"\1\2"], out_type=tf.uint8)).tolist() == [[1, 2]]
    with pytest.raises(ValueError, match="Cannot specify both"):
        tf.string_to_number(["2"], input=["3"])
    with pytest.raises(ValueError, match="missing 1 positional argument: 'out_type'"):
        tf.decode_raw(["a"])


def test_decode_raw_of_strings_of_several_lengths() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.io.decode_raw(["ab", "abcdef"], tf.uint16, fixed_length=4)
        assert found.shape.as_list() == [2, 2]
        expected = [[0x6261, 0], [0x6261, 0x6463]]
        assert session.run(found).tolist() == expected
