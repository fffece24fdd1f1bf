"""Samples of the hashes: every length up to several blocks, bytes of all values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


def _strings() -> np.ndarray[Any, Any]:
    out = np.empty(150, object)
    for i in range(150):
        out[i] = bytes((7 * i * k + k * k + i) % 256 for k in range(i))
    return out


@samples("StringToHashBucket", "StringToHashBucketFast")
def buckets(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Few buckets and many, shapes, nothing."""
    yield Sample([_strings()], {"num_buckets": 2**62 - 57}, "many")
    yield Sample([_strings()[:6].reshape(2, 3)], {"num_buckets": 10}, "matrix")
    yield Sample([np.empty((0, 2), object)], {"num_buckets": 3}, "empty")


@samples("StringToHashBucketStrong")
def keyed_buckets(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same under keys."""
    yield Sample([_strings()], {"num_buckets": 2**62 - 57, "key": [98765, 132]}, "many")
    yield Sample([_strings()[:6].reshape(2, 3)], {"num_buckets": 10, "key": [0, -1]}, "matrix")


@samples("Fingerprint")
def fingerprints(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Strings, rows of strings, rows of numbers."""
    method = np.array(b"farmhash64", object)
    if dtype.kind == "O":
        yield Sample([_strings(), method], {}, "strings")
        yield Sample([_strings().reshape(50, 3), method], {}, "rows")
        return
    yield Sample([rng.normal((3, 4, 5)), method], {}, "numbers")
    yield Sample([rng.normal((0, 4)), method], {}, "empty")


@error_samples("StringToHashBucketStrong")
def no_key() -> Iterable[ErrorSample]:
    """A key of one number."""
    yield ErrorSample(
        [_strings()], {"num_buckets": 10, "key": [1]}, match="Key must have 2 elements", tag="key"
    )


@error_samples("Fingerprint")
def no_method() -> Iterable[ErrorSample]:
    """There is one method."""
    yield ErrorSample(
        [_strings(), np.array(b"md5", object)], match="Unsupported fingerprint method: md5",
        tag="method",
    )  # fmt: skip
