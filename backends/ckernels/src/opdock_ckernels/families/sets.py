"""Vectors as sets, by sorting; results are in the order of first occurrence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import DType, KernelTable, NodeSig, checks, codegen, dtypes
from opdock_ckernels.dialect import TYPES, WORDS
from opdock_ckernels.ordering import sort
from opdock_ckernels.picking import pick
from opdock_ckernels.prefix import offsets
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import zeros

__all__ = ["table"]

table = KernelTable()
_INT = np.dtype(np.int32)
_INDEX = frozenset({dtypes.int32, dtypes.int64})

# Of each run of equal values in sorted order, `starts` marks the first place, and `first` the
# place where the value occurs first.
_UNIQUE = """
KERNEL void heads(GLOBAL const T* x, GLOBAL const int* at, GLOBAL int* starts, GLOBAL int* first,
                  i64 n) {
  i64 i = GLOBAL_ID(0);
  if (i >= n) return;
  A v = LOAD(i);
  int start = i == 0;
  if (!start) { A u = LOAD(i - 1); start = u != v; }
  starts[i] = start;
  first[at[i]] = start;
}

KERNEL void owners(GLOBAL const int* starts, GLOBAL const int* run, GLOBAL const int* at,
                   GLOBAL const int* rank, GLOBAL int* owner, GLOBAL int* head,
                   GLOBAL int* unique, i64 n) {
  i64 i = GLOBAL_ID(0);
  if (i >= n || !starts[i]) return;
  int r = run[i], u = rank[at[i]];
  owner[r] = u;
  head[r] = (int)i;
  unique[u] = at[i];
}

KERNEL void finish(GLOBAL const int* starts, GLOBAL const int* run, GLOBAL const int* at,
                   GLOBAL const int* owner, GLOBAL const int* head, GLOBAL I* index,
                   GLOBAL I* counts, i64 n, i64 runs) {
  i64 i = GLOBAL_ID(0);
  if (i >= n) return;
  int r = run[i] + starts[i] - 1;
  index[at[i]] = (I)owner[r];
  if (starts[i]) counts[owner[r]] = (I)((r + 1 < runs ? head[r + 1] : n) - i);
}
"""


def _text(device: Any, dtype: DType, source: str) -> str:
    dialect: codegen.Dialect = device.dialect
    macros = [
        f"#define T {TYPES[dtype.name]}",
        f"#define A {dialect.computed(dtype)}",
        f"#define LOAD(p) {dialect.load(dtype, 'x', '(p)')}",
    ]
    return "\n".join([codegen.helpers(dialect, "\n".join(macros)), *macros, source])


def _distinct(device: Any, x: Array, dtype: DType, kind: DType) -> tuple[Array, Array, Array]:
    """(values in order of first occurrence, index into them, count of each) of a vector."""
    n = x.size
    index: Array = device.allocate((n,), kind.np)
    if not n:
        none: Array = device.allocate((0,), x.dtype)
        return none, index, device.allocate((0,), kind.np)
    text, size = _text(device, dtype, _UNIQUE), np.int64(n)
    values, at = sort(device, x)
    starts, first = device.allocate((n,), _INT), device.allocate((n,), _INT)
    device.launch(device.kernel(text, "heads", I="int"), n, values, at, starts, first, size)
    run, total = offsets(device, starts)
    rank, _ = offsets(device, first)
    runs = device.read_int(total)
    owner, head, unique = (device.allocate((runs,), _INT) for _ in range(3))
    kernel = device.kernel(text, "owners", I="int")
    device.launch(kernel, n, starts, run, at, rank, owner, head, unique, size)
    counts: Array = device.allocate((runs,), kind.np)
    kernel = device.kernel(text, "finish", I=TYPES[kind.name])
    device.launch(kernel, n, starts, run, at, owner, head, index, counts, size, np.int64(runs))
    return pick(device, x, unique, (runs,), 1), index, counts


def _vectors_only(sig: NodeSig) -> bool | str:
    shape = sig.in_shapes[0]
    return (shape is not None and len(shape) == 1) or "it takes vectors, not slices of tensors"


@table.binder("Unique", "UniqueWithCounts", T=codegen.RENDERED, out_idx=_INDEX)
@table.binder(
    "UniqueV2", "UniqueWithCountsV2", T=codegen.RENDERED, out_idx=_INDEX, host_inputs=("axis",),
    when=_vectors_only,
)  # fmt: skip
def unique(sig: NodeSig) -> Callable[..., tuple[Array, ...]]:
    """The different values of a vector."""
    device, n = sig.device, len(sig.out_dtypes)
    dtype, kind = sig.in_dtypes[0], sig.out_dtypes[1]

    def run(x: Array, axis: Any = ()) -> tuple[Array, ...]:
        checks.check_vector("unique", x)
        checks.unique_axis(axis, x)
        return _distinct(device, x, dtype, kind)[:n]

    return run


_DIFF = """
KERNEL void missing(GLOBAL const T* x, GLOBAL const T* ordered, GLOBAL int* y, i64 n, i64 m) {
  i64 i = GLOBAL_ID(0), low = 0, high = m;
  if (i >= n) return;
  A v = LOAD(i);
  while (low < high) {
    i64 k = (low + high) / 2;
    A u = LOAD_ORDERED(k);
    if (u < v) low = k + 1;
    else high = k;
  }
  int found = 0;
  if (low < m) { A u = LOAD_ORDERED(low); found = u == v; }
  y[i] = !found;
}

