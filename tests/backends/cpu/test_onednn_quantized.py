"""Products of 8-bit integers are exact, and the kernels of quantized ops choose them."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.plugin import windows
from opdock_cpu.im2col import conv_forward
from opdock_cpu.onednn.carried import CarriedProduct
from opdock_cpu.onednn.conv import ConvShape
from opdock_cpu.onednn.declarations import Type
from opdock_cpu.onednn.quantized import ConvolutionS32, ProductS32, exact
from tests.backends.cpu.onednn import instructions, needs_onednn, rows

pytestmark = needs_onednn

ZEROS = [(0, 0), (9, 0), (0, 125), (-300, 200), (200, 128)]
BYTES, SIGNED = np.uint8, np.int8


def factors(a, b, kind=SIGNED, largest=255):
    """Integers so large that sums of their products are no float32 numbers."""
    rng = np.random.RandomState(0)
    left = rng.randint(largest * 7 // 10, largest + 1, a)
    return left.astype(BYTES), rng.randint(90, 128, b).astype(kind)


LARGEST = 31 if exact() else 255
"""What oneDNN multiplies exactly here.

Without instructions for bytes it adds up in 16 bits first, and rounds sums to float32.
"""


def wrapped(sums):
    return sums.astype(np.int64).astype(np.int32)


@pytest.mark.parametrize("zeros", ZEROS)
@pytest.mark.parametrize("kind", [BYTES, SIGNED])
@pytest.mark.parametrize(("transpose_a", "transpose_b"), [(False, False), (True, True)])
def test_product(zeros, kind, transpose_a, transpose_b):
    a, b = factors((50, 4096), (4096, 33), kind, LARGEST)
    left = np.asfortranarray(a) if transpose_a else a
    right = np.ascontiguousarray(b.T) if transpose_b else b
    multiply = ProductS32(a.shape, right.shape, transpose_b, kind is BYTES)
    found = multiply(left, multiply.pack(right), zeros)
    expected = (a.astype(np.int64) - zeros[0]) @ (b.astype(np.int64) - zeros[1])
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("zeros", ZEROS)
@pytest.mark.parametrize("kind", [BYTES, SIGNED])
@pytest.mark.parametrize(("stride", "padding"), [(1, "SAME"), (2, "VALID")])
def test_convolution(zeros, kind, stride, padding):
    layout = windows.Layout({"strides": [1, stride, stride, 1], "padding": padding})
    where = layout.window((9, 10), (3, 3))
    x, w = factors((2, 9, 10, 512), (3, 3, 512, 20), kind, LARGEST)
    zeros = (min(max(zeros[0], 0), LARGEST), zeros[1])
    shape = ConvShape(2, 512, 20, 1, where, False, Type.U8)
    middle = 128 if kind is BYTES else 0
    convolve = ConvolutionS32(shape, zeros[0] != 0, kind is BYTES, zeros[1] != middle)
    expected = conv_forward(x.astype(np.float64) - zeros[0], w.astype(np.float64) - zeros[1], where)
    np.testing.assert_array_equal(convolve(x, convolve.pack(w), zeros), wrapped(expected))


# ---------------------------------------------------------------- kernels
def quantized(array):
    return tf.constant(array.view(tf.as_dtype(f"q{array.dtype.name}").np))


def build(op, left, right, ends, **attrs):
    """The op over a fed and a constant factor, and what to feed."""
    x = tf.placeholder(tf.quint8, left.shape)
    return getattr(tf.raw_ops, op)(
        **dict(zip(NAMES[op], (x, quantized(right), *ends), strict=True)), **attrs
    ), {x: left}


NAMES = {
    "QuantizedMatMul": ("a", "b", "min_a", "max_a", "min_b", "max_b"),
    "QuantizedConv2D": (
        "input", "filter", "min_input", "max_input", "min_filter", "max_filter",
    ),
}  # fmt: skip
CONV = {"strides": [1, 1, 1, 1], "padding": "SAME"}
ENDS = [(0.0, 6.0, -1.0, 1.0), (-1.0, 3.0, -2.0, 1.5), (1.0, 2.0, 0.0, 1.0), (-2.0, -1.0, 0.0, 1.0)]


def kernel(session, outputs, feeds, op):
    """What computes the op, and why others do not."""
    row = rows(session, list(outputs), feeds)[op]
    return row.kernel, " ".join(row.rejections)


def plain(found):
    return [v.view(v.dtype[0]) if v.dtype.names else v for v in map(np.asarray, found)]


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("kind", [BYTES, SIGNED])
@pytest.mark.parametrize(
    ("op", "left", "right", "attrs"),
    [
        ("QuantizedMatMul", (9, 3000), (3000, 8), {}),
        ("QuantizedMatMul", (700, 40), (8, 700), {"transpose_a": True, "transpose_b": True}),
        ("QuantizedConv2D", (2, 7, 8, 300), (3, 3, 300, 6), CONV),
        ("QuantizedConv2D", (4, 9, 13, 256), (2, 2, 256, 8), {**CONV, "strides": [1, 4, 4, 1]}),
    ],
)
def test_all_kernels_agree_in_every_bit(op, left, right, attrs, kind, ends, monkeypatch):
    x, w = factors(left, right, kind, LARGEST)
    results = []
    kernels = "opdock_cpu.onednn.kernels.quantized"
    for label, patched, why_not in (
        # Factors of these sizes are exact wherever oneDNN is.
        ("onednn", "exact", ""),
        ("onednn", "exact", "carried by floats"),
        ("opdock_cpu.kernels", "declined", "not now"),
    ):
        with monkeypatch.context() as patch, tf.Graph().as_default(), tf.Session() as session:
            patch.setattr(f"{kernels}.{patched}", lambda *_, why=why_not: why)
            outputs, feeds = build(op, x, w, ends, **attrs)
            assert label in kernel(session, outputs, feeds, op)[0]
            results.append(plain(session.run(list(outputs), feeds)))
            # The second step takes the weights as the first laid them out.
            results.append(plain(session.run(list(outputs), feeds)))
    for found in results[1:]:
        for a, b in zip(results[0], found, strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_largest_factors_are_multiplied_exactly_on_any_processor():
    """By instructions for bytes where there are any, else by floats in shares that fit."""
    a, b = np.full((80, 640), 255, BYTES), np.full((640, 60), 127, SIGNED)
    with tf.Graph().as_default(), tf.Session() as session:
        outputs, feeds = build("QuantizedMatMul", a, b, ENDS[0])
        used, _ = kernel(session, outputs, feeds, "QuantizedMatMul")
        assert "onednn" in used
        assert instructions()[1] == (exact() == "")
        out, *_ = plain(session.run(list(outputs), feeds))
    np.testing.assert_array_equal(out, 255 * 127 * 640)


@pytest.mark.parametrize("inner", [640, 2000])
def test_floats_carry_sums_in_shares_that_are_whole(inner):
    a, b = np.full((30, inner), 255, BYTES), np.full((inner, 20), 127, SIGNED)
    multiply = CarriedProduct(30, inner, 20)
    shares = multiply.pack(b, -3)
    assert 1 < len(shares) <= -(-255 * 130 * inner // (1 << 23))
    np.testing.assert_array_equal(multiply(a, shares, 1), 254 * 130 * inner)


def test_fed_weights_are_laid_out_in_every_step(monkeypatch):
    monkeypatch.setattr("opdock_cpu.onednn.kernels.quantized.exact", lambda: "")
    a, b = factors((80, 64), (64, 60), SIGNED, LARGEST)
    with tf.Graph().as_default(), tf.Session() as session:
        x, w = tf.placeholder(tf.quint8, a.shape), tf.placeholder(tf.qint8, b.shape)
        found = tf.raw_ops.QuantizedMatMul(
            a=x, b=w, min_a=0.0, max_a=1.0, min_b=-1.0, max_b=1.0
        ).out
        for factor in (b, b[::-1].copy(), b):
            (out,) = plain([session.run(found, {x: a, w: factor})])
            np.testing.assert_array_equal(out, a.astype(np.int64) @ factor)


def test_little_work_stays_with_numpy(monkeypatch):
    monkeypatch.setattr("opdock_cpu.onednn.kernels.quantized.exact", lambda: "")
    a, b = factors((2, 3), (3, 4), SIGNED)
    with tf.Graph().as_default(), tf.Session() as session:
        outputs, feeds = build("QuantizedMatMul", a, b, ENDS[0])
        used, why_not = kernel(session, outputs, feeds, "QuantizedMatMul")
    assert "onednn" not in used
    assert "multiply-adds; oneDNN pays from" in why_not
