"""Web-safe base64 of many strings, by generated loops."""

from __future__ import annotations

from typing import Final

import numpy as np

from opdock_cpu.jit import strings
from opdock_cpu.jit.looped import Array, Looped
from opdock_cpu.text.packed import Packed

__all__ = ["decoded", "encoded"]

_ALPHABET: Final = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8
)
_NONE: Final = 255
_CODES: Final = np.full(256, _NONE, np.uint8)
_CODES[_ALPHABET] = np.arange(64)


def encoded(whole: Packed, pad: bool) -> Array | None:
    """Each string encoded; None if there is no code."""
    sizes = (whole.sizes + 2) // 3 * 4 if pad else (whole.sizes * 4 + 2) // 3
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    out = np.full(bounds[-1], ord("="), np.uint8)
    arrays = (out, bounds, whole.data, whole.bounds, _ALPHABET)
    if not _ENCODE(sizes.size, out.size + sizes.size, *arrays):
        return None
    return strings.made(out, bounds[:-1], bounds[1:], whole.shape)


def decoded(whole: Packed) -> Array | None:
    """Each string decoded; None if there is no code, or one of them is no base64."""
    count = whole.starts.size
    sizes, bad = np.empty(count, np.int64), np.zeros(count, np.bool_)
    if not _MEASURE(count, count, sizes, whole.data, whole.bounds):
        return None
    bounds = np.concatenate([[0], np.cumsum(sizes * 3 // 4)])
    out = np.empty(bounds[-1], np.uint8)
    arrays = (out, bad, bounds, sizes, whole.data, whole.bounds, _CODES)
    done = _DECODE(count, whole.data.size + count, *arrays)
    if not done or bad.any():
        return None
    return strings.made(out, bounds[:-1], bounds[1:], whole.shape)


def _encode(
    begin: int, end: int, out: Array, places: Array, data: Array, bounds: Array, letters: Array
) -> None:
    for i in range(begin, end):
        to, at, last = places[i], bounds[i], bounds[i + 1]
        while at + 3 <= last:
            word = (data[at] << 16) | (data[at + 1] << 8) | data[at + 2]
            out[to] = letters[word >> 18]
            out[to + 1] = letters[(word >> 12) & 63]
            out[to + 2] = letters[(word >> 6) & 63]
            out[to + 3] = letters[word & 63]
            at += 3
            to += 4
        if at < last:
            word = data[at] << 16
            if at + 1 < last:
                word = word | (data[at + 1] << 8)
                out[to + 2] = letters[(word >> 6) & 63]
            out[to] = letters[word >> 18]
            out[to + 1] = letters[(word >> 12) & 63]


def _measure(begin: int, end: int, sizes: Array, data: Array, bounds: Array) -> None:
    """How many letters a string has without what fills it up."""
    for i in range(begin, end):
        last = bounds[i + 1]
        size = last - bounds[i]
        if size > 0 and size % 4 == 0 and data[last - 1] == 61:
            size -= 2 if data[last - 2] == 61 else 1
        sizes[i] = size


def _decode(
    begin: int, end: int, out: Array, bad: Array, places: Array, sizes: Array, data: Array,
    bounds: Array, codes: Array,
) -> None:  # fmt: skip
    for i in range(begin, end):
        to, word, have = places[i], 0, 0
        wrong = sizes[i] % 4 == 1
        for at in range(bounds[i], bounds[i] + sizes[i]):
            code = codes[data[at]]
            wrong = wrong or code == _NONE
            word = ((word << 6) | code) & 4095
            have += 6
            if have >= 8:
                have -= 8
                out[to] = (word >> have) & 255
                to += 1
        bad[i] = wrong


_ENCODE: Final = Looped(_encode)
_MEASURE: Final = Looped(_measure)
_DECODE: Final = Looped(_decode)
