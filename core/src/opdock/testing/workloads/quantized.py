"""Inference in 8-bit integers beside the same shapes in float32: a product and a convolution."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from . import reference
from .spec import CHECKED, Program, Workload, random

HIGH = 6.0  # activations lie from 0 to this, as behind a relu6
REACH = 1.0  # weights lie from minus this to this


def matmul_data(rows: int, inner: int, columns: int) -> SimpleNamespace:
    """Two matrices."""
    return _data((rows, inner), (inner, columns))


def conv_data(batch: int, size: int, channels: int) -> SimpleNamespace:
    """Images and a 3x3 kernel with as many outputs as inputs."""
    return _data((batch, size, size, channels), (3, 3, channels, channels))


def _data(x: tuple[int, ...], w: tuple[int, ...]) -> SimpleNamespace:
    rng = random(61)
    return SimpleNamespace(
        x=rng.uniform(0, HIGH, x).astype(np.float32),
        w=rng.uniform(-REACH, REACH, w).astype(np.float32),
    )


def quantized(data: SimpleNamespace) -> tuple[np.ndarray, np.ndarray]:
    """Activations and weights as bytes; those of the weights have their zero at 128."""
    x = np.clip(np.rint(data.x * (255 / HIGH)), 0, 255)
    w = np.clip(np.rint(data.w * (255 / (2 * REACH))) + 128, 0, 255)
    return x.astype(np.uint8), w.astype(np.uint8)


def _centred(data: SimpleNamespace) -> list[np.ndarray]:
    x, w = quantized(data)
    return [x.astype(np.float64), w.astype(np.float64) - 128]


# ---------------------------------------------------------------- products
def matmul_program(tf: Any, data: SimpleNamespace) -> Program:
    """A fed matrix times a constant one."""
    x = tf.placeholder(tf.float32, data.x.shape)
    return Program([tf.matmul(x, tf.constant(data.w))], [{x: data.x}])


def matmul_answer(data: SimpleNamespace) -> list[Any]:
    """The same in NumPy."""
    x, w = reference.double([data.x, data.w])
    return [[x @ w]] * CHECKED


def _int8_program(tf: Any, data: SimpleNamespace, layer: Any) -> Program:
    """`layer` over fed and constant bytes; its sums."""
    bytes_x, bytes_w = quantized(data)
    x = tf.placeholder(tf.uint8, bytes_x.shape)
    w = tf.bitcast(tf.constant(bytes_w), tf.quint8)
    sums = layer(tf.bitcast(x, tf.quint8), w, 0.0, HIGH, -REACH, REACH)[0]
    return Program([tf.bitcast(sums, tf.int32)], [{x: bytes_x}])


def matmul_int8_program(tf: Any, data: SimpleNamespace) -> Program:
    """The product in 8-bit integers, added up in 32 bits."""

    def layer(a: Any, b: Any, *ends: float) -> Any:
        names = ("min_a", "max_a", "min_b", "max_b")
        return tf.raw_ops.QuantizedMatMul(a=a, b=b, Toutput=tf.qint32, **dict(zip(names, ends)))

    return _int8_program(tf, data, layer)


def matmul_int8_answer(data: SimpleNamespace) -> list[Any]:
    """The same in NumPy."""
    x, w = _centred(data)
    return [[x @ w]] * CHECKED


# ---------------------------------------------------------------- convolutions
def conv_program(tf: Any, data: SimpleNamespace) -> Program:
    """Fed images and a constant kernel."""
    x = tf.placeholder(tf.float32, data.x.shape)
    return Program([tf.nn.conv2d(x, tf.constant(data.w), [1, 1, 1, 1], "SAME")], [{x: data.x}])


def conv_answer(data: SimpleNamespace) -> list[Any]:
    """The same in NumPy."""
    x, w = reference.double([data.x, data.w])
    return [[reference.conv(x, w)]] * CHECKED


def conv_int8_program(tf: Any, data: SimpleNamespace) -> Program:
    """The convolution in 8-bit integers, added up in 32 bits."""

    def layer(x: Any, w: Any, *ends: float) -> Any:
        return tf.nn.quantized_conv2d(x, w, *ends, [1, 1, 1, 1], "SAME")

    return _int8_program(tf, data, layer)


def conv_int8_answer(data: SimpleNamespace) -> list[Any]:
    """The same in NumPy."""
    x, w = _centred(data)
    return [[reference.conv(x, w)]] * CHECKED


_PRODUCT = {"rows": 512, "inner": 1024, "columns": 1024}
_SMALL = {"rows": 3, "inner": 11, "columns": 5}
_CONV = {"batch": 4, "size": 56, "channels": 64}
_TINY = {"batch": 1, "size": 5, "channels": 3}

WORKLOADS = (
    Workload(
        "matmul_float", "a {rows}x{inner} by {inner}x{columns} product in float32",
        _PRODUCT, _SMALL, matmul_data, matmul_program, matmul_answer,
    ),
    Workload(
        "matmul_int8", "the same product in 8-bit integers",
        _PRODUCT, _SMALL, matmul_data, matmul_int8_program, matmul_int8_answer,
    ),
    Workload(
        "conv_float",
        "a 3x3 convolution of {batch} images of {size}x{size}, {channels} channels, in float32",
        _CONV, _TINY, conv_data, conv_program, conv_answer,
    ),
    Workload(
        "conv_int8", "the same convolution in 8-bit integers",
        _CONV, _TINY, conv_data, conv_int8_program, conv_int8_answer,
    ),
)  # fmt: skip
