"""The oracle for functions of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _of_eigenvalues(x: Array, fn: Callable[[Array], Array]) -> Array:
    """A function of diagonalisable matrices through their eigenvalues."""
    if x.shape[-1] == 0:
        return x
    values, vectors = np.linalg.eig(x)
    out = (vectors * fn(values.astype(np.complex128))[..., None, :]) @ np.linalg.inv(vectors)
    return out if x.dtype.kind == "c" else out.real


@reference("MatrixSquareRoot")
def matrix_square_root(attrs: Attrs, x: Array) -> Array:
    """The principal square root."""
    return _of_eigenvalues(x, np.sqrt)


@reference("MatrixLogarithm")
def matrix_logarithm(attrs: Attrs, x: Array) -> Array:
    """The principal logarithm."""
    return _of_eigenvalues(x, np.log)


@reference("MatrixExponential")
def matrix_exponential(attrs: Attrs, x: Array) -> Array:
    """The sum of x^k / k!."""
    term = np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape)
    total = term.copy()
    for k in range(1, 100):
        term = term @ x / k
        total = total + term
    return total
