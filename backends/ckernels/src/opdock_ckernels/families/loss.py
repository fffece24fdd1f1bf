"""Half the sum of squares."""

from __future__ import annotations

from collections.abc import Callable

from opdock.plugin import FLOATS, KernelTable, NodeSig, dtypes
from opdock_ckernels.folding import fold
from opdock_ckernels.protocols import Array

__all__ = ["table"]

table = KernelTable()


@table.binder("L2Loss", T=FLOATS)
def l2_loss(sig: NodeSig) -> Callable[[Array], Array]:
    """Half the sum of squares."""
    device, narrow = sig.device, sig.in_dtypes[0] in (dtypes.float16, dtypes.bfloat16)
    half = "0.5f" if narrow or sig.in_dtypes[0] is dtypes.float32 else "0.5"
    return lambda x: fold(device, "sum", x, range(x.ndim), first="x * x", last=f"total * {half}")
