"""Complex numbers, with exact parts: no arithmetic that turns an infinity into NaN."""

from __future__ import annotations

from collections.abc import Callable
from math import atan2
from typing import Any, Final

import numpy as np

from opdock.plugin import COMPLEX, KernelTable, NodeSig
from opdock_cpu.jit.looped import Array, Looped

__all__ = ["table"]

Values = Any  # an ndarray, or the NumPy scalar that stands for a 0-d one

table = KernelTable()


@table.binder("Complex", out=True)
def _complex(sig: NodeSig) -> Callable[..., Values]:
    dtype = sig.out_dtypes[0].np

    def run(real: Values, imag: Values, out: Values | None = None) -> Values:
        if out is None:
            out = np.empty(np.broadcast_shapes(np.shape(real), np.shape(imag)), dtype)
        out.real = real
        out.imag = imag
        return out

    return run


@table.binder("Real", T=COMPLEX, out=True)
def _real(sig: NodeSig) -> Callable[..., Values]:
    return lambda x, out=None: np.positive(x.real, out)


@table.binder("Imag", T=COMPLEX, out=True)
def _imag(sig: NodeSig) -> Callable[..., Values]:
    return lambda x, out=None: np.positive(x.imag, out)


def _angles(begin: int, end: int, out: Array, parts: Array) -> None:
    """A turn is a number, whose two parts lie side by side."""
    for t in range(begin, end):
        out[t] = atan2(parts[2 * t + 1], parts[2 * t])


_ANGLES: Final = Looped(_angles)
_FEW: Final = 1 << 10
_STEPS: Final = 64
"""Turns of a plain loop that one of these takes."""


@table.binder("Angle", T=COMPLEX, out=True)
def _angle(sig: NodeSig) -> Callable[..., Values]:
    dtype = sig.out_dtypes[0].np

    def run(x: Values, out: Values | None = None) -> Values:
        # NumPy has vectors for this with AVX-512 alone, which are no quicker; few are its own.
        if x.size >= _FEW:
            result = np.empty(x.shape, dtype) if out is None else out
            parts = np.ascontiguousarray(x).view(dtype)
            if result.flags.c_contiguous and _ANGLES(x.size, _STEPS * x.size, result, parts):
                return result
        return np.arctan2(x.imag, x.real, out)

    return run
