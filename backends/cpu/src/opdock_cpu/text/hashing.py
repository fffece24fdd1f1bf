"""Hash functions of strings: FarmHash's Fingerprint64, SipHash-2-4, and MurmurHash64A.

Sources: G. Pike's FarmHash (farmhashna, which Fingerprint64 is), J.-P. Aumasson and
D. J. Bernstein, "SipHash: a fast short-input PRF" (2012), and A. Appleby's MurmurHash2.

Strings of one length take the same steps, so each length is hashed as a matrix with a string a
row; the words of a step are a vector over the strings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

Words = np.ndarray[Any, np.dtype[np.uint64]]
Pair = tuple[Words, Words]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

_U = np.uint64
_K0: Final = _U(0xC3A5C85C97CB3127)
_K1: Final = _U(0xB492B66FBE98F273)
_K2: Final = _U(0x9AE16A3B2F90404F)
_MURMUR: Final = _U(0xC6A4A7935BD1E995)
_SEED: Final = _U(0xDECAFCAFFE)
# So many bytes of one length at a time.
_BLOCK: Final = 1 << 22


def fingerprint64(strings: Sequence[bytes]) -> Words:
    """FarmHash's Fingerprint64 of each string."""
    return _by_length(strings, farm)


def siphash24(strings: Sequence[bytes], key: Sequence[int]) -> Words:
    """SipHash-2-4 of each string under a key of two 64-bit integers."""
    k0, k1 = (_U(k & 0xFFFFFFFFFFFFFFFF) for k in key)
    return _by_length(strings, lambda rows: _sip(rows, k0, k1))


def murmur64(strings: Sequence[bytes]) -> Words:
    """MurmurHash64A of each string, with TF's seed."""
    return _by_length(strings, _murmur)


def fingerprint128(strings: Sequence[bytes]) -> Words:
    """FarmHash's Fingerprint128 of each string: its low and its high half, in two columns."""
    return _by_length(strings, lambda rows: np.stack(_city128(rows), axis=1), (2,))


