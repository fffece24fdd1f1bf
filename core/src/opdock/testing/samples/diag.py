"""Samples of diagonals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32


@samples("Diag")
def tensors(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Vectors and matrices."""
    for shape, tag in (((3,), "plain"), ((2, 3), "matrix"), ((0,), "empty"), ((1, 2, 2), "rank3")):
        yield Sample([rng.normal(shape)], {}, tag)


@samples("DiagPart")
def tensor_parts(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Matrices and higher ranks."""
    for shape, tag in (((3,), "plain"), ((2, 3), "rank4"), ((0,), "empty"), ((1, 2, 2), "rank6")):
        yield Sample([rng.normal((*shape, *shape))], {}, tag)


@samples("MatrixDiag")
def matrices(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Vectors and batches."""
    for shape, tag in (((3,), "plain"), ((2, 3), "batch"), ((0,), "empty"), ((2, 1, 2), "rank3")):
        yield Sample([rng.normal(shape)], {}, tag)


@samples("MatrixDiagPart")
def matrix_parts(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Square, wide and tall matrices."""
    for shape, tag in (
        ((3, 3), "plain"),
        ((2, 4), "wide"),
        ((2, 4, 2), "tall"),
        ((0, 2), "empty"),
        ((2, 1, 3, 3), "rank4"),
    ):
        yield Sample([rng.normal(shape)], {}, tag)


@samples("MatrixSetDiag")
def replaced(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Square, wide and tall matrices."""
    for shape, tag in (
        ((3, 3), "plain"),
        ((2, 4), "wide"),
        ((2, 4, 2), "tall"),
        ((0, 2), "empty"),
        ((2, 1, 3, 3), "rank4"),
    ):
        diagonal = (*shape[:-2], min(shape[-2:]))
        yield Sample([rng.normal(shape), rng.normal(diagonal)], {}, tag)


@samples("MatrixDiagV2")
def bands(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Single diagonals and bands, sizes given and found."""
    for shape, k, rows, cols, tag in (
        ((3,), 0, -1, -1, "main"),
        ((3,), 1, -1, -1, "above"),
        ((2, 3), -2, -1, -1, "below"),
        ((3,), 1, 3, 5, "sized"),
        ((3,), 0, 4, 3, "tall"),
        ((2, 3), [0, 1], -1, -1, "band"),
        ((3, 3), [-1, 1], 3, 4, "wide-band"),
        ((2, 2, 3), [-1, 0], -1, 3, "batch"),
    ):
        numbers = [np.array(v, _INT) for v in (k, rows, cols)]
        yield Sample([rng.normal(shape), *numbers, rng.normal(())], {}, tag, grad_inputs=(0,))


@samples("MatrixDiagPartV2")
def band_parts(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Single diagonals and bands of square, wide and tall matrices."""
    for shape, k, tag in (
        ((3, 3), 0, "main"),
        ((3, 4), 2, "above"),
        ((4, 3), -1, "below"),
        ((3, 3), [-1, 1], "band"),
        ((2, 4), [0, 3], "wide-band"),
        ((2, 4, 2), [-3, -1], "batch"),
    ):
        # TF gives the padding value no gradient, so only what is not padded is differentiated.
        args = [rng.normal(shape), np.array(k, _INT), rng.normal(())]
        yield Sample(args, {}, tag, grad=isinstance(k, int))


@samples("MatrixSetDiagV2")
def replaced_bands(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Single diagonals and bands."""
    for shape, k, diagonal, tag in (
        ((3, 3), 0, (3,), "main"),
        ((3, 4), 2, (2,), "above"),
        ((4, 3), -1, (3,), "below"),
        ((3, 3), [0, 0], (3,), "pair"),
        ((2, 4), [0, 1], (2, 2), "band"),
        ((2, 3, 3), [-1, 1], (2, 3, 3), "batch"),
    ):
        yield Sample([rng.normal(shape), rng.normal(diagonal), np.array(k, _INT)], {}, tag)


@error_samples("DiagPart")
def odd() -> Iterable[ErrorSample]:
    """An odd rank."""
    yield ErrorSample(
        [np.zeros(3, np.float32)],
        {},
        "ValueError",
        "even and non-zero rank, input rank is 1",
        "build",
    )


@error_samples("MatrixDiagPartV2")
def outside() -> Iterable[ErrorSample]:
    """A diagonal beyond the matrix."""
    args = [np.zeros((2, 2), np.float32), np.array(3, _INT), np.zeros((), np.float32)]
    yield ErrorSample(args, {}, "ValueError", "lower_diag_index is out of bound: 3", "build")
    yield ErrorSample(
        args, {}, "InvalidArgumentError", "lower_diag_index is out of bound: 3", "run"
    )


@error_samples("MatrixSetDiag")
def unfit() -> Iterable[ErrorSample]:
    """A diagonal that is too long."""
    args = [np.zeros((2, 2), np.float32), np.zeros(3, np.float32)]
    yield ErrorSample(args, {}, "InvalidArgumentError", "diagonal shape", "run")
