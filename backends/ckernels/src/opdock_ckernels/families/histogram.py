"""Counting: values are sorted by bin, so a bin's count is the length of a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks, dtypes
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.ordering import find, sort
from opdock_ckernels.pointwise import formula
from opdock_ckernels.protocols import Array
from opdock_ckernels.segments import fold_segments

__all__ = ["table"]

table = KernelTable()
_TYPES = frozenset({dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64})
_INT = np.dtype(np.int32)
_LENGTHS = """
KERNEL void lengths(GLOBAL const int* bounds, GLOBAL T* y, i64 n) {
  i64 i = GLOBAL_ID(0);
  if (i < n) y[i] = (T)(bounds[i + 1] - bounds[i]);
}
"""


def _lengths(device: Any, bins: Array, count: int, out: np.dtype[Any], kind: str) -> Array:
    """How many of the sorted `bins` have each number below `count`."""
    counts: Array = device.allocate((count,), out)
    wanted = device.upload(np.arange(count + 1, dtype=np.int32).reshape(1, count + 1))
    bounds = find(device, bins.reshape(1, bins.size), wanted, _INT)
    kernel = device.kernel(_LENGTHS, "lengths", T=kind)
    device.launch(kernel, count, bounds, counts, np.int64(count))
    return counts


@table.binder("Bincount", T=_TYPES, host_inputs=("size",))
def bincount(sig: NodeSig) -> Callable[[Array, Any, Array], Array]:
    """How often each number occurs, or the sum of the weights of its occurrences."""
    device, dtype = sig.device, sig.out_dtypes[0]

    def run(arr: Array, size: Any, weights: Array) -> Array:
        count = checks.bin_count(size)
        values, order = sort(device, arr.reshape(arr.size))
        checks.check_counted(arr, device.read_int(values) if arr.size else 0, weights)
        if not weights.size:
            return _lengths(device, values, count, dtype.np, TYPES[dtype.name])
        return fold_segments(device, "sum", values, weights, (count,), at=order)

    return run


@table.binder("HistogramFixedWidth", T=_TYPES, host_inputs=("value_range", "nbins"))
def histogram(sig: NodeSig) -> Callable[[Array, Any, Any], Array]:
    """How many values fall into each of equal bins; what lies outside goes to the ends."""
    device, dtype, out_type = sig.device, sig.in_dtypes[0], sig.out_dtypes[0]
    wide = dtypes.float64 if device.has_double else dtypes.float32
    text = f"cast(min((cast(max(x, low), {wide.name}) - start) / step, last), int32)"
    names = {"x": dtype, "low": dtype, "start": wide, "step": wide, "last": wide}
    program = formula(device, text, names, dtypes.int32)

    def run(values: Array, value_range: Any, nbins: Any) -> Array:
        low, high, count = checks.bins_of(value_range, nbins)
        numbers = (float(low), (float(high) - float(low)) / count, float(count - 1))
        given = [device.upload(np.array(low, dtype.np))]
        given += [device.upload(np.array(v, wide.np)) for v in numbers]
        bins = program(values.reshape(math.prod(values.shape)), *given)
        kind = TYPES[out_type.name]
        return _lengths(device, sort(device, bins)[0], count, out_type.np, kind)

    return run
