"""Conversion between element types, by value and by bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import NUMBERS, QUANTIZED, KernelTable, NodeSig, checks, dtypes
from opdock_cpu.halves import converted

__all__ = ["table"]

Array = Any  # an ndarray, or the NumPy scalar that stands for a 0-d one

table = KernelTable()

_VALUES = NUMBERS | {dtypes.bool}
_ANY_VALUES = _VALUES | QUANTIZED


@table.binder("Cast", SrcT=_ANY_VALUES, DstT=_ANY_VALUES, out=True)
def _cast(sig: NodeSig) -> Callable[..., Array]:
    source, target = sig.in_dtypes[0], sig.out_dtypes[0]
    if source in QUANTIZED or target in QUANTIZED:
        return _cast_steps(source.np, target.np)
    dtype = target.np
    drops_imaginary = source.is_complex and not target.is_complex

    def run(x: Array, out: Array | None = None) -> Array:
        if drops_imaginary:
            x = x.real
        return converted(x, dtype, out)

    return run


def _cast_steps(source: np.dtype[Any], target: np.dtype[Any]) -> Callable[..., Array]:
    """Quantized numbers are cast as the integers that hold them."""
    held, wanted = _integers(source), _integers(target)

    def run(x: Array, out: Array | None = None) -> Array:
        values = np.asarray(x).view(held)
        if values.dtype.kind == "c":
            values = values.real
        result = values.astype(wanted).view(target)
        if out is None:
            return result
        np.copyto(out, result)
        return out

    return run


def _integers(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of the one field of a quantized type; any other as it is."""
    return dtype if dtype.names is None else dtype[dtype.names[0]]


@table.binder("Bitcast", T=NUMBERS | QUANTIZED, type=NUMBERS | QUANTIZED, may_alias={0: 0})
def _bitcast(sig: NodeSig) -> Callable[..., Array]:
    dtype = sig.out_dtypes[0].np

    def run(x: Array) -> Array:
        shape = checks.bitcast_shape(sig, x.shape)
        return np.ascontiguousarray(x).reshape(-1).view(np.uint8).view(dtype).reshape(shape)

    return run
