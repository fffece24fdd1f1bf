"""Arithmetic on quantized tensors; the expected values are TensorFlow's own."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from tests.core.ops.test_quantize import as_type, check, run

X = np.array([[0, 1, 255], [77, 128, 200]], np.uint8)
Y = np.array([3, 0, 255], np.uint8)


def test_matmul():
    a = np.array([[1, 2, 250], [40, 128, 9]], np.uint8)
    b = np.array([[0, 255], [7, 100], [128, 3]], np.uint8)
    ends = {"min_a": -1.0, "max_a": 3.0, "min_b": 0.0, "max_b": 2.0}
    expected = [[23374, -21707], [-6592, 115]]
    for ta, tb in ((False, False), (True, True)):
        left, right = (np.ascontiguousarray(m.T if t else m) for m, t in ((a, ta), (b, tb)))
        found = tf.raw_ops.QuantizedMatMul(
            a=as_type(left, tf.quint8), b=as_type(right, tf.quint8), transpose_a=ta,
            transpose_b=tb, **ends,
        )  # fmt: skip
        check(found, expected, -264204.09375, 264204.09375)


def test_weights_that_are_signed_have_their_zero_at_0():
    a, b = np.array([[0, 64, 255]], np.uint8), np.array([[-127], [5], [127]], np.int8)
    found = tf.raw_ops.QuantizedMatMul(
        a=as_type(a, tf.quint8), b=as_type(b, tf.qint8), min_a=0.0, max_a=6.0, min_b=-1.0,
        max_b=1.0,
    )  # fmt: skip
    check(found, [[64 * 5 + 255 * 127]], -397866.375, 397866.375)


def test_sums_wrap_around():
    a, b = np.full((1, 40_000), 255, np.uint8), np.full((40_000, 1), 255, np.uint8)
    out, *_ = run(
        tf.raw_ops.QuantizedMatMul(
            a=as_type(a, tf.quint8), b=as_type(b, tf.quint8), min_a=0.0, max_a=1.0, min_b=0.0,
            max_b=1.0,
        )
    )  # fmt: skip
    assert out.tolist() == [[255 * 255 * 40_000 - 2**32]]


@pytest.mark.parametrize(
    ("op", "expected", "end"),
    [
        ("QuantizedAdd", [[-42833, -43177, 218278], [9912, 43818, 180603]], 49152.0),
        ("QuantizedMul", [[-192, 0, 48705], [39, 0, 34680]], 264204.09375),
    ],
)
def test_add_and_mul(op, expected, end):
    found = getattr(tf.raw_ops, op)(
        x=as_type(X, tf.quint8), y=as_type(Y, tf.quint8), min_x=-1.0, max_x=3.0, min_y=0.0,
        max_y=2.0,
    )  # fmt: skip
    check(found, expected, -end, end)


def test_bias_add():
    found = tf.raw_ops.QuantizedBiasAdd(
        input=as_type(X, tf.quint8), bias=as_type(Y, tf.quint8), min_input=-1.0, max_input=3.0,
        min_bias=0.0, max_bias=2.0, out_type=tf.qint32,
    )  # fmt: skip
    check(found, [[-5354, -5397, 27286], [1243, 5483, 22574]], -393216.0, 393216.0)
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 3 and 2"):
        tf.raw_ops.QuantizedBiasAdd(
            input=as_type(X, tf.quint8), bias=as_type(Y[:2], tf.quint8), min_input=-1.0,
            max_input=3.0, min_bias=0.0, max_bias=2.0, out_type=tf.qint32,
        )  # fmt: skip


def test_concat():
    x = as_type(X, tf.quint8)
    expected = [[0, 1, 255], [77, 128, 200], [64, 65, 192], [103, 128, 164]]
    check(tf.quantized_concat(0, [x, x], [-1.0, 0.0], [3.0, 2.0]), expected, -1.0, 3.0)
    assert tf.quantization.quantized_concat is tf.quantized_concat


def test_reshape():
    found = tf.raw_ops.QuantizedReshape(
        tensor=as_type(X, tf.quint8), shape=[3, -1], input_min=-1.0, input_max=2.0
    )
    assert found.output.shape.as_list() == [3, 2] and found.output.dtype == tf.quint8
    check(found, X.reshape(3, 2).tolist(), -1.0, 2.0)


def test_static_shapes():
    a, b = tf.placeholder(tf.quint8, [None, 4]), tf.placeholder(tf.quint8, [4, 5])
    found = tf.raw_ops.QuantizedMatMul(a=a, b=b, min_a=0.0, max_a=1.0, min_b=0.0, max_b=1.0)
    assert found.out.shape.as_list() == [None, 5] and found.out.dtype == tf.qint32
    assert found.min_out.shape.as_list() == []
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 4 and 5"):
        tf.raw_ops.QuantizedMatMul(
            a=a, b=b, min_a=0.0, max_a=1.0, min_b=0.0, max_b=1.0, transpose_b=True
        )
    with pytest.raises(ValueError, match="Shape must be rank 0 but is rank 1"):
        tf.raw_ops.QuantizedMatMul(a=a, b=b, min_a=[0.0], max_a=1.0, min_b=0.0, max_b=1.0)


def test_it_runs_from_another_device():
    with tf.device("/device:ECHO:0"):
        x = as_type(X, tf.quint8)
        found = tf.raw_ops.QuantizedMul(x=x, y=x, min_x=-1.0, max_x=3.0, min_y=-1.0, max_y=3.0)
        numbers = tf.dequantize(found.z, found.min_z, found.max_z, "MIN_FIRST") + 0.0
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        value = session.run(numbers)
    real = X.astype(np.float64) * 4 / 255 - 1
    np.testing.assert_allclose(value, real * real, atol=0.05)
