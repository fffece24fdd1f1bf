"""Fills into planned buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import ALL, KernelTable, NodeSig, as_dtype, checks, dtypes

__all__ = ["table"]

table = KernelTable()

Array = npt.NDArray[Any]

_STRING = as_dtype("string")
_DATA = ALL - {dtypes.resource, dtypes.variant}


@table.binder("Fill", out=True, host_inputs=("dims",))
def fill(sig: NodeSig) -> Callable[..., Array]:
    """One value everywhere."""
    dtype = sig.out_dtypes[0].np

    def run(dims: Any, value: Any, out: Array | None) -> Array:
        if out is None:
            out = np.empty(checks.filled_shape(dims), dtype)
        out[...] = value
        return out

    return run


@table.binder("ZerosLike", T=_DATA, out=True)
def zeros_like(sig: NodeSig) -> Callable[..., Array]:
    """Zeros, or empty strings, in the input's shape."""
    dtype = sig.out_dtypes[0]
    if dtype.is_quantized:
        return lambda x, out: np.zeros(np.shape(x), dtype.np)
    if dtype is _STRING:
        return lambda x, out: np.full(np.shape(x), b"", object)

    def run(x: Any, out: Array | None) -> Array:
        if out is None:
            return np.zeros(np.shape(x), dtype.np)
        out.fill(0)
        return out

    return run


@table.binder("OnesLike", out=True)
def ones_like(sig: NodeSig) -> Callable[..., Array]:
    """Ones in the input's shape."""
    dtype = sig.out_dtypes[0].np

    def run(x: Any, out: Array | None) -> Array:
        if out is None:
            return np.ones(np.shape(x), dtype)
        out.fill(dtype.type(1))
        return out

    return run
