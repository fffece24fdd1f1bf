"""Broadcasting into planned buffers; the rest of the family is portable."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()

_SHORT: Final = 64
"""Elements of a piece below which NumPy takes longer to go on to the next than to copy it."""


@table.binder("BroadcastTo", out=True, host_inputs=("shape",))
def broadcast_to(sig: NodeSig) -> Callable[..., Array]:
    """The input repeated along new and size-1 dimensions."""
    dtype = sig.out_dtypes[0].np

    def run(tensor: Any, shape: Any, out: Array | None) -> Array:
        wanted = checks.broadcast_shape(tensor.shape, shape)
        if out is None:
            out = np.empty(wanted, dtype)
        if not (out.flags.c_contiguous and _repeated(tensor, wanted, out)):
            out[...] = tensor
        return out

    return run


def _repeated(tensor: Any, wanted: tuple[int, ...], out: Array) -> bool:
    """Copies short pieces that are repeated along the first dimensions: twice as many each time."""
    own = (1,) * (len(wanted) - tensor.ndim) + tensor.shape
    lead = next((i for i, n in enumerate(own) if n != 1), len(own))
    rows, inner = math.prod(wanted[:lead]), math.prod(wanted[lead:])
    if rows < 2 or not 0 < inner < _SHORT:
        return False
    out[(0,) * lead] = tensor.reshape(own[lead:])
    flat, done = out.reshape(rows, inner), 1
    while done < rows:
        more = min(done, rows - done)
        flat[done : done + more] = flat[:more]
        done += more
    return True
