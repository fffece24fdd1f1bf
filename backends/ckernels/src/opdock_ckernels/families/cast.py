"""Bits under another element type."""

from __future__ import annotations

from collections.abc import Callable

from opdock.plugin import NUMBERS, KernelTable, NodeSig, checks
from opdock_ckernels.protocols import Array

__all__ = ["table"]

table = KernelTable()


@table.binder("Bitcast", T=NUMBERS, type=NUMBERS, may_alias={0: 0})
def bitcast(sig: NodeSig) -> Callable[[Array], Array]:
    """The same bits; elements of another size make or take up a last dimension."""
    device, target = sig.device, sig.out_dtypes[0]

    def run(x: Array) -> Array:
        if sig.in_dtypes[0].size == target.size:
            return x.view(target.np)
        out: Array = device.allocate(checks.bitcast_shape(sig, x.shape), target.np)
        device.copy_into(x, out, 0)
        return out

    return run
