"""Complex numbers, with exact parts: no arithmetic that turns an infinity into NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import COMPLEX, KernelTable, NodeSig

__all__ = ["table"]

Array = Any  # an ndarray, or the NumPy scalar that stands for a 0-d one

table = KernelTable()


@table.binder("Complex", out=True)
def _complex(sig: NodeSig) -> Callable[..., Array]:
    dtype = sig.out_dtypes[0].np

    def run(real: Array, imag: Array, out: Array | None = None) -> Array:
        if out is None:
            out = np.empty(np.broadcast_shapes(np.shape(real), np.shape(imag)), dtype)
        out.real = real
        out.imag = imag
        return out

    return run


@table.binder("Real", T=COMPLEX, out=True)
def _real(sig: NodeSig) -> Callable[..., Array]:
    return lambda x, out=None: np.positive(x.real, out)


@table.binder("Imag", T=COMPLEX, out=True)
def _imag(sig: NodeSig) -> Callable[..., Array]:
    return lambda x, out=None: np.positive(x.imag, out)


@table.binder("Angle", T=COMPLEX, out=True)
def _angle(sig: NodeSig) -> Callable[..., Array]:
    return lambda x, out=None: np.arctan2(x.imag, x.real, out)
