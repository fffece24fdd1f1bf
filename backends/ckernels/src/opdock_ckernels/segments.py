"""Folds over runs of equal segment numbers in sorted order.

A work item finds a segment's run by binary search and folds it in order; runs are cut into parts
where they are long, whose folds are folded in turn. The order is fixed: results repeat.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.plugin import as_dtype, codegen, dtypes
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.folding import FOLDS, limits
from opdock_ckernels.protocols import Array

__all__ = ["fold_segments"]

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

KERNEL void runs(GLOBAL const K* ids, GLOBAL const I* at, GLOBAL const T* x, GLOBAL O* y,
                 i64 n, i64 segments, i64 parts, i64 width) {
  i64 i = GLOBAL_ID(0);
  if (i >= segments * parts * width) return;
  i64 c = i % width, rest = i / width, part = rest % parts, s = rest / parts;
  i64 low = place(ids, n, s), high = place(ids, n, s + 1), count = high - low;
  i64 step = (count + parts - 1) / parts, from = low + part * step;
  i64 to = from + step < high ? from + step : high;
  A acc = START;
  for (i64 j = from; j < to; ++j) {
    A v = LOAD((i64)AT * width + c);
    acc = STEP;
  }
  RESULT
}

KERNEL void joined(GLOBAL const K* ids, GLOBAL const S* z, GLOBAL T* y,
                   i64 n, i64 segments, i64 parts, i64 width) {
  i64 i = GLOBAL_ID(0);
  if (i >= segments * width) return;
  i64 c = i % width, s = i / width;
  i64 low = place(ids, n, s), high = place(ids, n, s + 1), count = high - low;
  A acc = START;
  for (i64 p = 0; p < parts; ++p) {
    A v = z[(s * parts + p) * width + c];
    acc = STEP;
  }
  FINAL
}
"""


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
    dtype, dialect = as_dtype(x.dtype), device.dialect
    wide = dtypes.float32 if dtype in _NARROW else dtype
    start, step = FOLDS[how]
    low, high = limits(dialect, dtype)
    final = dialect.store(dtype, "y", "i", f"(count ? ({last}) : ({gap}))")
    macros = [
        f"#define T {TYPES[dtype.name]}",
        f"#define S {TYPES[wide.name]}",
        f"#define O {'T' if parts == 1 else 'S'}",
        f"#define A {dialect.computed(dtype)}",
        f"#define K {TYPES[as_dtype(ids.dtype).name]}",
        f"#define I {TYPES[as_dtype((ids if at is None else at).dtype).name]}",
        f"#define AT {'at[j]' if at is not None else 'j'}",
        f"#define LOAD(p) {dialect.load(dtype, 'x', '(p)')}",
        f"#define START {start.replace('LOWEST', low).replace('HIGHEST', high)}",
        f"#define STEP {step}",
        f"#define FINAL {final}",
        f"#define RESULT {'FINAL' if parts == 1 else 'y[i] = acc;'}",
    ]
    text = "\n".join([codegen.helpers(dialect, "\n".join(macros)), *macros, _SOURCE])
    sizes = [np.int64(v) for v in (n, segments, parts, width)]
    runs, rows = device.kernel(text, "runs"), ids if at is None else at
    if parts == 1:
        device.launch(runs, out.size, ids, rows, x, out, *sizes)
        return out
    partial: Array = device.allocate((segments, parts, width), wide.np)
    device.launch(runs, partial.size, ids, rows, x, partial, *sizes)
    device.launch(device.kernel(text, "joined"), out.size, ids, partial, out, *sizes)
    return out
