"""Constant margins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.plugin import KernelTable, NodeSig, codegen
from opdock_ckernels.families.array import HELD
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import place, strides_of, take

__all__ = ["table"]

table = KernelTable()


@table.binder("Pad", "PadV2", T=HELD, host_inputs=("paddings",))
def pad(sig: NodeSig) -> Callable[..., Array]:
    """The input within a margin of one value."""
    device = sig.device

    def run(x: Array, paddings: Any, value: Array | None = None) -> Array:
        pairs = codegen.margins(paddings, x.ndim)
        shape = tuple(n + a + b for n, (a, b) in zip(x.shape, pairs, strict=True))
        if value is None:
            out: Array = device.allocate(shape, x.dtype)
            device.fill_zero(out)
        else:
            out = take(device, value, shape, [0] * len(shape))
        steps = strides_of(shape)
        place(device, x, out, steps, sum(a * s for (a, _), s in zip(pairs, steps, strict=True)))
        return out

    return run
