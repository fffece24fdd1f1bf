"""Portable kernels of transposition and bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock import axes, dtypes
from opdock.kernels.array_api import copy, device_ints, dims, ints, invalid, zeros
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


@portable("Transpose", host_inputs=("perm",))
def transpose(xp: Any, sig: NodeSig) -> Any:
    """The dimensions in another order."""

    def run(x: Any, perm: Any) -> Any:
        return copy(xp, xp.permute_dims(x, axes.permutation(perm, len(x.shape))))

    return run


@portable("ConjugateTranspose", host_inputs=("perm",))
def conjugate_transpose(xp: Any, sig: NodeSig) -> Any:
    """The dimensions in another order, complex elements conjugated."""
    complex_ = sig.in_dtypes[0].is_complex

    def run(x: Any, perm: Any) -> Any:
        turned = xp.permute_dims(x, axes.permutation(perm, len(x.shape)))
        return xp.conj(turned) if complex_ else copy(xp, turned)

    return run


def check_matrix(shape: Sequence[int]) -> None:
    """Raises InvalidArgumentError unless a shape is that of matrices."""
    if len(shape) < 2:
        raise invalid(f"input must be at least 2-dim, received shape: {dims(shape)}")


def band_of(shape: tuple[int, ...], num_lower: Any, num_upper: Any) -> tuple[int, int]:
    """How many diagonals below and above the main one stay; -1 stands for all of them.

    Raises:
        InvalidArgumentError: what is cut is no matrix, or has fewer diagonals than are to stay.
    """
    check_matrix(shape)
    (lower,), (upper,) = ints(num_lower), ints(num_upper)
    rows, columns = shape[-2:]
    if lower > rows:
        raise invalid(
            f"num_lower must be negative or less or equal to number of rows ({rows}) got: {lower}"
        )
    if upper > columns:
        raise invalid(
            "num_upper must be negative or less or equal to number of columns "
            f"({columns}) got: {upper}"
        )
    return (rows if lower < 0 else lower), (columns if upper < 0 else upper)


@portable(
    "MatrixBandPart", T=dtypes.NUMBERS | {dtypes.bool}, host_inputs=("num_lower", "num_upper")
)
def matrix_band_part(xp: Any, sig: NodeSig) -> Any:
    """Zeros outside a band."""
    dtype = sig.out_dtypes[0]

    def run(x: Any, num_lower: Any, num_upper: Any) -> Any:
        low, high = band_of(x.shape, num_lower, num_upper)
        m, n = x.shape[-2:]
        row = xp.reshape(device_ints(xp, np.arange(m), x), (m, 1))
        col = xp.reshape(device_ints(xp, np.arange(n), x), (1, n))
        keep = (row - col <= low) & (col - row <= high)
        return xp.where(keep, x, zeros(xp, (), x, dtype))

    return run
