"""Dense linear algebra on batches: a work group takes a matrix, its items share the rows.

All kernels work in place on contiguous matrices, with a barrier between dependent steps. On a CPU,
and where matrices are small and many, an item takes a matrix: `L` is 1, and nothing is shared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.plugin import as_dtype
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.protocols import Array

__all__ = ["Dense"]

_HEAD = """
#define BATCH i64 batches,
#if L > 1
#define MATRIX int lane = LOCAL_ID(0); i64 batch = GROUP_ID(0);
#define SHARED LOCAL
#define SYNC BARRIER
#else
#define MATRIX int lane = 0; i64 batch = GLOBAL_ID(0); if (batch >= batches) return;
#define SHARED
#define SYNC
#endif
#define EACH(i, from, to) for (int i = (from) + lane; i < (to); i += L)
// The elements behind row and column k, `width` of each row: rows an item, or elements an item.
#if LINES
#define TRAILING(i, j, rest, width) \\
  EACH(i, k + 1, k + 1 + rest) for (int j = k + 1; j < k + 1 + (width); ++j)
#else
#define TRAILING(i, j, rest, width) \\
  for (i64 p = lane, i = 0, j = 0; \\
       p < (i64)rest * rest && (i = k + 1 + p / rest, j = k + 1 + p % rest, 1); p += L) \\
    if (j < k + 1 + (width))
