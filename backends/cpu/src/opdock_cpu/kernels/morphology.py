"""Dilation2D kernels: a maximum over window elements, and its first-wins gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig
from opdock_cpu.windows import Window, narrow, pad, unpad, widen

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()


def _lowest(dtype: np.dtype[Any]) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def _window(sig: NodeSig) -> Callable[[Array, Array], Window]:
    strides, rates = sig.attrs["strides"][1:3], sig.attrs["rates"][1:3]
    padding = sig.attrs["padding"]
    return lambda x, kernel: Window.make(x.shape[1:3], kernel.shape[:2], strides, rates, padding)


def _inside(x: Array, where: Window) -> Array:
    """True where the padded input is input: padding never wins, whatever the filter adds."""
    return pad(np.ones((1, *x.shape[1:3], 1), np.bool_), where, False)


def _winners(x: Array, kernel: Array, where: Window) -> tuple[Array, Array]:
    """The maxima, and the row-major number of the (first) window element that gave each."""
    padded, inside = pad(x, where), _inside(x, where)
    best = np.full((x.shape[0], *where.out, x.shape[3]), _lowest(x.dtype), x.dtype)
    which = np.full(best.shape, -1, np.int32)
    for number, offset in enumerate(where.offsets()):
        here = (slice(None), *where.slices(offset))
        value = padded[here] + kernel[offset]
        better = inside[here] & ((value > best) | (which < 0))
        np.copyto(best, value, where=better)
        which[better] = number
    return best, which


@table.binder("Dilation2D")
def dilation2d(sig: NodeSig) -> Callable[..., Array]:
    """The maximum over the window of input plus filter."""
    window = _window(sig)

    def run(x: Array, kernel: Array) -> Array:
        data, taps = widen(x), widen(kernel)
        best, _ = _winners(data, taps, window(data, taps))
        return narrow(best, x.dtype)

    return run


@table.binder("Dilation2DBackpropInput")
def dilation2d_backprop_input(sig: NodeSig) -> Callable[..., Array]:
    """The gradient goes to the input element that won."""
    window = _window(sig)

    def run(x: Array, kernel: Array, grad: Array) -> Array:
        data, taps, back = widen(x), widen(kernel), widen(grad)
        where = window(data, taps)
        _, which = _winners(data, taps, where)
        padded = np.zeros((data.shape[0], *where.padded_size, data.shape[3]), data.dtype)
        for number, offset in enumerate(where.offsets()):
            padded[(slice(None), *where.slices(offset))] += np.where(which == number, back, 0)
        return narrow(unpad(padded, where), x.dtype)

    return run


@table.binder("Dilation2DBackpropFilter")
def dilation2d_backprop_filter(sig: NodeSig) -> Callable[..., Array]:
    """The gradient goes to the filter element that won."""
    window = _window(sig)

    def run(x: Array, kernel: Array, grad: Array) -> Array:
        data, taps, back = widen(x), widen(kernel), widen(grad)
        _, which = _winners(data, taps, window(data, taps))
        out = np.zeros(taps.shape, taps.dtype)
        for number, offset in enumerate(window(data, taps).offsets()):
            out[offset] = np.where(which == number, back, 0).sum(axis=(0, 1, 2), dtype=taps.dtype)
        return narrow(out, kernel.dtype)

    return run
