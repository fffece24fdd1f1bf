"""Samples of the io family: file names. What touches files is tested on files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


def _one(text: bytes) -> Any:
    out = np.empty((), object)
    out[()] = text
    return out


@samples("ShardedFilename")
def sharded_filename(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Short and long numbers."""
    for shard, count in ((0, 1), (7, 12), (123456, 654321)):
        numbers = [np.array(n, np.int32) for n in (shard, count)]
        yield Sample([_one(b"/tmp/model.ckpt"), *numbers], tag=f"{shard}-of-{count}")


@samples("ShardedFilespec")
def sharded_filespec(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Short and long numbers."""
    for count in (1, 12, 654321):
        yield Sample([_one(b"/tmp/model.ckpt"), np.array(count, np.int32)], tag=f"of-{count}")


@error_samples("ShardedFilename")
def not_scalars() -> Iterable[ErrorSample]:
    """One name at a time."""
    yield ErrorSample(
        [np.full(2, b"a", object), np.array(0, np.int32), np.array(1, np.int32)],
        exception="ValueError", match="Shape must be rank 0 but is rank 1", phase="build",
        tag="vector",
    )  # fmt: skip
