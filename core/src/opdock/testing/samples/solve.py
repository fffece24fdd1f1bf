"""Samples of the solvers, inverses and determinants."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

Array = np.ndarray[Any, Any]


def _dominant(rng: Sampler, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    return (rng.uniform(shape, -1, 1) + 3 * np.eye(shape[-1])).astype(dtype)


@samples("MatrixDeterminant", "LogMatrixDeterminant")
def determinants(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """One matrix, a batch, negative and trivial determinants."""
    yield Sample([_dominant(rng, (3, 3), dtype)], {}, "plain")
    yield Sample([_dominant(rng, (2, 4, 4), dtype)], {}, "batch")
    yield Sample([np.array([[0, 2], [3, 0]]).astype(dtype)], {}, "negative")
    yield Sample([np.zeros((0, 3, 3), dtype)], {}, "empty", grad=False)


@samples("MatrixInverse")
def inverses(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Plain, adjoint, batch, trivial sizes."""
    for adjoint in (False, True):
        yield Sample([_dominant(rng, (3, 3), dtype)], {"adjoint": adjoint}, f"adjoint{adjoint:d}")
    yield Sample([_dominant(rng, (2, 2, 4, 4), dtype)], {}, "batch")
    yield Sample([_dominant(rng, (1, 1), dtype)], {}, "minimal")
    yield Sample([np.zeros((0, 3, 3), dtype)], {}, "empty", grad=False)


@samples("MatrixSolve")
def solves(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """One and several right-hand sides, adjoint, batch."""
    for adjoint in (False, True):
        yield Sample(
            [_dominant(rng, (3, 3), dtype), rng.normal((3, 2))],
            {"adjoint": adjoint},
            f"adjoint{adjoint:d}",
        )
    yield Sample([_dominant(rng, (2, 4, 4), dtype), rng.normal((2, 4, 1))], {}, "batch")
    yield Sample([np.zeros((0, 3, 3), dtype), np.zeros((0, 3, 2), dtype)], {}, "empty", grad=False)


@samples("MatrixTriangularSolve")
def triangular_solves(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Both triangles; the other one holds numbers that must not be read."""
    for lower in (True, False):
        for adjoint in (False, True):
            yield Sample(
                [_dominant(rng, (3, 3), dtype), rng.normal((3, 2))],
                {"lower": lower, "adjoint": adjoint},
                f"lower{lower:d}-adjoint{adjoint:d}",
            )
    yield Sample([_dominant(rng, (2, 4, 4), dtype), rng.normal((2, 4, 3))], {}, "batch")
    yield Sample([_dominant(rng, (90, 90), dtype), rng.normal((90, 2))], {}, "blocked", grad=False)


@samples("MatrixSolveLs")
def least_squares(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Tall and wide systems, with and without regularisation, both methods."""
    for shape, tag in (((5, 3), "tall"), ((3, 5), "wide")):
        for strength in (0.0, 0.1):
            inputs = [rng.normal(shape), rng.normal((shape[0], 2)), np.array(strength, np.float64)]
            yield Sample(
                inputs,
                {"fast": True},
                f"{tag}-{strength}",
                tol=(5e-3, 5e-3),
                tol_reason="the normal equations square the condition of the matrix",
            )
    yield Sample(
        [rng.normal((2, 5, 3)), rng.normal((2, 5, 1)), np.array(0.0)],
        {"fast": False},
        "slow",
        grad=False,
        tol=(5e-3, 5e-3),
        tol_reason="least squares square the condition of the matrix",
    )


@error_samples("MatrixInverse")
def bad_inverse() -> Iterable[ErrorSample]:
    """A singular matrix, one that is not square."""
    yield ErrorSample([np.zeros((2, 2), np.float32)], {}, match="Input is not invertible")
    yield ErrorSample(
        [np.zeros((2, 3), np.float32)],
        {},
        "ValueError",
        "Dimensions must be equal, but are 2 and 3",
        "build",
    )


@error_samples("MatrixSolve", "MatrixTriangularSolve")
def bad_solve() -> Iterable[ErrorSample]:
    """A singular matrix, right-hand sides of another height."""
    yield ErrorSample(
        [np.zeros((2, 2), np.float32), np.ones((2, 1), np.float32)],
        {},
        match="Input matrix is not invertible",
    )
    yield ErrorSample(
        [np.eye(2, dtype=np.float32), np.ones((3, 1), np.float32)],
        {},
        "ValueError",
        "Dimensions must be equal, but are 2 and 3",
        "build",
    )
