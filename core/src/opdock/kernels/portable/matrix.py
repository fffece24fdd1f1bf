"""Portable kernels of transposition and bands."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import axes, dtypes
from opdock.kernels.array_api import copy, device_ints, ints, invalid, zeros
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


@portable(
    "MatrixBandPart", T=dtypes.NUMBERS | {dtypes.bool}, host_inputs=("num_lower", "num_upper")
)
def matrix_band_part(xp: Any, sig: NodeSig) -> Any:
    """Zeros outside a band."""
    dtype = sig.out_dtypes[0]

    def run(x: Any, num_lower: Any, num_upper: Any) -> Any:
        if len(x.shape) < 2:
            raise invalid(f"input must be at least 2-dim, received shape: {list(x.shape)}")
        (lower,), (upper,) = ints(num_lower), ints(num_upper)
        m, n = x.shape[-2:]
        row = xp.reshape(device_ints(xp, np.arange(m), x), (m, 1))
        col = xp.reshape(device_ints(xp, np.arange(n), x), (1, n))
        low, high = (m if lower < 0 else lower), (n if upper < 0 else upper)
        keep = (row - col <= low) & (col - row <= high)
        return xp.where(keep, x, zeros(xp, (), x, dtype))

    return run
