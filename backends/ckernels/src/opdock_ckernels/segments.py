"""Folds over runs of equal segment numbers in sorted order.

Where the run of each segment begins is found by binary search. A work item folds a run in order;
runs are cut into parts where they are long, whose folds are folded in turn. The order is fixed:
results repeat.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.plugin import DType, as_dtype, codegen, dtypes
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.folding import FOLDS, limits
from opdock_ckernels.made import once
from opdock_ckernels.protocols import Array

__all__ = ["fold_segments"]

_LINE = 16
"""Neighbours that a work item of a CPU folds."""
_PART = 256
_MOST = 256
_NARROW = (dtypes.float16, dtypes.bfloat16)
_SOURCE = """
INLINE i64 place(GLOBAL const K* ids, i64 n, i64 s) {
  i64 low = 0, high = n;
  while (low < high) {
    i64 k = (low + high) / 2;
    if (ids[k] < s) low = k + 1;
    else high = k;
  }
  return low;
}

KERNEL void starts(GLOBAL const K* ids, GLOBAL i64* y, i64 n, i64 segments) {
  i64 s = GLOBAL_ID(0);
  if (s <= segments) y[s] = place(ids, n, s);
}

// On a CPU a work item folds `LINE` neighbours side by side, which the compiler makes vectors of.
KERNEL void runs(GLOBAL const i64* starts, GLOBAL const I* at, GLOBAL const T* x, GLOBAL O* y,
                 i64 segments, i64 parts, i64 width) {
  i64 item = GLOBAL_ID(0), blocks = (width + LINE - 1) / LINE;
  if (item >= segments * parts * blocks) return;
  i64 first = item % blocks * LINE, part = item / blocks % parts, s = item / blocks / parts;
  i64 low = starts[s], count = starts[s + 1] - low, step = (count + parts - 1) / parts;
  i64 from = low + part * step, to = from + step < low + count ? from + step : low + count;
  int here = width - first < LINE ? width - first : LINE;
  A sums[LINE];
  for (int e = 0; e < LINE; ++e) sums[e] = START;
  for (i64 j = from; j < to; ++j) {
    i64 p = (i64)AT * width + first;
    if (here == LINE) for (int e = 0; e < LINE; ++e) FOLD
    else for (int e = 0; e < here; ++e) FOLD
  }
  for (int e = 0; e < here; ++e) {
    A acc = sums[e];
    i64 i = (s * parts + part) * width + first + e;
    RESULT
  }
}

KERNEL void joined(GLOBAL const i64* starts, GLOBAL const S* z, GLOBAL T* y,
                   i64 segments, i64 parts, i64 width) {
  i64 i = GLOBAL_ID(0);
  if (i >= segments * width) return;
  i64 c = i % width, s = i / width;
  i64 count = starts[s + 1] - starts[s];
  A acc = START;
  for (i64 p = 0; p < parts; ++p) {
    A v = z[(s * parts + p) * width + c];
    acc = STEP;
  }
  FINAL
}
"""


@once
def _kernel(
    device: Any, name: str, how: str, dtype: DType, ids: DType, at: DType, in_order: bool,
    final: bool, line: int, gap: str, last: str,
) -> Any:  # fmt: skip
    """A kernel of the program for what `fold_segments` was asked for."""
    dialect: codegen.Dialect = device.dialect
    wide = dtypes.float32 if dtype in _NARROW else dtype
    start, step = FOLDS[how]
    low, high = limits(dialect, dtype)
    result = dialect.store(dtype, "y", "i", f"(count ? ({last}) : ({gap}))")
    macros = [
        f"#define T {TYPES[dtype.name]}",
        f"#define S {TYPES[wide.name]}",
        f"#define O {'T' if final else 'S'}",
        f"#define A {dialect.computed(dtype)}",
        f"#define K {TYPES[ids.name]}",
        f"#define I {TYPES[at.name]}",
        f"#define LINE {line}",
        f"#define AT {'j' if in_order else 'at[j]'}",
        f"#define LOAD(p) {dialect.load(dtype, 'x', '(p)')}",
        f"#define START {start.replace('LOWEST', low).replace('HIGHEST', high)}",
        f"#define STEP {step}",
        "#define FOLD { A acc = sums[e], v = LOAD(p + e); sums[e] = STEP; }",
        f"#define FINAL {result}",
        f"#define RESULT {'FINAL' if final else 'y[i] = acc;'}",
    ]
    text = "\n".join([codegen.helpers(dialect, "\n".join(macros)), *macros, _SOURCE])
    return device.kernel(text, name)


def fold_segments(
    device: Any, how: str, ids: Array, x: Array, shape: tuple[int, ...], *,
    at: Array | None = None, gap: str = "0", last: str = "acc",
) -> Array:  # fmt: skip
    """One row per segment.

    Args:
        device: the open device.
        how: a name of `FOLDS`: "sum", "prod", "max" or "min".
        ids: the segment of each row, ascending; negative ones are left out.
        x: rows.
        shape: the result's; its first dimension is the number of segments.
        at: the row of `x` that each of `ids` stands for; None where they stand in order.
        gap: what a segment without rows holds, in C.
        last: the result in terms of the fold `acc` and the number of rows `count`, in C.
    """
    out: Array = device.allocate(shape, x.dtype)
    if not out.size:
        return out
    segments, width, n = shape[0], out.size // shape[0], ids.size
    parts = 1 if n <= 2 * _PART * segments else min(-(-n // segments // _PART), _MOST)
    dtype = as_dtype(x.dtype)
    wide = dtypes.float32 if dtype in _NARROW else dtype
    line = _LINE if device.is_cpu and width >= _LINE else 1
    kinds = (as_dtype(ids.dtype), as_dtype((ids if at is None else at).dtype))
    about = (how, dtype, *kinds, at is None, parts == 1, line, gap, last)
    starts: Array = device.allocate((segments + 1,), np.dtype(np.int64))
    device.launch(
        _kernel(device, "starts", *about), segments + 1, ids, starts, np.int64(n),
        np.int64(segments),
    )  # fmt: skip
    sizes = [np.int64(v) for v in (segments, parts, width)]
    runs, rows = _kernel(device, "runs", *about), ids if at is None else at
    items = segments * parts * -(-width // line)
    if parts == 1:
        device.launch(runs, items, starts, rows, x, out, *sizes)
        return out
    partial: Array = device.allocate((segments, parts, width), wide.np)
    device.launch(runs, items, starts, rows, x, partial, *sizes)
    device.launch(_kernel(device, "joined", *about), out.size, starts, partial, out, *sizes)
    return out
