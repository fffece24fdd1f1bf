"""Oracles of arithmetic on quantized tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._quantized import (
    F,
    clamp,
    each,
    integer,
    integer32,
    limits,
    moved,
    number,
    number32,
)  # fmt: skip
from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
_INT32 = (-(2**31), 2**31 - 1)


def zero(low: Any, high: Any, dtype: Any) -> int:
    """The integer of a factor that stands for 0; signed factors are symmetric."""
    return 0 if limits(dtype)[0] else integer(0.0, float(low), float(high), dtype)


def wrap(sums: Array) -> Array:
    """Sums in 32 bits wrap around."""
    return (np.asarray(sums, np.int64) + 2**31) % 2**32 - 2**31


def product_range(dtypes: Any, ends: Any) -> tuple[float, float]:
    """The range of sums of products: the steps of both factors, multiplied."""
    step = F(1)
    for dtype, (low, high) in zip(dtypes, ends, strict=True):
        first, last = limits(dtype)
        step = step * ((F(high) - F(low)) / F(last - max(first, -last)))
    return float(step * F(_INT32[0])), float(step * F(_INT32[1]))


@reference("QuantizedMatMul")
def matmul(
    attrs: Any, a: Array, b: Array, min_a: Array, max_a: Array, min_b: Array, max_b: Array
) -> Any:
    """Products of distances from the zeros, added up."""
    types, ends = (attrs["T1"], attrs["T2"]), ((min_a, max_a), (min_b, max_b))
    left = (a.T if attrs["transpose_a"] else a) - zero(*ends[0], types[0])
    right = (b.T if attrs["transpose_b"] else b) - zero(*ends[1], types[1])
    return wrap(left @ right), *product_range(types, ends)


@reference("QuantizedMul")
def mul(
    attrs: Any, x: Array, y: Array, min_x: Array, max_x: Array, min_y: Array, max_y: Array
) -> Any:
    """Products of distances from the zeros."""
    types, ends = (attrs["T1"], attrs["T2"]), ((min_x, max_x), (min_y, max_y))
    out = (x - zero(*ends[0], types[0])) * (y - zero(*ends[1], types[1]))
    return wrap(out), *product_range(types, ends)


@reference("QuantizedAdd")
def add(
    attrs: Any, x: Array, y: Array, min_x: Array, max_x: Array, min_y: Array, max_y: Array
) -> Any:
    """Both in the range of the result: by multiples of one step, or a single number as it is."""
    biggest = max(abs(F(min(min_x, min_y))), abs(F(max(max_x, max_y))))
    spread = float(F(biggest) * F(2**14))

    def place(q: int, low: Array, high: Array) -> int:
        return integer(number(q, float(low), float(high), np.uint8), -spread, spread, np.int32)

    def summand(values: Array, low: Array, high: Array, single: bool) -> Any:
        if single:
            return each(lambda q: clamp(place(q, low, high), np.int32), values)
        start, step = place(0, low, high), place(1, low, high) - place(0, low, high)
        return each(lambda q: clamp(start + q * step, np.int32), values)

    alone = x.size == 1
    out = summand(x, min_x, max_x, alone) + summand(y, min_y, max_y, y.size == 1 and not alone)
    return wrap(out), -spread, spread


@reference("QuantizedBiasAdd")
def bias_add(
    attrs: Any, x: Array, bias: Array, low: Array, high: Array, bias_low: Array, bias_high: Array
) -> Any:
    """Both in a symmetric range, 2**17 times the larger."""
    spread = float(F(max(high, -low, bias_high, -bias_low)) * F(2**17))

    def place(values: Array, dtype: Any, low: Array, high: Array) -> Any:
        return each(
            lambda q: integer32(
                number32(q, float(low), float(high), dtype), -spread, spread, np.int32
            ),
            values,
        )

    shift = clamp(integer(0.0, -spread, spread, np.int32), np.int32)
    out = place(x, attrs["T1"], low, high) + place(bias, attrs["T2"], bias_low, bias_high) + shift
    return wrap(out), -spread, spread


@reference("QuantizedReshape")
def reshape(attrs: Any, tensor: Array, shape: Array, low: Array, high: Array) -> Any:
    """The same integers and the same range."""
    return tensor.reshape([int(d) for d in shape]), low.reshape(()), high.reshape(())


@reference("QuantizedConcat")
def concat(attrs: Any, axis: Array, values: Any, lows: Any, highs: Any) -> Any:
    """All in the range that holds all."""
    dtype = attrs["T"]
    low, high = min(0.0, *map(float, lows)), max(map(float, highs))
    if limits(dtype)[0]:
        high = max(abs(low), abs(high))
        low = -high
    parts = []
    for part, start, end in zip(values, lows, highs, strict=True):
        if (start, end) == (low, high):
            parts.append(part)
            continue
        source = (float(start), float(end), dtype)
        parts.append(each(lambda q, s=source: moved(q, s, (low, high, dtype)), part))
    return np.concatenate(parts, int(axis)), low, high
