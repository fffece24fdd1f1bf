"""Separable resampling: what each new line takes of the old ones, and arrays made of that.

A resize is the same sum of a few weighted lines along each of two axes, so its weights are found
once for an axis, on the host and in single precision as TF computes them, and its gradient is the
same sum with the weights turned round.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.kernels.array_api import device_ints

__all__ = ["SAMPLING", "Lines", "area", "bicubic", "bilinear", "nearest", "resampled", "spans"]

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

_ONE: Final = np.float32(1)
_HALF: Final = np.float32(0.5)
_TABLE: Final = 1 << 10
"""Steps in which bicubic weights are tabled: TF rounds positions to them."""
_TINY: Final = 1000 * np.finfo(np.float32).tiny
"""Weights that add up to less are not normalized."""
_CACHED: Final = 64
"""Sizes whose weights are kept."""


@dataclass(frozen=True, eq=False)
class Lines:
    """What each line of a result is made of.

    Attributes:
        index: int64 [taps, lines], which old line.
        weight: float32 [taps, lines]; None where each new line is one old one.
        lerp: whether the two taps are `a + (b - a) * weight[1]`, as TF rounds it.
    """

    index: Ints
    weight: Floats | None
    lerp: bool = False

    def turned(self, count: int) -> Lines:
        """For each of `count` old lines the new ones that it is in: the gradient's lines."""
        return _turned(self, count)


