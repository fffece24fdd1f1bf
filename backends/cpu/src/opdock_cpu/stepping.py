"""Numbers on a grid, by generated loops: the nearest ones, and the next one of an element type."""

from __future__ import annotations

import math
from math import isnan
from typing import Any, Final

import numpy as np

from opdock_cpu.jit.looped import Array, Looped, lower, nearest

__all__ = ["next_after", "on_grid"]

_MANY: Final = 1 << 12
"""Elements from which a call of generated code takes less than NumPy."""
_COST: Final = 2
"""Steps of an element."""
_BITS: Final = {"float32": np.int32, "float64": np.int64}


# ---------------------------------------------------------------- multiples
def _stepped(
    value: Any, factor: Any, inverse: Any, low: Any, high: Any, given: int, upwards: int
) -> Any:
    """A number as the nearest multiple of the inverse, brought between two ends if `given`."""
    if given > 0:
        value = min(value, high)
        value = max(value, low)
    scaled = value * factor
    whole = nearest(scaled)
    if upwards > 0:
        whole = lower(scaled + 0.5)
    return whole * inverse


def _on_one(
    begin: int, end: int, out: Array, x: Array, factor: Array, inverse: Array, low: Array,
    high: Array, given: int, upwards: int,
) -> None:  # fmt: skip
    for i in range(begin, end):
        out[i] = _stepped(x[i], factor[0], inverse[0], low[0], high[0], given, upwards)


def _on_many(
    begin: int, end: int, out: Array, x: Array, factor: Array, inverse: Array, low: Array,
    high: Array, grids: int, inner: int, given: int, upwards: int,
) -> None:  # fmt: skip
    """A turn is a row of elements of one of the grids, which take turns."""
    for r in range(begin, end):
        g = r % grids
        for i in range(r * inner, (r + 1) * inner):
            out[i] = _stepped(x[i], factor[g], inverse[g], low[g], high[g], given, upwards)


_ON_ONE: Final = Looped(_on_one, fixed=("given", "upwards"))
_ON_MANY: Final = Looped(_on_many, fixed=("given", "upwards"))


def on_grid(
    x: Array, factor: Array, inverse: Array, ends: tuple[Array, Array] | None, upwards: bool
) -> Array | None:
    """Each number as the nearest multiple of a step, as portable kernels ask it.

    Args:
        x: the numbers.
        factor: one over the step, of one element or with one for each entry of a dimension.
        inverse: the step.
        ends: between which numbers `x` is brought first.
        upwards: whether halves go up; else they go to the even multiple.

    Returns:
        None without code, or for few elements.
    """
    if x.size < _MANY or x.dtype.name not in _BITS:
        return None
    out = np.empty(x.shape, x.dtype)
    low, high = (factor, factor) if ends is None else ends
    grids = [np.ravel(a) for a in (factor, inverse, low, high)]
    how = int(ends is not None), int(upwards)
    if factor.size == 1:
        done = _ON_ONE(x.size, _COST * x.size, out, x, *grids, *how)
        return out if done else None
    axis = max(range(x.ndim), key=lambda i: factor.shape[i])
    inner = math.prod(x.shape[axis + 1 :])
    done = _ON_MANY(x.size // inner, _COST * x.size, out, x, *grids, factor.size, inner, *how)
    return out if done else None


# ---------------------------------------------------------------- the next number
def _next(
    begin: int, end: int, out: Array, x: Array, y: Array, x_bits: Array, y_bits: Array, x_step: int,
    y_step: int, least: int, nothing: int,
) -> None:  # fmt: skip
    """Bits, which are in the order of sizes: a step of a number is one of its bits.

    `least` are the bits of the sign, with or without which the smallest number is the next of zero,
    and `nothing` those of what is no number.
    """
    for i in range(begin, end):
        a, b = x[i * x_step], y[i * y_step]
        here, there = x_bits[i * x_step], y_bits[i * y_step]
        away = 1 if a < 0 else 0
        up = 1 if b > a else 0
        further, nearer = here + 1, here - 1
        found = nearer if away == up else further
        below = least + 1
        smallest = 1 if up > 0 else below
        found = smallest if a == 0 else found
        found = there if a == b else found
        found = nothing if isnan(a) else found
        out[i] = nothing if isnan(b) else found


_NEXT: Final = Looped(_next, fixed=("x_step", "y_step"))


def next_after(x: Any, y: Any, out: Array | None) -> Array | None:
    """The next numbers from `x` towards `y`; None without code, and for few numbers.

    Args:
        x, y: arrays of one shape, or one number.
        out: where the result goes.
    """
    x, y = np.asarray(x), np.asarray(y)
    shape = x.shape if y.size == 1 and x.ndim >= y.ndim else y.shape
    bits = _BITS.get(x.dtype.name)
    fits = all(a.shape == shape or a.size == 1 for a in (x, y))
    if bits is None or not fits or math.prod(shape) < _MANY:
        return None
    if out is not None and not out.flags.c_contiguous:
        return None
    out = np.empty(shape, x.dtype) if out is None else out
    given = [np.ascontiguousarray(a) for a in (x, y)]
    least, nothing = np.array([-0.0, np.nan], x.dtype).view(bits).tolist()
    steps = [int(a.size > 1) for a in given]
    numbers = *steps, least, nothing
    arrays = out.view(bits), *given, *(a.view(bits) for a in given)
    return out if _NEXT(out.size, _COST * out.size, *arrays, *numbers) else None