def _by_length(
    strings: Sequence[bytes], fn: Callable[[Bytes], Words], each: tuple[int, ...] = ()
) -> Words:
    out = np.empty((len(strings), *each), np.uint64)
    if not strings:
        return out
    lengths = np.fromiter(map(len, strings), np.int64, len(strings))
    order = np.argsort(lengths, kind="stable")
    bounds = np.flatnonzero(np.diff(lengths[order], prepend=-1)).tolist()
    with np.errstate(over="ignore"):
        for start, end in zip(bounds, [*bounds[1:], len(strings)], strict=True):
            size = int(lengths[order[start]])
            step = max(1, _BLOCK // max(size, 1))
            for i in range(start, end, step):
                rows = order[i : min(i + step, end)]
                joined = b"".join([strings[r] for r in rows.tolist()])
                out[rows] = fn(np.frombuffer(joined, np.uint8).reshape(len(rows), size))
    return out


# ---------------------------------------------------------------- words
def _fetch(rows: Bytes, at: int, size: int = 8) -> Words:
    """The little-endian words of `size` bytes at a place in each row."""
    part = np.ascontiguousarray(rows[:, at : at + size])
    return part.view(f"<u{size}").reshape(-1).astype(np.uint64)


def _byte(rows: Bytes, at: int) -> Words:
    return rows[:, at].astype(np.uint64)


def _rotate(x: Words, by: int) -> Words:
    """Rotated to the right."""
    return (x >> _U(by)) | (x << _U(64 - by))


def _shift_mix(x: Words) -> Words:
    return x ^ (x >> _U(47))


# ---------------------------------------------------------------- FarmHash
def farm(rows: Bytes) -> Words:
    """Fingerprint64 of each row of a matrix of bytes."""
    size = rows.shape[1]
    if size <= 16:
        return _farm_16(rows)
    if size <= 32:
        return _farm_32(rows)
    return _farm_64(rows) if size <= 64 else _farm_long(rows)


def _mix16(u: Words, v: Words, mul: Words | np.uint64) -> Words:
    """128 bits to 64."""
    a = _shift_mix((u ^ v) * mul)
    return _shift_mix((v ^ a) * mul) * mul


def _multiplier(size: int) -> np.uint64:
    return _K2 + _U(size * 2)


def _farm_16(rows: Bytes) -> Words:
    size = rows.shape[1]
    if size >= 8:
        mul = _multiplier(size)
        a, b = _fetch(rows, 0) + _K2, _fetch(rows, size - 8)
        return _mix16(_rotate(b, 37) * mul + a, (_rotate(a, 25) + b) * mul, mul)
    if size >= 4:
        start = _U(size) + (_fetch(rows, 0, 4) << _U(3))
        return _mix16(start, _fetch(rows, size - 4, 4), _multiplier(size))
    if size > 0:
        y = _byte(rows, 0) + (_byte(rows, size >> 1) << _U(8))
        z = _U(size) + (_byte(rows, size - 1) << _U(2))
        return _shift_mix((y * _K2) ^ (z * _K0)) * _K2
    return np.full(rows.shape[0], _K2)


def _farm_32(rows: Bytes) -> Words:
    size = rows.shape[1]
    mul = _multiplier(size)
    a, b = _fetch(rows, 0) * _K1, _fetch(rows, 8)
    c, d = _fetch(rows, size - 8) * mul, _fetch(rows, size - 16) * _K2
    return _mix16(_rotate(a + b, 43) + _rotate(c, 30) + d, a + _rotate(b + _K2, 18) + c, mul)


def _farm_64(rows: Bytes) -> Words:
    size = rows.shape[1]
    mul = _multiplier(size)
    a, b = _fetch(rows, 0) * _K2, _fetch(rows, 8)
    c, d = _fetch(rows, size - 8) * mul, _fetch(rows, size - 16) * _K2
    y = _rotate(a + b, 43) + _rotate(c, 30) + d
    z = _mix16(y, a + _rotate(b + _K2, 18) + c, mul)
    e, f = _fetch(rows, 16) * mul, _fetch(rows, 24)
    g, h = (y + _fetch(rows, size - 32)) * mul, (z + _fetch(rows, size - 24)) * mul
    return _mix16(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, mul)


def _weak(rows: Bytes, at: int, a: Words, b: Words) -> tuple[Words, Words]:
    """Two words that depend weakly on 32 bytes and two seeds."""
    w, x, y, z = (_fetch(rows, at + 8 * i) for i in range(4))
    a = a + w
    b = _rotate(b + a + z, 21)
    start = a
    a = a + x + y
    b = b + _rotate(a, 44)
    return a + z, b + start


def _round(
    rows: Bytes, at: int, x: Words, y: Words, z: Words, v: Pair, w: Pair
) -> tuple[Words, Words, Words, Pair, Pair]:
    """Takes 64 bytes in, as both of these hashes of long texts do."""
    x = _rotate(x + y + v[0] + _fetch(rows, at + 8), 37) * _K1
    y = _rotate(y + v[1] + _fetch(rows, at + 48), 42) * _K1
    x = x ^ w[1]
    y = y + v[0] + _fetch(rows, at + 40)
    z = _rotate(z + w[0], 33) * _K1
    v = _weak(rows, at, v[1] * _K1, x + w[0])
    w = _weak(rows, at + 32, z + w[1], y + _fetch(rows, at + 16))
    return z, y, x, v, w


def _farm_long(rows: Bytes) -> Words:
    size, count = rows.shape[1], rows.shape[0]
    seed = _U(81)
    x = np.full(count, seed)
    y = np.full(count, seed * _K1 + _U(113))
    z = _shift_mix(y * _K2 + _U(113)) * _K2
    zero = np.zeros(count, np.uint64)
    v, w = (zero, zero), (zero, zero)
    x = x * _K2 + _fetch(rows, 0)
    end = (size - 1) // 64 * 64
    for at in range(0, end, 64):
        x, y, z, v, w = _round(rows, at, x, y, z, v, w)
    mul = _K1 + ((z & _U(0xFF)) << _U(1))
    at = size - 64
    w = (w[0] + _U((size - 1) & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x = _rotate(x + y + v[0] + _fetch(rows, at + 8), 37) * mul
    y = _rotate(y + v[1] + _fetch(rows, at + 48), 42) * mul
    x = x ^ (w[1] * _U(9))
    y = y + v[0] * _U(9) + _fetch(rows, at + 40)
    z = _rotate(z + w[0], 33) * mul
    v = _weak(rows, at, v[1] * mul, x + w[0])
    w = _weak(rows, at + 32, z + w[1], y + _fetch(rows, at + 16))
    z, x = x, z
    return _mix16(
        _mix16(v[0], w[0], mul) + _shift_mix(y) * _K0 + z, _mix16(v[1], w[1], mul) + x, mul
    )


# ---------------------------------------------------------------- FarmHash of 128 bits
_CITY: Final = _U(0x9DDFEA08EB382D69)


def _city128(rows: Bytes) -> tuple[Words, Words]:
    """Fingerprint128 of each row, which is CityHash128: the low and the high half."""
    count, size = rows.shape
    if size < 16:
        return _city_short(rows, np.full(count, _K0), np.full(count, _K1))
    seeds = _fetch(rows, 0), _fetch(rows, 8) + _K0
    return (_city_short if size < 144 else _city_long)(rows[:, 16:], *seeds)


def _city_short(rows: Bytes, a: Words, b: Words) -> tuple[Words, Words]:
    size = rows.shape[1]
    if size <= 16:
        a = _shift_mix(a * _K1) * _K1
        c = b * _K1 + _farm_16(rows)
        d = _shift_mix(a + (_fetch(rows, 0) if size >= 8 else c))
    else:
        c = _mix16(_fetch(rows, size - 8) + _K1, a, _CITY)
        d = _mix16(b + _U(size), c + _fetch(rows, size - 16), _CITY)
        a = a + d
        for at in range(0, size - 16, 16):
            a = (a ^ (_shift_mix(_fetch(rows, at) * _K1) * _K1)) * _K1
            b = b ^ a
            c = (c ^ (_shift_mix(_fetch(rows, at + 8) * _K1) * _K1)) * _K1
            d = d ^ c
    a, b = _mix16(a, c, _CITY), _mix16(d, b, _CITY)
    return a ^ b, _mix16(b, a, _CITY)


def _city_long(rows: Bytes, x: Words, y: Words) -> tuple[Words, Words]:
    size = rows.shape[1]
    z = np.full(rows.shape[0], _U(size) * _K1)
    first = _rotate(y ^ _K1, 49) * _K1 + _fetch(rows, 0)
    v = first, _rotate(first, 42) * _K1 + _fetch(rows, 8)
    w = _rotate(y + z, 35) * _K1 + x, _rotate(x + _fetch(rows, 88), 53) * _K1
    for at in range(0, size // 128 * 128, 64):
        x, y, z, v, w = _round(rows, at, x, y, z, v, w)
    x = x + _rotate(v[0] + z, 49) * _K0
    y = y * _K0 + _rotate(w[1], 37)
    z = z * _K0 + _rotate(w[0], 27)
    w, v = (w[0] * _U(9), w[1]), (v[0] * _K0, v[1])
    # What is left, 32 bytes at a time from the end; the last of them may overlap the blocks.
    for at in range(size - 32, size - size % 128 - 32, -32):
        y = _rotate(x + y, 42) * _K0 + v[1]
        w = w[0] + _fetch(rows, at + 16), w[1]
        x = x * _K0 + w[0]
        z = z + w[1] + _fetch(rows, at)
        w = w[0], w[1] + v[0]
        v = _weak(rows, at, v[0] + z, v[1])
        v = v[0] * _K0, v[1]
    x, y = _mix16(x, v[0], _CITY), _mix16(y + z, w[0], _CITY)
    return _mix16(x + v[1], w[1], _CITY) + y, _mix16(x + w[1], y + v[1], _CITY)


# ---------------------------------------------------------------- SipHash
def _sip(rows: Bytes, k0: np.uint64, k1: np.uint64) -> Words:
    count, size = rows.shape
    state = [
        np.full(count, k ^ _U(constant))
        for k, constant in (
            (k0, 0x736F6D6570736575), (k1, 0x646F72616E646F6D),
            (k0, 0x6C7967656E657261), (k1, 0x7465646279746573),
        )
    ]  # fmt: skip
    whole = size // 8 * 8
    for at in range(0, whole, 8):
        _sip_word(state, _fetch(rows, at))
    last = np.zeros((count, 8), np.uint8)
    last[:, : size - whole] = rows[:, whole:]
    last[:, 7] = size & 0xFF
    _sip_word(state, _fetch(last, 0))
    state[2] = state[2] ^ _U(0xFF)
    for _ in range(4):
        _sip_round(state)
    out: Words = np.bitwise_xor.reduce(state)
    return out


def _sip_word(state: list[Words], word: Words) -> None:
    state[3] = state[3] ^ word
    _sip_round(state)
    _sip_round(state)
    state[0] = state[0] ^ word


def _sip_round(state: list[Words]) -> None:
    a, b, c, d = state
    a, c = a + b, c + d
    b, d = _rotate(b, 64 - 13) ^ a, _rotate(d, 64 - 16) ^ c
    a = _rotate(a, 32)
    c, a = c + b, a + d
    b, d = _rotate(b, 64 - 17) ^ c, _rotate(d, 64 - 21) ^ a
    state[:] = a, b, _rotate(c, 32), d


# ---------------------------------------------------------------- MurmurHash64A
def _murmur(rows: Bytes) -> Words:
    count, size = rows.shape
    h: Words = np.full(count, _SEED ^ (_U(size) * _MURMUR))
    whole = size // 8 * 8
    for at in range(0, whole, 8):
        k = _fetch(rows, at) * _MURMUR
        h = (h ^ _shift_mix(k) * _MURMUR) * _MURMUR
    if size > whole:
        last = np.zeros((count, 8), np.uint8)
        last[:, : size - whole] = rows[:, whole:]
        h = (h ^ _fetch(last, 0)) * _MURMUR
    return _shift_mix(_shift_mix(h) * _MURMUR)
