"""What the bytes of each window of images add up to."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import windows
from opdock_cpu.jit.looped import Looped
from opdock_cpu.windows import pad, positions

__all__ = ["window_sums"]

Array = npt.NDArray[Any]


def _sums(
    begin: int, end: int, out: Array, pixels: Array, x: Array, high: int, wide: int, depth: int,
    rows: int, columns: int, tall: int, broad: int, down: int, right: int, top: int, left: int,
) -> None:  # fmt: skip
    for n in range(begin, end):
        for i in range(n * high * wide, (n + 1) * high * wide):
            total = 0
            for c in range(depth):
                total += int(x[i * depth + c])
            pixels[i] = total
        for r in range(rows):
            first, last = max(r * down - top, 0), min(r * down - top + tall, high)
            for k in range(columns):
                start, stop = max(k * right - left, 0), min(k * right - left + broad, wide)
                found = 0
                for y in range(first, last):
                    for z in range(start, stop):
                        found += int(pixels[(n * high + y) * wide + z])
                out[(n * rows + r) * columns + k] = found


_SUMS: Final = Looped(_sums)


def window_sums(x: Array, where: windows.Window) -> Array:
    """The sums [batch, rows, columns] over each window and all channels, as int32.

    Args:
        x: bytes [batch, height, width, channels].
        where: the windows, whose elements lie side by side.
    """
    shape = (x.shape[0], *where.out)
    out, pixels = np.empty(shape, np.int32), np.empty(x.shape[:3], np.int32)
    ends = (*where.window, *where.strides, *(before for before, _ in where.pads))
    if _SUMS(x.shape[0], x.size + out.size * 16, out, pixels, x, *x.shape[1:], *where.out, *ends):
        return out
    every = pad(x.sum(axis=3, dtype=np.int32)[..., None], where)
    return np.asarray(positions(every, where).sum(axis=(3, 4, 5), dtype=np.int32))
