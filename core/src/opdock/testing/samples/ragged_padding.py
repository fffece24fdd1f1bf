"""Samples of padded ragged tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_SPLITS = np.array([0, 3, 3, 4], np.int64)
_ROWIDS = np.array([0, 0, 0, 2], np.int64)
_ANY = np.array(-1, np.int64)


def _attrs(*kinds: str) -> dict[str, Any]:
    return {"row_partition_types": list(kinds)}


@samples("RaggedTensorToTensor")
def padded(dtype: Any, rng: Sampler) -> Iterator[Sample]:
    """Splits and row ids; one and two ragged dimensions; sizes given, cut and open."""
    values, default = rng.normal((4,)), rng.normal(())
    splits = _attrs("ROW_SPLITS")
    yield Sample([_ANY, values, default, [_SPLITS]], splits, "plain")
    ids = [np.array(3, np.int64), _ROWIDS]
    yield Sample([_ANY, values, default, ids], _attrs("FIRST_DIM_SIZE", "VALUE_ROWIDS"), "ids")
    cut = np.array([4, 2], np.int32)
    yield Sample([cut, values, default, [_SPLITS]], splits, "cut")
    nested = [np.array([0, 1, 3]), _SPLITS]
    yield Sample(
        [_ANY, rng.normal((4, 2)), rng.normal((2,)), nested],
        _attrs("ROW_SPLITS", "ROW_SPLITS"), "nested",
    )  # fmt: skip
    none = [np.zeros(3, np.int64)]
    yield Sample([_ANY, rng.normal((0,)), default, none], splits, "empty", grad=False)


@error_samples("RaggedTensorToTensor")
def bad_partitions() -> Iterator[ErrorSample]:
    """Partitions that are none, or not of these values."""
    values, zero = np.ones(4, np.float32), np.float32(0)
    splits = _attrs("ROW_SPLITS")
    back = np.array([0, 3, 1, 4], np.int64)
    yield ErrorSample([_ANY, values, zero, [back]], splits, match="sorted in ascending order")
    yield ErrorSample(
        [_ANY, values[:3], zero, [_SPLITS]], splits, match="partitions are of 4 values"
    )
    rows = [np.array(2, np.int64), _ROWIDS]
    ids = _attrs("FIRST_DIM_SIZE", "VALUE_ROWIDS")
    yield ErrorSample([_ANY, values, zero, rows], ids, match=r"Row id 2 is not in \[0, 2\)")
    yield ErrorSample([_ANY, values, zero, [_SPLITS]], _attrs("ROWS"), "ValueError",
                      "Unknown string for partition info type: ROWS", "build")  # fmt: skip
    three = np.array([3, 3, 1], np.int64)
    yield ErrorSample([three, values, zero, [_SPLITS]], splits, "ValueError",
                      "consistent number of dimensions", "build")  # fmt: skip