#endif
"""
# Row exchanges by the largest element; a column of zeros is passed over, and told by the flag.
_LU = """
KERNEL void lu(BATCH GLOBAL T* a, GLOBAL int* order, GLOBAL int* flag, int n) {
  SHARED T top[L];
  SHARED int at[L];
  MATRIX
  a += batch * n * n;
  order += batch * n;
  EACH(i, 0, n) order[i] = i;
  SYNC;
  for (int k = 0; k < n; ++k) {
    T best = -1;
    int row = k;
    EACH(i, k, n) { T v = fabs(a[(i64)i * n + k]); if (v > best) { best = v; row = i; } }
    top[lane] = best;
    at[lane] = row;
    SYNC;
    if (lane == 0) {
      for (int j = 1; j < L; ++j)
        if (top[j] > top[0] || (top[j] == top[0] && at[j] < at[0])) {
          top[0] = top[j];
          at[0] = at[j];
        }
      int p = at[0], kept = order[k];
      order[k] = order[p];
      order[p] = kept;
      if (!(top[0] > 0)) *flag = 1;
    }
    SYNC;
    int pivot = at[0], found = top[0] > 0;
    if (pivot != k) EACH(j, 0, n) {
      T kept = a[(i64)k * n + j];
      a[(i64)k * n + j] = a[(i64)pivot * n + j];
      a[(i64)pivot * n + j] = kept;
    }
    SYNC;
    if (found) EACH(i, k + 1, n) a[(i64)i * n + k] /= a[(i64)k * n + k];
    SYNC;
    int rest = n - k - 1;
    if (found) TRAILING(i, j, rest, rest)
      a[(i64)i * n + j] -= a[(i64)i * n + k] * a[(i64)k * n + j];
    SYNC;
  }
}
"""
# a's element (r, c) lies at r * rs + c * cs, so a transposed triangle needs no copy.
_SUBSTITUTE = """
KERNEL void substitute(BATCH GLOBAL const T* a, GLOBAL T* x, GLOBAL int* flag, int n, int m, int rs,
                       int cs, int lower, int unit) {
  MATRIX
  a += batch * n * n;
  x += batch * n * m;
  for (int s = 0; s < n; ++s) {
    int k = lower ? s : n - 1 - s;
    if (!unit) {
      T d = a[(i64)k * rs + (i64)k * cs];
      if (d == 0 && lane == 0) *flag = 1;
      EACH(j, 0, m) x[(i64)k * m + j] /= d;
    }
    SYNC;
    int from = lower ? k + 1 : 0, to = lower ? n : k;
#if LINES
    EACH(r, from, to) {
      T f = a[(i64)r * rs + (i64)k * cs];
      for (int j = 0; j < m; ++j) x[(i64)r * m + j] -= f * x[(i64)k * m + j];
    }
#else
    EACH(p, 0, (to - from) * m) {
      int r = from + p / m, j = p % m;
      x[(i64)r * m + j] -= a[(i64)r * rs + (i64)k * cs] * x[(i64)k * m + j];
    }
#endif
    SYNC;
  }
}
KERNEL void permute(GLOBAL const T* x, GLOBAL const int* order, GLOBAL T* y, i64 total, int n,
                    int m) {
  i64 i = GLOBAL_ID(0);
  if (i >= total) return;
  i64 row = i / m, batch = row / n;
  y[i] = x[(batch * n + order[row]) * m + i % m];
}
KERNEL void identity(GLOBAL T* y, i64 total, int rows, int columns) {
  i64 i = GLOBAL_ID(0);
  if (i < total) y[i] = i / columns % rows == i % columns;
}
KERNEL void triangle(GLOBAL T* a, i64 total, int n, T diagonal) {
  i64 i = GLOBAL_ID(0);
  if (i >= total) return;
  int r = i / n % n, c = i % n;
  if (c > r) a[i] = 0; else if (c == r) a[i] *= diagonal;
}
"""
_DETERMINANT = """
KERNEL void determinant(GLOBAL const T* a, GLOBAL const int* order, GLOBAL T* sign, GLOBAL T* y,
                        i64 batches, int n, int logs) {
  i64 b = GLOBAL_ID(0);
  if (b >= batches) return;
  a += b * n * n;
  order += b * n;
  T s = 1, total = logs ? 0 : 1;
  for (int k = 0; k < n; ++k) {
    T d = a[(i64)k * n + k];
    // Each pair of rows in the wrong order is an exchange.
    for (int j = k + 1; j < n; ++j) if (order[j] < order[k]) s = -s;
    if (logs) { total += log(fabs(d)); s = d == 0 ? 0 : d < 0 ? -s : s; } else total *= d;
  }
  if (logs) { sign[b] = s; y[b] = total; } else y[b] = total * s;
}
"""
_CHOLESKY = """
KERNEL void cholesky(BATCH GLOBAL T* a, GLOBAL int* flag, int n) {
  MATRIX
  a += batch * n * n;
  for (int k = 0; k < n; ++k) {
    if (lane == 0) {
      T d = a[(i64)k * n + k];
      if (!(d > 0)) *flag = 1;
      a[(i64)k * n + k] = sqrt(d);
    }
    SYNC;
    T d = a[(i64)k * n + k];
    EACH(i, k + 1, n) a[(i64)i * n + k] /= d;
    SYNC;
    int rest = n - k - 1;
    TRAILING(i, j, rest, i - k) a[(i64)i * n + j] -= a[(i64)i * n + k] * a[(i64)j * n + k];
    SYNC;
  }
}
"""
# Householder reflections with LAPACK's signs; below the diagonal stay the vectors, which start
# with 1.
_QR = """
KERNEL void reflect(BATCH GLOBAL T* a, GLOBAL T* taus, int m, int n) {
  SHARED T part[L];
  MATRIX
  int steps = m < n ? m : n;
  a += batch * m * n;
  taus += batch * steps;
  for (int k = 0; k < steps; ++k) {
    T mine = 0;
    EACH(i, k + 1, m) mine += a[(i64)i * n + k] * a[(i64)i * n + k];
    part[lane] = mine;
    SYNC;
    T total = 0, alpha = a[(i64)k * n + k];
    for (int j = 0; j < L; ++j) total += part[j];
    T norm = sqrt(alpha * alpha + total), beta = alpha < 0 ? norm : -norm;
    T tau = total > 0 ? (beta - alpha) / beta : 0;
    SYNC;
    if (tau != 0) {
      EACH(i, k + 1, m) a[(i64)i * n + k] /= alpha - beta;
      if (lane == 0) a[(i64)k * n + k] = beta;
    }
    if (lane == 0) taus[k] = tau;
    SYNC;
    EACH(j, k + 1, n) {
      T w = a[(i64)k * n + j];
      for (int i = k + 1; i < m; ++i) w += a[(i64)i * n + k] * a[(i64)i * n + j];
      w *= tau;
      a[(i64)k * n + j] -= w;
      for (int i = k + 1; i < m; ++i) a[(i64)i * n + j] -= w * a[(i64)i * n + k];
    }
    SYNC;
  }
}
KERNEL void rebuild(BATCH GLOBAL const T* a, GLOBAL const T* taus, GLOBAL T* q, int m, int n,
                    int p) {
  MATRIX
  int steps = m < n ? m : n;
  a += batch * m * n;
  taus += batch * steps;
  q += batch * m * p;
  EACH(j, 0, p)
    for (int k = steps - 1; k >= 0; --k) {
      T w = q[(i64)k * p + j];
      for (int i = k + 1; i < m; ++i) w += a[(i64)i * n + k] * q[(i64)i * p + j];
      w *= taus[k];
      q[(i64)k * p + j] -= w;
      for (int i = k + 1; i < m; ++i) q[(i64)i * p + j] -= w * a[(i64)i * n + k];
    }
}
KERNEL void upper(GLOBAL const T* a, GLOBAL T* y, i64 total, int m, int n, int p) {
  i64 i = GLOBAL_ID(0);
  if (i >= total) return;
  int c = i % n, r = i / n % p;
  y[i] = c >= r && r < m ? a[(i / n / p * m + r) * n + c] : 0;
}
"""

_LANES = 256
"""Work items that share a matrix."""
_SMALL = 64
"""Elements of a matrix that an item takes alone on any device, where there are many."""
_MANY = 256


class Dense:
    """The kernels for one element type.

    Args:
        device: the open device.
        dtype: the NumPy element type.
    """

    def __init__(self, device: Any, dtype: np.dtype[Any]) -> None:
        self.device, self.type = device, dtype
        self._macros = {"T": TYPES[as_dtype(dtype).name], "LINES": int(device.is_cpu)}

    def kernel(self, source: str, name: str, lanes: int = 1) -> Any:
        """A kernel of a program that may use BATCH, MATRIX, SHARED, SYNC, EACH, T and L."""
        return self.device.kernel(_HEAD + source, name, L=lanes, **self._macros)

    def groups(self, source: str, name: str, batch: int, size: int, *args: Any) -> None:
        """Queues a kernel over matrices of `size` elements; `BATCH` is its first parameter."""
        alone = self.device.is_cpu or (size <= _SMALL and batch >= _MANY)
        lanes = 1 if alone else min(_LANES, self.device.largest_group)
        kernel, group = self.kernel(source, name, lanes), lanes
        if alone and batch >= _MANY:
            group = 0 if size <= _SMALL else 1
        self.device.launch(kernel, batch * lanes, np.int64(batch), *args, group=group)

    def copy(self, x: Array) -> Array:
        """A copy of an array."""
        out: Array = self.device.allocate(x.shape, x.dtype)
        self.device.copy_into(x, out, 0)
        return out

    def identity(self, shape: tuple[int, ...]) -> Array:
        """Matrices with ones on their diagonals."""
        out: Array = self.device.allocate(shape, self.type)
        sizes = (np.int64(out.size), np.int32(shape[-2]), np.int32(shape[-1]))
        self.device.launch(self.kernel(_SUBSTITUTE, "identity"), out.size, out, *sizes)
        return out

    def lower(self, x: Array, diagonal: float = 1.0) -> Array:
        """A copy of the lower triangles, their diagonals times a number."""
        out = self.copy(x)
        sizes = (np.int64(out.size), np.int32(x.shape[-1]), self.type.type(diagonal))
        self.device.launch(self.kernel(_SUBSTITUTE, "triangle"), out.size, out, *sizes)
        return out

    def lu(self, x: Array, flag: Array) -> tuple[Array, Array]:
        """Both factors in one matrix, and the order of the rows; `flag` tells of a zero pivot."""
        out, n = self.copy(x), x.shape[-1]
        order: Array = self.device.allocate(x.shape[:-1], np.dtype(np.int32))
        self.groups(_LU, "lu", x.size // (n * n), n * n, out, order, flag, np.int32(n))
        return out, order

    def substitute(
        self, a: Array, x: Array, flag: Array, lower: bool, unit: bool = False,
        turned: bool = False,
    ) -> None:  # fmt: skip
        """Solves with triangles in place of `x`; `flag` tells of a zero on a diagonal."""
        n, m = x.shape[-2:]
        steps = (1, n) if turned else (n, 1)
        numbers = (np.int32(v) for v in (n, m, *steps, lower != turned, unit))
        self.groups(_SUBSTITUTE, "substitute", a.size // (n * n), n * n, a, x, flag, *numbers)

    def solve(self, a: Array, rhs: Array | None, flag: Array) -> Array:
        """The solutions of general systems; without right-hand sides, the inverses."""
        factors, order = self.lu(a, flag)
        rhs = self.identity(a.shape) if rhs is None else rhs
        n, m = rhs.shape[-2:]
        out: Array = self.device.allocate(rhs.shape, rhs.dtype)
        sizes = (np.int64(out.size), np.int32(n), np.int32(m))
        self.device.launch(self.kernel(_SUBSTITUTE, "permute"), out.size, rhs, order, out, *sizes)
        self.substitute(factors, out, flag, lower=True, unit=True)
        self.substitute(factors, out, flag, lower=False)
        return out

    def determinant(self, x: Array, logs: bool) -> tuple[Array, Array]:
        """The signs, and the determinants or the logarithms of their sizes."""
        factors, order = self.lu(x, self.device.flag())
        sign, out = (self.device.allocate(x.shape[:-2], x.dtype) for _ in range(2))
        numbers = (np.int64(out.size), np.int32(x.shape[-1]), np.int32(logs))
        kernel = self.kernel(_DETERMINANT, "determinant")
        self.device.launch(kernel, out.size, factors, order, sign, out, *numbers)
        return sign, out

    def cholesky(self, x: Array, flag: Array) -> Array:
        """The lower factors; `flag` tells of a matrix that is not positive definite."""
        out, n = self.lower(x), x.shape[-1]
        self.groups(_CHOLESKY, "cholesky", x.size // (n * n), n * n, out, flag, np.int32(n))
        return out

    def qr(self, x: Array, full: bool) -> tuple[Array, Array]:
        """Orthonormal columns and upper triangles."""
        device, work = self.device, self.copy(x)
        *batch, m, n = x.shape
        p, count = m if full else min(m, n), x.size // (m * n)
        taus = device.allocate((count, min(m, n)), x.dtype)
        self.groups(_QR, "reflect", count, m * n, work, taus, np.int32(m), np.int32(n))
        q, r = self.identity((*batch, m, p)), device.allocate((*batch, p, n), x.dtype)
        sizes = tuple(np.int32(v) for v in (m, n, p))
        self.groups(_QR, "rebuild", count, m * n, work, taus, q, *sizes)
        device.launch(self.kernel(_QR, "upper"), r.size, work, r, np.int64(r.size), *sizes)
        return q, r