@functools.lru_cache(maxsize=_CACHED)
def _turned(lines: Lines, count: int) -> Lines:
    taps, length = lines.index.shape
    old = lines.index.reshape(-1)
    new = np.tile(np.arange(length), taps)
    weight = np.ones(old.size, np.float32) if lines.weight is None else lines.weight.reshape(-1)
    used = weight != 0
    old, new, weight = old[used], new[used], weight[used]
    order = np.lexsort((new, old))
    old, new, weight = old[order], new[order], weight[order]
    sizes = np.bincount(old, minlength=count)
    place = np.arange(old.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    depth = max(int(sizes.max(initial=0)), 1)
    index = np.zeros((depth, count), np.int64)
    index[place, old] = new
    weights = np.zeros((depth, count), np.float32)
    weights[place, old] = weight
    return Lines(index, weights)


# ---------------------------------------------------------------- arrays
def resampled(xp: Any, x: Any, axis: int, lines: Lines) -> Any:
    """`x` with new lines along an axis, in its own type."""
    needed = np.unique(lines.index)
    index = lines.index
    if 2 * needed.size <= x.shape[axis]:
        # Most lines are in no sum: what follows need not see them.
        x = xp.take(x, device_ints(xp, needed, x), axis=axis)
        index = np.searchsorted(needed, index)
    taken = (xp.take(x, device_ints(xp, row, x), axis=axis) for row in index)
    if lines.weight is None:
        return next(taken)
    shape = [1] * len(x.shape)
    shape[axis] = index.shape[1]
    device = getattr(x, "device", None)
    weights = (
        xp.reshape(xp.asarray(row, dtype=x.dtype, device=device), tuple(shape))
        for row in lines.weight
    )
    if lines.lerp:
        low, high = taken
        next(weights)
        return low + (high - low) * next(weights)
    total = None
    for line, weight in zip(taken, weights, strict=True):
        part = line * weight
        total = part if total is None else total + part
    return total


# ---------------------------------------------------------------- positions
def _positions(old: int, new: int, align: bool, half: bool) -> tuple[Floats, np.float32]:
    """Where the centre of each new line lies among the old ones, and their distance."""
    if align and new > 1:
        scale = np.float32(old - 1) / np.float32(new - 1)
    else:
        scale = np.float32(old) / np.float32(new)
    at = np.arange(new, dtype=np.float32)
    return ((at + _HALF) * scale - _HALF if half else at * scale), scale


@functools.lru_cache(maxsize=_CACHED)
def nearest(old: int, new: int, align: bool, half: bool) -> Lines:
    """One old line each: the nearest below, or where corners are aligned the nearest."""
    at, scale = _positions(old, new, align, False)
    if half:
        at = (np.arange(new, dtype=np.float32) + _HALF) * scale
    # Halves away from zero, as C rounds; the positions are not negative.
    at = np.floor(at + _HALF) if align else np.floor(at)
    return Lines(np.clip(at.astype(np.int64), 0, old - 1)[None], None)


@functools.lru_cache(maxsize=_CACHED)
def bilinear(old: int, new: int, align: bool, half: bool) -> Lines:
    """The two old lines around each new one."""
    at, _ = _positions(old, new, align, half)
    floor = np.floor(at)
    low = np.clip(floor.astype(np.int64), 0, old - 1)
    high = np.clip(np.ceil(at).astype(np.int64), 0, old - 1)
    part = at - floor
    return Lines(np.stack([low, high]), np.stack([_ONE - part, part]), lerp=True)


@functools.cache
def _cubic_table(a: float) -> tuple[Floats, Floats]:
    """The cubic convolution kernel between 0 and 1 and between 1 and 2."""
    x = np.arange(_TABLE + 1, dtype=np.float32) / np.float32(_TABLE)
    f = np.float32(a)
    near = ((f + np.float32(2)) * x - (f + np.float32(3))) * x * x + _ONE
    x = x + _ONE
    far = ((f * x - np.float32(5) * f) * x + np.float32(8) * f) * x - np.float32(4) * f
    return near, far


@functools.lru_cache(maxsize=_CACHED)
def bicubic(old: int, new: int, align: bool, half: bool) -> Lines:
    """The four old lines around each new one.

    With half pixel centres the kernel is that of Keys and lines beyond the edge count for nothing;
    else it is sharper and the edge is repeated.
    """
    at, _ = _positions(old, new, align, half)
    floor = np.floor(at)
    step = np.rint((at - floor) * np.float32(_TABLE)).astype(np.int64)
    near, far = _cubic_table(-0.5 if half else -0.75)
    weight = np.stack([far[step], near[step], near[_TABLE - step], far[_TABLE - step]])
    wanted = floor.astype(np.int64) + np.arange(-1, 3)[:, None]
    index = np.clip(wanted, 0, old - 1)
    if half:
        weight = np.where(index == wanted, weight, np.float32(0))
        weight = _normalized(weight)
    return Lines(index, weight)


def _normalized(weight: Floats) -> Floats:
    total = weight.sum(axis=0, dtype=np.float32)
    safe = np.abs(total) >= _TINY
    return np.where(safe, weight * (_ONE / np.where(safe, total, _ONE)), weight)


@functools.lru_cache(maxsize=_CACHED)
def area(old: int, new: int, align: bool) -> Lines:
    """All old lines that a new one covers, by the part that it covers of each."""
    start, scale = _positions(old, new, align, False)
    if scale == 0:  # lines without an extent have no mean
        return Lines(np.zeros((1, new), np.int64), np.full((1, new), np.nan, np.float32))
    end = np.arange(1, new + 1, dtype=np.float32) * scale
    first = np.floor(start).astype(np.int64)
    last = np.ceil(end).astype(np.int64)
    wanted = first + np.arange(int((last - first).max()))[:, None]
    low, high = wanted.astype(np.float32), (wanted + 1).astype(np.float32)
    covered = np.where(
        low < start,
        np.where(high > end, scale, high - start),
        np.where(high > end, end - low, _ONE),
    )
    weight = np.where(wanted < last, covered, np.float32(0)) * (_ONE / scale)
    return Lines(np.clip(wanted, 0, old - 1), weight.astype(np.float32))


# ---------------------------------------------------------------- sampling kernels
def _lanczos(radius: int) -> Callable[[Floats], Floats]:
    def kernel(x: Floats) -> Floats:
        pi, r = np.float32(math.pi), np.float32(radius)
        safe = np.where(x <= 1e-3, _ONE, x)
        value = r * np.sin(pi * safe) * np.sin(pi * safe / r) / (pi * pi * safe * safe)
        return np.where(x > r, np.float32(0), np.where(x <= 1e-3, _ONE, value))

    return kernel


def _gaussian(x: Floats) -> Floats:
    return np.where(x >= 1.5, 0, np.exp(-x * x / np.float32(0.5))).astype(np.float32)


def _box(x: Floats) -> Floats:
    return np.where(x < 0.5, 1, np.where(x == 0.5, 0.5, 0)).astype(np.float32)


def _triangle(x: Floats) -> Floats:
    return np.where(x < 1, _ONE - x, np.float32(0))


def _cubic(near: tuple[float, ...], far: tuple[float, ...]) -> Callable[[Floats], Floats]:
    """A piecewise cubic by its coefficients below 1 and below 2, the highest first."""
    polynomials = [np.array(c, np.float32) for c in (near, far)]

    def kernel(x: Floats) -> Floats:
        inner, outer = (np.polyval(c, x) for c in polynomials)
        return np.where(x >= 2, 0, np.where(x >= 1, outer, inner)).astype(np.float32)

    return kernel


SAMPLING: Final[dict[str, tuple[float, Callable[[Floats], Floats]]]] = {
    "lanczos1": (1.0, _lanczos(1)),
    "lanczos3": (3.0, _lanczos(3)),
    "lanczos5": (5.0, _lanczos(5)),
    "gaussian": (1.5, _gaussian),
    "box": (1.0, _box),
    "triangle": (1.0, _triangle),
    "keyscubic": (2.0, _cubic((1.5, -2.5, 0, 1), (-0.5, 2.5, -4, 2))),
    "mitchellcubic": (2.0, _cubic((7 / 6, -2, 0, 8 / 9), (-7 / 18, 2, -10 / 3, 16 / 9))),
}
"""The sampling kernels by TF's names: a radius, and a function of the distance."""


@functools.lru_cache(maxsize=_CACHED)
def spans(
    old: int, new: int, scale: float, translation: float, kernel: str, antialias: bool
) -> Lines:
    """The old lines under a sampling kernel around each new one, none where it lies outside.

    Args:
        old: how many lines there are.
        new: how many there will be.
        scale: how far two neighbouring old lines come to lie from one another.
        translation: where old position 0 comes to lie.
        kernel: a name in `SAMPLING`.
        antialias: whether the kernel widens when lines come closer together.
    """
    radius, function = SAMPLING[kernel]
    inverse = _ONE / np.float32(scale)
    widened = max(inverse, _ONE) if antialias else _ONE
    reach = np.float32(radius) * widened
    at = (np.arange(new, dtype=np.float32) + _HALF) * inverse - inverse * np.float32(translation)
    inside = (at >= 0) & (at <= old)
    safe = np.where(inside, at, _HALF)
    first = np.clip(np.ceil(safe - reach - _HALF), 0, old - 1).astype(np.int64)
    last = np.clip(np.floor(safe + reach - _HALF), 0, old - 1).astype(np.int64)
    wanted = first + np.arange(int((last - first).max()) + 1)[:, None]
    distance = np.abs((wanted.astype(np.float32) + _HALF - safe) * (_ONE / widened))
    weight = np.where(wanted <= last, function(distance), np.float32(0))
    total = weight.sum(axis=0, dtype=np.float32)
    counts = inside & (np.abs(total) >= _TINY)
    weight = np.where(counts, weight / np.where(counts, total, _ONE), np.float32(0))
    return Lines(np.where(wanted <= last, wanted, first), weight.astype(np.float32))
