"""Samples of QuantizeV2, Dequantize and changes of range."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

F = np.float32
RANGES = ((-3.0, 3.0), (0.0, 6.0), (-1.0, 2.5), (1.0, 3.0))
"""Around 0, from 0, askew, and without 0."""

_LATER: dict[str, Any] = {"narrow_range": False, "axis": -1}
_ROUND = {"round_mode": "HALF_AWAY_FROM_ZERO", "ensure_minimum_range": 0.01}


def integers(rng: Sampler, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """Integers from all of a type, both ends among them where there is room."""
    info = np.iinfo(dtype)
    # What TF makes of the very highest of 32 bits depends on the mode.
    high = int(info.max) - (128 if dtype.itemsize == 4 else 0)
    made = Sampler(np.float64, f"{dtype.name}{shape}").uniform(shape, float(info.min), float(high))
    out = np.floor(made).astype(dtype)
    if out.size > 1:
        out.reshape(-1)[:2] = info.min, high
    return out


def _scalars(*values: float) -> list[Any]:
    return [np.array(v, F) for v in values]


@samples("QuantizeV2")
def quantize(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """All modes over ranges with and without 0, empty ones, and an axis."""
    numbers = Sampler(F, f"quantize/{dtype.name}")
    for low, high in RANGES:
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
            attrs = {**_LATER, **_ROUND, "mode": mode}
            x = numbers.normal((3, 5), 2.0)
            yield Sample([x, *_scalars(low, high)], attrs, f"{mode}[{low:g},{high:g}]")
    first = {**_LATER, **_ROUND, "mode": "MIN_FIRST"}
    scaled = {**_LATER, **_ROUND, "mode": "SCALED"}
    even = {**scaled, "round_mode": "HALF_TO_EVEN", "narrow_range": True}
    yield Sample([numbers.normal((9,), 2.0), *_scalars(-2, 3)], even, "even")
    halves = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], F)
    yield Sample([halves, *_scalars(-127, 127)], scaled, "halves")
    yield Sample([numbers.normal((4,)), *_scalars(0, 0)], first, "narrow")
    yield Sample([np.zeros((0, 3), F), *_scalars(-1, 1)], first, "empty")
    yield Sample([np.array(0.7, F), *_scalars(-1, 1)], scaled, "scalar")
    ends = np.array([-1, 0, -3], F), np.array([1, 6, 0.5], F)
    for mode in ("MIN_COMBINED", "SCALED"):
        attrs = {**_LATER, **_ROUND, "mode": mode, "axis": 1}
        yield Sample([numbers.normal((2, 3, 4), 2.0), *ends], attrs, f"{mode}-axis")


@error_samples("QuantizeV2")
def quantize_errors() -> Iterable[ErrorSample]:
    """Ranges the wrong way round, modes that do not go together."""
    x, attrs = np.zeros((2, 3), F), {**_LATER, **_ROUND, "T": dtypes.quint8.np}
    yield ErrorSample(
        [x, *_scalars(2, 1)], {**attrs, "mode": "SCALED"}, match="must be larger than input_min"
    )
    even = {**attrs, "mode": "MIN_FIRST", "round_mode": "HALF_TO_EVEN"}
    yield ErrorSample([x, *_scalars(0, 1)], even, match="only supported for mode 'SCALED'")
    axis, ends = {**attrs, "mode": "MIN_FIRST", "axis": 1}, [np.zeros(3, F), np.ones(3, F)]
    yield ErrorSample([x, *ends], axis, "UnimplementedError", match="MIN_FIRST mode is not")
    yield ErrorSample(
        [x, np.zeros(2, F), np.ones(3, F)], {**axis, "mode": "SCALED"}, "ValueError",
        match="Dimensions must be equal", phase="build",
    )  # fmt: skip


@samples("Dequantize")
def dequantize(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """All modes; both types of results where there are two."""
    float32, bfloat16 = np.dtype(F), dtypes.bfloat16.np
    for low, high in RANGES[:3]:
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
            attrs = {**_LATER, "mode": mode, "dtype": float32}
            x = integers(rng, dtype, (4, 5))
            yield Sample([x, *_scalars(low, high)], attrs, f"{mode}[{low:g},{high:g}]")
    combined = {**_LATER, "mode": "MIN_COMBINED", "dtype": float32}
    narrow = {**combined, "mode": "SCALED", "narrow_range": True}
    yield Sample([integers(rng, dtype, (7,)), *_scalars(-2, 3)], narrow, "narrow")
    yield Sample(
        [integers(rng, dtype, (7,)), *_scalars(-2, 3)], {**combined, "dtype": bfloat16}, "bfloat16"
    )
    yield Sample([integers(rng, dtype, (0, 2)), *_scalars(-1, 1)], combined, "empty")
    yield Sample([integers(rng, dtype, ()), *_scalars(-1, 1)], combined, "scalar")
    ends = np.array([-1, 0, -3], F), np.array([1, 6, 0.5], F)
    for mode in ("MIN_COMBINED", "SCALED"):
        attrs = {**combined, "mode": mode, "axis": 1}
        yield Sample([integers(rng, dtype, (2, 3, 2)), *ends], attrs, f"{mode}-axis")


# ---------------------------------------------------------------- other ranges
def _sums(shape: tuple[int, ...], reach: float) -> Any:
    """32-bit integers as sums of products are: few of what the type could hold."""
    return Sampler(np.int32, f"sums{shape}{reach}").integers(shape, int(-reach), int(reach))


_BIG = ((-2048.0, 2048.0), (-300.0, 1000.0), (0.0, 6.0))


@samples("RequantizationRange", vary="Tinput", types=[dtypes.qint32])
def requantization_range(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Integers that use little of their range, and none at all."""
    for low, high in _BIG:
        yield Sample([_sums((4, 5), 2**22), *_scalars(low, high)], {}, f"[{low:g},{high:g}]")
    yield Sample([_sums((0,), 9), *_scalars(-1, 1)], {}, "empty")
    yield Sample([_sums((), 2**30), *_scalars(-1, 1)], {}, "scalar")


