"""What transposition and bands give."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("Transpose")
def transpose(attrs: Attrs, x: Array, perm: Array) -> Array:
    """Dimension i of the result is dimension perm[i] of the input."""
    axes = [int(p) for p in perm]
    out = np.empty([x.shape[a] for a in axes], x.dtype)
    for place in np.ndindex(*out.shape):
        source = [0] * x.ndim
        for i, a in enumerate(axes):
            source[a] = place[i]
        out[place] = x[tuple(source)]
    return out


@reference("ConjugateTranspose")
def conjugate_transpose(attrs: Attrs, x: Array, perm: Array) -> Array:
    """The same, with complex elements conjugated."""
    out = transpose(attrs, x, perm)
    return np.conj(out) if x.dtype.kind == "c" else out


@reference("MatrixBandPart")
def matrix_band_part(attrs: Attrs, x: Array, lower: Array, upper: Array) -> Array:
    """Zero where an element is too far below or above the diagonal."""
    out = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        i, j = place[-2:]
        if (lower < 0 or i - j <= lower) and (upper < 0 or j - i <= upper):
            out[place] = x[place]
    return out
