"""Oracle of the bias family."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]


def _axis(attrs: Any, x: Array) -> int:
    return 1 if attrs.get("data_format") == "NCHW" else x.ndim - 1


@reference("BiasAdd", "BiasAddV1")
def bias_add(attrs: Any, value: Array, bias: Array) -> Array:
    """Adds each channel's bias to all of its elements."""
    out = value.copy()
    moved = np.moveaxis(out, _axis(attrs, value), 0)
    for channel in range(len(bias)):
        moved[channel] += bias[channel]
    return out


@reference("BiasAddGrad")
def bias_add_grad(attrs: Any, grad: Array) -> Array:
    """The sum of each channel."""
    moved = np.moveaxis(grad, _axis(attrs, grad), 0)
    return np.array([channel.sum() for channel in moved], grad.dtype)
