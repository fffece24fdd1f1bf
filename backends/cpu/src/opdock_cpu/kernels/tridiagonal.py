"""Products with tridiagonal matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from opdock.plugin import COMPLEX, KernelTable, NodeSig, dtypes

__all__ = ["table"]

table = KernelTable()

Array = npt.NDArray[Any]

_TYPES = COMPLEX | {dtypes.float32, dtypes.float64}


@table.binder("TridiagonalMatMul", T=_TYPES)
def _tridiagonal_matmul(sig: NodeSig) -> Callable[..., Array]:
    def run(superdiag: Array, maindiag: Array, subdiag: Array, rhs: Array) -> Array:
        out = maindiag[..., 0, :, None] * rhs
        out[..., :-1, :] += superdiag[..., 0, :-1, None] * rhs[..., 1:, :]
        out[..., 1:, :] += subdiag[..., 0, 1:, None] * rhs[..., :-1, :]
        return out

    return run
