"""Oracles of the layers of quantized networks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._quantized import F, clamp, each, integer, integer32, number
from opdock.testing.reference._registry import reference
from opdock.testing.reference.quantized import product_range, wrap, zero

Array = npt.NDArray[Any]


def _places(size: int, window: int, stride: int, padding: str) -> list[int]:
    """Where windows begin, in a convolution that centres them."""
    count = -(-size // stride) if padding == "SAME" else (size - window) // stride + 1
    rest = (count - 1) * stride + window - size + (padding == "VALID")
    before = math.trunc(rest / 2)
    return [i * stride - before for i in range(count)]


@reference("QuantizedConv2D")
def conv2d(
    attrs: Any, x: Array, kernel: Array, low: Array, high: Array, kernel_low: Array,
    kernel_high: Array,
) -> Any:  # fmt: skip
    """Products of distances from the zeros, added up over each window."""
    types, ends = (attrs["Tinput"], attrs["Tfilter"]), ((low, high), (kernel_low, kernel_high))
    images, taps = x - zero(*ends[0], types[0]), kernel - zero(*ends[1], types[1])
    rows, columns = (
        _places(x.shape[i + 1], kernel.shape[i], attrs["strides"][i + 1], attrs["padding"])
        for i in (0, 1)
    )
    out = np.zeros((x.shape[0], len(rows), len(columns), kernel.shape[3]), np.int64)
    for i, j in np.ndindex(len(rows), len(columns)):
        for u, v in np.ndindex(*kernel.shape[:2]):
            row, column = rows[i] + u, columns[j] + v
            if 0 <= row < x.shape[1] and 0 <= column < x.shape[2]:
                out[:, i, j] += images[:, row, column] @ taps[u, v]
    return wrap(out), *product_range(types, ends)


def _activation(attrs: Any, x: Array, most: Any, low: Array, high: Array) -> Any:
    ends = float(low.reshape(())), float(high.reshape(()))
    dtype = attrs["Tinput"]
    out = np.maximum(x, clamp(integer(0.0, *ends, dtype), dtype))
    if most is not None:
        out = np.minimum(out, clamp(integer(float(most), *ends, dtype), dtype))
    return out, *ends


@reference("QuantizedRelu")
def relu(attrs: Any, x: Array, low: Array, high: Array) -> Any:
    """Not below the integer of 0."""
    return _activation(attrs, x, None, low, high)


@reference("QuantizedRelu6")
def relu6(attrs: Any, x: Array, low: Array, high: Array) -> Any:
    """Between the integers of 0 and 6."""
    return _activation(attrs, x, 6.0, low, high)


@reference("QuantizedReluX")
def relu_x(attrs: Any, x: Array, most: Array, low: Array, high: Array) -> Any:
    """Between the integers of 0 and the limit."""
    return _activation(attrs, x, most.reshape(()), low, high)


def _windows(attrs: Any, x: Array) -> list[list[Array]]:
    """The part of the images that each window sees."""
    spans = []
    for axis in (1, 2):
        size, window, stride = x.shape[axis], attrs["ksize"][axis], attrs["strides"][axis]
        if attrs["padding"] == "VALID":
            spans.append([slice(i, i + window) for i in range(0, size - window + 1, stride)])
            continue
        count = -(-size // stride)
        before = max(0, (count - 1) * stride + window - size) // 2
        starts = [i * stride - before for i in range(count)]
        spans.append([slice(max(0, s), s + window) for s in starts])
    return [[x[:, rows, columns] for columns in spans[1]] for rows in spans[0]]


def _pooled(attrs: Any, x: Array, reduce: Any, low: Array, high: Array) -> Any:
    rows = [[reduce(part) for part in row] for row in _windows(attrs, x)]
    out = np.moveaxis(np.array(rows, np.int64), 2, 0)
    return out, low.reshape(()), high.reshape(())


@reference("QuantizedMaxPool")
def max_pool(attrs: Any, x: Array, low: Array, high: Array) -> Any:
    """The greatest integer of each window."""
    return _pooled(attrs, x, lambda part: part.max(axis=(1, 2)), low, high)


@reference("QuantizedAvgPool")
def avg_pool(attrs: Any, x: Array, low: Array, high: Array) -> Any:
    """The mean of each window, its fraction cut off."""
    return _pooled(attrs, x, lambda part: np.trunc(part.mean(axis=(1, 2))), low, high)


@reference("QuantizedBatchNormWithGlobalNormalization")
def batch_norm(attrs: Any, *args: Array) -> Any:
    """Factor and summand of each channel as 32-bit integers, over a range of 2**20."""
    dtype, spread = attrs["Tinput"], float(2**20)

    def numbers(i: int) -> Array:
        ends = float(args[i + 1]), float(args[i + 2])
        flat = [number(q, *ends, dtype) for q in args[i].reshape(-1).tolist()]
        return np.array(flat, np.float32).reshape(args[i].shape)

    def wide(values: Array) -> Any:
        return each(lambda v: clamp(integer(v, -spread, spread, np.int32), np.int32), values)

    x, mean, variance, beta, gamma = (numbers(i) for i in range(0, 15, 3))
    scale = F(1) / np.sqrt(variance + F(attrs["variance_epsilon"]))
    if attrs["scale_after_normalization"]:
        scale = scale * gamma
    one = integer(1.0, -spread, spread, np.int32)
    product = wrap(wide(x) * wide(scale))
    # Integers divide towards 0.
    out = np.sign(product) * (abs(product) // one) + wide(-mean * scale + beta)
    return wrap(out), -spread, spread


@reference("QuantizedInstanceNorm")
def instance_norm(attrs: Any, x: Array, low: Array, high: Array) -> Any:
    """Each image's channels with mean 0 and variance 1, quantized."""
    step = float(F(high) - F(low)) / 255
    centred = (x - x.mean(axis=(1, 2), keepdims=True)) * step
    variance = (centred**2).mean(axis=(1, 2), keepdims=True)
    normal = centred / np.sqrt(variance + attrs["variance_epsilon"])
    start, end = float(normal.min()), float(normal.max())
    if attrs["output_range_given"]:
        start, end = attrs["given_y_min"], attrs["given_y_max"]
    end = max(end, start + attrs["min_separation"])
    flat = [integer32(v, start, end, np.uint8) for v in normal.reshape(-1).tolist()]
    return np.array(flat).reshape(x.shape), start, end
