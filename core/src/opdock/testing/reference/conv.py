"""Oracle of convolution: one product of channels per window position and element."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.testing.reference._registry import reference
from opdock.testing.reference._windows import Array, channels_last, conv_walk, restore


def _groups(channels: int, kernel: Array) -> list[tuple[slice, slice]]:
    """(input channels, output channels) of each group."""
    inner, outputs = kernel.shape[-2:]
    count = max(channels // max(inner, 1), 1)
    share = outputs // count
    return [
        (slice(g * inner, (g + 1) * inner), slice(g * share, (g + 1) * share)) for g in range(count)
    ]


@reference("Conv2D", "Conv3D")
def conv(attrs: Any, x: Array, kernel: Array) -> Array:
    """Adds up input times filter under each window position."""
    data = channels_last(x, attrs["data_format"])
    walk = conv_walk(attrs, data.shape[1:-1], kernel.shape[:-2])
    out = np.zeros((data.shape[0], *walk.out, kernel.shape[-1]))
    for to, at, tap in walk:
        for source, target in _groups(data.shape[-1], kernel):
            part = data[(slice(None), *at, source)] @ kernel[tap][:, target]
            out[(slice(None), *to, target)] += part
    return restore(out, attrs["data_format"])


def _backprop_input(attrs: Any, shape: list[int], kernel: Array, grad: Array) -> Array:
    data_format = attrs.get("data_format", "NDHWC")
    dx = channels_last(np.zeros(shape), data_format)
    back = channels_last(grad, data_format)
    for to, at, tap in conv_walk(attrs, dx.shape[1:-1], kernel.shape[:-2]):
        for source, target in _groups(dx.shape[-1], kernel):
            part = back[(slice(None), *to, target)] @ kernel[tap][:, target].T
            dx[(slice(None), *at, source)] += part
    return restore(dx, data_format)


def _backprop_filter(attrs: Any, x: Array, shape: list[int], grad: Array) -> Array:
    data_format = attrs.get("data_format", "NDHWC")
    data, back = channels_last(x, data_format), channels_last(grad, data_format)
    out = np.zeros(shape)
    for to, at, tap in conv_walk(attrs, data.shape[1:-1], shape[:-2]):
        for source, target in _groups(data.shape[-1], out):
            part = data[(slice(None), *at, source)].T @ back[(slice(None), *to, target)]
            out[tap][:, target] += part
    return out


@reference("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def conv_backprop_input(attrs: Any, input_sizes: Array, kernel: Array, grad: Array) -> Array:
    """Gives each input element the output gradients it contributed to, times the filter."""
    return _backprop_input(attrs, [int(d) for d in input_sizes], kernel, grad)


@reference("Conv2DBackpropFilter", "Conv3DBackpropFilterV2")
def conv_backprop_filter(attrs: Any, x: Array, filter_sizes: Array, grad: Array) -> Array:
    """Adds up input times output gradient for each window element."""
    return _backprop_filter(attrs, x, [int(d) for d in filter_sizes], grad)


@reference("Conv3DBackpropInput")
def conv3d_backprop_input_v1(attrs: Any, x: Array, kernel: Array, grad: Array) -> Array:
    """As version 2, with the input itself for its shape."""
    return _backprop_input(attrs, list(x.shape), kernel, grad)


@reference("Conv3DBackpropFilter")
def conv3d_backprop_filter_v1(attrs: Any, x: Array, kernel: Array, grad: Array) -> Array:
    """As version 2, with the filter itself for its shape."""
    return _backprop_filter(attrs, x, list(kernel.shape), grad)
