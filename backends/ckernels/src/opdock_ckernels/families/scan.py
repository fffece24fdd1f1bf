"""Running sums, products and logarithms of sums along an axis.

A work item takes a stretch of a line. Where lines are few and long there are several stretches a
line: they are folded first, and each then starts from what lies before it. The order is fixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import FLOATS, REALS, KernelTable, NodeSig, axes, codegen
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.narrow import computed
from opdock_ckernels.protocols import Array

__all__ = ["table"]

table = KernelTable()

_STRETCH = 512
"""Elements that a work item takes, at least, where a line is split."""
_ITEMS = 4096
"""Lines that keep a device busy by themselves."""

# Line l of `lines` starts at (l / inner) * count * inner + l % inner, and steps by `inner`.
_SOURCE = """
INLINE A join(A a, A b) { JOIN }
#define LINE \\
  i64 i = GLOBAL_ID(0); \\
  if (i >= lines * parts) return; \\
  i64 line = i % lines, part = i / lines, start = (line / inner) * count * inner + line % inner; \\
  i64 size = (count + parts - 1) / parts, from = part * size; \\
  i64 to = from + size < count ? from + size : count;
#define PLACE(j) (start + (reverse ? count - 1 - (j) : (j)) * inner)
KERNEL void stretches(GLOBAL const T* x, GLOBAL A* y, i64 lines, i64 inner, i64 count, i64 parts,
                      int reverse) {
  LINE
  A total = NEUTRAL;
  for (i64 j = from; j < to; ++j) { A v = LOAD(PLACE(j)); total = j > from ? join(total, v) : v; }
  y[i] = total;
}
KERNEL void scan(GLOBAL const T* x, GLOBAL const A* before, GLOBAL T* y, i64 lines, i64 inner,
                 i64 count, i64 parts, int reverse, int exclusive) {
  LINE
  A total = NEUTRAL;
  for (i64 p = 0; p < part; ++p) {
    A v = before[p * lines + line];
    total = p ? join(total, v) : v;
  }
  int empty = part == 0;
  for (i64 j = from; j < to; ++j) {
    i64 at = PLACE(j);
    A v = LOAD(at);
    if (exclusive) { A w = LEAST(total); STORE(at, w) }
    total = empty ? v : join(total, v);
    empty = 0;
    if (!exclusive) { A w = LEAST(total); STORE(at, w) }
  }
}
"""
_LOG = """
  A top = a > b ? a : b, low = a > b ? b : a;
  if (a != a || b != b) return a + b;
  if (top == low) return top + (A)0.6931471805599453;
  if (low == -INFINITY || top == INFINITY) return top;
  return top + log1p(exp(low - top));
"""
_WAYS = {
    "Cumsum": ("return a + b;", "0"),
    "Cumprod": ("return a * b;", "1"),
    "CumulativeLogsumexp": (_LOG, "-INFINITY"),
}


def _kernels(sig: NodeSig) -> tuple[Any, Any]:
    device, dtype = sig.device, sig.in_dtypes[0]
    dialect: codegen.Dialect = device.dialect
    join, neutral = _WAYS[sig.op]
    least = "v"
    if sig.op == "CumulativeLogsumexp":  # nothing is the type's lowest number
        lowest = dialect.number(computed(dtype), float(dtype.min))
        least = f"(v < {lowest} ? {lowest} : v)"
    macros = [
        f"#define LOAD(i) {dialect.load(dtype, 'x', '(i)')}",
        f"#define STORE(i, v) {dialect.store(dtype, 'y', '(i)', '(v)')}",
        f"#define T {TYPES[dtype.name]}", f"#define A {dialect.computed(dtype)}",
        f"#define NEUTRAL {neutral}", f"#define LEAST(v) {least}",
    ]  # fmt: skip
    text = "\n".join([*macros, _SOURCE.replace("JOIN", join)])
    source = codegen.helpers(dialect, text) + "\n" + text
    return device.kernel(source, "stretches"), device.kernel(source, "scan")


@table.binder("Cumsum", "Cumprod", T=REALS, host_inputs=("axis",))
@table.binder("CumulativeLogsumexp", T=FLOATS, host_inputs=("axis",))
def scan(sig: NodeSig) -> Callable[[Array, Any], Array]:
    """Each element joined with those before it."""
    device, wide = sig.device, computed(sig.in_dtypes[0]).np
    reverse, exclusive = np.int32(sig.attrs["reverse"]), np.int32(sig.attrs["exclusive"])
    fold, spread = _kernels(sig)

    def run(x: Array, axis: Any) -> Array:
        at = axes.scanned(axis, x.ndim)
        out: Array = device.allocate(x.shape, x.dtype)
        if not out.size:
            return out
        count, inner = x.shape[at], math.prod(x.shape[at + 1 :])
        lines, parts = out.size // count, 1
        if lines < _ITEMS:
            parts = max(1, min(count // _STRETCH, _ITEMS // lines, 256))
        parts = -(-count // -(-count // parts))  # no stretch without elements
        sizes = tuple(np.int64(v) for v in (lines, inner, count, parts))
        before: Array = device.allocate((lines * parts,), wide)
        if parts > 1:
            device.launch(fold, lines * parts, x, before, *sizes, reverse)
        device.launch(spread, lines * parts, x, before, out, *sizes, reverse, exclusive)
        return out

    return run
