"""Oracle of the hashes, on Python's integers, one string at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]

M = (1 << 64) - 1
K0, K1, K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def _word(s: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(s[at : at + size], "little")


def _rot(x: int, by: int) -> int:
    return ((x >> by) | (x << (64 - by))) & M


def _shift(x: int) -> int:
    return x ^ (x >> 47)


def _mix(u: int, v: int, mul: int) -> int:
    a = _shift(((u ^ v) * mul) & M)
    return (_shift(((v ^ a) * mul) & M) * mul) & M


def farm(s: bytes) -> int:
    """FarmHash's Fingerprint64 (G. Pike, farmhashna)."""
    n = len(s)
    mul = (K2 + 2 * n) & M
    if n == 0:
        return K2
    if n < 4:
        y, z = s[0] + (s[n >> 1] << 8), n + (s[-1] << 2)
        return (_shift(((y * K2) ^ (z * K0)) & M) * K2) & M
    if n < 8:
        return _mix(n + (_word(s, 0, 4) << 3), _word(s, n - 4, 4), mul)
    if n <= 16:
        a, b = (_word(s, 0) + K2) & M, _word(s, n - 8)
        return _mix((_rot(b, 37) * mul + a) & M, ((_rot(a, 25) + b) * mul) & M, mul)
    if n <= 64:
        return _farm_middle(s, n, mul)
    return _farm_long(s, n)


def _farm_middle(s: bytes, n: int, mul: int) -> int:
    a, b = (_word(s, 0) * (K1 if n <= 32 else K2)) & M, _word(s, 8)
    c, d = (_word(s, n - 8) * mul) & M, (_word(s, n - 16) * K2) & M
    y = (_rot((a + b) & M, 43) + _rot(c, 30) + d) & M
    z = (a + _rot((b + K2) & M, 18) + c) & M
    if n <= 32:
        return _mix(y, z, mul)
    z = _mix(y, z, mul)
    e, f = (_word(s, 16) * mul) & M, _word(s, 24)
    g, h = ((y + _word(s, n - 32)) * mul) & M, ((z + _word(s, n - 24)) * mul) & M
    first = (_rot((e + f) & M, 43) + _rot(g, 30) + h) & M
    return _mix(first, (e + _rot((f + a) & M, 18) + g) & M, mul)


