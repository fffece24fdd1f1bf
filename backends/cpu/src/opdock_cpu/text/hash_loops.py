"""The hash functions of `hashing.py` as generated loops, a string a turn.

Words are unsigned and wrap around, which whole numbers of generated loops do as well but for shifts
to the right. As functions of Python, whose numbers grow, these are not meant to be called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from opdock_cpu.jit.looped import Array, Looped
from opdock_cpu.text.packed import Packed

__all__ = ["city", "farm", "murmur", "sip"]


def _signed(word: int) -> int:
    """The whole number with the same bits."""
    return word - (1 << 64) if word >> 63 else word


_K0: Final = _signed(0xC3A5C85C97CB3127)
_K1: Final = _signed(0xB492B66FBE98F273)
_K2: Final = _signed(0x9AE16A3B2F90404F)
_MURMUR: Final = _signed(0xC6A4A7935BD1E995)
_CITY: Final = _signed(0x9DDFEA08EB382D69)
_LONG: Final = 144
"""Bytes from which on a string has the long form of Fingerprint128."""
_SEED: Final = 0xDECAFCAFFE
_BLOCK: Final = 64
"""Bytes that FarmHash takes in at a time, where a string has more."""
_SHARE: Final = 1 << 15
"""Steps of a share: two are worth a second thread."""
_SAVED: Final = 64
"""Steps that one takes in NumPy, of which each length of a string has its own."""
_STEPS: Final = 16
"""Steps that a string's hash takes at least, in those of a loop over bytes."""


def _shifted(x: int, by: int) -> int:
    """To the right, zeros in front."""
    return (x >> by) & ((1 << (64 - by)) - 1)


def _rotated(x: int, by: int) -> int:
    return ((x >> by) & ((1 << (64 - by)) - 1)) | (x << (64 - by))


def _mixed(x: int) -> int:
    return x ^ _shifted(x, 47)


def _half(data: Array, at: int) -> int:
    """Four bytes as a little-endian number; LLVM makes one load of these."""
    low: int = data[at] | (data[at + 1] << 8)
    high: int = data[at + 2] | (data[at + 3] << 8)
    return low | (high << 16)


def _word(data: Array, at: int) -> int:
    """Eight bytes."""
    low = _half(data, at)
    high = _half(data, at + 4)
    return low | (high << 32)


def _together(u: int, v: int, factor: int) -> int:
    """128 bits to 64."""
    a = _mixed((u ^ v) * factor)
    return _mixed((v ^ a) * factor) * factor


def _weak(data: Array, at: int, first: int, second: int) -> tuple[int, int]:
    """Two words that depend weakly on 32 bytes and two seeds."""
    a = first + _word(data, at)
    b = _rotated(second + a + _word(data, at + 24), 21)
    start = a
    a = a + _word(data, at + 8) + _word(data, at + 16)
    b = b + _rotated(a, 44)
    return a + _word(data, at + 24), b + start


def _farm_16(data: Array, at: int, size: int) -> int:
    """Of 16 bytes at most."""
    last, factor, value = at + size, _K2 + size * 2, _K2
    if size >= 8:
        a = _word(data, at) + _K2
        b = _word(data, last - 8)
        c = _rotated(b, 37) * factor + a
        value = _together(c, (_rotated(a, 25) + b) * factor, factor)
    elif size >= 4:
        value = _together(size + (_half(data, at) << 3), _half(data, last - 4), factor)
    elif size > 0:
        y = data[at] + (data[at + (size >> 1)] << 8)
        z = size + (data[last - 1] << 2)
        value = _mixed((y * _K2) ^ (z * _K0)) * _K2
    return value


def _farm(begin: int, end: int, out: Array, data: Array, bounds: Array) -> None:
    for i in range(begin, end):
        at = bounds[i]
        size = bounds[i + 1] - at
        last = bounds[i + 1]
        factor = _K2 + size * 2
        if size <= 16:
            out[i] = _farm_16(data, at, size)
        elif size <= 32:
            a = _word(data, at) * _K1
            b = _word(data, at + 8)
            c = _word(data, last - 8) * factor
            d = _word(data, last - 16) * _K2
            y = _rotated(a + b, 43) + _rotated(c, 30) + d
            out[i] = _together(y, a + _rotated(b + _K2, 18) + c, factor)
        elif size <= 64:
            a = _word(data, at) * _K2
            b = _word(data, at + 8)
            c = _word(data, last - 8) * factor
            d = _word(data, last - 16) * _K2
            y = _rotated(a + b, 43) + _rotated(c, 30) + d
            z = _together(y, a + _rotated(b + _K2, 18) + c, factor)
            e = _word(data, at + 16) * factor
            f = _word(data, at + 24)
            g = (y + _word(data, last - 32)) * factor
            h = (z + _word(data, last - 24)) * factor
            y = _rotated(e + f, 43) + _rotated(g, 30) + h
            out[i] = _together(y, e + _rotated(f + a, 18) + g, factor)
        else:
            out[i] = _farm_long(data, at, size)


