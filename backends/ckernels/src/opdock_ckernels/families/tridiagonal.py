"""Tridiagonal systems: products an element a work item, elimination a system a work item."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks, dtypes
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.protocols import Array

__all__ = ["table"]

table = KernelTable()
_TYPES = frozenset({dtypes.float32, dtypes.float64})

# Exchanged rows fill a second diagonal above.
_SOURCE = """
KERNEL void product(GLOBAL const T* upper, GLOBAL const T* main_, GLOBAL const T* lower,
                    GLOBAL const T* x, GLOBAL T* y, i64 total, int n, int m) {
  i64 i = GLOBAL_ID(0);
  if (i >= total) return;
  i64 row = i / m;
  int r = row % n;
  T v = main_[row] * x[i];
  if (r + 1 < n) v += upper[row] * x[i + m];
  if (r) v += lower[row] * x[i - m];
  y[i] = v;
}
#define EXCHANGE(a, b) { T kept = a; a = b; b = kept; }
KERNEL void eliminate(GLOBAL const T* diagonals, GLOBAL T* work, GLOBAL T* x, GLOBAL int* flag,
                      i64 batches, int n, int m, int pivoting) {
  i64 b = GLOBAL_ID(0);
  if (b >= batches) return;
  GLOBAL const T* lower = diagonals + (b * 3 + 2) * n;
  GLOBAL T* main_ = work + b * 3 * n;
  GLOBAL T* above = main_ + n;
  GLOBAL T* second = above + n;
  x += b * n * m;
  for (int i = 0; i < n; ++i) {
    main_[i] = diagonals[(b * 3 + 1) * n + i];
    above[i] = i + 1 < n ? diagonals[b * 3 * n + i] : (T)0;
    second[i] = 0;
  }
  for (int i = 0; i + 1 < n; ++i) {
    T below = lower[i + 1];
    if (pivoting && fabs(below) > fabs(main_[i])) {
      EXCHANGE(main_[i], below)
      EXCHANGE(above[i], main_[i + 1])
      EXCHANGE(second[i], above[i + 1])
      for (int j = 0; j < m; ++j) EXCHANGE(x[i * m + j], x[(i + 1) * m + j])
    }
    if (main_[i] == 0) { *flag = 1; return; }
    T factor = below / main_[i];
    main_[i + 1] -= factor * above[i];
    above[i + 1] -= factor * second[i];
    for (int j = 0; j < m; ++j) x[(i + 1) * m + j] -= factor * x[i * m + j];
  }
  if (main_[n - 1] == 0) { *flag = 1; return; }
  for (int i = n - 1; i >= 0; --i) {
    for (int j = 0; j < m; ++j) {
      T v = x[i * m + j];
      if (i + 1 < n) v -= above[i] * x[(i + 1) * m + j];
      if (i + 2 < n) v -= second[i] * x[(i + 2) * m + j];
      x[i * m + j] = v / main_[i];
    }
  }
}
"""


@table.binder("TridiagonalMatMul", T=_TYPES)
def tridiagonal_matmul(sig: NodeSig) -> Callable[[Array, Array, Array, Array], Array]:
    """Products of tridiagonal matrices and dense ones."""
    device = sig.device
    kernel = device.kernel(_SOURCE, "product", T=TYPES[sig.in_dtypes[0].name])

    def run(upper: Array, main: Array, lower: Array, rhs: Array) -> Array:
        out: Array = device.allocate(rhs.shape, rhs.dtype)
        sizes = (np.int64(out.size), np.int32(rhs.shape[-2]), np.int32(rhs.shape[-1]))
        device.launch(kernel, out.size, upper, main, lower, rhs, out, *sizes)
        return out

    return run


@table.binder("TridiagonalSolve", T=_TYPES)
def tridiagonal_solve(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """Solutions by Gaussian elimination."""
    device, pivoting = sig.device, bool(sig.attrs["partial_pivoting"])
    kernel = device.kernel(_SOURCE, "eliminate", T=TYPES[sig.in_dtypes[0].name])

    def run(diagonals: Array, rhs: Array) -> Array:
        checks.check_tridiagonal(diagonals, rhs)
        n, m = rhs.shape[-2:]
        out: Array = device.allocate(rhs.shape, rhs.dtype)
        if not out.size:
            return out
        device.copy_into(rhs, out, 0)
        batches, work = out.size // (n * m), device.allocate(diagonals.shape, rhs.dtype)
        flag = device.flag()
        sizes = (np.int64(batches), np.int32(n), np.int32(m), np.int32(pivoting))
        device.launch(kernel, batches, diagonals, work, out, flag, *sizes)
        if device.read_int(flag):
            raise checks.no_pivot(pivoting)
        return out

    return run
