"""Portable kernels of the bias family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

_HALVES = (dtypes.float16, dtypes.bfloat16)


@portable("BiasAdd", "BiasAddV1")
def bias_add(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Adds a vector along the channels."""
    if sig.attrs.get("data_format") != "NCHW":
        add: Callable[..., Any] = xp.add
        return add

    def channels_second(value: Any, bias: Any) -> Any:
        return xp.add(value, xp.reshape(bias, (-1,) + (1,) * (value.ndim - 2)))

    return channels_second


@portable("BiasAddGrad")
def bias_add_grad(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Sums over all dimensions but the channels."""
    first = sig.attrs["data_format"] == "NCHW"
    narrow = sig.in_dtypes[0] in _HALVES

    def run(grad: Any) -> Any:
        channel = 1 if first else grad.ndim - 1
        axes = tuple(a for a in range(grad.ndim) if a != channel)
        if narrow:
            return xp.astype(xp.sum(xp.astype(grad, xp.float32), axis=axes), grad.dtype)
        return xp.sum(grad, axis=axes, dtype=grad.dtype)

    return run
