"""Samples of arithmetic on quantized tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.dtypes import DType
from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples
from opdock.testing.samples.quantize import integers

F = np.float32
INT32 = {"Toutput": dtypes.qint32.np}
ENDS = ((-1.0, 1.0, -2.0, 3.0), (0.0, 6.0, -1.0, 1.0), (1.0, 2.0, -4.0, -1.0))
"""Of two arguments: zeros inside of the types, at an end, and outside."""


def scalars(*values: float) -> list[Any]:
    """The ends of ranges."""
    return [np.array(v, F) for v in values]


def of_type(dtype: DType, shape: tuple[int, ...], seed: int = 0) -> Any:
    """Integers of a quantized type, as arrays that know it."""
    plain = integers(Sampler(dtype.np[0], seed), dtype.np[0], shape)
    mixed = np.random.RandomState(seed).permutation(plain.reshape(-1)).reshape(shape)
    return mixed.view(dtype.np)


@samples("QuantizedMatMul", vary="T1", types=[dtypes.quint8])
def matmul(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Both types of weights, both ways round; small enough for NumPy and large enough for more."""
    plain = {**INT32, "transpose_a": False, "transpose_b": False}
    for weights in (dtypes.quint8, dtypes.qint8):
        for ends in ENDS:
            a, b = integers(rng, dtype, (3, 7)), of_type(weights, (7, 4))
            yield Sample([a, b, *scalars(*ends)], plain, f"{weights.name}{ends}")
        a, b = integers(rng, dtype, (40, 9)), of_type(weights, (50, 40))
        both = {**INT32, "transpose_a": True, "transpose_b": True}
        yield Sample([a, b, *scalars(*ENDS[0])], both, f"{weights.name}-transposed")
        a, b = integers(rng, dtype, (20, 600)), of_type(weights, (600, 20))
        yield Sample([a, b, *scalars(*ENDS[0])], plain, f"{weights.name}-deep")
        a, b = integers(rng, dtype, (0, 5)), of_type(weights, (5, 2))
        yield Sample([a, b, *scalars(*ENDS[0])], plain, f"{weights.name}-empty")


@error_samples("QuantizedMatMul")
def matmul_errors() -> Iterable[ErrorSample]:
    """Shapes and ranges that do not fit."""
    a, b = np.zeros((2, 3), dtypes.quint8.np), np.zeros((3, 4), dtypes.quint8.np)
    attrs = {**INT32, "transpose_a": False, "transpose_b": False}
    yield ErrorSample([a, b, *scalars(1, 1, 0, 1)], attrs, match="max_a must be larger than min_a")
    yield ErrorSample([a, b, *scalars(0, 1, 1, 0)], attrs, match="max_b must be larger than min_b")
    yield ErrorSample([a, a, *scalars(0, 1, 0, 1)], attrs, match="Matrix size-incompatible")
    wide = [a, b, np.zeros(2, F), *scalars(1, 0, 1)]
    yield ErrorSample(wide, attrs, match="min_a must be a scalar")
    yield ErrorSample(wide, attrs, "ValueError", match="must be rank 0", phase="build")


@samples("QuantizedAdd", "QuantizedMul", vary="T1", types=[dtypes.quint8])
def binary(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Equal shapes, vectors and scalars on either side."""
    pairs = (((3, 4), (3, 4)), ((4,), (3, 4)), ((3, 4), (4,)), ((), (3, 4)), ((5,), ()), ((), ()))
    for ends in ENDS:
        for left, right in pairs:
            x, y = integers(rng, dtype, left), of_type(dtypes.quint8, right, 3)
            yield Sample([x, y, *scalars(*ends)], INT32, f"{left}{right}{ends}")
    x, y = integers(rng, dtype, (0, 3)), of_type(dtypes.quint8, (0, 3))
    yield Sample([x, y, *scalars(*ENDS[0])], INT32, "empty")


@error_samples("QuantizedAdd", "QuantizedMul")
def binary_errors() -> Iterable[ErrorSample]:
    """Shapes that do not broadcast, and an empty range."""
    x, y = np.zeros((2, 3), dtypes.quint8.np), np.zeros((4,), dtypes.quint8.np)
    yield ErrorSample([x, y, *scalars(0, 1, 0, 1)], INT32, match="Incompatible shapes")
    yield ErrorSample([x, x, *scalars(1, 1, 0, 1)], INT32, match="max_x must be larger than min_x")


@samples("QuantizedBiasAdd", vary="T1", types=[dtypes.quint8, dtypes.qint8])
def bias_add(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Matrices and images."""
    same = dtypes.qint8 if dtype.kind == "i" else dtypes.quint8
    attrs = {"out_type": dtypes.qint32.np}
    for ends in ENDS:
        for shape in ((3, 4), (2, 2, 3, 4)):
            x, bias = integers(rng, dtype, shape), of_type(same, (4,))
            yield Sample([x, bias, *scalars(*ends)], attrs, f"{len(shape)}d{ends}")


@samples("QuantizedReshape", types=dtypes.QUANTIZED)
def reshape(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """A dimension that is left open, none at all, no element."""
    for shape, target in (((2, 6), (3, -1)), ((4,), (2, 2)), ((1,), ()), ((0, 3), (3, 0))):
        x, wanted = rng.normal(shape), np.array(target, np.int32)
        yield Sample([x, wanted, *scalars(-1, 2)], {}, f"{shape}{target}")


@samples("QuantizedConcat", types=[dtypes.quint8, dtypes.qint32])
def concat(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Equal ranges, different ones, and all on one side of 0."""
    for lows, highs in (((-1, -1), (2, 2)), ((-1, -4), (2, 0.5)), ((1, 0.5), (2, 3))):
        values = [integers(rng, dtype, (2, n)) for n in (3, 1)]
        inputs = [np.array(1, np.int32), values, scalars(*lows), scalars(*highs)]
        yield Sample(inputs, {}, f"{lows}{highs}")


@error_samples("QuantizedConcat")
def concat_errors() -> Iterable[ErrorSample]:
    """Other dimensions that differ, and an axis that is none."""
    parts = [np.zeros((2, 3), dtypes.quint8.np), np.zeros((3, 4), dtypes.quint8.np)]
    rest = [parts, scalars(0, 0), scalars(1, 1)]
    yield ErrorSample([np.array(1, np.int32), *rest], {}, match="Dimensions of inputs should match")
    yield ErrorSample([np.array(2, np.int32), *rest], {}, match="dimensions in the range")