KERNEL void keep(GLOBAL const W* x, GLOBAL const int* marks, GLOBAL const int* places,
                 GLOBAL W* y, GLOBAL I* at, i64 n) {
  i64 i = GLOBAL_ID(0);
  if (i >= n || !marks[i]) return;
  y[places[i]] = x[i];
  at[places[i]] = (I)i;
}
"""


@table.binder("ListDiff", T=codegen.RENDERED, out_idx=_INDEX)
def list_diff(sig: NodeSig) -> Callable[[Array, Array], tuple[Array, Array]]:
    """The elements of `x` that are not in `y`, and where they are."""
    device, dtype, kind = sig.device, sig.in_dtypes[0], sig.out_dtypes[1]
    other = device.dialect.load(dtype, "ordered", "(p)")
    text = _text(device, dtype, f"#define LOAD_ORDERED(p) {other}\n{_DIFF}")
    types = {"W": WORDS[dtype.size], "I": TYPES[kind.name]}

    def run(x: Array, y: Array) -> tuple[Array, Array]:
        checks.check_lists(x, y)
        n, size, count = x.size, np.int64(x.size), 0
        if n:
            ordered, _ = sort(device, y)
            marks = device.allocate((n,), _INT)
            missing = device.kernel(text, "missing", **types)
            device.launch(missing, n, x, ordered, marks, size, np.int64(y.size))
            places, total = offsets(device, marks)
            count = device.read_int(total)
        kept: Array = device.allocate((count,), x.dtype)
        at: Array = device.allocate((count,), kind.np)
        if count:
            device.launch(device.kernel(text, "keep", **types), n, x, marks, places, kept, at, size)
        return kept, at

    return run


_INVERT = """
KERNEL void invert(GLOBAL const T* x, GLOBAL T* y, GLOBAL int* seen, GLOBAL int* flag, i64 n) {
  i64 i = GLOBAL_ID(0);
  if (i >= n) return;
  i64 v = x[i];
  if (v < 0 || v >= n) { *flag = 1; return; }
  y[v] = (T)i;
  seen[v] = 1;
}

KERNEL void complete(GLOBAL const int* seen, GLOBAL int* flag, i64 n) {
  i64 i = GLOBAL_ID(0);
  if (i < n && !seen[i]) *flag = 1;
}
"""


@table.binder("InvertPermutation", T=_INDEX)
def invert_permutation(sig: NodeSig) -> Callable[[Array], Array]:
    """The inverse of a permutation."""
    device, kind = sig.device, TYPES[sig.in_dtypes[0].name]

    def run(x: Array) -> Array:
        checks.check_vector("invert_permutation", x)
        n, size = x.size, np.int64(x.size)
        out: Array = device.allocate((n,), x.dtype)
        seen, flag = zeros(device, (n,), _INT), device.flag()
        device.launch(device.kernel(_INVERT, "invert", T=kind), n, x, out, seen, flag, size)
        device.launch(device.kernel(_INVERT, "complete", T=kind), n, seen, flag, size)
        if device.read_int(flag):
            raise checks.no_permutation(checks.ints(device.download(x)))
        return out

    return run
