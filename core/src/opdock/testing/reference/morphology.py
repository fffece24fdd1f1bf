"""Oracle of grayscale dilation."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.testing.reference._registry import reference
from opdock.testing.reference._windows import Array, Index, Walk


def _walk(attrs: Any, x: Array, kernel: Array) -> Walk:
    return Walk(
        x.shape[1:3], kernel.shape[:2], attrs["strides"][1:3], attrs["rates"][1:3],
        attrs["padding"],
    )  # fmt: skip


def _winners(
    attrs: Any, x: Array, kernel: Array
) -> dict[tuple[int, Index, int], tuple[Any, Index, Index]]:
    """(batch, output position, channel) -> (value, input position, window element), first wins."""
    best: dict[tuple[int, Index, int], tuple[Any, Index, Index]] = {}
    for to, at, tap in _walk(attrs, x, kernel):
        for n in range(x.shape[0]):
            for c in range(x.shape[3]):
                value = x[(n, *at, c)] + kernel[(*tap, c)]
                if (n, to, c) not in best or value > best[n, to, c][0]:
                    best[n, to, c] = (value, at, tap)
    return best


@reference("Dilation2D")
def dilation2d(attrs: Any, x: Array, kernel: Array) -> Array:
    """The maximum of input plus filter under each window position."""
    out = np.zeros((x.shape[0], *_walk(attrs, x, kernel).out, x.shape[3]))
    for (n, to, c), (value, _, _) in _winners(attrs, x, kernel).items():
        out[(n, *to, c)] = value
    return out


@reference("Dilation2DBackpropInput")
def dilation2d_backprop_input(attrs: Any, x: Array, kernel: Array, grad: Array) -> Array:
    """Gives each output gradient to the input element that won."""
    out = np.zeros(x.shape)
    for (n, to, c), (_, at, _) in _winners(attrs, x, kernel).items():
        out[(n, *at, c)] += grad[(n, *to, c)]
    return out


@reference("Dilation2DBackpropFilter")
def dilation2d_backprop_filter(attrs: Any, x: Array, kernel: Array, grad: Array) -> Array:
    """Gives each output gradient to the filter element that won."""
    out = np.zeros(kernel.shape)
    for (n, to, c), (_, _, tap) in _winners(attrs, x, kernel).items():
        out[(*tap, c)] += grad[(n, *to, c)]
    return out
