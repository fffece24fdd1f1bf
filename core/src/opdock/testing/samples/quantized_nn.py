"""Samples of the layers of quantized networks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples
from opdock.testing.samples.quantize import integers
from opdock.testing.samples.quantized import ENDS, of_type, scalars

_INT32 = dtypes.qint32.np
_BYTES = (dtypes.quint8,)
_ACTIVATIONS = (dtypes.quint8, dtypes.qint32)


def _conv(stride: int, padding: str) -> dict[str, Any]:
    return {
        "out_type": _INT32, "strides": [1, stride, stride, 1], "padding": padding,
        "dilations": [1, 1, 1, 1],
    }  # fmt: skip


@samples("QuantizedConv2D", vary="Tinput", types=_BYTES)
def conv2d(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Both types of weights, strides beyond the window; small and large enough for more."""
    for weights in (dtypes.quint8, dtypes.qint8):
        for ends in ENDS:
            for padding in ("SAME", "VALID"):
                x, kernel = integers(rng, dtype, (1, 5, 6, 2)), of_type(weights, (3, 2, 2, 3))
                tag = f"{weights.name}-{padding}{ends}"
                yield Sample([x, kernel, *scalars(*ends)], _conv(1, padding), tag)
                x, kernel = integers(rng, dtype, (4, 7, 8, 32)), of_type(weights, (3, 3, 32, 24))
                inputs = [x, kernel, *scalars(*ends)]
                yield Sample(inputs, _conv(2, padding), f"large-{tag}")
        for padding in ("SAME", "VALID"):
            x, kernel = integers(rng, dtype, (1, 8, 13, 1)), of_type(weights, (2, 2, 1, 2))
            inputs, tag = [x, kernel, *scalars(*ENDS[0])], f"{weights.name}-{padding}-sparse"
            yield Sample(inputs, _conv(4, padding), tag)


@error_samples("QuantizedConv2D")
def conv2d_errors() -> Iterable[ErrorSample]:
    """Depths and attributes that TF does not take."""
    x, kernel = np.zeros((1, 5, 5, 2), dtypes.quint8.np), np.zeros((3, 3, 2, 1), dtypes.quint8.np)
    ends, attrs = scalars(0, 1, 0, 1), _conv(1, "SAME")
    other = np.zeros((3, 3, 1, 1), dtypes.quint8.np)
    yield ErrorSample([x, other, *ends], attrs, match="must have the same depth: 2 vs 1")
    for key, value, match in (
        ("strides", [1, 1, 2, 1], "equal length strides"),
        ("strides", [1, 1, 1, 2], "batch and depth"),
        ("dilations", [1, 2, 2, 1], "dilated rate as 1"),
    ):
        yield ErrorSample([x, kernel, *ends], {**attrs, key: value}, match=match)


@samples("QuantizedRelu", "QuantizedRelu6", vary="Tinput", types=_ACTIVATIONS)
def relu(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Ranges with 0 inside, at an end and outside."""
    attrs = {"out_type": (dtypes.qint32 if dtype.itemsize == 4 else dtypes.quint8).np}
    for low, high in ((-2.0, 9.0), (0.0, 3.0), (1.0, 2.0), (-3.0, -1.0), (0.0, 0.0)):
        x = integers(rng, dtype, (3, 5))
        yield Sample([x, *scalars(low, high)], attrs, f"[{low:g},{high:g}]")
    yield Sample([integers(rng, dtype, (0, 2)), *scalars(-1, 1)], attrs, "empty")


@samples("QuantizedReluX", vary="Tinput", types=_ACTIVATIONS)
def relu_x(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Limits inside of the range and beyond."""
    attrs = {"out_type": (dtypes.qint32 if dtype.itemsize == 4 else dtypes.quint8).np}
    for most in (1.5, 40.0):
        x = integers(rng, dtype, (3, 5))
        yield Sample([x, *scalars(most, -2, 9)], attrs, f"{most:g}")


@samples("QuantizedMaxPool", "QuantizedAvgPool", types=[dtypes.quint8, dtypes.qint8])
def pool(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Windows that overlap, and that meet."""
    for padding in ("SAME", "VALID"):
        for size, stride in ((2, 2), (3, 2), (2, 1)):
            attrs = {
                "ksize": [1, size, size, 1], "strides": [1, stride, stride, 1], "padding": padding,
            }  # fmt: skip
            x = integers(rng, dtype, (2, 5, 6, 3))
            yield Sample([x, *scalars(-1, 2)], attrs, f"{padding}{size}/{stride}")


@samples("QuantizedBatchNormWithGlobalNormalization", vary="Tinput", types=_BYTES)
def batch_norm(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """With and without a scale after."""
    ends = ((-1, 1), (-2, 3), (0, 4), (-1, 1), (-2, 2))
    for scaled in (True, False):
        inputs: list[Any] = []
        for i, (low, high) in enumerate(ends):
            shape = (2, 3, 2, 5) if i == 0 else (5,)
            values = integers(rng, dtype, shape)
            inputs += [np.roll(values.reshape(-1), i).reshape(shape), *scalars(low, high)]
        attrs = {
            "out_type": _INT32, "variance_epsilon": 0.001, "scale_after_normalization": scaled,
        }  # fmt: skip
        yield Sample(inputs, attrs, f"scaled={scaled}")


@samples("QuantizedInstanceNorm", types=_BYTES)
def instance_norm(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Its own range, a given one, and images of one color."""
    attrs: dict[str, Any] = {
        "output_range_given": False, "given_y_min": 0.0, "given_y_max": 0.0,
        "variance_epsilon": 1e-5, "min_separation": 1e-3,
    }  # fmt: skip
    x = integers(rng, dtype, (2, 4, 5, 3))
    yield Sample([x, *scalars(-1, 2)], attrs, "own")
    given = {**attrs, "output_range_given": True, "given_y_min": -1.5, "given_y_max": 1.25}
    yield Sample([x, *scalars(-1, 2)], given, "given")
    yield Sample([np.full((1, 2, 2, 3), 9, dtype), *scalars(0, 6)], attrs, "flat")


@error_samples("QuantizedInstanceNorm")
def instance_norm_errors() -> Iterable[ErrorSample]:
    """An empty range."""
    x = np.zeros((1, 2, 2, 3), dtypes.quint8.np)
    yield ErrorSample([x, *scalars(1, 1)], {}, match="input_min must be less than input_max")
