"""Pools of images of bytes, in generated code where it is there."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import windows
from opdock_cpu.jit.looped import Looped, double

__all__ = ["largest", "means"]

Array = npt.NDArray[Any]


def _largest(
    begin: int, end: int, out: Array, x: Array, high: int, wide: int, depth: int,
    rows: int, columns: int, tall: int, broad: int, down: int, right: int, top: int, left: int,
) -> None:  # fmt: skip
    for at in range(begin, end):
        image = (at // rows) * high
        r = at % rows * down - top
        for k in range(columns):
            start = k * right - left
            to = (at * columns + k) * depth
            for c in range(depth):
                out[to + c] = 0
            for y in range(max(r, 0), min(r + tall, high)):
                for z in range(max(start, 0), min(start + broad, wide)):
                    source = ((image + y) * wide + z) * depth
                    for c in range(depth):
                        out[to + c] = max(int(out[to + c]), int(x[source + c]))


def _means(
    begin: int, end: int, out: Array, totals: Array, x: Array, high: int, wide: int, depth: int,
    rows: int, columns: int, tall: int, broad: int, down: int, right: int, top: int, left: int,
) -> None:  # fmt: skip
    for at in range(begin, end):
        image = (at // rows) * high
        r = at % rows * down - top
        first, last = max(r, 0), min(r + tall, high)
        for k in range(columns):
            start, stop = max(k * right - left, 0), min(k * right - left + broad, wide)
            to = (at * columns + k) * depth
            for c in range(depth):
                totals[to + c] = 0
            for y in range(first, last):
                for z in range(start, stop):
                    source = ((image + y) * wide + z) * depth
                    for c in range(depth):
                        totals[to + c] = int(totals[to + c]) + int(x[source + c])
            count = double((last - first) * (stop - start))
            for c in range(depth):
                out[to + c] = int(double(totals[to + c]) / count)


_LARGEST: Final = Looped(_largest, fixed=["depth"])
_MEANS: Final = Looped(_means)


def _numbers(x: Array, where: windows.Window) -> tuple[int, ...]:
    before = (n for n, _ in where.pads)
    return (*x.shape[1:], *where.out, *where.window, *where.strides, *before)


def _work(out: Array, where: windows.Window) -> int:
    return out.size * where.window[0] * where.window[1]


def largest(x: Array, where: windows.Window) -> Array | None:
    """The largest byte of each window [batch, rows, columns, channels]; None without code.

    Args:
        x: unsigned bytes [batch, height, width, channels].
        where: the windows over height and width, whose elements lie side by side.
    """
    out = np.empty((x.shape[0], *where.out, x.shape[3]), np.uint8)
    turns = x.shape[0] * where.out[0]
    # Bytes go through vectors four times as fast as what a step is otherwise.
    done = _LARGEST(turns, _work(out, where) / 4, out, x, *_numbers(x, where))
    return out if done else None


def means(x: Array, where: windows.Window) -> Array | None:
    """The means of what is inside of each window, rounded down; see `largest`."""
    out = np.empty((x.shape[0], *where.out, x.shape[3]), np.uint8)
    totals, turns = np.empty(out.shape, np.int32), x.shape[0] * where.out[0]
    done = _MEANS(turns, _work(out, where), out, totals, x, *_numbers(x, where))
    return out if done else None
