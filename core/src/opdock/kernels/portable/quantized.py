"""Portable kernels of quantized tensors: those that touch no element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from opdock.kernels.array_api import copy, invalid
from opdock.kernels.portable import portable
from opdock.kernels.portable.array import reshape
from opdock.kernels.select.signature import NodeSig


@portable("QuantizedReshape", host_inputs=("shape",), may_alias={0: 0})
def quantized_reshape(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """The same elements under another shape, and the range as it is."""
    plain = reshape(xp, sig)

    def run(tensor: Any, shape: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
        for name, end in (("input_min", low), ("input_max", high)):
            if math.prod(end.shape) != 1:
                raise invalid(f"{name} must be a scalar or a vector of 1 element")
        ends = (copy(xp, xp.reshape(end, ())) for end in (low, high))
        return (plain(tensor, shape), *ends)

    return run
