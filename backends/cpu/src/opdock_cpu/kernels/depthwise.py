"""Depthwise convolution kernels: one multiply-add a window element, over all channels at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, errors
from opdock_cpu.kernels.conv import Geometry
from opdock_cpu.windows import Window, narrow, pad, unpad, widen

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()


def _split(grad: Array, channels: int, multiplier: int) -> Array:
    """Output channels as (input channel, multiple)."""
    return np.ascontiguousarray(grad).reshape(*grad.shape[:-1], channels, multiplier)


def _check(grad: Array, batch: int, where: Window, outputs: int) -> None:
    expected = (batch, *where.out, outputs)
    if grad.shape != expected:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"out_backprop has shape {list(grad.shape)} (channels last), expected {list(expected)} "
            "from the input, the filter, strides and padding",
        )


@table.binder("DepthwiseConv2dNative")
def depthwise(sig: NodeSig) -> Callable[..., Array]:
    """Each input channel under its own filters."""
    geometry = Geometry(sig)

    def run(x: Array, kernel: Array) -> Array:
        data, taps = np.ascontiguousarray(geometry.last(x)), widen(kernel)
        channels, multiplier = taps.shape[2:]
        where = geometry(data.shape[1:-1], taps.shape[:2])
        padded = pad(data, where)
        out = np.zeros((data.shape[0], *where.out, channels, multiplier), data.dtype)
        part = np.empty_like(out)
        for offset in where.offsets():
            seen = padded[(slice(None), *where.slices(offset))]
            np.multiply(seen[..., None], taps[offset], out=part)
            out += part
        flat = out.reshape(*out.shape[:-2], channels * multiplier)
        return geometry.finish(flat, x.dtype)

    return run


@table.binder("DepthwiseConv2dNativeBackpropInput", host_inputs=("input_sizes",))
def depthwise_backprop_input(sig: NodeSig) -> Callable[..., Array]:
    """The gradient with respect to the input."""
    geometry = Geometry(sig)

    def run(input_sizes: Array, kernel: Array, grad: Array) -> Array:
        size, channels = geometry.sizes(input_sizes)
        taps = widen(kernel)
        where = geometry(size, taps.shape[:2])
        back = geometry.last(grad)
        _check(back, int(input_sizes[0]), where, channels * taps.shape[3])
        split = _split(back, channels, taps.shape[3])
        padded = np.zeros((back.shape[0], *where.padded_size, channels), back.dtype)
        for offset in where.offsets():
            spread = np.einsum("nhwcm,cm->nhwc", split, taps[offset])
            padded[(slice(None), *where.slices(offset))] += spread
        return geometry.finish(unpad(padded, where), grad.dtype)

    return run


@table.binder("DepthwiseConv2dNativeBackpropFilter", host_inputs=("filter_sizes",))
def depthwise_backprop_filter(sig: NodeSig) -> Callable[..., Array]:
    """The gradient with respect to the filter."""
    geometry = Geometry(sig)

    def run(x: Array, filter_sizes: Array, grad: Array) -> Array:
        shape = tuple(int(d) for d in filter_sizes)
        data, back = np.ascontiguousarray(geometry.last(x)), geometry.last(grad)
        where = geometry(data.shape[1:-1], shape[:2])
        _check(back, data.shape[0], where, shape[2] * shape[3])
        split = _split(back, shape[2], shape[3])
        padded = pad(data, where)
        out = np.empty(shape, data.dtype)
        for offset in where.offsets():
            seen = padded[(slice(None), *where.slices(offset))]
            out[offset] = np.einsum("nhwc,nhwcm->cm", seen, split)
        return narrow(out, x.dtype)

    return run
