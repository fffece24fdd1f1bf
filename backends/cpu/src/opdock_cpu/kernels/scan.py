"""Scans on NumPy: ufuncs that accumulate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import NUMBERS, KernelTable, NodeSig, axes, dtypes

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()

_HALVES = frozenset({dtypes.float16, dtypes.bfloat16})
_UFUNCS = {"Cumsum": np.add, "Cumprod": np.multiply, "CumulativeLogsumexp": np.logaddexp}


@table.binder("Cumsum", "Cumprod", T=NUMBERS, host_inputs=("axis",))
@table.binder("CumulativeLogsumexp", host_inputs=("axis",))
def _scan(sig: NodeSig) -> Callable[..., Array]:
    ufunc, dtype = _UFUNCS[sig.op], sig.in_dtypes[0]
    exclusive, reverse = sig.attrs["exclusive"], sig.attrs["reverse"]
    narrow = dtype in _HALVES
    wide: np.dtype[Any] = np.dtype(np.float32) if narrow else dtype.np
    neutral = {"Cumsum": 0, "Cumprod": 1}.get(sig.op, -np.inf)
    lowest = dtype.min if sig.op == "CumulativeLogsumexp" else None

    def run(x: Array, axis: Array) -> Array:
        position = axes.scanned(axis, x.ndim)
        if narrow:
            x = x.astype(wide)
        result = np.empty(x.shape, wide)
        source, target = np.moveaxis(x, position, 0), np.moveaxis(result, position, 0)
        if reverse:
            source, target = source[::-1], target[::-1]
        if exclusive and len(source):
            target[0] = neutral
            ufunc.accumulate(source[:-1], 0, wide, target[1:])
        else:
            ufunc.accumulate(source, 0, wide, target)
        if lowest is not None:
            np.maximum(result, lowest, out=result)
        return result.astype(dtype.np) if narrow else result

    return run
