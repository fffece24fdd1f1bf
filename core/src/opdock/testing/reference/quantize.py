"""Oracles of QuantizeV2, Dequantize and changes of range."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._quantized import F, away, integer32, limits, moved, number, number32
from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
_MOST = np.finfo(np.float32).max


def _widened(low: float, high: float, least: float) -> tuple[Any, Any]:
    """The range with 0 inside, at least so much wide."""
    start = min(F(0), F(low))
    apart = max(F(1), abs(F(low)), abs(F(high))) * F(least)
    return start, max(F(0), F(high), start + apart)


def _one(attrs: Any, x: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
    """One number and its range: the integer, and the range that it belongs to."""
    first, last = limits(attrs["T"])
    low, high = _widened(low, high, attrs["ensure_minimum_range"])
    if attrs["mode"] == "MIN_FIRST":
        return integer32(x, low, high, attrs["T"]), low, high
    if attrs["mode"] == "MIN_COMBINED":
        place = (min(max(F(x), low), high) - low) * F((last - first) / float(high - low))
        if first == 0:
            return int(place + F(0.5)), low, high
        return away(place - F((last - first + 1) // 2)), low, high
    first += bool(attrs["narrow_range"])
    below = F(first) / low if first * low > 0 else _MOST
    above = F(last) / high if last * high > 0 else _MOST
    scale = min(below, above)
    low, high = F(first) / scale, F(last) / scale
    place = min(max(F(x), low), high) * scale
    even = attrs["round_mode"] == "HALF_TO_EVEN"
    return round(float(place)) if even else away(place), low, high


@reference("QuantizeV2")
def quantize(attrs: Any, x: Array, low: Array, high: Array) -> Any:
    """Number by number, by the range of its place along the axis."""
    axis, dtype = attrs["axis"], attrs["T"]
    out = np.zeros(x.shape, np.int64)
    lows, highs = np.array(low, np.float64), np.array(high, np.float64)
    for at in np.ndindex(x.shape):
        end = () if axis == -1 else (at[axis],)
        out[at], lows[end], highs[end] = _one(attrs, x[at], low[end], high[end])
    if x.size == 0:
        for end in np.ndindex(low.shape):
            _, lows[end], highs[end] = _one(attrs, 0.0, low[end], high[end])
    # What does not fit into 32 bits becomes the lowest integer, as processors have it.
    if dtype == np.int32:
        out = np.where(out > limits(dtype)[1], limits(dtype)[0], out)
    return out, lows, highs


@reference("Dequantize")
def dequantize(attrs: Any, x: Array, low: Array, high: Array) -> Array:
    """Integer by integer."""
    axis, dtype, mode = attrs["axis"], attrs["T"], attrs["mode"]
    first, last = limits(dtype)
    out = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        end = () if axis == -1 else (at[axis],)
        start, stop, q = float(low[end]), float(high[end]), int(x[at])
        if mode == "MIN_FIRST":
            out[at] = number32(q, start, stop, dtype)
        elif mode == "MIN_COMBINED":
            out[at] = (q - first) * (stop - start) / (last - first) + start
        else:
            step = stop / last
            if first:
                step = max(start / (first + bool(attrs["narrow_range"])), step)
            out[at] = q * step
    return out


# ---------------------------------------------------------------- other ranges
def _used(dtype: Any, x: Array, low: Array, high: Array) -> tuple[float, float]:
    first, last = limits(dtype)
    ends = float(low.reshape(())), float(high.reshape(()))
    return (
        min(0.0, number(int(x.min(initial=last)), *ends, dtype)),
        number(int(x.max(initial=first)), *ends, dtype),
    )


@reference("RequantizationRange")
def requantization_range(attrs: Any, x: Array, low: Array, high: Array) -> Any:
    """What the least and the greatest integer stand for."""
    return _used(attrs["Tinput"], x, low, high)


def _moved(attrs: Any, x: Array, source: Any, target: Any) -> Any:
    out = [
        moved(q, (*source, attrs["Tinput"]), (*target, attrs["out_type"]))
        for q in x.reshape(-1).tolist()
    ]
    return np.array(out, np.int64).reshape(x.shape), *target


@reference("Requantize")
def requantize(
    attrs: Any, x: Array, low: Array, high: Array, new_low: Array, new_high: Array
) -> Any:
    """Integer by integer, into the range asked for."""
    return _moved(attrs, x, (low[()], high[()]), (new_low[()], new_high[()]))


@reference("QuantizeDownAndShrinkRange")
def quantize_down(attrs: Any, x: Array, low: Array, high: Array) -> Any:
    """Integer by integer, into the range that is used."""
    return _moved(attrs, x, (low[()], high[()]), _used(attrs["Tinput"], x, low, high))
