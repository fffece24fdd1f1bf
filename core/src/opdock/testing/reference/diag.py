"""What lies on diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _zero(x: Array) -> Any:
    return b"" if x.dtype.kind in "OSU" else 0


@reference("Diag")
def diag(attrs: Attrs, x: Array) -> Array:
    """An element stands where both halves of the index agree."""
    out = np.zeros(x.shape * 2, x.dtype)
    for place in np.ndindex(*x.shape):
        out[place + place] = x[place]
    return out


@reference("DiagPart")
def diag_part(attrs: Attrs, x: Array) -> Array:
    """What stands where both halves of the index agree."""
    out = np.empty(x.shape[: x.ndim // 2], x.dtype)
    for place in np.ndindex(*out.shape):
        out[place] = x[place + place]
    return out


def _band(k: Array) -> tuple[int, int]:
    flat = [int(v) for v in k.reshape(-1)]
    return flat[0], flat[-1]


def _cells(k: int, rows: int, cols: int) -> list[tuple[int, int]]:
    """The cells of a diagonal, from the upper left."""
    return [(i, i + k) for i in range(rows) if 0 <= i + k < cols]


def _longest(lower: int, upper: int, rows: int, cols: int) -> int:
    return max(len(_cells(k, rows, cols)) for k in range(lower, upper + 1))


@reference("MatrixDiag")
def matrix_diag(attrs: Attrs, x: Array) -> Array:
    """Square matrices."""
    out = np.full((*x.shape, x.shape[-1]), _zero(x), x.dtype)
    for place in np.ndindex(*x.shape):
        out[(*place, place[-1])] = x[place]
    return out


@reference("MatrixDiagV2")
def matrix_diag_v2(
    attrs: Attrs, x: Array, k: Array, num_rows: Array, num_cols: Array, padding: Array
) -> Array:
    """Matrices no larger than the diagonals need, unless the size is given."""
    lower, upper = _band(k)
    rows, cols = int(num_rows), int(num_cols)
    least_rows, least_cols = x.shape[-1] + max(-upper, 0), x.shape[-1] + max(lower, 0)
    if rows == -1 and cols == -1:
        rows = cols = max(least_rows, least_cols)
    rows, cols = (least_rows if rows == -1 else rows), (least_cols if cols == -1 else cols)
    lines = x if upper != lower else x[..., np.newaxis, :]
    out = np.full((*lines.shape[:-2], rows, cols), padding[()], x.dtype)
    for batch in np.ndindex(*lines.shape[:-2]):
        for d in range(lower, upper + 1):
            for n, cell in enumerate(_cells(d, rows, cols)):
                out[batch + cell] = lines[(*batch, upper - d, n)]
    return out


@reference("MatrixDiagPart")
def matrix_diag_part(attrs: Attrs, x: Array) -> Array:
    """The main diagonals."""
    out = np.empty((*x.shape[:-2], min(x.shape[-2:])), x.dtype)
    for place in np.ndindex(*out.shape):
        out[place] = x[(*place, place[-1])]
    return out


@reference("MatrixDiagPartV2")
def matrix_diag_part_v2(attrs: Attrs, x: Array, k: Array, padding: Array) -> Array:
    """A line for each diagonal, the highest first, filled up at the end."""
    lower, upper = _band(k)
    rows, cols = x.shape[-2:]
    length = _longest(lower, upper, rows, cols)
    out = np.full((*x.shape[:-2], upper - lower + 1, length), padding[()], x.dtype)
    for batch in np.ndindex(*x.shape[:-2]):
        for d in range(lower, upper + 1):
            for n, cell in enumerate(_cells(d, rows, cols)):
                out[(*batch, upper - d, n)] = x[batch + cell]
    return out[..., 0, :] if lower == upper else out


@reference("MatrixSetDiag")
def matrix_set_diag(attrs: Attrs, x: Array, diagonal: Array) -> Array:
    """Other main diagonals."""
    out = x.copy()
    for place in np.ndindex(*diagonal.shape):
        out[(*place, place[-1])] = diagonal[place]
    return out


@reference("MatrixSetDiagV2")
def matrix_set_diag_v2(attrs: Attrs, x: Array, diagonal: Array, k: Array) -> Array:
    """Another band."""
    lower, upper = _band(k)
    lines = diagonal if lower != upper else diagonal[..., np.newaxis, :]
    out = x.copy()
    for batch in np.ndindex(*x.shape[:-2]):
        for d in range(lower, upper + 1):
            for n, cell in enumerate(_cells(d, *x.shape[-2:])):
                out[batch + cell] = lines[(*batch, upper - d, n)]
    return out
