"""Samples of convolution."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

Case = tuple[tuple[int, ...], tuple[int, ...], dict[str, Any], str]


def _attrs(
    strides: Sequence[int] = (1, 1), padding: str = "SAME", dilations: Sequence[int] = (1, 1),
    data_format: str = "NHWC", explicit: Sequence[int] = (),
) -> dict[str, Any]:  # fmt: skip
    first = data_format.startswith("NC")

    def full(values: Sequence[int]) -> list[int]:
        return [1, 1, *values] if first else [1, *values, 1]

    found: dict[str, Any] = {
        "strides": full(strides), "padding": padding, "dilations": full(dilations),
        "data_format": data_format,
    }  # fmt: skip
    if explicit:
        found["explicit_paddings"] = [0] * 4 + list(explicit) if first else [0, 0, *explicit, 0, 0]
    return found


def cases_2d() -> Iterator[Case]:
    """(input shape, filter shape, attributes, tag)."""
    yield (1, 5, 6, 2), (3, 2, 2, 3), _attrs(), "same"
    yield (2, 5, 4, 2), (3, 3, 2, 2), _attrs(padding="VALID"), "valid"
    yield (2, 6, 5, 2), (3, 3, 2, 3), _attrs((2, 2)), "stride"
    yield (1, 7, 6, 1), (2, 3, 1, 2), _attrs((3, 2), "VALID"), "stride-valid"
    yield (1, 7, 7, 2), (3, 2, 2, 2), _attrs(dilations=(2, 3)), "dilated"
    yield (1, 7, 6, 1), (3, 2, 1, 2), _attrs(padding="VALID", dilations=(2, 1)), "dilated-valid"
    yield (2, 3, 4, 3), (1, 1, 3, 2), _attrs(), "pointwise"
    yield (1, 5, 5, 2), (1, 1, 2, 2), _attrs((2, 2)), "pointwise-stride"
    yield (1, 5, 5, 4), (3, 3, 2, 6), _attrs(), "grouped"
    yield (1, 2, 2, 1), (4, 5, 1, 1), _attrs(), "wide-window"
    yield (1, 4, 4, 2), (3, 3, 2, 2), _attrs((2, 1), "EXPLICIT", explicit=(2, 0, 1, 3)), "explicit"
    yield (2, 2, 5, 4), (3, 2, 2, 3), _attrs(data_format="NCHW"), "first"
    yield (
        (1, 2, 6, 5), (3, 3, 2, 2),
        _attrs((2, 1), "EXPLICIT", data_format="NCHW", explicit=(1, 1, 0, 2)), "first-explicit",
    )  # fmt: skip
    yield (1, 4, 5, 5), (3, 3, 2, 2), _attrs((2, 2), "VALID", data_format="NCHW"), "first-grouped"
    yield (0, 4, 4, 2), (3, 3, 2, 2), _attrs(), "empty"
    yield (2, 0, 4, 2), (3, 3, 2, 2), _attrs(), "empty-space"
    yield (1, 4, 4, 0), (3, 2, 0, 2), _attrs((2, 1)), "no-inputs"
    yield (1, 4, 4, 2), (3, 3, 2, 0), _attrs(), "no-outputs"


def cases_3d() -> Iterator[Case]:
    """As `cases_2d`, for volumes."""
    one = (1, 1, 1)
    for strides, padding, fmt, tag in (
        (one, "SAME", "NDHWC", "same"), ((2, 1, 2), "VALID", "NDHWC", "valid"),
        ((1, 2, 1), "SAME", "NCDHW", "first"),
    ):  # fmt: skip
        shape = (1, 3, 4, 3, 2) if fmt == "NDHWC" else (1, 2, 3, 4, 3)
        yield shape, (2, 3, 2, 2, 2), _attrs(strides, padding, one, fmt), tag
    yield (1, 4, 3, 5, 1), (2, 1, 2, 1, 2), _attrs(one, "SAME", (2, 1, 2), "NDHWC"), "dilated"
    yield (1, 2, 2, 2, 2), (1, 1, 1, 2, 3), _attrs(one, "SAME", one, "NDHWC"), "pointwise"
    yield (0, 3, 3, 3, 1), (2, 2, 2, 1, 1), _attrs(one, "SAME", one, "NDHWC"), "empty"
    yield (1, 3, 3, 3, 0), (2, 2, 2, 0, 1), _attrs(one, "SAME", one, "NDHWC"), "no-inputs"
    yield (1, 3, 3, 3, 1), (2, 2, 2, 1, 0), _attrs(one, "SAME", one, "NDHWC"), "no-outputs"


def out_shape(data: Sequence[int], kernel: Sequence[int], attrs: dict[str, Any]) -> tuple[int, ...]:
    """The shape of the convolution's output."""
    first = attrs.get("data_format", "NDHWC").startswith("NC")
    axes = range(2, len(data)) if first else range(1, len(data) - 1)
    flat = attrs.get("explicit_paddings") or [0] * (2 * len(data))
    sizes = []
    for i, a in enumerate(axes):
        reach = (kernel[i] - 1) * attrs["dilations"][a] + 1
        if attrs["padding"] == "SAME":
            sizes.append(-(-data[a] // attrs["strides"][a]))
        else:
            room = data[a] + flat[2 * a] + flat[2 * a + 1] - reach
            sizes.append(room // attrs["strides"][a] + 1)
    channels = kernel[-1]
    return (data[0], channels, *sizes) if first else (data[0], *sizes, channels)


def _forward(cases: Iterable[Case], rng: Sampler) -> Iterable[Sample]:
    for data, kernel, attrs, tag in cases:
        inputs = [rng.uniform(data), rng.uniform(kernel)]
        yield Sample(inputs, attrs, tag, grad=0 not in data)


def _data(cases: Iterable[Case], rng: Sampler) -> Iterable[Sample]:
    for data, kernel, attrs, tag in cases:
        grad = rng.uniform(out_shape(data, kernel, attrs))
        inputs = [np.array(data, np.int32), rng.uniform(kernel), grad]
        yield Sample(inputs, attrs, tag, 0 not in data)


def _filter(cases: Iterable[Case], rng: Sampler) -> Iterable[Sample]:
    for data, kernel, attrs, tag in cases:
        grad = rng.uniform(out_shape(data, kernel, attrs))
        inputs = [rng.uniform(data), np.array(kernel, np.int32), grad]
        yield Sample(inputs, attrs, tag, 0 not in data)


@samples("Conv2D")
def conv2d(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Every padding, stride, dilation, format and grouping."""
    yield from _forward(cases_2d(), rng)


@samples("Conv2DBackpropInput")
def conv2d_backprop_input(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same geometries backwards."""
    yield from _data(cases_2d(), rng)


@samples("Conv2DBackpropFilter")
def conv2d_backprop_filter(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same geometries backwards."""
    yield from _filter(cases_2d(), rng)


@samples("Conv3D")
def conv3d(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Volumes."""
    yield from _forward(cases_3d(), rng)


@samples("Conv3DBackpropInputV2")
def conv3d_backprop_input(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Volumes backwards."""
    yield from _data(cases_3d(), rng)


@samples("Conv3DBackpropFilterV2")
def conv3d_backprop_filter(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Volumes backwards."""
    yield from _filter(cases_3d(), rng)


@samples("Conv3DBackpropInput", "Conv3DBackpropFilter")
def conv3d_backprop_v1(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The first versions know one data format and take tensors for their shapes."""
    for data, kernel, attrs, tag in cases_3d():
        if attrs["data_format"] == "NDHWC":
            grad = rng.uniform(out_shape(data, kernel, attrs))
            old = {k: v for k, v in attrs.items() if k != "data_format"}
            yield Sample([rng.uniform(data), rng.uniform(kernel), grad], old, tag, 0 not in data)


@error_samples("Conv2D")
def conv2d_errors() -> Iterable[ErrorSample]:
    """Channels, ranks and windows that do not fit."""

    def build(data: Any, kernel: Any, match: str, tag: str, **attrs: Any) -> ErrorSample:
        inputs = [np.zeros(data, np.float32), np.zeros(kernel, np.float32)]
        return ErrorSample(inputs, _attrs(**attrs), "ValueError", match, "build", tag)

    yield build((1, 4, 4, 3), (2, 2, 2, 5), r"Depth of input \(3\) is not a multiple", "channels")
    yield build((4, 4, 3), (2, 2, 3, 5), "Shape must be rank 4 but is rank 3", "rank")
    yield build(
        (1, 2, 4, 3), (3, 2, 3, 5), "Negative dimension size caused by subtracting 3 from 2",
        "window", padding="VALID",
    )  # fmt: skip
    yield build((1, 4, 4, 4), (2, 2, 2, 3), r"not a multiple of the number of groups", "groups")
    yield build((1, 4, 4, 2), (2, 2, 2, 3), "Stride must be > 0", "stride", strides=(0, 1))
    inputs = [np.zeros((1, 2, 4, 3), np.float32), np.zeros((3, 2, 3, 5), np.float32)]
    yield ErrorSample(inputs, _attrs(padding="VALID"), match="negative", tag="window-run")


@error_samples("Conv2DBackpropInput")
def conv2d_backprop_errors() -> Iterable[ErrorSample]:
    """An output gradient that does not belong to the input's shape."""
    inputs = [np.array([1, 4, 4, 2], np.int32), np.zeros((2, 2, 2, 3), np.float32),
              np.zeros((1, 3, 4, 3), np.float32)]  # fmt: skip
    yield ErrorSample(inputs, _attrs(), match="out_backprop", tag="grad-shape")
