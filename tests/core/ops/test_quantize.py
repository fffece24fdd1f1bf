"""Numbers to quantized integers and back; the expected values are TensorFlow's own."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import opdock as tf

X = np.array([-3.3, -1.5, -0.25, 0.0, 0.1, 1.27, 2.0, 9.0], np.float32)
LOW, HIGH = -1.5, 2.5
LEAST = -(2**31)

QUANTIZED = {
    ("quint8", "MIN_COMBINED"): ([0, 0, 80, 96, 102, 177, 223, 255], LOW, HIGH),
    ("quint8", "MIN_FIRST"): ([0, 0, 80, 96, 102, 177, 224, 255], LOW, HIGH),
    ("quint8", "SCALED"): ([0, 0, 0, 0, 10, 130, 204, 255], 0.0, HIGH),
    ("qint8", "MIN_COMBINED"): ([-128, -128, -48, -32, -26, 49, 95, 127], LOW, HIGH),
    ("qint8", "MIN_FIRST"): ([-128, -128, -48, -32, -26, 49, 96, 127], LOW, HIGH),
    ("qint8", "SCALED"): ([-128, -76, -13, 0, 5, 65, 102, 127], -2.519685, HIGH),
    ("qint16", "SCALED"): (
        [-32768, -19660, -3277, 0, 1311, 16646, 26214, 32767], -2.5000763, HIGH,
    ),
    ("qint32", "MIN_COMBINED"): (
        [LEAST, LEAST, -805306368, -536870912, -429496704, 826781184, 1610612736, LEAST],
        LOW, HIGH,
    ),
    ("qint32", "MIN_FIRST"): (
        [LEAST, LEAST, -805306368, -536870912, -429496736, 826781184, 1610612736, 2147483520],
        LOW, HIGH,
    ),
}  # fmt: skip

BYTES = np.array([0, 1, 100, 128, 255], np.uint8)
DEQUANTIZED = {
    ("quint8", "MIN_COMBINED"): [-1.5, -1.4843137, 0.0686276, 0.50784326, 2.5],
    ("quint8", "MIN_FIRST"): [-1.5058825, -1.4901962, 0.0627451, 0.50196075, 2.4941175],
    ("quint8", "SCALED"): [0.0, 0.00980392, 0.9803922, 1.254902, 2.5],
    ("qint8", "MIN_COMBINED"): [0.50784326, 0.52352953, 2.0764709, -1.5, 0.49215698],
    ("qint8", "MIN_FIRST"): [0.50196075, 0.51764703, 2.0705884, -1.5058825, 0.48627448],
    ("qint8", "SCALED"): [0.0, 0.01968504, 1.968504, -2.519685, -0.01968504],
}

SUMS = np.array([-70000, -5, 0, 12345, 99999], np.int32)


def run(fetches, feeds=None):
    """The values, quantized ones as plain integers."""
    with tf.Session() as session:
        values = session.run(fetches, feeds)
    return [v.view(v.dtype[0]) if v.dtype.names else v for v in map(np.asarray, values)]


def as_type(array, dtype):
    return tf.constant(array.view(dtype.np), dtype)


def bits(values):
    return np.asarray(values, np.float32)


def check(outputs, expected, low, high, *, flat=False, rtol=0.0):
    """Checks integers, of which `expected` may be the flat list, and the ends of their range."""
    out, *ends = run(outputs)
    assert (out.reshape(-1) if flat else out).tolist() == expected
    assert all(end.dtype == np.float32 for end in ends)
    np.testing.assert_allclose(bits(ends), bits([low, high]), rtol=rtol)


@pytest.mark.parametrize(("name", "mode"), QUANTIZED)
def test_quantize(name, mode):
    check(tf.quantize(X, LOW, HIGH, tf.as_dtype(name), mode=mode), *QUANTIZED[name, mode])


@pytest.mark.parametrize(("name", "mode"), DEQUANTIZED)
def test_dequantize(name, mode):
    dtype = tf.as_dtype(name)
    (out,) = run([tf.dequantize(as_type(BYTES, dtype), LOW, HIGH, mode)])
    np.testing.assert_allclose(out, bits(DEQUANTIZED[name, mode]), rtol=1e-6)


def test_the_range_of_what_is_used():
    low, high = -0.09778817, 0.13969769
    x = as_type(SUMS, tf.qint32)
    found = run(tf.raw_ops.RequantizationRange(input=x, input_min=-3000.0, input_max=3000.0))
    np.testing.assert_allclose(found, bits([low, high]), rtol=1e-6)
    shrunk = tf.raw_ops.QuantizeDownAndShrinkRange(
        input=x, input_min=-3000.0, input_max=3000.0, out_type=tf.quint8
    )
    check(shrunk, [0, 105, 105, 124, 255], low, high, rtol=1e-6)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(tf.quint8, [0, 85, 85, 114, 255]), (tf.qint8, [-128, -43, -43, -14, 127])],
)
def test_requantize(dtype, expected):
    found = tf.raw_ops.Requantize(
        input=as_type(SUMS, tf.qint32), input_min=-3000.0, input_max=3000.0,
        requested_output_min=-0.05, requested_output_max=0.1, out_type=dtype,
    )  # fmt: skip
    check(found, expected, -0.05, 0.1)


numbers = st.floats(-100, 100, width=32)


@hypothesis.given(
    st.lists(numbers, min_size=1, max_size=30), numbers, st.floats(0.125, 50, width=32),
    st.sampled_from(["quint8", "qint8", "quint16", "qint16"]),
    st.sampled_from(["MIN_COMBINED", "MIN_FIRST", "SCALED"]),
)  # fmt: skip
def test_there_and_back_is_half_a_step_away(values, low, width, name, mode):
    x, dtype = np.array(values, np.float32), tf.as_dtype(name)
    with tf.Graph().as_default():
        q, start, end = tf.quantize(x, np.float32(low), np.float32(low + width), dtype, mode=mode)
        back, start, end = run([tf.dequantize(q, start, end, mode), start, end])
    inside = np.clip(x, start, end)
    step = (float(end) - float(start)) / (2 ** (8 * dtype.size) - 1)
    if mode == "SCALED" and name.startswith("q"):
        step = max(step, float(end) / np.iinfo(dtype.as_numpy_dtype[0]).max)
    # MIN_FIRST moves the range so that 0 is one of the integers.
    reach = step * (1.01 if mode == "MIN_FIRST" else 0.51) + 2e-6 * max(abs(start), abs(end))
    assert (abs(back - inside) <= reach).all()


def test_a_range_for_each_entry_of_an_axis():
    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2) / 4 - 1
    lows, highs = bits([-1, -2, 0]), bits([1, 0.5, 3])
    whole, low, high = run(tf.quantize(x, lows, highs, tf.qint8, mode="SCALED", axis=1))
    assert whole.shape == x.shape and low.shape == high.shape == (3,)
    for i in range(3):
        (alone, *ends) = run(tf.quantize(x[:, i], lows[i], highs[i], tf.qint8, mode="SCALED"))
        np.testing.assert_array_equal(whole[:, i], alone)
        assert (low[i], high[i]) == tuple(ends)


def test_shapes_and_attributes():
    x = tf.placeholder(tf.float32, [2, None])
    q = tf.quantize_v2(x, 0.0, 1.0, tf.quint8)
    assert q.output.shape.as_list() == [2, None] and q.output_min.shape.as_list() == []
    assert (q.output.dtype, q.output.op.type) == (tf.quint8, "QuantizeV2")
    assert q.output.op.get_attr("mode") == b"MIN_COMBINED"
    with pytest.raises(ValueError, match="Shape must be rank 0 but is rank 1"):
        tf.quantize(x, [0.0, 1.0], 1.0, tf.quint8)
    with pytest.raises(ValueError, match="axis should be at least -1, got -2"):
        tf.quantize(x, 0.0, 1.0, tf.quint8, axis=-2)
    with pytest.raises(TypeError):
        tf.quantize(x, 0.0, 1.0, tf.float32)
    with pytest.raises(LookupError, match="No gradient defined"):
        tf.gradients(tf.dequantize(*q), x)


def test_ends_that_are_no_scalars_are_refused_at_run_time():
    low = tf.placeholder(tf.float32)
    q = tf.quantize([0.5], low, 1.0, tf.quint8)
    with tf.Session() as session:
        session.run(q.output, {low: 0.0})
        with pytest.raises(tf.errors.InvalidArgumentError, match="min_range must be a scalar"):
            session.run(q.output, {low: [0.0, 1.0]})
