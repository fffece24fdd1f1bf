"""Depthwise convolution kernels: loops, or a multiply-add a window element over all channels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, windows
from opdock_cpu import depthwise_loops as loops
from opdock_cpu.halves import narrowed, widened
from opdock_cpu.kernels.conv import Geometry
from opdock_cpu.windows import pad, unpad

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()

_BLOCK_BYTES = 512 << 10


def _split(grad: Array, channels: int, multiplier: int) -> Array:
    """Output channels as (input channel, multiple)."""
    return np.ascontiguousarray(grad).reshape(*grad.shape[:-1], channels, multiplier)


def _batches(x: Array) -> Iterator[slice]:
    """Blocks of batch entries small enough to stay in cache over all window elements."""
    entry = max(x[0].nbytes, 1) if x.shape[0] else 1
    step = max(1, _BLOCK_BYTES // entry)
    for start in range(0, x.shape[0], step):
        yield slice(start, start + step)


@table.binder("DepthwiseConv2dNative")
def depthwise(sig: NodeSig) -> Callable[..., Array]:
    """Each input channel under its own filters."""
    geometry = Geometry(sig.attrs)

    def run(x: Array, kernel: Array) -> Array:
        data, taps = np.ascontiguousarray(geometry.last(x)), widened(kernel)
        channels, multiplier = taps.shape[2:]
        windows.check_depth(data.shape[-1], channels)
        where = geometry.window(data.shape[1:-1], taps.shape[:2])
        found = loops.forward(data, taps, where)
        if found is not None:
            return geometry.finish(found, x.dtype)
        padded = pad(data, where)
        single = multiplier == 1
        shape = (data.shape[0], *where.out, channels, *([] if single else [multiplier]))
        out = np.empty(shape, data.dtype)
        for entries in _batches(out):
            total = out[entries]
            part = np.empty_like(total)
            total[...] = 0
            for offset, here in where.taps():
                seen = padded[(entries, *here)]
                if single:
                    np.multiply(seen, taps[offset][:, 0], out=part)
                else:
                    np.multiply(seen[..., None], taps[offset], out=part)
                total += part
        flat = out.reshape(*out.shape[:3], channels * multiplier)
        return geometry.finish(flat, x.dtype)

    return run


@table.binder("DepthwiseConv2dNativeBackpropInput", host_inputs=("input_sizes",))
def depthwise_backprop_input(sig: NodeSig) -> Callable[..., Array]:
    """The gradient with respect to the input."""
    geometry = Geometry(sig.attrs)

    def run(input_sizes: Array, kernel: Array, grad: Array) -> Array:
        batch, size, channels = geometry.parts(input_sizes.tolist())
        taps, back = widened(kernel), geometry.last(grad)
        windows.check_depth(channels, taps.shape[2])
        where = geometry.window(size, taps.shape[:2])
        geometry.check_grad(grad, batch, where, channels * taps.shape[3])
        found = loops.backward_data(back, taps, where)
        if found is not None:
            return geometry.finish(found, grad.dtype)
        split = _split(back, channels, taps.shape[3])
        padded = np.zeros((back.shape[0], *where.padded, channels), back.dtype)
        for entries in _batches(back):
            for offset, here in where.taps():
                if taps.shape[3] == 1:
                    spread = split[entries, ..., 0] * taps[offset][:, 0]
                else:
                    spread = np.einsum("nhwcm,cm->nhwc", split[entries], taps[offset])
                padded[(entries, *here)] += spread
        return geometry.finish(unpad(padded, where), grad.dtype)

    return run


@table.binder("DepthwiseConv2dNativeBackpropFilter", host_inputs=("filter_sizes",))
def depthwise_backprop_filter(sig: NodeSig) -> Callable[..., Array]:
    """The gradient with respect to the filter."""
    geometry = Geometry(sig.attrs)

    def run(x: Array, filter_sizes: Array, grad: Array) -> Array:
        shape = tuple(filter_sizes.tolist())
        data, back = np.ascontiguousarray(geometry.last(x)), geometry.last(grad)
        windows.check_depth(data.shape[-1], shape[2])
        where = geometry.window(data.shape[1:-1], shape[:2])
        geometry.check_grad(grad, data.shape[0], where, shape[2] * shape[3])
        if data.dtype == np.float64:  # long sums, which NumPy divides into several
            found = loops.backward_filter(data, back, where, *shape[2:])
            if found is not None:
                return found
        split = _split(back, shape[2], shape[3])
        padded = pad(data, where)
        out = np.empty(shape, data.dtype)
        for offset, here in where.taps():
            out[offset] = np.einsum("nhwc,nhwcm->cm", padded[(slice(None), *here)], split)
        return narrowed(out, x.dtype)

    return run
