"""Activation and bias kernels for which NumPy has a ufunc that writes into a given buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, dtypes

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()

_FLOATS = frozenset({dtypes.float32, dtypes.float64})
_NATIVE = dtypes.REALS - {dtypes.bfloat16}


@table.binder("ReluGrad", T=_NATIVE, out=True)
def relu_grad(sig: NodeSig) -> Callable[..., Any]:
    """The gradient where the feature is positive."""
    zero = sig.in_dtypes[0].np.type(0)
    multiply, greater = np.multiply, np.greater

    def run(gradients: Array, features: Array, out: Array | None) -> Any:
        return multiply(gradients, greater(features, zero), out)

    return run


@table.binder("LeakyRelu", T=_FLOATS, out=True)
def leaky_relu(sig: NodeSig) -> Callable[..., Any]:
    """The feature where positive, else alpha times it."""
    alpha = sig.in_dtypes[0].np.type(sig.attrs["alpha"])
    if 0 <= alpha <= 1:
        # Below a slope of 1 the larger of both is the answer.
        return lambda x, out: np.maximum(x, np.multiply(x, alpha), out=out)

    def run(x: Array, out: Array | None) -> Any:
        return np.multiply(x, np.where(x > 0, alpha.dtype.type(1), alpha), out)

    return run


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
            # Sums over contiguous data are pairwise, hence exact enough and fast.
            flat = grad.reshape(grad.shape[0], grad.shape[1], -1)
            return flat.sum(axis=2).sum(axis=0)
        rows = grad.reshape(-1, grad.shape[-1]) if grad.size else grad.reshape(0, grad.shape[-1])
        return np.ones(rows.shape[0], rows.dtype) @ rows

    return run


@table.binder("L2Loss", T=_FLOATS)
def l2_loss(sig: NodeSig) -> Callable[..., Any]:
    """Half the sum of squares."""

    def run(t: Array) -> Any:
        flat = t.reshape(-1)
        return np.dot(flat, flat) * t.dtype.type(0.5)

    return run
