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


def _bytes(begin: int, end: int, out: Array, x: Array, depth: int) -> None:
    for i in range(begin, end):
        total = 0
        for c in range(depth):
            total += int(x[i * depth + c])
        out[i] = total


def _words(begin: int, end: int, out: Array, x: Array, depth: int) -> None:
    for i in range(begin, end):
        total = 0
        for c in range(depth):
            word = x[i * depth + c]
            total += (word & _EVEN) + ((word >> 8) & _EVEN)
        # Four sums of 16 bits, of which two fit into the others' halves.
        total = (total & _LOW) + ((total >> 16) & _LOW)
        out[i] = (total & _HALF) + ((total >> 32) & _HALF)


def _windows(
    begin: int, end: int, out: Array, pixels: Array, high: int, wide: int, rows: int, columns: int,
    tall: int, broad: int, down: int, right: int, top: int, left: int,
) -> None:  # fmt: skip
    for at in range(begin, end):
        image = (at // rows) * high
        r = at % rows * down - top
        for k in range(columns):
            out[at * columns + k] = 0
        for y in range(max(r, 0), min(r + tall, high)):
            for z in range(broad):
                # The columns whose window has its place z inside of the image.
                first = max(left - z + right - 1, 0) // right
                last = min((wide - 1 + left - z) // right + 1, columns)
                source = (image + y) * wide + z - left
                for k in range(first, last):
                    out[at * columns + k] = int(out[at * columns + k]) + int(
                        pixels[source + k * right]
                    )


_EVEN: Final = 0x00FF00FF00FF00FF
_LOW: Final = 0x0000FFFF0000FFFF
_HALF: Final = 0xFFFFFFFF
_MOST: Final = 128
"""Words of which four sums fit into 16 bits each."""
_BYTES: Final = Looped(_bytes, fixed=["depth"])
_WORDS: Final = Looped(_words, fixed=["depth"])
_WINDOWS: Final = Looped(_windows, fixed=["tall", "broad", "right"])


def _pixels(x: Array) -> Array:
    """What the channels of each pixel add up to."""
    out, depth = np.empty(x.shape[:3], np.int32), x.shape[3]
    done = False
    if depth % 8 == 0 and depth <= 8 * _MOST:
        words = np.ascontiguousarray(x).view(np.int64)
        done = _WORDS(out.size, x.size / 4, out, words, depth // 8)
    elif depth:
        done = _BYTES(out.size, x.size, out, x, depth)
    return out if done else np.asarray(x.sum(axis=3, dtype=np.int32))


def window_sums(x: Array, where: windows.Window) -> Array:
    """The sums [batch, rows, columns] over each window and all channels, as int32.

    Args:
        x: bytes [batch, height, width, channels].
        where: the windows, whose elements lie side by side.
    """
    pixels = _pixels(x)
    out = np.empty((x.shape[0], *where.out), np.int32)
    ends = (*where.window, *where.strides, *(before for before, _ in where.pads))
    turns, work = x.shape[0] * where.out[0], out.size * where.window[0] * where.window[1]
    if _WINDOWS(turns, work, out, pixels, *x.shape[1:3], *where.out, *ends):
        return out
    every = pad(pixels[..., None], where)
    return np.asarray(positions(every, where).sum(axis=(3, 4, 5), dtype=np.int32))
