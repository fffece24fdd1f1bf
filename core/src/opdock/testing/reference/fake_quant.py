"""Oracles of training for quantization."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]


# ---------------------------------------------------------------- FakeQuantWithMinMax*
def _grid(attrs: Any, low: float, high: float) -> tuple[float, float, float]:
    """The range moved so that an integer stands for 0: its ends, and its step."""
    least, most = int(attrs["narrow_range"]), (1 << attrs["num_bits"]) - 1
    step = (high - low) / (most - least)
    zero = min(max(math.floor(least - low / step + 0.5), least), most)
    return (least - zero) * step, (most - zero) * step, step


def _rounded(attrs: Any, x: float, low: float, high: float) -> float:
    if low == high == 0:
        return 0.0
    start, end, step = _grid(attrs, low, high)
    return math.floor(min(max(x, start), end) / step + 0.5) * step


@reference("FakeQuantWithMinMaxArgs")
def args(attrs: Any, x: Array) -> Any:
    """Number by number, onto the grid of a fixed range."""
    return np.vectorize(lambda v: _rounded(attrs, v, attrs["min"], attrs["max"]), otypes="d")(x)


@reference("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def variables(attrs: Any, x: Array, low: Array, high: Array) -> Any:
    """Number by number; ends that are vectors go along the channels."""
    return np.vectorize(lambda *v: _rounded(attrs, *v), otypes="d")(x, low, high)


def _parts(attrs: Any, grads: Array, x: Array, low: Any, high: Any) -> tuple[Array, Array, Array]:
    """The gradients of numbers inside of the range, below and above."""
    inside, below, above = (np.zeros(x.shape) for _ in range(3))
    lows, highs = np.broadcast_to(low, x.shape), np.broadcast_to(high, x.shape)
    for at in np.ndindex(x.shape):
        if lows[at] == highs[at] == 0:
            inside[at] = grads[at]
            continue
        start, end, _ = _grid(attrs, float(lows[at]), float(highs[at]))
        where = below if x[at] < start else above if x[at] > end else inside
        where[at] = grads[at]
    return inside, below, above


@reference("FakeQuantWithMinMaxArgsGradient")
def args_gradient(attrs: Any, grads: Array, x: Array) -> Array:
    """The gradient of numbers inside of the range."""
    return _parts(attrs, grads, x, attrs["min"], attrs["max"])[0]


@reference("FakeQuantWithMinMaxVarsGradient")
def vars_gradient(attrs: Any, grads: Array, x: Array, low: Array, high: Array) -> Any:
    """The same, and the sums for the ends."""
    inside, below, above = _parts(attrs, grads, x, low, high)
    return inside, below.sum(), above.sum()


@reference("FakeQuantWithMinMaxVarsPerChannelGradient")
def per_channel_gradient(attrs: Any, grads: Array, x: Array, low: Array, high: Array) -> Any:
    """The same, the sums a channel."""
    inside, below, above = _parts(attrs, grads, x, low, high)
    axes = tuple(range(x.ndim - 1))
    return inside, below.sum(axis=axes), above.sum(axis=axes)


# ---------------------------------------------------------------- QuantizeAndDequantize*
def _scaled(attrs: Any, bits: int, x: Array, low: float, high: float) -> Any:
    """Multiples of the step that the wider side of the range asks for."""
    if attrs["signed_input"]:
        least, most = -(2 ** (bits - 1)) + bool(attrs.get("narrow_range")), 2 ** (bits - 1) - 1
    else:
        least, most = 0, 2**bits - 1
    steps = [end / limit for end, limit in ((low, least), (high, most)) if end * limit > 0]
    if not steps:
        return np.zeros(x.shape)
    step = max(steps)
    if attrs["range_given"]:
        x = np.clip(x, least * step, most * step)
    if attrs.get("round_mode") == "HALF_UP":
        return np.floor(x / step + 0.5) * step
    return np.rint(x / step) * step


def _by_axis(attrs: Any, bits: int, x: Array, low: Array, high: Array) -> Any:
    axis = attrs.get("axis", -1)
    if x.size == 0:
        return x
    if axis == -1:
        ends = (low, high) if attrs["range_given"] else (x.min(), x.max())
        return _scaled(attrs, bits, x, float(ends[0]), float(ends[1]))
    parts = np.moveaxis(x, axis, 0)
    out = [
        _by_axis({**attrs, "axis": -1}, bits, part, low[i], high[i]) for i, part in enumerate(parts)
    ]
    return np.moveaxis(np.array(out), 0, axis)


@reference("QuantizeAndDequantize")
def quantize_and_dequantize(attrs: Any, x: Array) -> Any:
    """By a range among the attributes."""
    low, high = np.array(attrs["input_min"]), np.array(attrs["input_max"])
    return _by_axis(attrs, attrs["num_bits"], x, low, high)


@reference("QuantizeAndDequantizeV2")
def quantize_and_dequantize_v2(attrs: Any, x: Array, low: Array, high: Array) -> Any:
    """By a range that is an input."""
    return _by_axis(attrs, attrs["num_bits"], x, low, high)


@reference("QuantizeAndDequantizeV3")
def quantize_and_dequantize_v3(attrs: Any, x: Array, low: Array, high: Array, bits: Array) -> Any:
    """The integers' width an input too."""
    return _by_axis(attrs, int(bits), x, low, high)
