"""Repetitions, which move elements; shape changes are core's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.plugin import NUMBERS, KernelTable, NodeSig, checks, dtypes
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import strides_of, take

__all__ = ["HELD", "table"]

table = KernelTable()
HELD = NUMBERS | {dtypes.bool}
"""Every type whose elements can be moved."""


@table.binder("BroadcastTo", T=HELD, out=True, host_inputs=("shape",))
def broadcast_to(sig: NodeSig) -> Callable[..., Array]:
    """The input repeated along new and size-1 dimensions."""
    device = sig.device

    def run(x: Array, shape: Any, out: Array | None) -> Array:
        wanted = checks.broadcast_shape(x.shape, shape)
        lead = len(wanted) - x.ndim
        steps = [0 if n == 1 else s for n, s in zip(x.shape, strides_of(x.shape), strict=True)]
        return take(device, x, wanted, [0] * lead + steps, 0, out)

    return run
