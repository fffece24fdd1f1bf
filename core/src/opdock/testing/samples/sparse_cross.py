"""Samples of crosses of features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_KEY = 956888297470
_CELLS = np.array([[0, 0], [0, 1], [1, 0]], np.int64)
_SIZE = np.array([2, 2], np.int64)
_TEXT = np.array([b"a", b"b", b"c"], object)
_DENSE = np.array([[b"x", b"y"], [b"z", b"w"]], object)


def _attrs(hashed: bool, key: bool) -> dict[str, Any]:
    kind = np.dtype(np.int64) if hashed else np.dtype(object)
    attrs = {"hashed_output": hashed, "num_buckets": 0, "out_type": kind, "internal_type": kind}
    return {**attrs, "hash_key": _KEY} if key else attrs


def _crosses(dtype: np.dtype[Any], key: bool) -> Iterator[Sample]:
    """Sparse with dense, sparse with sparse, a row without a feature."""
    hashed = np.dtype(dtype).kind == "i"
    numbers = np.array([3, -1, 7], np.int64)
    text = _attrs(hashed, key)
    yield Sample([[_CELLS], [_TEXT], [_SIZE], [_DENSE]], text, "text", grad=False)
    mixed = {**text, "internal_type": np.dtype(np.int64)}
    yield Sample(
        [[_CELLS, _CELLS], [_TEXT, numbers], [_SIZE, _SIZE], []], mixed, "mixed", grad=False
    )
    size = np.array([3, 2], np.int64)
    yield Sample([[_CELLS], [numbers], [size], []], mixed, "empty-row", grad=False)
    if hashed:
        few = {**mixed, "num_buckets": 10}
        yield Sample([[_CELLS], [numbers], [_SIZE], [numbers[:2, None]]], few, "few", grad=False)


def _bad_crosses(key: bool) -> Iterator[ErrorSample]:
    """Rows that differ in number."""
    yield ErrorSample(
        [[_CELLS], [_TEXT], [_SIZE], [_DENSE[:1]]],
        _attrs(False, key),
        match="Expected batch size 2 got 1",
    )


def _offer(op: str, key: bool = True) -> None:
    @samples(op, vary="out_type")
    def crosses(dtype: np.dtype[Any], rng: Sampler) -> Iterator[Sample]:
        return _crosses(dtype, key)

    @error_samples(op)
    def bad_crosses() -> Iterator[ErrorSample]:
        return _bad_crosses(key)


_offer("SparseCross")
_offer("SparseFeatureCross", key=False)
_offer("SparseFeatureCrossV2")
