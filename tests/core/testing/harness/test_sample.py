"""Samples are the same each time, and have the dtype asked for."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from opdock.testing.harness.sample import Sampler, load_families, sample_ops, samples_for

DTYPES = ["float32", "float16", "int8", "uint16", "int64", "bool", "complex64", "object"]


@pytest.mark.parametrize("dtype", [*DTYPES, ml_dtypes.bfloat16])
@pytest.mark.parametrize("method", ["normal", "uniform", "integers", "positive"])
def test_dtype_shape_and_repetition(dtype: str, method: str) -> None:
    first = getattr(Sampler(dtype, "seed"), method)((3, 2))
    again = getattr(Sampler(dtype, "seed"), method)((3, 2))
    assert first.dtype == np.dtype(dtype)
    assert first.shape == (3, 2)
    assert np.array_equal(first, again)


def test_special_draws() -> None:
    rng = Sampler("float32", 3)
    values = rng.distinct((5, 4))
    assert np.diff(np.sort(values.reshape(-1))).min() >= 0.25
    assert np.abs(rng.away_from((200,), 0.0, 0.2)).min() >= 0.2
    assert rng.bools((4,)).dtype == np.bool_
    assert rng.indices((50,), 7).max() < 7
    assert Sampler("uint8", 1).normal((100,)).min() >= 0
    assert Sampler("int32", 1).positive((100,)).min() > 0


def test_every_family_can_be_imported() -> None:
    assert load_families() == {}


def test_samples_of_an_op_are_repeatable() -> None:
    assert "RandomUniform" in sample_ops()
    first, again = (list(samples_for("RandomShuffle", np.float32)) for _ in range(2))
    assert [s.tag for s in first] == [s.tag for s in again]
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one.inputs[0], other.inputs[0])
