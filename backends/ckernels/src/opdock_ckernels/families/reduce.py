"""Reductions along any axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.plugin import FLOATS, REALS, KernelTable, NodeSig, axes
from opdock_ckernels.folding import fold
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import strides_of, take

__all__ = ["table"]

table = KernelTable()
_HOST = ("reduction_indices",)
# Op -> fold, what becomes of an element first, what becomes of the result last.
_WAYS = {
    "Sum": ("sum", "x", "total"),
    "Prod": ("prod", "x", "total"),
    "Max": ("max", "x", "total"),
    "Min": ("min", "x", "total"),
    "All": ("all", "x", "total"),
    "Any": ("any", "x", "total"),
    "Mean": ("sum", "x", "total / whole"),
    "EuclideanNorm": ("sum", "x * x", "sqrt(total)"),
}


@table.binder("Sum", "Prod", "Max", "Min", T=REALS, host_inputs=_HOST, out=True)
@table.binder("Mean", "EuclideanNorm", T=FLOATS, host_inputs=_HOST, out=True)
@table.binder("All", "Any", host_inputs=_HOST, out=True)
def reduction(sig: NodeSig) -> Callable[..., Array]:
    """Folds along the named axes; without axes, a copy."""
    how, first, last = _WAYS[sig.op]
    device, keep = sig.device, bool(sig.attrs["keep_dims"])

    def run(x: Array, indices: Any, out: Array | None) -> Array:
        along = axes.reduced(indices, x.ndim)
        if not along:
            return take(device, x, x.shape, strides_of(x.shape), 0, out)
        return fold(device, how, x, along, keep, first=first, last=last, into=out)

    return run
