"""The largest elements of rows, and searching in sorted rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from opdock.plugin import REALS, KernelTable, NodeSig, checks
from opdock_ckernels.ordering import find, largest, sort
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import strides_of, take

__all__ = ["table"]

table = KernelTable()
_FEW = 128


def _largest(device: Any, x: Array, k: int) -> tuple[Array, Array]:
    checks.check_k(x.shape, k)
    n = x.shape[-1]
    if 0 < k <= _FEW and x.size:
        found = largest(device, x.reshape(x.size // n, n), k)
        values, at = (a.reshape(*x.shape[:-1], k) for a in found)
        return values, at
    values, at = sort(device, x, descending=True)
    shape, steps = (*x.shape[:-1], k), strides_of(x.shape)
    return take(device, values, shape, steps), take(device, at, shape, steps)


@table.binder("TopKV2", T=REALS, host_inputs=("k",))
def top_k_v2(sig: NodeSig) -> Callable[[Array, Any], tuple[Array, Array]]:
    """The largest elements of each row."""
    device = sig.device
    return lambda x, k: _largest(device, x, checks.ints(k)[0])


@table.binder("TopK", T=REALS)
def top_k(sig: NodeSig) -> Callable[[Array], tuple[Array, Array]]:
    """The largest elements of each row."""
    device, k = sig.device, sig.attrs["k"]
    return lambda x: _largest(device, x, k)


@table.binder("LowerBound", "UpperBound", T=REALS)
def bound(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """Where values fit into sorted rows."""
    device, right, kind = sig.device, sig.op == "UpperBound", sig.out_dtypes[0].np

    def run(rows: Array, values: Array) -> Array:
        checks.check_searched(rows, values)
        if not math.prod(values.shape):
            out: Array = device.allocate(values.shape, kind)
            return out
        return find(device, rows, values, kind, right)

    return run
