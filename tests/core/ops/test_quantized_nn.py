"""Layers of quantized networks; the expected values are TensorFlow's own."""

from __future__ import annotations

import base64
import functools
import zlib

import numpy as np
import pytest

import opdock as tf
from tests.core.ops import test_quantize
from tests.core.ops.test_quantize import as_type, run

IMAGE = (np.arange(16) * 37 % 256).astype(np.uint8).reshape(1, 4, 4, 1)
KERNEL = np.array([1, 200, 128, 7], np.uint8).reshape(2, 2, 1, 1)
X = np.array([[0, 1, 255], [77, 128, 200]], np.uint8)

# A graph that TensorFlow wrote: quantize, convolve, requantize, relu, dequantize.
FROZEN = (
    "eNqlU8+L00AUbtKk6b6mrk5dkFkE2VXQgOjmpKVC2t0WC9ZqtigrumFsxt2wadL8ausP0LNXQfDiXY8e9Kh3/wDB"
    "f8WDTtJkt1tUXBx4bxje+977vjczUAVugkq3bNKnu65tUl8pgWiGj4cU8Zc5ZRnEYJewA6oeR3yRYyamxsMVKHmX"
    "BpZj+MTZoUhcd50gPIxfAnFE7IgiuQEMnVOEXO7F5xRJJkdEahp84oDzENyOiBNaT+gdFXMTPEsDz1ZWTsNJ6gSR"
    "Tw2WYA2iQdbxHHxbrSkVEMjEClDp1M9scQoC2SG+747TXP58Lk4cuCZFJbTQad80Wm19s6esAvhu5JhGElpClev1"
    "Gy2jfre+ZbT0bse419S7igRcjwmS4SFMZf5GraA0M7W1RrUooHjW+dT42FbOvtz+0R9/vdZ9tn2RPnhVaX/4vvz6"
    "qqZtvXsT3vf23na8Pec5XAB+7CGpYYV9EoQ47QQgpI3kjI4ANVjsu84oGdwjyw6p/8/XkPtygGaTPiL6jAYfORBi"
    "OFrM7tFk4JG6gTkPMwU471XXYqfieZJ4vi+7GikIfcukASpCAQscW4oMhZ7lDKMwEX0Mim4UGimtslIGqZeyjsMn"
    "QBoS07ScHVRAwma902TEF0zLJqHFNB2UBQ3E6Zuo6NSbUk9y9OTlJZpwIfaM/nRXD1EpQw94nyLYh/8Bhad9sJRs"
    "1bU5CfJc1XUQfGpHqLw/T50dMWuFWYCVjb361yIyPIU8iyLYmOEWV8WF2Mfckl09fMX/94Wy37GSL76v/AKsozcP"
)


check = functools.partial(test_quantize.check, flat=True, rtol=1e-6)


@pytest.mark.parametrize(
    ("padding", "expected"),
    [
        (
            "SAME",
            [
                -13245, -25973, 3027, -5381, -11677, -24405, -44813, 6655, -27005, 1995, 19, -13821,
                -16126, -28949, 9172, 3549,
            ],
        ),
        ("VALID", [-13245, -25973, 3027, -11677, -24405, -44813, -27005, 1995, 19]),
    ],
)  # fmt: skip
def test_conv2d(padding, expected):
    found = tf.nn.quantized_conv2d(
        as_type(IMAGE, tf.quint8), as_type(KERNEL, tf.quint8), -1.0, 3.0, -2.0, 1.0, [1, 1, 1, 1],
        padding,
    )  # fmt: skip
    check(found, expected, -396306.125, 396306.125)


@pytest.mark.parametrize(
    ("size", "window", "stride", "padding", "start"),
    [((10, 13), (1, 2), 4, "VALID", (0, 1)), ((8, 11), (2, 3), 4, "SAME", (1, 0))],
)
def test_windows_are_centred_as_in_tensorflow(size, window, stride, padding, start):
    x = np.arange(size[0] * size[1], dtype=np.uint8).reshape(1, *size, 1)
    kernel = np.zeros((*window, 1, 1), np.uint8)
    kernel[0, 0] = 1
    out, *_ = run(
        tf.nn.quantized_conv2d(
            as_type(x, tf.quint8), as_type(kernel, tf.quint8), 0.0, 255.0, 0.0, 255.0,
            [1, stride, stride, 1], padding,
        )
    )  # fmt: skip
    expected = x[:, start[0] :: stride, start[1] :: stride]
    np.testing.assert_array_equal(out, expected[:, : out.shape[1], : out.shape[2]])


@pytest.mark.parametrize(
    ("pool", "padding", "expected"),
    [
        ("max", "SAME", [222, 222, 225, 151]), ("avg", "SAME", [99, 112, 108, 78]),
        ("max", "VALID", [222]), ("avg", "VALID", [99]),
    ],
)  # fmt: skip
def test_pooling(pool, padding, expected):
    function = tf.nn.quantized_max_pool if pool == "max" else tf.nn.quantized_avg_pool
    x = as_type(IMAGE, tf.quint8)
    check(function(x, -1.0, 3.0, [1, 3, 3, 1], [1, 2, 2, 1], padding), expected, -1.0, 3.0)


