"""Kernels of hashes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_cpu.text import hash_loops, hashing
from opdock_cpu.text.arrays import Array, flat, one, shown
from opdock_cpu.text.packed import Packed, joined

__all__ = ["table"]

table = KernelTable()


def _buckets(
    sig: NodeSig,
    fn: Callable[[Sequence[bytes]], Array],
    looped: Callable[[Packed], Array | None],
) -> Callable[[Array], Array]:
    count = np.uint64(sig.attrs["num_buckets"])

    def run(strings: Array) -> Array:
        words = looped(joined(strings))
        if words is None:
            words = fn(flat(strings))
        return (words % count).astype(np.int64).reshape(np.shape(strings))

    return run


@table.binder("StringToHashBucket")
def string_to_hash_bucket(sig: NodeSig) -> Callable[[Array], Array]:
    """TF's first hash function."""
    return _buckets(sig, hashing.murmur64, hash_loops.murmur)


@table.binder("StringToHashBucketFast")
def string_to_hash_bucket_fast(sig: NodeSig) -> Callable[[Array], Array]:
    """FarmHash."""
    return _buckets(sig, hashing.fingerprint64, hash_loops.farm)


@table.binder("StringToHashBucketStrong")
def string_to_hash_bucket_strong(sig: NodeSig) -> Callable[[Array], Array]:
    """SipHash."""
    key = [int(k) for k in sig.attrs["key"]]
    if len(key) != 2:
        raise checks.invalid("Key must have 2 elements")
    return _buckets(
        sig,
        lambda strings: hashing.siphash24(strings, key),
        lambda strings: hash_loops.sip(strings, key),
    )


@table.kernel("Fingerprint")
def fingerprint(ctx: Any, data: Array, method: Array) -> Array:
    """FarmHash of each row, as bytes."""
    if np.ndim(method) != 0:
        raise checks.invalid(f"`method` should be a scalar string: {checks.dims(np.shape(method))}")
    if one(method) != b"farmhash64":
        raise checks.invalid(f"Unsupported fingerprint method: {shown(one(method))}")
    rows = np.asarray(data)
    if rows.ndim == 0:
        raise checks.invalid("`data` should have at least one dimension: []")
    count = rows.shape[0]
    if not count:
        return np.empty((0, 8), np.uint8)
    if rows.dtype == object:
        words = hash_loops.farm(joined(rows))
        if words is None:
            words = hashing.fingerprint64(flat(rows))
        if words.size == count:
            return _bytes(words, count)
        rows = words
    raw = np.ascontiguousarray(rows).reshape(-1).view(np.uint8).reshape(count, -1)
    bounds = np.arange(count + 1) * raw.shape[1]
    words = hash_loops.farm(Packed(raw.reshape(-1), bounds, (count,)))
    if words is not None:
        return _bytes(words, count)
    return _bytes(hashing.fingerprint64([row.tobytes() for row in raw]), count)


def _bytes(words: Array, count: int) -> Array:
    return words.astype("<u8").view(np.uint8).reshape(count, 8)
