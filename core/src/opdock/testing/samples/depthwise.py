"""Samples of depthwise convolution."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

Case = tuple[tuple[int, ...], tuple[int, ...], dict[str, Any], tuple[int, ...], str]


def _attrs(strides: Any, padding: str, data_format: str = "NHWC", dilations: Any = (1, 1)) -> Any:
    first = data_format == "NCHW"
    return {
        "strides": [1, 1, *strides] if first else [1, *strides, 1],
        "dilations": [1, 1, *dilations] if first else [1, *dilations, 1],
        "padding": padding, "data_format": data_format,
    }  # fmt: skip


def _cases() -> Iterator[Case]:
    """(input shape, filter shape, attributes, output shape, tag)."""
    yield (1, 4, 5, 2), (3, 2, 2, 2), _attrs((1, 1), "SAME"), (1, 4, 5, 4), "same"
    yield (2, 5, 5, 3), (2, 3, 3, 1), _attrs((2, 2), "VALID"), (2, 2, 2, 3), "valid"
    yield (1, 6, 5, 2), (3, 3, 2, 1), _attrs((3, 3), "SAME"), (1, 2, 2, 2), "stride"
    dilated = _attrs((1, 1), "SAME", dilations=(2, 2))
    yield (1, 5, 6, 1), (2, 2, 1, 3), dilated, (1, 5, 6, 3), "dilated"
    yield (1, 2, 4, 4), (3, 3, 2, 2), _attrs((1, 1), "SAME", "NCHW"), (1, 4, 4, 4), "first"
    yield (2, 3, 5, 4), (2, 2, 3, 1), _attrs((2, 2), "VALID", "NCHW"), (2, 3, 2, 2), "first-valid"
    yield (0, 4, 4, 2), (3, 3, 2, 1), _attrs((1, 1), "SAME"), (0, 4, 4, 2), "empty"


@samples("DepthwiseConv2dNative")
def depthwise(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Multipliers of 1 and more, every padding, stride and format."""
    for data, kernel, attrs, _, tag in _cases():
        yield Sample([rng.uniform(data), rng.uniform(kernel)], attrs, tag, 0 not in data)


@samples("DepthwiseConv2dNativeBackpropInput")
def depthwise_backprop_input(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same geometries backwards."""
    for data, kernel, attrs, out, tag in _cases():
        inputs = [np.array(data, np.int32), rng.uniform(kernel), rng.uniform(out)]
        yield Sample(inputs, attrs, tag, 0 not in data)


@samples("DepthwiseConv2dNativeBackpropFilter")
def depthwise_backprop_filter(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same geometries backwards."""
    for data, kernel, attrs, out, tag in _cases():
        inputs = [rng.uniform(data), np.array(kernel, np.int32), rng.uniform(out)]
        yield Sample(inputs, attrs, tag, 0 not in data)


@error_samples("DepthwiseConv2dNative")
def depthwise_errors() -> Iterable[ErrorSample]:
    """The filter has as many channels as the input."""
    yield ErrorSample(
        [np.zeros((1, 4, 4, 3), np.float32), np.zeros((2, 2, 2, 1), np.float32)],
        _attrs((1, 1), "SAME"), "ValueError", "Dimensions must be equal, but are 3 and 2", "build",
    )  # fmt: skip
