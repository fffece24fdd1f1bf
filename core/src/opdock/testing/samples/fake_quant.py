"""Samples of training for quantization."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

F = np.float32
_BITS: tuple[dict[str, Any], ...] = (
    {"num_bits": 8, "narrow_range": False},
    {"num_bits": 4, "narrow_range": True},
    {"num_bits": 16, "narrow_range": False},
    {"num_bits": 2, "narrow_range": True},
)
_ENDS = ((-6.0, 6.0), (-1.0, 2.5), (0.0, 3.0))


def _scalars(*values: float) -> list[Any]:
    return [np.array(v, F) for v in values]


def _ranges() -> Iterable[tuple[dict[str, Any], float, float, str]]:
    """Every width with every range."""
    for attrs in _BITS:
        for low, high in _ENDS:
            tag = f"{attrs['num_bits']}{'n' if attrs['narrow_range'] else ''}[{low:g},{high:g}]"
            yield attrs, low, high, tag


# The gradient passes straight through, which no difference quotient shows: grad=False.
@samples("FakeQuantWithMinMaxArgs")
def fixed(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Numbers in and around the range."""
    for attrs, low, high, tag in _ranges():
        x = rng.normal((3, 5), 3.0)
        yield Sample([x], {**attrs, "min": low, "max": high}, tag, grad=False)
    attrs = {**_BITS[0], "min": -1.0, "max": 1.0}
    yield Sample([rng.normal((0, 2))], attrs, "empty", grad=False)
    yield Sample([rng.normal(())], attrs, "scalar", grad=False)


@samples("FakeQuantWithMinMaxArgsGradient")
def fixed_gradient(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same numbers, with gradients."""
    for attrs, low, high, tag in _ranges():
        inputs = [rng.normal((3, 5)), rng.normal((3, 5), 3.0)]
        yield Sample(inputs, {**attrs, "min": low, "max": high}, tag)


@error_samples("FakeQuantWithMinMaxArgs")
def fixed_errors() -> Iterable[ErrorSample]:
    """A range without extent, a width that is too great."""
    x = np.zeros(3, F)
    yield ErrorSample([x], {"min": 1.0, "max": 1.0}, match="min has to be smaller than max")
    yield ErrorSample([x], {"num_bits": 17}, match="num_bits must be between 2 and 16")


@samples("FakeQuantWithMinMaxVars")
def variable(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The range an input; from 0 to 0 nothing is left."""
    for attrs, low, high, tag in _ranges():
        yield Sample([rng.normal((3, 5), 3.0), *_scalars(low, high)], attrs, tag, grad=False)
    yield Sample([rng.normal((4,)), *_scalars(0, 0)], _BITS[0], "nothing", grad=False)


@samples("FakeQuantWithMinMaxVarsGradient")
def variable_gradient(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Sums for numbers below and above."""
    for attrs, low, high, tag in _ranges():
        inputs = [rng.normal((3, 5)), rng.normal((3, 5), 3.0), *_scalars(low, high)]
        yield Sample(inputs, attrs, tag)
    yield Sample([rng.normal((4,)), rng.normal((4,)), *_scalars(0, 0)], _BITS[0], "nothing")


_LOWS, _HIGHS = np.array([-1, 0, -6, 0], F), np.array([1, 3, 2.5, 0], F)


@samples("FakeQuantWithMinMaxVarsPerChannel")
def channels(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Vectors, matrices and images."""
    for attrs, shape in zip(_BITS, ((4,), (3, 4), (2, 2, 3, 4), (0, 4)), strict=True):
        yield Sample([rng.normal(shape, 3.0), _LOWS, _HIGHS], attrs, f"{shape}", grad=False)


@samples("FakeQuantWithMinMaxVarsPerChannelGradient")
def channels_gradient(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Sums a channel."""
    for attrs, shape in zip(_BITS, ((4,), (3, 4), (2, 2, 3, 4), (0, 4)), strict=True):
        yield Sample([rng.normal(shape), rng.normal(shape, 3.0), _LOWS, _HIGHS], attrs, f"{shape}")


@error_samples("FakeQuantWithMinMaxVarsPerChannel")
def channels_errors() -> Iterable[ErrorSample]:
    """Ends for another number of channels."""
    inputs = [np.zeros((2, 3), F), np.zeros(4, F), np.ones(4, F)]
    yield ErrorSample(inputs, {}, match="min has incorrect size, expected 3")
    yield ErrorSample(inputs, {}, "ValueError", "Dimensions must be equal", "build")


# ---------------------------------------------------------------- QuantizeAndDequantize*
_HOW: tuple[tuple[dict[str, Any], str], ...] = (
    ({"signed_input": True, "range_given": True}, "signed"),
    ({"signed_input": False, "range_given": True}, "unsigned"),
    ({"signed_input": True, "range_given": False}, "own"),
    ({"signed_input": False, "range_given": False}, "unsigned-own"),
)
# Numbers in the middle between two steps may round either way in half precision.
_COARSE = {"num_bits": 4}


@samples("QuantizeAndDequantize")
def by_attributes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Given ranges and the numbers' own."""
    for how, tag in _HOW:
        attrs = {**how, **_COARSE, "input_min": -1.5, "input_max": 1.0}
        yield Sample([rng.normal((3, 5))], attrs, tag, grad=False)


@samples("QuantizeAndDequantizeV2")
def by_inputs(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Both ways to round, both ranges of integers, an axis."""
    rest = {**_COARSE, "round_mode": "HALF_TO_EVEN", "narrow_range": False, "axis": -1}
    # Half of `low` is in the middle between two steps; none of the numbers drawn is that.
    low, high = np.array(-1.375, dtype), np.array(1.0, dtype)
    for how, tag in _HOW:
        inputs = [rng.normal((3, 5)), low, high]
        yield Sample(inputs, {**rest, **how}, tag, grad=False)
        up = {**rest, **how, "round_mode": "HALF_UP", "narrow_range": True}
        yield Sample(inputs, up, f"{tag}-up", grad=False)
        lows, highs = np.array([-1, -2, -0.5], dtype), np.array([1, 0.5, 2], dtype)
        inputs = [rng.normal((2, 3, 4)), lows, highs]
        yield Sample(inputs, {**rest, **how, "axis": 1}, f"{tag}-axis", grad=False)
    yield Sample([rng.normal((0, 2)), low, high], {**rest, **_HOW[2][0]}, "empty", grad=False)
    zeros = [np.zeros((2, 2), dtype), low, high]
    yield Sample(zeros, {**rest, **_HOW[2][0]}, "zeros", grad=False)


@error_samples("QuantizeAndDequantizeV2")
def by_inputs_errors() -> Iterable[ErrorSample]:
    """A range the wrong way round, and too many bits."""
    inputs = [np.zeros(3, F), *_scalars(1, 0)]
    yield ErrorSample(inputs, {"range_given": True}, match="Invalid range: input_min 1 > input_max")
    inputs = [np.zeros(3, F), *_scalars(0, 1)]
    yield ErrorSample(inputs, {"num_bits": 64}, match="num_bits is out of range: 64")


@samples("QuantizeAndDequantizeV3")
def by_width(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The width an input."""
    low, high = np.array(-1.5, dtype), np.array(1.0, dtype)
    for how, tag in _HOW:
        for bits in (3, 4):
            inputs = [rng.normal((3, 5)), low, high, np.array(bits, np.int32)]
            attrs = {**how, "narrow_range": False, "axis": -1}
            yield Sample(inputs, attrs, f"{tag}{bits}", grad=False)