@samples("QuantizeDownAndShrinkRange", vary="Tinput", types=[dtypes.qint32])
def quantize_down(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """As for RequantizationRange."""
    attrs = {"out_type": dtypes.quint8.np}
    for low, high in _BIG:
        x = _sums((4, 5), 2**26)
        yield Sample([x, *_scalars(low, high)], attrs, f"[{low:g},{high:g}]")
    yield Sample([_sums((2, 0), 9), *_scalars(-1, 1)], attrs, "empty")


@samples("Requantize", vary="Tinput", types=[dtypes.qint32])
def requantize(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Into both 8-bit types; ranges asked for that hold all, some or nothing."""
    for out_type in (dtypes.quint8, dtypes.qint8):
        attrs = {"out_type": out_type.np}
        for low, high in _BIG:
            for part in (1.0, 0.01):
                ends = _scalars(low, high, min(low, 0.0) * part, high * part)
                tag = f"{out_type.name}[{low:g},{high:g}]*{part:g}"
                yield Sample([_sums((3, 7), 2**25), *ends], attrs, tag)
        yield Sample([_sums((5,), 2**20), *_scalars(-1, 1, 0, 0)], attrs, f"{out_type.name}-none")
        yield Sample([_sums((0,), 9), *_scalars(-1, 1, -1, 1)], attrs, f"{out_type.name}-empty")


@error_samples("Requantize")
def requantize_errors() -> Iterable[ErrorSample]:
    """A range asked for that does not begin at or below 0."""
    x, attrs = np.zeros(3, dtypes.qint32.np), {"out_type": dtypes.quint8.np}
    yield ErrorSample(
        [x, *_scalars(-1, 1, 0.5, 1)], attrs, match="requested_output_min must be <= 0"
    )
    yield ErrorSample([x, *_scalars(-1, 1, -1, -2)], attrs, match="requested_output_max must be")
