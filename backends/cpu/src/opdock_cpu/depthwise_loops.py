"""Depthwise convolutions and their gradients as loops over windows, channels last.

Numbers that loops take of a node: the input's size, `fold` channels of the result for each of
`depth` channels, the window, steps, rates, padding before, and the result's size.
"""

from __future__ import annotations

import functools
import math
from typing import Final

import numpy as np

from opdock.plugin import windows
from opdock_cpu.jit.looped import Array, Looped

__all__ = ["backward_data", "backward_filter", "forward"]


_TAP: Final = 8


def _forward(
    begin: int, end: int, out: Array, x: Array, kernel: Array,
    height: int, width: int, depth: int, fold: int, rows: int, columns: int, down: int, right: int,
    rate_y: int, rate_x: int, top: int, left: int, out_rows: int, out_columns: int,
) -> None:  # fmt: skip
    """A turn is a row of the result."""
    for t in range(begin, end):
        image, y0 = t // out_rows * height, t % out_rows * down - top
        for ox in range(out_columns):
            o, x0 = (t * out_columns + ox) * depth * fold, ox * right - left
            for c in range(depth * fold):
                out[o + c] = 0
            for ky in range(max(-(y0 // rate_y), 0), min((height - 1 - y0) // rate_y + 1, rows)):
                row = (image + y0 + ky * rate_y) * width + x0
                last = min((width - 1 - x0) // rate_x + 1, columns)
                for kx in range(max(-(x0 // rate_x), 0), last):
                    i, k = (row + kx * rate_x) * depth, (ky * columns + kx) * depth * fold
                    for c in range(depth):
                        value = x[i + c]
                        for m in range(fold):
                            at = c * fold + m
                            out[o + at] = out[o + at] + value * kernel[k + at]


def _backward_data(
    begin: int, end: int, out: Array, grad: Array, kernel: Array,
    height: int, width: int, depth: int, fold: int, rows: int, columns: int, down: int, right: int,
    rate_y: int, rate_x: int, top: int, left: int, out_rows: int, out_columns: int,
) -> None:  # fmt: skip
    """A turn is a row of the input."""
    for t in range(begin, end):
        image, y = t // height * out_rows, t % height + top
        for c in range(t * width * depth, (t + 1) * width * depth):
            out[c] = 0
        first = max(-(((out_rows - 1) * down - y) // rate_y), 0)
        for ky in range(first, min(rows, y // rate_y + 1)):
            oy = (y - ky * rate_y) // down
            if oy >= out_rows or oy * down != y - ky * rate_y:
                continue
            for kx in range(columns):
                k, x0 = (ky * columns + kx) * depth * fold, kx * rate_x - left
                last = min((width - 1 - x0) // right + 1, out_columns)
                for ox in range(max(-(x0 // right), 0), last):
                    i = (t * width + ox * right + x0) * depth
                    o = ((image + oy) * out_columns + ox) * depth * fold
                    for c in range(depth):
                        total = out[i + c]
                        for m in range(fold):
                            at = c * fold + m
                            total += grad[o + at] * kernel[k + at]
                        out[i + c] = total


def _backward_filter(
    begin: int, end: int, out: Array, grad: Array, x: Array,
    height: int, width: int, depth: int, fold: int, rows: int, columns: int, down: int, right: int,
    rate_y: int, rate_x: int, top: int, left: int, out_rows: int, out_columns: int, batch: int,
) -> None:  # fmt: skip
    """A turn is a place of the window."""
    for t in range(begin, end):
        k, y0, x0 = t * depth * fold, t // columns * rate_y - top, t % columns * rate_x - left
        for c in range(depth * fold):
            out[k + c] = 0
        for b in range(batch):
            for oy in range(max(-(y0 // down), 0), min((height - 1 - y0) // down + 1, out_rows)):
                row = (b * height + oy * down + y0) * width + x0
                last = min((width - 1 - x0) // right + 1, out_columns)
                for ox in range(max(-(x0 // right), 0), last):
                    i = (row + ox * right) * depth
                    o = ((b * out_rows + oy) * out_columns + ox) * depth * fold
                    for c in range(depth):
                        value = x[i + c]
                        for m in range(fold):
                            at = c * fold + m
                            out[k + at] = out[k + at] + value * grad[o + at]


_FORWARD: Final = Looped(_forward, ("depth", "fold"))
_BACKWARD_DATA: Final = Looped(_backward_data, ("depth", "fold"))
_BACKWARD_FILTER: Final = Looped(_backward_filter, ("depth", "fold"))


def _numbers(where: windows.Window, depth: int, fold: int) -> tuple[int, ...]:
    before = (pad for pad, _ in where.pads)
    moved = (*where.strides, *where.dilations, *before, *where.out)
    return (*where.size, depth, fold, *where.window, *moved)


@functools.lru_cache(maxsize=64)
def _seen(where: windows.Window) -> int:
    """How many pairs of a place and an element of its window are input."""
    return math.prod(sum(inside) for inside in where.inside())


def _steps(where: windows.Window, batch: int, channels: int) -> int:
    """Multiply-adds, and what it costs to look at each place of a window."""
    return batch * channels * _seen(where) + _TAP * math.prod(where.window)


def forward(x: Array, kernel: Array, where: windows.Window) -> Array | None:
    """The convolution of `x` with `kernel` [rows, columns, depth, fold]; None without code."""
    depth, fold = kernel.shape[2:]
    out = np.empty((x.shape[0], *where.out, depth * fold), x.dtype)
    steps, numbers = _steps(where, len(x), depth * fold), _numbers(where, depth, fold)
    done = _FORWARD(len(x) * where.out[0], steps, out, x, kernel, *numbers)
    return out if done else None


def backward_data(grad: Array, kernel: Array, where: windows.Window) -> Array | None:
    """The gradient of `forward` with respect to `x`."""
    depth, fold = kernel.shape[2:]
    out = np.empty((grad.shape[0], *where.size, depth), grad.dtype)
    steps, numbers = _steps(where, len(grad), depth * fold), _numbers(where, depth, fold)
    done = _BACKWARD_DATA(len(grad) * where.size[0], steps, out, grad, kernel, *numbers)
    return out if done else None


def backward_filter(
    x: Array, grad: Array, where: windows.Window, depth: int, fold: int
) -> Array | None:
    """The gradient of `forward` with respect to `kernel`."""
    out = np.empty((*where.window, depth, fold), x.dtype)
    steps, numbers = _steps(where, len(x), depth * fold), _numbers(where, depth, fold)
    done = _BACKWARD_FILTER(math.prod(where.window), steps, out, grad, x, *numbers, len(x))
    return out if done else None
