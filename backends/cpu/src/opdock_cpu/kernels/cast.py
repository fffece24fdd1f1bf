"""Conversion between element types, by value and by bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import NUMBERS, QUANTIZED, KernelTable, NodeSig, dtypes

__all__ = ["table"]

Array = Any  # an ndarray, or the NumPy scalar that stands for a 0-d one

table = KernelTable()

_VALUES = NUMBERS | {dtypes.bool}


@table.binder("Cast", SrcT=_VALUES, DstT=_VALUES, out=True)
def _cast(sig: NodeSig) -> Callable[..., Array]:
    source, target = sig.in_dtypes[0], sig.out_dtypes[0]
    dtype = target.np
    drops_imaginary = source.is_complex and not target.is_complex

    def run(x: Array, out: Array | None = None) -> Array:
        if drops_imaginary:
            x = x.real
        if out is None:
            return x.astype(dtype)
        np.copyto(out, x, casting="unsafe")
        return out

    return run


@table.binder("Bitcast", T=NUMBERS | QUANTIZED, type=NUMBERS | QUANTIZED, may_alias={0: 0})
def _bitcast(sig: NodeSig) -> Callable[..., Array]:
    source, target = sig.in_dtypes[0].size, sig.out_dtypes[0].size
    dtype = sig.out_dtypes[0].np

    def run(x: Array) -> Array:
        shape = x.shape
        if source > target:
            shape = (*shape, source // target)
        elif source < target:
            if not shape or shape[-1] * source != target:
                raise ValueError(
                    f"Cannot bitcast {sig.in_dtypes[0].name}{list(x.shape)} to "
                    f"{sig.out_dtypes[0].name}: the last dimension must be {target // source}"
                )
            shape = shape[:-1]
        return np.ascontiguousarray(x).reshape(-1).view(np.uint8).view(dtype).reshape(shape)

    return run
