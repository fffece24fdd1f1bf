"""Biases by a ufunc that writes into a given buffer, and their gradients by a product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, dtypes

__all__ = ["table"]

table = KernelTable()

Array = npt.NDArray[Any]

_FLOATS = frozenset({dtypes.float32, dtypes.float64})

_NATIVE = dtypes.REALS - {dtypes.float16, dtypes.bfloat16}


@table.binder("BiasAdd", "BiasAddV1", T=_NATIVE | dtypes.COMPLEX, out=True)
def bias_add(sig: NodeSig) -> Callable[..., Any]:
    """Adds a vector along the channels."""
    add = np.add
    if sig.attrs.get("data_format") != "NCHW":

        def run(value: Array, bias: Array, out: Array | None) -> Any:
            return add(value, bias, out)

        return run

    def channels_second(value: Array, bias: Array, out: Array | None) -> Any:
        return add(value, bias.reshape(-1, *[1] * (value.ndim - 2)), out)

    return channels_second


@table.binder("BiasAddGrad", T=_FLOATS)
def bias_add_grad(sig: NodeSig) -> Callable[..., Any]:
    """Sums over all dimensions but the channels."""
    first = sig.attrs["data_format"] == "NCHW"

    def run(grad: Array) -> Any:
        if first:
            if not grad.size:
                return np.zeros(grad.shape[1], grad.dtype)
            # Sums over contiguous data are pairwise, hence exact enough and fast.
            flat = grad.reshape(grad.shape[0], grad.shape[1], -1)
            return flat.sum(axis=2).sum(axis=0)
        rows = grad.reshape(-1, grad.shape[-1]) if grad.size else grad.reshape(0, grad.shape[-1])
        return np.ones(rows.shape[0], rows.dtype) @ rows

    return run
