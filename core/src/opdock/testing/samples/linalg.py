"""Samples of the matrix products."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


@samples("MatMul")
def matmul(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """All four transpositions, thin and empty matrices."""
    for ta in (False, True):
        for tb in (False, True):
            a = rng.normal((4, 3) if ta else (3, 4))
            b = rng.normal((5, 4) if tb else (4, 5))
            yield Sample([a, b], {"transpose_a": ta, "transpose_b": tb}, f"t{ta:d}{tb:d}")
    yield Sample([rng.normal((1, 1)), rng.normal((1, 1))], {}, "minimal")
    yield Sample([rng.normal((1, 7)), rng.normal((7, 1))], {}, "inner")
    yield Sample([rng.normal((7, 1)), rng.normal((1, 7))], {}, "outer")
    yield Sample([rng.normal((2, 0)), rng.normal((0, 3))], {}, "empty-inner", grad=False)
    yield Sample([rng.normal((0, 3)), rng.normal((3, 2))], {}, "empty", grad=False)
    yield Sample([rng.normal((33, 65)), rng.normal((65, 17))], {}, "large", grad=False)
    # As a layer's weights get their gradient from a batch.
    batch = [rng.normal((64, 48)), rng.normal((64, 80))]
    yield Sample(batch, {"transpose_a": True}, "weights", grad=False)


@samples("SparseMatMul", vary="Ta")
def sparse_matmul(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Matrices with many zeros; the hints change nothing but speed."""
    a = rng.normal((3, 4)) * np.array([1, 0, 0, 1]).astype(dtype)
    yield Sample([a, rng.normal((4, 5))], {"a_is_sparse": True}, "plain")
    yield Sample(
        [rng.normal((4, 3)), rng.normal((5, 4))],
        {"transpose_a": True, "transpose_b": True, "b_is_sparse": True},
        "transposed",
    )


def _batch(
    rng: Sampler, x: tuple[int, ...], y: tuple[int, ...], tag: str, grad: bool = True, **attrs: bool
) -> Sample:
    return Sample([rng.normal(x), rng.normal(y)], attrs, tag, grad)


@samples("BatchMatMul", "BatchMatMulV2")
def batch_matmul(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Equal batch dimensions, adjoints."""
    yield _batch(rng, (2, 3, 4), (2, 4, 5), "plain")
    yield _batch(rng, (2, 4, 3), (2, 4, 5), "adj-x", adj_x=True)
    yield _batch(rng, (2, 3, 4), (2, 5, 4), "adj-y", adj_y=True)
    yield _batch(rng, (2, 4, 3), (2, 5, 4), "adj-both", adj_x=True, adj_y=True)
    yield _batch(rng, (3, 4), (4, 2), "matrices")
    yield _batch(rng, (2, 1, 3, 2, 2), (2, 1, 3, 2, 3), "rank5")
    yield _batch(rng, (0, 3, 4), (0, 4, 5), "empty", grad=False)
    yield _batch(rng, (2, 3, 0), (2, 0, 5), "empty-inner", grad=False)


@samples("BatchMatMulV2")
def broadcast_matmul(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Batch dimensions that broadcast, from either side."""
    yield _batch(rng, (2, 3, 4), (4, 2), "broadcast-y")
    yield _batch(rng, (3, 4), (5, 4, 2), "broadcast-x")
    yield _batch(rng, (2, 1, 3, 4), (3, 4, 2), "broadcast-both")


@error_samples("MatMul")
def bad_matmul() -> Iterable[ErrorSample]:
    """Inner dimensions that differ, ranks other than two."""
    a, b = np.zeros((2, 3), np.float32), np.zeros((4, 5), np.float32)
    yield ErrorSample(
        [a, b], {}, "ValueError", r"Dimensions must be equal, but are 3 and 4", "build"
    )
    yield ErrorSample(
        [a, b], {}, match=r"Matrix size-incompatible: In\[0\]: \[2,3\], In\[1\]: \[4,5\]"
    )
    yield ErrorSample([a[0], b], {}, "ValueError", r"Shape must be rank 2 but is rank 1", "build")


@error_samples("BatchMatMulV2")
def bad_batch_matmul() -> Iterable[ErrorSample]:
    """Inner dimensions that differ, batches that do not broadcast."""
    a, b = np.zeros((2, 2, 3), np.float32), np.zeros((2, 4, 5), np.float32)
    yield ErrorSample(
        [a, b], {}, "ValueError", r"Dimensions must be equal, but are 3 and 4", "build"
    )
    yield ErrorSample(
        [a, b], {}, match=r"In\[0\] mismatch In\[1\] shape: 3 vs\. 4: \[2,2,3\] \[2,4,5\]"
    )
    yield ErrorSample(
        [a, np.zeros((3, 3, 5), np.float32)], {}, match=r"must have compatible batch dimensions"
    )
