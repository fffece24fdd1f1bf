"""Half the sum of squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, dtypes

__all__ = ["table"]

table = KernelTable()

_FLOATS = frozenset({dtypes.float32, dtypes.float64})


@table.binder("L2Loss", T=_FLOATS)
def l2_loss(sig: NodeSig) -> Callable[..., Any]:
    """Half the sum of squares."""

    def run(t: Any) -> Any:
        flat = t.reshape(-1)
        return np.dot(flat, flat) * t.dtype.type(0.5)

    return run
