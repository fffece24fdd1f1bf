"""Broadcasting into planned buffers; the rest of the family is portable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_cpu.spreading import spread

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()


@table.binder("BroadcastTo", out=True, host_inputs=("shape",))
def broadcast_to(sig: NodeSig) -> Callable[..., Array]:
    """The input repeated along new and size-1 dimensions."""
    dtype = sig.out_dtypes[0].np

    def run(tensor: Any, shape: Any, out: Array | None) -> Array:
        wanted = checks.broadcast_shape(tensor.shape, shape)
        if out is None:
            out = np.empty(wanted, dtype)
        spread(out, tensor)
        return out

    return run
