"""The positions of extremes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import REALS, KernelTable, NodeSig, axes, dtypes

__all__ = ["table"]

table = KernelTable()

Array = npt.NDArray[Any]


@table.binder(
    "ArgMax", "ArgMin", T=REALS - {dtypes.float16, dtypes.bfloat16}, host_inputs=("dimension",)
)
def _arg(sig: NodeSig) -> Callable[..., Array]:
    fn = np.argmax if sig.op == "ArgMax" else np.argmin
    worst = -math.inf if sig.op == "ArgMax" else math.inf
    dtype, floating = sig.out_dtypes[0].np, sig.in_dtypes[0].is_floating

    def run(x: Array, dimension: Array) -> Array:
        axis = axes.searched(dimension, x.shape)
        found = fn(x, axis)
        # NumPy takes a NaN for the extreme, TF never does.
        if floating and np.isnan(_at(x, found, axis)).any():
            found = fn(np.where(np.isnan(x), worst, x), axis)
        return np.asarray(found).astype(dtype, copy=False)

    return run


def _at(x: Array, positions: Any, axis: int) -> Array:
    """The elements at `positions` along `axis`."""
    if x.ndim == 1:
        return np.asarray(x[positions])
    if axis % x.ndim == x.ndim - 1:
        rows = positions.reshape(-1)
        return np.asarray(x.reshape(-1, x.shape[-1])[np.arange(rows.size), rows])
    return np.take_along_axis(x, np.expand_dims(positions, axis), axis)