def _farm_long(data: Array, start: int, size: int) -> int:
    y = 81 * _K1 + 113
    z = _mixed(y * _K2 + 113) * _K2
    x = 81 * _K2 + _word(data, start)
    v0 = size - size
    v1, w0, w1 = v0, v0, v0
    stop = start + (size - 1) // _BLOCK * _BLOCK
    at = start + 0
    while at < stop:
        x = _rotated(x + y + v0 + _word(data, at + 8), 37) * _K1 ^ w1
        y = _rotated(y + v1 + _word(data, at + 48), 42) * _K1 + v0 + _word(data, at + 40)
        z = _rotated(z + w0, 33) * _K1
        v0, v1 = _weak(data, at, v1 * _K1, x + w0)
        w0, w1 = _weak(data, at + 32, z + w1, y + _word(data, at + 16))
        x, z = z, x
        at += _BLOCK
    factor = _K1 + ((z & 0xFF) << 1)
    at = start + size - _BLOCK
    w0 = w0 + ((size - 1) & 63)
    v0 = v0 + w0
    w0 = w0 + v0
    x = (_rotated(x + y + v0 + _word(data, at + 8), 37) * factor) ^ (w1 * 9)
    y = _rotated(y + v1 + _word(data, at + 48), 42) * factor + v0 * 9 + _word(data, at + 40)
    z = _rotated(z + w0, 33) * factor
    v0, v1 = _weak(data, at, v1 * factor, x + w0)
    w0, w1 = _weak(data, at + 32, z + w1, y + _word(data, at + 16))
    one = _together(v0, w0, factor) + _mixed(y) * _K0 + x
    return _together(one, _together(v1, w1, factor) + z, factor)


def _city(begin: int, end: int, out: Array, data: Array, bounds: Array) -> None:
    """Both halves of Fingerprint128."""
    for i in range(begin, end):
        at, last = bounds[i], bounds[i + 1]
        a, b = _K0, _K1
        if last - at >= 16:
            a = _word(data, at)
            b = _word(data, at + 8) + _K0
            at += 16
        if last - bounds[i] < _LONG:
            low, high = _city_short(data, at, last, a, b)
            out[2 * i] = low
            out[2 * i + 1] = high
        else:
            low, high = _city_long(data, at, last - at, a, b)
            out[2 * i] = low
            out[2 * i + 1] = high


def _city_short(data: Array, start: int, last: int, a: int, b: int) -> tuple[int, int]:
    at, size = start + 0, last - start
    if size <= 16:
        a = _mixed(a * _K1) * _K1
        c = b * _K1 + _farm_16(data, at, size)
        d = _mixed(a + (_word(data, at) if size >= 8 else c))
    else:
        c = _together(_word(data, last - 8) + _K1, a, _CITY)
        d = _together(b + size, c + _word(data, last - 16), _CITY)
        a = a + d
        while at < last - 16:
            a = (a ^ (_mixed(_word(data, at) * _K1) * _K1)) * _K1
            b = b ^ a
            c = (c ^ (_mixed(_word(data, at + 8) * _K1) * _K1)) * _K1
            d = d ^ c
            at += 16
    low = _together(a, c, _CITY)
    high = _together(d, b, _CITY)
    return low ^ high, _together(high, low, _CITY)


def _city_long(data: Array, start: int, size: int, x: int, y: int) -> tuple[int, int]:
    z = size * _K1
    v0 = _rotated(y ^ _K1, 49) * _K1 + _word(data, start)
    v1 = _rotated(v0, 42) * _K1 + _word(data, start + 8)
    w0 = _rotated(y + z, 35) * _K1 + x
    w1 = _rotated(x + _word(data, start + 88), 53) * _K1
    at = start + 0
    while at < start + (size >> 7 << 7):
        x = (_rotated(x + y + v0 + _word(data, at + 8), 37) * _K1) ^ w1
        y = _rotated(y + v1 + _word(data, at + 48), 42) * _K1 + v0 + _word(data, at + 40)
        z = _rotated(z + w0, 33) * _K1
        v0, v1 = _weak(data, at, v1 * _K1, x + w0)
        w0, w1 = _weak(data, at + 32, z + w1, y + _word(data, at + 16))
        x, z = z, x
        at += 64
    x = x + _rotated(v0 + z, 49) * _K0
    y = y * _K0 + _rotated(w1, 37)
    z = z * _K0 + _rotated(w0, 27)
    w0 = w0 * 9
    v0 = v0 * _K0
    # What is left, 32 bytes at a time from the end; the last of them may overlap the blocks.
    at = start + size - 32
    while at > start + (size >> 7 << 7) - 32:
        y = _rotated(x + y, 42) * _K0 + v1
        w0 = w0 + _word(data, at + 16)
        x = x * _K0 + w0
        z = z + w1 + _word(data, at)
        w1 = w1 + v0
        v0, v1 = _weak(data, at, v0 + z, v1)
        v0 = v0 * _K0
        at -= 32
    x = _together(x, v0, _CITY)
    y = _together(y + z, w0, _CITY)
    return _together(x + v1, w1, _CITY) + y, _together(x + w1, y + v1, _CITY)


