"""What the matrix products compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _product(a: Array, b: Array) -> Array:
    """Row by column, as taught at school."""
    out = np.zeros((a.shape[0], b.shape[1]), np.result_type(a, b))
    for row in range(a.shape[0]):
        for column in range(b.shape[1]):
            out[row, column] = np.sum(a[row, :] * b[:, column])
    return out


@reference("MatMul", "SparseMatMul")
def matmul(attrs: Attrs, a: Array, b: Array) -> Array:
    """The product of two matrices, either transposed first."""
    return _product(
        a.T if attrs["transpose_a"] else a,
        b.T if attrs["transpose_b"] else b,
    )


@reference("BatchMatMul", "BatchMatMulV2")
def batch_matmul(attrs: Attrs, x: Array, y: Array) -> Array:
    """Products of the matrices in the last two dimensions, leading dimensions broadcast."""
    if attrs["adj_x"]:
        x = np.conj(np.swapaxes(x, -1, -2))
    if attrs["adj_y"]:
        y = np.conj(np.swapaxes(y, -1, -2))
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x = np.broadcast_to(x, batch + x.shape[-2:])
    y = np.broadcast_to(y, batch + y.shape[-2:])
    out = np.zeros((*batch, x.shape[-2], y.shape[-1]), x.dtype)
    for where in np.ndindex(*batch):
        out[where] = _product(x[where], y[where])
    return out