def _weak(s: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = (_word(s, at + 8 * i) for i in range(4))
    a = (a + w) & M
    b = _rot((b + a + z) & M, 21)
    c = a
    a = (a + x + y) & M
    b = (b + _rot(a, 44)) & M
    return (a + z) & M, (b + c) & M


def _farm_long(s: bytes, n: int) -> int:
    x, y = 81, (81 * K1 + 113) & M
    z = (_shift((y * K2 + 113) & M) * K2) & M
    v, w = (0, 0), (0, 0)
    x = (x * K2 + _word(s, 0)) & M
    last = (n - 1) & 63
    for at, final in [*((i, False) for i in range(0, n - 1 - last, 64)), (n - 64, True)]:
        mul, nine = K1, 1
        if final:
            mul, nine = (K1 + ((z & 0xFF) << 1)) & M, 9
            w = ((w[0] + last) & M, w[1])
            v = ((v[0] + w[0]) & M, v[1])
            w = ((w[0] + v[0]) & M, w[1])
        x = (_rot((x + y + v[0] + _word(s, at + 8)) & M, 37) * mul) & M
        y = (_rot((y + v[1] + _word(s, at + 48)) & M, 42) * mul) & M
        x ^= (w[1] * nine) & M
        y = (y + v[0] * nine + _word(s, at + 40)) & M
        z = (_rot((z + w[0]) & M, 33) * mul) & M
        v = _weak(s, at, (v[1] * mul) & M, (x + w[0]) & M)
        w = _weak(s, at + 32, (z + w[1]) & M, (y + _word(s, at + 16)) & M)
        z, x = x, z
    left = (_mix(v[0], w[0], mul) + _shift(y) * K0 + z) & M
    return _mix(left, (_mix(v[1], w[1], mul) + x) & M, mul)


_CITY = 0x9DDFEA08EB382D69


def city128(s: bytes) -> tuple[int, int]:
    """FarmHash's Fingerprint128 (farmhashcc): the low and the high half."""
    if len(s) < 16:
        return _city(s, K0, K1)
    return _city(s[16:], _word(s, 0), (_word(s, 8) + K0) & M)


def _city(s: bytes, a: int, b: int) -> tuple[int, int]:
    n = len(s)
    if n >= 128:
        return _city_long(s, a, b)
    if n <= 16:
        a = (_shift((a * K1) & M) * K1) & M
        c = (b * K1 + farm(s)) & M
        d = _shift((a + (_word(s, 0) if n >= 8 else c)) & M)
    else:
        c = _mix((_word(s, n - 8) + K1) & M, a, _CITY)
        d = _mix((b + n) & M, (c + _word(s, n - 16)) & M, _CITY)
        a = (a + d) & M
        for at in range(0, n - 16, 16):
            a = ((a ^ (_shift((_word(s, at) * K1) & M) * K1)) * K1) & M
            b ^= a
            c = ((c ^ (_shift((_word(s, at + 8) * K1) & M) * K1)) * K1) & M
            d ^= c
    a, b = _mix(a, c, _CITY), _mix(d, b, _CITY)
    return a ^ b, _mix(b, a, _CITY)


def _city_long(s: bytes, x: int, y: int) -> tuple[int, int]:
    n = len(s)
    z = (n * K1) & M
    first = (_rot(y ^ K1, 49) * K1 + _word(s, 0)) & M
    v = first, (_rot(first, 42) * K1 + _word(s, 8)) & M
    w = (_rot((y + z) & M, 35) * K1 + x) & M, (_rot((x + _word(s, 88)) & M, 53) * K1) & M
    for at in range(0, n // 128 * 128, 64):
        x = (_rot((x + y + v[0] + _word(s, at + 8)) & M, 37) * K1) & M
        y = (_rot((y + v[1] + _word(s, at + 48)) & M, 42) * K1) & M
        x ^= w[1]
        y = (y + v[0] + _word(s, at + 40)) & M
        z = (_rot((z + w[0]) & M, 33) * K1) & M
        v = _weak(s, at, (v[1] * K1) & M, (x + w[0]) & M)
        w = _weak(s, at + 32, (z + w[1]) & M, (y + _word(s, at + 16)) & M)
        z, x = x, z
    x = (x + _rot((v[0] + z) & M, 49) * K0) & M
    y = (y * K0 + _rot(w[1], 37)) & M
    z = (z * K0 + _rot(w[0], 27)) & M
    w, v = ((w[0] * 9) & M, w[1]), ((v[0] * K0) & M, v[1])
    left = n % 128
    for done in range(32, left + 32, 32):
        at = n - done
        y = (_rot((x + y) & M, 42) * K0 + v[1]) & M
        w = (w[0] + _word(s, at + 16)) & M, w[1]
        x = (x * K0 + w[0]) & M
        z = (z + w[1] + _word(s, at)) & M
        w = w[0], (w[1] + v[0]) & M
        v = _weak(s, at, (v[0] + z) & M, v[1])
        v = (v[0] * K0) & M, v[1]
    x, y = _mix(x, v[0], _CITY), _mix((y + z) & M, w[0], _CITY)
    low = _mix((x + v[1]) & M, w[1], _CITY) + y
    return low & M, _mix((x + w[1]) & M, (y + v[1]) & M, _CITY)


def sip(s: bytes, k0: int, k1: int) -> int:
    """SipHash-2-4 (Aumasson and Bernstein, 2012)."""
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D,
         k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]  # fmt: skip

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0] = (v[0] + v[1]) & M
            v[2] = (v[2] + v[3]) & M
            v[1], v[3] = _rot(v[1], 51) ^ v[0], _rot(v[3], 48) ^ v[2]
            v[0] = _rot(v[0], 32)
            v[2] = (v[2] + v[1]) & M
            v[0] = (v[0] + v[3]) & M
            v[1], v[3] = _rot(v[1], 47) ^ v[2], _rot(v[3], 43) ^ v[0]
            v[2] = _rot(v[2], 32)

    whole = len(s) // 8 * 8
    tail = s[whole:].ljust(7, b"\0") + bytes([len(s) & 255])
    for word in [*(_word(s, i) for i in range(0, whole, 8)), _word(tail, 0)]:
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 255
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def murmur(s: bytes) -> int:
    """MurmurHash64A (A. Appleby) with TF's seed."""
    m = 0xC6A4A7935BD1E995
    h = 0xDECAFCAFFE ^ ((len(s) * m) & M)
    whole = len(s) // 8 * 8
    for i in range(0, whole, 8):
        k = _shift((_word(s, i) * m) & M)
        h = ((h ^ ((k * m) & M)) * m) & M
    if len(s) > whole:
        h = ((h ^ _word(s, whole)) * m) & M
    return _shift((_shift(h) * m) & M)


def _buckets(fn: Callable[[bytes], int], values: Array, count: int) -> Array:
    array = np.asarray(values, object)
    out = np.empty(array.shape, np.int64)
    for where in np.ndindex(*array.shape):
        out[where] = fn(bytes(array[where])) % count
    return out


@reference("StringToHashBucket")
def string_to_hash_bucket(attrs: Attrs, values: Array) -> Array:
    """MurmurHash."""
    return _buckets(murmur, values, attrs["num_buckets"])


@reference("StringToHashBucketFast")
def string_to_hash_bucket_fast(attrs: Attrs, values: Array) -> Array:
    """FarmHash."""
    return _buckets(farm, values, attrs["num_buckets"])


@reference("StringToHashBucketStrong")
def string_to_hash_bucket_strong(attrs: Attrs, values: Array) -> Array:
    """SipHash."""
    k0, k1 = (k & M for k in attrs["key"])
    return _buckets(lambda s: sip(s, k0, k1), values, attrs["num_buckets"])


@reference("Fingerprint")
def fingerprint(attrs: Attrs, data: Array, method: Array) -> Array:
    """FarmHash of each row's bytes; of its strings' fingerprints, if there are several."""
    rows = []
    array = np.asarray(data)
    # The oracle gets numbers widened; their own bytes are what counts.
    for row in array if array.dtype == object else array.astype(attrs["T"]):
        if isinstance(row, bytes):
            rows.append(farm(row))
        elif row.dtype == object:
            words = [farm(s).to_bytes(8, "little") for s in row.reshape(-1)]
            rows.append(farm(b"".join(words)))
        else:
            rows.append(farm(row.tobytes()))
    return np.array(rows, "<u8").view(np.uint8).reshape(len(rows), 8)
