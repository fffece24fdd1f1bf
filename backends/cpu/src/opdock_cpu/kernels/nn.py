"""Activations for which NumPy has a ufunc that writes into a given buffer."""

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
    """The gradient times a slope: 1 where the feature is positive, else 0."""
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
