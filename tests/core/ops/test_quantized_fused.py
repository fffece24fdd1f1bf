"""Layers of 8-bit networks in one op each; the expected values are TensorFlow's own.

They are those of TensorFlow 2.21 with oneDNN, which computes these ops as 1.15 did, but for
products of matrices that go back to 8 bits: there 1.15 divides by 256 where 2.21 does by 255.
"""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

RNG = np.random.RandomState(0)
X = RNG.randint(0, 64, (2, 6, 5, 3)).astype(np.uint8)
KERNEL = RNG.randint(-60, 61, (3, 3, 3, 4)).astype(np.int8)
DEPTHWISE = RNG.randint(-60, 61, (3, 3, 3, 2)).astype(np.int8)
A = RNG.randint(0, 64, (5, 7)).astype(np.uint8)
B = RNG.randint(-60, 61, (7, 4)).astype(np.int8)
WIDE = RNG.randint(-(2**30), 2**30, (2, 3, 3, 4)).astype(np.int32)
BIAS = np.array([0.5, -1.25, 2.0, 0.125], np.float32)
WHOLE = np.array([-2500, 1200, 37, 2999], np.int32)
ENDS = {"min_input": 0.0, "max_input": 6.0}
ONE = {"min_filter": -1.0, "max_filter": 1.5}
EACH = {"min_filter": [-1.0, -2, -0.5, -3], "max_filter": [1.0, 1, 2, 0.1]}
SAME = {"strides": [1, 1, 1, 1], "padding": "SAME"}
PADDED = {"strides": [1, 1, 1, 1], "padding": "VALID", "padding_list": [0, 0, 1, 2, 2, 0, 0, 0]}
FROZEN = {"min_freezed_output": 0.0, "max_freezed_output": 9.0}
CHANNELS = {"input_min": [-1.0, -2, -3, -4], "input_max": [1.0, 2, 3, 4]}


def run(op: str, **inputs: object) -> list[np.ndarray]:
    """What an op gives, as plain integers."""
    with tf.Graph().as_default(), tf.Session() as session:
        made = {k: v() if callable(v) else v for k, v in inputs.items()}
        results = session.run(getattr(tf.raw_ops, op)(**made))
    return [v.view(v.dtype[0]) if v.dtype.names else v for v in map(np.asarray, results)]


def quantized(values: np.ndarray, dtype: tf.DType) -> object:
    return lambda: tf.bitcast(tf.constant(values), dtype)


def layer(op: str, kernel: np.ndarray = KERNEL, **inputs: object) -> list[np.ndarray]:
    images, filters = quantized(X, tf.quint8), quantized(kernel, tf.qint8)
    return run(op, input=images, filter=filters, **ENDS, **inputs)


@pytest.mark.parametrize(
    ("what", "inputs", "some", "total", "end"),
    [
        ("AndRequantize", {**ONE, **FROZEN, "min_freezed_output": -5.0, **SAME},
         [16, 8, -6, -28, 7, 12, 9, -38], 127, 9),
        ("WithBiasAndRequantize", {**EACH, **FROZEN, **SAME, "bias": BIAS},
         [4, 39, -10, -12, -9, 44, 20, -18], 2298, 9),
        ("AndReluAndRequantize", {**EACH, **FROZEN, **SAME},
         [44, 21, 0, 0, 17, 32, 37, 0], 5675, 9),
        ("WithBiasAndRelu", {**ONE, **SAME, "bias": BIAS},
         [0, 9229, 0, 0, 0, 10210, 2770, 0], 771950, 497332.94),
        ("WithBiasAndReluAndRequantize", {**EACH, **FROZEN, **SAME, "bias": BIAS},
         [8, 78, 0, 0, 0, 88, 40, 0], 7662, 9),
        ("WithBiasAndReluAndRequantize",
         {**EACH, **FROZEN, **PADDED, "bias": quantized(WHOLE, tf.qint32)},
         [71, 42, 93, 0, 0, 40, 42, 0], 8416, 9),
    ],
)  # fmt: skip
def test_convolutions(what, inputs, some, total, end) -> None:
    if isinstance(inputs.get("bias"), np.ndarray):
        inputs = {**inputs, "bias": lambda: tf.constant(BIAS)}
    out, _, high = layer(f"QuantizedConv2D{what}", **inputs)
    assert (out.reshape(-1)[17:25].tolist(), int(out.astype(np.int64).sum())) == (some, total)
    assert high == np.float32(end)


