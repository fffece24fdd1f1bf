"""Segment ops: rows in order of their segment, then one fold per segment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import DType, KernelTable, NodeSig, checks, codegen, dtypes
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.ordering import sort
from opdock_ckernels.picking import pick
from opdock_ckernels.protocols import Array
from opdock_ckernels.segments import fold_segments
from opdock_ckernels.strided import zeros

__all__ = ["table"]

table = KernelTable()
_NUMBERS = codegen.RENDERED - {dtypes.bool}
_FLOATS = frozenset({dtypes.float32, dtypes.float64})
_WAYS = {"Sum": "sum", "Mean": "sum", "SqrtN": "sum", "Prod": "prod", "Max": "max", "Min": "min"}
_INSPECT = """
KERNEL void inspect(GLOBAL const K* ids, GLOBAL int* found, i64 n) {
  i64 i = GLOBAL_ID(0);
  if (i >= n) return;
  if (i ? ids[i] < ids[i - 1] : ids[i] < 0) found[0] = 1;
  if (i == n - 1) found[1] = (int)ids[i] + 1;
}

KERNEL void within(GLOBAL const K* ids, GLOBAL int* flag, i64 n, i64 low, i64 high) {
  i64 i = GLOBAL_ID(0);
  if (i < n && (ids[i] < low || ids[i] >= high)) *flag = 1;
}
"""


def _kernel(device: Any, name: str, ids: Array) -> Any:
    kind = {np.dtype(np.int32): "int", np.dtype(np.int64): "i64"}[ids.dtype]
    return device.kernel(_INSPECT, name, K=kind)


def _count_sorted(device: Any, ids: Array, limit: int | None = None) -> int:
    """The number of segments of ascending ids, or `limit` if that is given.

    Raises:
        InvalidArgumentError: they decrease, are negative, or reach the limit.
    """
    if not ids.size:
        return limit or 0
    found = zeros(device, (2,), np.dtype(np.int32))
    device.launch(_kernel(device, "inspect", ids), ids.size, ids, found, np.int64(ids.size))
    wrong, count = (int(v) for v in device.download(found))
    if wrong or (limit is not None and count > limit):
        raise checks.unsorted_error(device.download(ids), limit)
    return count if limit is None else limit


def _stray(device: Any, ids: Array, low: int, high: int) -> tuple[int, int] | None:
    """The first place and value of what is not in [low, high)."""
    if not ids.size:
        return None
    flag = device.flag()
    sizes = (np.int64(v) for v in (ids.size, low, high))
    device.launch(_kernel(device, "within", ids), ids.size, ids, flag, *sizes)
    if not device.read_int(flag):
        return None
    host = device.download(ids).reshape(-1)
    i = int(np.argmax((host < low) | (host >= high)))
    return i, int(host[i])


def _last(dialect: codegen.Dialect, kind: str, dtype: DType) -> str:
    """What becomes of a sum at last."""
    number = dialect.computed(dtype)
    if kind == "Mean":
        return f"acc / ({number})count"
    if kind == "SqrtN":
        root = "double" if dtype is dtypes.float64 else "float"
        return f"acc / ({number})sqrt(({root})count)"
    return "acc"


# ---------------------------------------------------------------- sorted ids
@table.binder("SegmentSum", "SegmentProd", "SegmentMean", "SegmentMax", "SegmentMin", T=_NUMBERS)
def segment(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """The fold of each run of equal ids."""
    device, kind = sig.device, sig.op.removeprefix("Segment")
    gap = "1" if kind == "Prod" else "0"
    last = _last(device.dialect, kind, sig.in_dtypes[0])

    def run(data: Array, ids: Array) -> Array:
        checks.check_segment_ids(data, ids)
        shape = (_count_sorted(device, ids), *data.shape[1:])
        return fold_segments(device, _WAYS[kind], ids, data, shape, gap=gap, last=last)

    return run


# ---------------------------------------------------------------- ids in any order
@table.binder(
    "UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin",
    T=_NUMBERS, host_inputs=("num_segments",),
)  # fmt: skip
def unsorted(sig: NodeSig) -> Callable[[Array, Array, Any], Array]:
    """The fold of the rows of each id; negative ids are left out."""
    device, dtype = sig.device, sig.in_dtypes[0]
    kind = sig.op.removeprefix("UnsortedSegment")
    gap = {"Sum": "0", "Prod": "1"}.get(kind)
    if gap is None:
        least = dtype.min if kind == "Max" else dtype.max
        number = float(least) if dtype.is_floating else int(least)
        gap = device.dialect.number(dtype, number)

    def run(data: Array, segment_ids: Array, num_segments: Any) -> Array:
        (count,) = checks.ints(num_segments)
        _check_unsorted(device, data, segment_ids, count)
        ids, order = sort(device, segment_ids.reshape(segment_ids.size))
        shape = (count, *data.shape[segment_ids.ndim :])
        return fold_segments(device, _WAYS[kind], ids, data, shape, at=order, gap=gap)

    return run


def _check_unsorted(device: Any, data: Array, ids: Array, count: int) -> None:
    checks.check_segments(data, ids, count)
    least = int(np.iinfo(ids.dtype).min)
    if (found := _stray(device, ids, least, count)) is not None:
        raise checks.out_of_segments(*found, ids.shape, count)


# ---------------------------------------------------------------- picked rows
_SPARSE = ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")


@table.binder(*_SPARSE, T=_NUMBERS)
@table.binder(
    *(f"{op}WithNumSegments" for op in _SPARSE), T=_NUMBERS, host_inputs=("num_segments",)
)
def sparse(sig: NodeSig) -> Callable[..., Array]:
    """The fold of the rows that each segment picks."""
    device, kind = sig.device, sig.op.removesuffix("WithNumSegments")
    last = _last(device.dialect, kind.removeprefix("SparseSegment"), sig.in_dtypes[0])

    def run(data: Array, indices: Array, ids: Array, num_segments: Any = None) -> Array:
        checks.check_picked_ids(indices, ids)
        given = None if num_segments is None else checks.ints(num_segments)[0]
        count = _count_sorted(device, ids, given)
        if (found := _stray(device, indices, 0, data.shape[0])) is not None:
            raise checks.no_picked_row(*found, data.shape[0])
        shape = (count, *data.shape[1:])
        return fold_segments(device, "sum", ids, data, shape, at=indices, last=last)

    return run


_SCALE = """
KERNEL void scale(GLOBAL const T* x, GLOBAL const int* ids, GLOBAL T* y, i64 n, i64 rows,
                  i64 width) {
  i64 i = GLOBAL_ID(0);
  if (i >= n) return;
  i64 s = i / width, low = 0, high = rows, first;
  while (low < high) {
    i64 k = (low + high) / 2;
    if (ids[k] < s) low = k + 1;
    else high = k;
  }
  first = low;
  high = rows;
  while (low < high) {
    i64 k = (low + high) / 2;
    if (ids[k] <= s) low = k + 1;
    else high = k;
  }
  T count = (T)(low > first ? low - first : 1);
  y[i] = x[i] / DIVISOR;
}
"""


@table.binder(
    "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad", T=_FLOATS, host_inputs=("output_dim0",)
)
def sparse_grad(sig: NodeSig) -> Callable[..., Array]:
    """Each segment's gradient, divided among the rows that it picked."""
    device, kind = sig.device, TYPES[sig.in_dtypes[0].name]
    divisor = "sqrt(count)" if sig.op == "SparseSegmentSqrtNGrad" else "count"
    kernel = device.kernel(_SCALE.replace("DIVISOR", divisor), "scale", T=kind)

    def run(grad: Array, indices: Array, ids: Array, output_dim0: Any) -> Array:
        (rows,) = checks.ints(output_dim0)
        if (found := _stray(device, ids, 0, grad.shape[0])) is not None:
            last = int(device.download(ids)[-1])
            raise checks.no_segment(found[1], grad.shape[0], last, rows)
        if (found := _stray(device, indices, 0, rows)) is not None:
            raise checks.no_row(found[1], rows)
        scaled: Array = device.allocate(grad.shape, grad.dtype)
        width = grad.size // max(grad.shape[0], 1)
        sizes = [np.int64(v) for v in (grad.size, ids.size, width)]
        device.launch(kernel, grad.size, grad, sort(device, ids)[0], scaled, *sizes)
        places, order = sort(device, indices)
        at = pick(device, ids, order, ids.shape, 1)
        return fold_segments(device, "sum", places, scaled, (rows, *grad.shape[1:]), at=at)

    return run
