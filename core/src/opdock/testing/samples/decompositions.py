"""Samples of the factorisations.

Singular and eigenvectors are only determined up to a sign, so samples that ask for them compare
shapes; what they must satisfy is tested with the op family.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

Array = np.ndarray[Any, Any]
_TOL = (2e-3, 2e-4)
_REASON = "a factorisation amplifies rounding by the condition of the matrix"


def _adjoint(x: Array) -> Array:
    return np.conj(np.swapaxes(x, -1, -2))


def _positive(rng: Sampler, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Self-adjoint positive definite matrices, well conditioned."""
    x = rng.normal(shape)
    return (x @ _adjoint(x) / shape[-1] + 2 * np.eye(shape[-1])).astype(dtype)


def _dominant(rng: Sampler, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """General matrices far from singular."""
    return (rng.uniform(shape, -1, 1) + 3 * np.eye(shape[-1])).astype(dtype)


def _loose(dtype: np.dtype[Any]) -> dict[str, Any]:
    return {} if dtype.name in ("float64", "complex128") else {"tol": _TOL, "tol_reason": _REASON}


@samples("Cholesky")
def cholesky(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """One matrix, a batch, the trivial sizes.

    The gradient takes the input for self-adjoint, which element by element differences are not.
    """
    for shape, tag in (((3, 3), "plain"), ((2, 4, 4), "batch"), ((1, 1), "minimal")):
        grad = shape == (1, 1) and dtype.kind != "c"
        yield Sample([_positive(rng, shape, dtype)], {}, tag, grad, **_loose(dtype))
    yield Sample([np.zeros((0, 3, 3), dtype)], {}, "empty", grad=False)


@samples("CholeskyGrad")
def cholesky_grad(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """A factor and the gradient of it."""
    for shape, tag in (((3, 3), "plain"), ((2, 4, 4), "batch")):
        lower = np.linalg.cholesky(_positive(rng, shape, dtype).astype(np.float64)).astype(dtype)
        yield Sample([lower, np.tril(rng.normal(shape))], {}, tag, grad=False, **_loose(dtype))


@samples("Qr")
def qr(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Tall, wide and square; full and reduced. TF has the gradient for real matrices only."""
    real = dtype.kind != "c"
    yield Sample([_dominant(rng, (3, 3), dtype)], {}, "square", real, **_loose(dtype))
    yield Sample([rng.normal((5, 3))], {"full_matrices": False}, "tall", real, **_loose(dtype))
    yield Sample([rng.normal((5, 3))], {"full_matrices": True}, "full", grad=False, **_loose(dtype))
    yield Sample(
        [rng.normal((2, 3, 4))], {"full_matrices": False}, "wide", grad=False, **_loose(dtype)
    )
    yield Sample([np.zeros((0, 3, 2), dtype)], {}, "empty", grad=False)


@samples("Svd")
def svd(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Values, then shapes of the vectors."""
    yield Sample([rng.normal((4, 3))], {"compute_uv": False}, "values", **_loose(dtype))
    yield Sample(
        [rng.normal((2, 3, 4))], {"compute_uv": False}, "values-batch", grad=False, **_loose(dtype)
    )
    for full in (False, True):
        attrs = {"compute_uv": True, "full_matrices": full}
        yield Sample([rng.normal((2, 4, 3))], attrs, "vectors", grad=False, shape_only=True)
    yield Sample([np.zeros((0, 3, 2), dtype)], {"compute_uv": False}, "empty", grad=False)


@samples("SelfAdjointEigV2")
def self_adjoint_eig_v2(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Values, then shapes of the vectors."""
    yield Sample([_positive(rng, (3, 3), dtype)], {"compute_v": False}, "values", **_loose(dtype))
    yield Sample(
        [_positive(rng, (2, 4, 4), dtype)],
        {"compute_v": False},
        "batch",
        grad=False,
        **_loose(dtype),
    )
    yield Sample(
        [_positive(rng, (3, 3), dtype)], {"compute_v": True}, "vectors", grad=False, shape_only=True
    )
    yield Sample([np.zeros((0, 3, 3), dtype)], {"compute_v": False}, "empty", grad=False)


@samples("SelfAdjointEig")
def self_adjoint_eig(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Vectors are in the result, so shapes only."""
    yield Sample([_positive(rng, (3, 3), dtype)], {}, "plain", grad=False, shape_only=True)


@samples("Lu")
def lu(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Matrices that need row exchanges, a size above the blocking threshold."""
    swapped = np.array([[0, 2, 1], [4, 1, 0], [2, 5, 3]]).astype(dtype)
    yield Sample([swapped], {}, "swaps", **_loose(dtype))
    yield Sample(
        [rng.normal((2, 4, 4))],
        {"output_idx_type": np.dtype(np.int64)},
        "batch",
        **_loose(dtype),
    )
    yield Sample([_dominant(rng, (40, 40), dtype)], {}, "blocked", grad=False, **_loose(dtype))
    yield Sample([np.zeros((0, 3, 3), dtype)], {}, "empty", grad=False)


@samples("MatrixSquareRoot", "MatrixLogarithm", "MatrixExponential")
def functions(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Matrices whose eigenvalues keep clear of the negative axis."""
    for shape, tag in (((3, 3), "plain"), ((2, 4, 4), "batch"), ((1, 1), "minimal")):
        yield Sample([_dominant(rng, shape, dtype)], {}, tag, **_loose(dtype))
    yield Sample([np.zeros((0, 2, 2), dtype)], {}, "empty", grad=False)


@error_samples("Cholesky")
def bad_cholesky() -> Iterable[ErrorSample]:
    """An indefinite matrix, one that is not square."""
    yield ErrorSample(
        [np.array([[1, 0], [0, -1]], np.float32)],
        {},
        match="Cholesky decomposition was not successful",
    )
    yield ErrorSample(
        [np.zeros((2, 3), np.float32)],
        {},
        "ValueError",
        "Dimensions must be equal, but are 2 and 3",
        "build",
    )


@error_samples("Lu")
def bad_lu() -> Iterable[ErrorSample]:
    """A singular matrix."""
    yield ErrorSample([np.zeros((2, 2), np.float32)], {}, match="Input is not invertible")