def test_activations():
    x, ends = as_type(X, tf.quint8), {"min_features": -4.0, "max_features": 9.0}
    relu = tf.raw_ops.QuantizedRelu(features=x, **ends)
    check(relu, [78, 78, 255, 78, 128, 200], -4.0, 9.0)
    relu6 = tf.raw_ops.QuantizedRelu6(features=x, **ends)
    check(relu6, [78, 78, 196, 78, 128, 196], -4.0, 9.0)
    check(tf.nn.quantized_relu_x(x, 6.0, -4.0, 9.0), [78, 78, 196, 78, 128, 196], -4.0, 9.0)


def test_instance_norm():
    expected = [0, 42, 84, 126, 168, 210, 252, 3, 45, 87, 129, 171, 213, 255, 7, 49]
    found = tf.raw_ops.QuantizedInstanceNorm(x=as_type(IMAGE, tf.quint8), x_min=-1.0, x_max=3.0)
    check(found, expected, -1.3463753, 1.6382005)


def test_batch_norm():
    t = as_type((np.arange(8) * 37 % 256).astype(np.uint8).reshape(1, 2, 2, 2), tf.quint8)
    vector = as_type(np.array([10, 250], np.uint8), tf.quint8)
    found = tf.raw_ops.QuantizedBatchNormWithGlobalNormalization(
        t=t, t_min=-1.0, t_max=3.0, m=vector, m_min=-1.0, m_max=1.0, v=vector, v_min=0.0,
        v_max=2.0, beta=vector, beta_min=-1.0, beta_max=1.0, gamma=vector, gamma_min=0.0,
        gamma_max=3.0, variance_epsilon=0.01, scale_after_normalization=True, out_type=tf.qint32,
    )  # fmt: skip
    expected = [-1949, -3980, -1010, 999, -69, 5980, 871, -6270]
    check(found, expected, -(2.0**20), 2.0**20)


def test_a_frozen_graph():
    text = zlib.decompress(base64.b64decode("".join(FROZEN)))
    tf.import_graph_def(tf.GraphDef.FromString(text), name="")
    x = ((np.arange(50).reshape(1, 5, 5, 2) * 7) % 23 / 8.0 - 0.5).astype(np.float32)
    (out,) = run(["out:0"], {"x:0": x})
    expected = {
        3: 0.85497046, 7: 1.3499532, 8: 1.304955, 9: 3.914864, 13: 3.329885, 14: 0.17999363,
        17: 3.599875, 18: 0.35998774, 19: 3.7798686, 23: 1.5299468, 24: 4.769835, 27: 3.6898723,
        28: 0.53998137, 29: 4.0498595, 33: 3.329885, 35: 0.22499228, 37: 4.0498595, 39: 2.3399186,
        43: 3.5098786, 45: 2.3849177, 49: 2.9248986,
    }  # fmt: skip
    whole = np.zeros(50, np.float32)
    whole[list(expected)] = list(expected.values())
    np.testing.assert_allclose(out.reshape(-1), whole, rtol=1e-6)


def test_quantized_constants_survive_a_graph_def(graph):
    found = tf.nn.quantized_conv2d(
        tf.placeholder(tf.quint8, [1, 4, 4, 1], name="x"), as_type(KERNEL, tf.quint8), -1.0, 3.0,
        -2.0, 1.0, [1, 1, 1, 1], "VALID",
    )  # fmt: skip
    name, wire = found.output.name, graph.as_graph_def().SerializeToString()
    with tf.Graph().as_default():
        tf.import_graph_def(tf.GraphDef.FromString(wire), name="")
        (out,) = run([name], {"x:0": IMAGE})
    assert out.reshape(-1).tolist() == [
        -13245, -25973, 3027, -11677, -24405, -44813, -27005, 1995, 19,
    ]  # fmt: skip


def test_static_shapes():
    x = tf.placeholder(tf.quint8, [None, 8, 9, 3])
    kernel = tf.placeholder(tf.quint8, [3, 3, 3, 5])
    found = tf.nn.quantized_conv2d(x, kernel, 0.0, 1.0, 0.0, 1.0, [1, 2, 2, 1], "SAME")
    assert found.output.shape.as_list() == [None, 4, 5, 5] and found.output.dtype == tf.qint32
    pooled = tf.nn.quantized_max_pool(x, 0.0, 1.0, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    assert pooled.output.shape.as_list() == [None, 4, 4, 3]
    with pytest.raises(ValueError, match="is not a multiple of input depth of filter"):
        tf.nn.quantized_conv2d(
            x, tf.placeholder(tf.quint8, [3, 3, 5, 3]), 0.0, 1.0, 0.0, 1.0, [1, 1, 1, 1], "SAME"
        )
