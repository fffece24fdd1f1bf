"""Oracle of depthwise convolution."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.testing.reference._registry import reference
from opdock.testing.reference._windows import Array, channels_last, conv_walk, restore


@reference("DepthwiseConv2dNative")
def depthwise(attrs: Any, x: Array, kernel: Array) -> Array:
    """Each channel under its own filters; output channel c * multiplier + m."""
    data = channels_last(x, attrs["data_format"])
    walk = conv_walk(attrs, data.shape[1:-1], kernel.shape[:2])
    out = np.zeros((data.shape[0], *walk.out, *kernel.shape[2:]))
    for to, at, tap in walk:
        out[(slice(None), *to)] += data[(slice(None), *at)][:, :, None] * kernel[tap]
    flat = out.reshape(*out.shape[:3], kernel.shape[2] * kernel.shape[3])
    return restore(flat, attrs["data_format"])


@reference("DepthwiseConv2dNativeBackpropInput")
def depthwise_backprop_input(attrs: Any, input_sizes: Array, kernel: Array, grad: Array) -> Array:
    """Gives each input element the output gradients it contributed to, times its filters."""
    data_format = attrs["data_format"]
    dx = channels_last(np.zeros([int(d) for d in input_sizes]), data_format)
    back = channels_last(grad, data_format)
    back = back.reshape(*back.shape[:3], *kernel.shape[2:])
    for to, at, tap in conv_walk(attrs, dx.shape[1:-1], kernel.shape[:2]):
        dx[(slice(None), *at)] += (back[(slice(None), *to)] * kernel[tap]).sum(axis=-1)
    return restore(dx, data_format)


@reference("DepthwiseConv2dNativeBackpropFilter")
def depthwise_backprop_filter(attrs: Any, x: Array, filter_sizes: Array, grad: Array) -> Array:
    """Adds up input times output gradient for each window element and channel."""
    shape = [int(d) for d in filter_sizes]
    data = channels_last(x, attrs["data_format"])
    back = channels_last(grad, attrs["data_format"])
    back = back.reshape(*back.shape[:3], *shape[2:])
    out = np.zeros(shape)
    for to, at, tap in conv_walk(attrs, data.shape[1:-1], shape[:2]):
        out[tap] += (data[(slice(None), *at)][:, :, None] * back[(slice(None), *to)]).sum(axis=0)
    return out
