"""Portable kernels of the positions of extremes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from opdock import axes, dtypes
from opdock.dtypes import REALS
from opdock.kernels.array_api import dtype_of, full
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

_NARROW = (dtypes.float16, dtypes.bfloat16)


@portable("ArgMax", "ArgMin", host_inputs=("dimension",), T=REALS)
def arg_extreme(xp: Any, sig: NodeSig) -> Callable[[Any, Any], Any]:
    """The position of the first extreme; NaN is never one."""
    fold = xp.argmax if sig.op == "ArgMax" else xp.argmin
    worst = -math.inf if sig.op == "ArgMax" else math.inf
    floating, narrow = sig.in_dtypes[0].is_floating, sig.in_dtypes[0] in _NARROW
    dtype = dtype_of(xp, sig.out_dtypes[0])

    def run(x: Any, dimension: Any) -> Any:
        axis = axes.searched(dimension, x.shape)
        if floating:
            x = xp.astype(x, xp.float32) if narrow else x
            x = xp.where(xp.isnan(x), full(xp, (), worst, dtypes.float32, x), x)
        return xp.astype(fold(x, axis=axis), dtype)

    return run
