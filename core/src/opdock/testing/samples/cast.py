"""Samples of conversions between element types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np

from opdock import dtypes
from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_TARGETS = (
    np.bool_, np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64,
    np.float16, np.float32, np.float64, ml_dtypes.bfloat16, np.complex64, np.complex128,
)  # fmt: skip
_QUANTIZED = sorted(dtypes.QUANTIZED, key=lambda t: t.name)
_BITS = (np.uint8, np.int16, np.float16, np.int32, np.float32, np.uint64, np.float64, np.complex128)


@samples("Cast", vary="SrcT")
def conversions(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Every target, with numbers that every target can hold."""
    if dtype.kind in "OSU":
        return
    for target in map(np.dtype, _TARGETS):
        # Complex to real has no derivative that the oracle's two directions agree on.
        smooth = dtype.kind != "c" or target.kind == "c"
        values = rng.positive((3, 4), 0.0, 9.0)
        yield Sample([values], {"DstT": target}, f"to-{target.name}", grad=smooth)
        if target.kind != "u" and dtype.kind not in "ub":
            negative = (-rng.positive((5,), 0.0, 9.0)).astype(dtype)
            yield Sample([negative], {"DstT": target}, f"negative-to-{target.name}", grad=False)
    for quantized in _QUANTIZED:
        values = rng.integers((3, 4), 0, 9)
        yield Sample([values], {"DstT": quantized.np}, f"to-{quantized.name}", grad=False)
    for shape, tag in (((), "scalar"), ((0, 3), "empty"), ((2, 1, 2, 1, 3), "rank5")):
        yield Sample([rng.normal(shape)], {"DstT": np.dtype(np.float32)}, tag, grad=False)


@samples("Bitcast")
def bits(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """To smaller, equal and larger types."""
    for target in map(np.dtype, _BITS):
        last = max(1, target.itemsize // dtype.itemsize)
        shape = (3, last) if last > 1 else (3, 2)
        values = rng.integers(shape, 0, 50)
        yield Sample([values], {"type": target}, f"to-{target.name}", grad=False)
    same = {"type": dtype}
    yield Sample([rng.integers((), 0, 50)], same, "scalar", grad=False)
    yield Sample([rng.integers((0, 2), 0, 50)], same, "empty", grad=False)
    yield Sample([rng.integers((2, 1, 2, 1, 3), 0, 50)], same, "rank5", grad=False)


@error_samples("Bitcast")
def torn() -> Iterable[ErrorSample]:
    """A last dimension that does not make whole elements."""
    attrs = {"type": np.dtype(np.float64)}
    values = np.zeros((2, 3), np.float32)
    yield ErrorSample([values], attrs, "ValueError", "Cannot bitcast", "build")
    yield ErrorSample([values], attrs, "InvalidArgumentError", "", "run")