@pytest.mark.parametrize(
    ("what", "inputs", "some"),
    [
        ("", {}, [-8348, -1079, -1706, -429, 211, -5041, -5489, -179]),
        ("WithBiasAndRelu", {}, [0, 0, 0, 0, 1550, 0, 448, 0]),
        ("WithBiasAndReluAndRequantize", FROZEN, [0, 0, 0, 0, 8, 0, 2, 0]),
    ],
)
def test_depthwise_convolutions(what, inputs, some) -> None:
    bias = {"bias": lambda: tf.constant(np.linspace(-1.03, 1.1, 6).astype(np.float32))}
    ends = {"min_filter": -1.0, "max_filter": 1.0}
    name = f"QuantizedDepthwiseConv2D{what}"
    out, *_ = layer(name, DEPTHWISE, **ends, **inputs, **SAME, **(bias if what else {}))
    assert out.reshape(-1)[17:25].tolist() == some


@pytest.mark.parametrize(
    ("what", "inputs", "some", "total"),
    [
        ("", {}, [-1593, 5411, -2253, 2792, -3541, 4893, 1174, -2179], 26291),
        ("AndReluAndRequantize", FROZEN, [0, 37, 0, 19, 0, 34, 8, 0], 268),
    ],
)
def test_products(what, inputs, some, total) -> None:
    ends = {"min_a": -0.5, "max_a": 6.0, "min_b": -1.2, "max_b": 1.2}
    factors = {"a": quantized(A, tf.quint8), "b": quantized(B, tf.qint8)}
    bias = {"bias": quantized(WHOLE, tf.qint32)}
    out, *_ = run(f"QuantizedMatMulWithBias{what}", **factors, **bias, **ends, **inputs)
    assert (out.reshape(-1)[:8].tolist(), int(out.astype(np.int64).sum())) == (some, total)


def test_ranges_by_channel() -> None:
    wide = {"input": quantized(WIDE, tf.qint32), **CHANNELS}
    ends = {"requested_output_min": -2.0, "requested_output_max": 2.0}
    for dtype, some, total in (
        (tf.qint8, [-4, 61, 84, -17, 26, -22, 60, 7], 381),
        (tf.quint8, [0, 123, 168, 0, 53, 0, 120, 14], 2895),
    ):
        out, low, high = run("RequantizePerChannel", **wide, **ends, out_type=dtype)
        assert (out.reshape(-1)[:8].tolist(), int(out.astype(np.int64).sum())) == (some, total)
        assert (low, high) == (-2, 2)
    found = run("RequantizationRangePerChannel", **wide, clip_value_max=100.0)
    assert found == [np.float32(-1.7946982), np.float32(1.7946982)]
    found = run("RequantizationRangePerChannel", **wide, clip_value_max=1.0)
    assert found == [-1, 1]


def test_summands_have_scales_of_their_own() -> None:
    """A layer and a sum after it, in real numbers."""
    plain = {"bias": lambda: tf.constant(BIAS), **ONE, **SAME}
    sums, *_ = layer("QuantizedConv2DWithBias", **plain)
    numbers = sums * (6 * 1.5 / (255 * 127))
    summand = np.arange(240, dtype=np.uint8).reshape(2, 6, 5, 4)
    for op, values, dtype in (
        ("WithBiasSumAndReluAndRequantize", summand, tf.quint8),
        ("WithBiasSignedSumAndReluAndRequantize", summand.view(np.int8), tf.qint8),
    ):
        out, *_ = layer(
            f"QuantizedConv2D{op}", **plain, **FROZEN, summand=quantized(values, dtype),
            min_summand=-4.0, max_summand=3.0,
        )  # fmt: skip
        added = numbers + values * (4 / np.iinfo(values.dtype).max)
        wanted = np.clip(np.rint(added * 255 / 9), 0, 255)
        assert abs(out - wanted).max() <= 1
    floats = np.linspace(-4, 4, 240, dtype=np.float32).reshape(2, 6, 5, 4)
    out, *_ = layer(
        "QuantizedConv2DWithBiasSumAndRelu", **plain, summand=lambda: tf.constant(floats)
    )
    wanted = np.maximum(sums + np.rint(floats * (255 * 127 / 9)), 0)
    assert abs(out - wanted).max() <= 1


def test_static_shapes() -> None:
    with tf.Graph().as_default():
        made = tf.raw_ops.QuantizedConv2DWithBiasAndRelu(
            input=tf.placeholder(tf.quint8, [None, 6, 5, 3]),
            filter=tf.placeholder(tf.qint8, [3, 3, 3, 4]), bias=BIAS, **ENDS, **EACH, **PADDED,
        )  # fmt: skip
        assert [t.shape.as_list() for t in made] == [[None, 7, 5, 4], [4], [4]]
        with pytest.raises(ValueError, match="Dimensions must be equal|not compatible"):
            tf.raw_ops.QuantizedMatMulWithBias(
                a=tf.placeholder(tf.quint8, [2, 3]), b=tf.placeholder(tf.qint8, [3, 4]),
                bias=np.zeros(5, np.float32), min_a=0.0, max_a=1.0, min_b=-1.0, max_b=1.0,
            )  # fmt: skip
