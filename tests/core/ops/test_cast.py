"""Conversions between element types."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def test_a_tensor_that_has_the_type_comes_back():
    x = tf.constant([1.0])
    assert tf.cast(x, tf.float32) is x and tf.to_float(x) is x
    assert tf.cast(x, tf.int32).op.name == "Cast" and tf.to_int64(x).op.name == "ToInt64"
    assert tf.cast(2.7, tf.int32).dtype == tf.int32 and run(tf.cast(2.7, tf.int32)) == 2


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (tf.to_float, tf.float32), (tf.to_double, tf.float64), (tf.to_int32, tf.int32),
        (tf.to_int64, tf.int64), (tf.to_bfloat16, tf.bfloat16), (tf.to_complex64, tf.complex64),
        (tf.to_complex128, tf.complex128),
    ],
)  # fmt: skip
def test_short_names(function, dtype):
    out = function(tf.constant([3], tf.int16))
    assert out.dtype == dtype and run(out).real.astype(np.float64).tolist() == [3.0]


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_what_conversions_drop():
    assert run(tf.cast([-1.7, 1.7], tf.int32)).tolist() == [-1, 1]
    assert run(tf.cast([0.0, 0.1, np.nan], tf.bool)).tolist() == [False, True, True]
    assert run(tf.cast([1.5 + 2j], tf.float32)).tolist() == [1.5]
    assert run(tf.cast([300], tf.uint8)).tolist() == [44]


def test_values_made_of_several_tensors():
    slices = tf.IndexedSlices(tf.constant([1.5]), tf.constant([0]), tf.constant([3]))
    sparse = tf.SparseTensor([[1]], [2.5], [3])
    for value in (slices, sparse):
        out = tf.cast(value, tf.int32)
        assert type(out) is type(value) and out.dtype == tf.int32
        assert out.indices is value.indices


def test_saturation():
    assert run(tf.saturate_cast([-5.0, 3.5, 300.0], tf.uint8)).tolist() == [0, 3, 255]
    assert run(tf.saturate_cast([-70000, 5], tf.int16)).tolist() == [-32768, 5]
    whole = tf.saturate_cast(tf.constant([5], tf.uint8), tf.int32)
    assert whole.op.inputs[0].op.type == "Const"  # nothing to clip


def test_bits():
    x = tf.constant([1.0, -2.0])
    assert run(tf.bitcast(x, tf.int32)).tolist() == [0x3F800000, -0x40000000]
    assert tf.bitcast(x, tf.uint8).shape.as_list() == [2, 4]
    assert run(tf.bitcast(tf.bitcast(x, tf.uint8), tf.float32)).tolist() == [1.0, -2.0]
    assert tf.bitcast(x, tf.float64).shape.as_list() == []
    with pytest.raises(ValueError, match="Cannot bitcast"):
        tf.bitcast(tf.zeros([2, 3]), tf.float64)
    fed = tf.placeholder(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot bitcast"):
        run(tf.bitcast(fed, tf.float64), {fed: np.zeros((2, 3))})


def test_gradients_pass_between_floating_types_only():
    x = tf.constant([1.0, 2.0], tf.float16)
    grad = tf.gradients(tf.cast(x, tf.float64), x)[0]
    assert grad.dtype == tf.float16 and run(grad).tolist() == [1.0, 1.0]
    assert tf.gradients(tf.cast(tf.cast(x, tf.int32), tf.float32), x) == [None]


def test_quantized_numbers_are_cast_and_fetched_as_the_integers_that_hold_them():
    q = tf.cast(tf.constant([1, 2, 300]), tf.qint8)
    got = run([q, tf.cast(q, tf.float32), tf.cast(tf.constant(-1.5), tf.qint32)])
    assert [np.asarray(v).dtype.name for v in got] == ["int8", "float32", "int32"]
    assert [np.asarray(v).tolist() for v in got] == [[1, 2, 44], [1.0, 2.0, 44.0], -1]
    fed = tf.placeholder(tf.qint8)
    assert run(tf.cast(fed, tf.int32), {fed: got[0]}).tolist() == [1, 2, 44]


def test_what_no_kernel_casts_is_named_with_both_types():
    with pytest.raises(tf.errors.OpError, match=r"Op Cast\(int32\[1\]\) to \(string\)"):
        run(tf.cast(tf.constant([1]), tf.string))
