"""Samples of rows that are replaced, raised or lowered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


def _ints(*values: int) -> Any:
    return np.array(values, np.int32)


@samples("InplaceUpdate", "InplaceAdd", "InplaceSub")
def rows(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Rows from both ends, beyond them, no rows; vectors and more dimensions."""
    for tag, shape, places in (
        ("matrix", (4, 3), _ints(2, 0)), ("vector", (4,), _ints(-1, 1)),
        ("beyond", (4, 3, 2), _ints(5, -6)), ("none", (3, 2), _ints()),
    ):  # fmt: skip
        values = rng.normal((len(places), *shape[1:]))
        yield Sample([rng.normal(shape), places, values], {}, tag, grad=False)


@samples("DeepCopy")
def copies(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Any shape."""
    for shape in ((), (3, 2), (0, 2)):
        yield Sample([rng.normal(shape)], {}, f"rank{len(shape)}", grad=False)


@samples("Empty", vary="dtype")
def empties(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Any shape."""
    for shape in ((), (3, 2), (0, 2)):
        yield Sample([_ints(*shape)], {"init": True, "dtype": dtype}, f"rank{len(shape)}")


@error_samples("InplaceUpdate", "InplaceAdd", "InplaceSub")
def misfits() -> Iterable[ErrorSample]:
    """Places that are no vector; values of another shape or number."""
    x, row = np.zeros((2, 3), np.float32), np.zeros((1, 3), np.float32)
    yield ErrorSample([x, np.array(0, np.int32), row], {}, match="i must be a vector")
    yield ErrorSample([x, _ints(0), row[0]], {}, match="ranks differ")
    yield ErrorSample([x, _ints(0), row[:, :2]], {}, match="doesn't match at index 1")
    yield ErrorSample([x, _ints(0, 1), row], {}, match="doesn't match at index 0")