def _murmur(begin: int, end: int, out: Array, data: Array, bounds: Array) -> None:
    for i in range(begin, end):
        at, last = bounds[i], bounds[i + 1]
        h = _SEED ^ ((last - at) * _MURMUR)
        while at + 8 <= last:
            h = (h ^ (_mixed(_word(data, at) * _MURMUR) * _MURMUR)) * _MURMUR
            at += 8
        if at < last:
            h = (h ^ _rest(data, at, last)) * _MURMUR
        out[i] = _mixed(_mixed(h) * _MURMUR)


def _rest(data: Array, first: int, last: int) -> int:
    """The bytes of the last word, which is not full."""
    word = last - last
    for at in range(last - 1, first - 1, -1):
        word = (word << 8) | data[at]
    return word


def _sip(
    begin: int, end: int, out: Array, data: Array, bounds: Array, first: int, second: int
) -> None:
    for i in range(begin, end):
        at, last = bounds[i], bounds[i + 1]
        size = last - at
        a = first ^ 0x736F6D6570736575
        b = second ^ 0x646F72616E646F6D
        c = first ^ 0x6C7967656E657261
        d = second ^ 0x7465646279746573
        while at + 8 <= last:
            a, b, c, d = _sip_word(a, b, c, d, _word(data, at))
            at += 8
        a, b, c, d = _sip_word(a, b, c, d, _rest(data, at, last) | (size << 56))
        c = c ^ 0xFF
        for _ in range(4):
            a, b, c, d = _sip_round(a, b, c, d)
        out[i] = a ^ b ^ c ^ d


def _sip_word(a: int, b: int, c: int, d: int, word: int) -> tuple[int, int, int, int]:
    d = d ^ word
    a, b, c, d = _sip_round(a, b, c, d)
    a, b, c, d = _sip_round(a, b, c, d)
    return a ^ word, b, c, d


def _sip_round(a: int, b: int, c: int, d: int) -> tuple[int, int, int, int]:
    a = a + b
    c = c + d
    b = _rotated(b, 51) ^ a
    d = _rotated(d, 48) ^ c
    a = _rotated(a, 32)
    c = c + b
    a = a + d
    b = _rotated(b, 47) ^ c
    d = _rotated(d, 43) ^ a
    return a, b, _rotated(c, 32), d


_FARM: Final = Looped(_farm)
_CITIES: Final = Looped(_city)
_MURMURED: Final = Looped(_murmur)
_SIPPED: Final = Looped(_sip)


def farm(strings: Packed) -> Array | None:
    """Fingerprint64 of each string; None if there is no code."""
    return _hashed(_FARM, strings)


def murmur(strings: Packed) -> Array | None:
    """MurmurHash64A of each."""
    return _hashed(_MURMURED, strings)


def sip(strings: Packed, key: Sequence[int]) -> Array | None:
    """SipHash-2-4 of each under a key of two 64-bit integers."""
    return _hashed(_SIPPED, strings, *(_signed(k & 0xFFFFFFFFFFFFFFFF) for k in key))


def city(strings: Packed) -> Array | None:
    """Fingerprint128 of each, its low and its high half in two columns."""
    count = strings.starts.size
    out = np.empty((count, 2), np.int64)
    done = _run(_CITIES, strings, out)
    return out.view(np.uint64) if done else None


def _hashed(function: Looped, strings: Packed, *key: int) -> Array | None:
    out = np.empty(strings.starts.size, np.int64)
    return out.view(np.uint64) if _run(function, strings, out, *key) else None


def _run(function: Looped, strings: Packed, out: Array, *key: int) -> bool:
    """Hashes all strings. Even a few are worth the compiler: NumPy takes a call for each step."""
    count = strings.starts.size
    steps = strings.data.size + _STEPS * count
    shares = max(1, steps // _SHARE)
    return function(count, steps * _SAVED, out, strings.data, strings.bounds, *key, most=shares)
