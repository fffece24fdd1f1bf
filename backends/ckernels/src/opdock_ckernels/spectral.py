"""Eigenvalues and singular values by Jacobi's rotations: a work group takes a matrix."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock_ckernels.dense import Dense
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import transposed

__all__ = ["eigen", "singular"]

_HEAD: Final = """
#define SWEEPS 40
// The rotation that makes the off-diagonal element of a symmetric 2 x 2 matrix zero.
#define ROTATION(first, last, off) \\
  T zeta = (last - first) / (2 * off); \\
  T t = (zeta < 0 ? (T)-1 : (T)1) / (fabs(zeta) + sqrt(1 + zeta * zeta)); \\
  T cosine = 1 / sqrt(1 + t * t), sine = cosine * t;
#define TURN(x, y) { T kept = x; x = cosine * kept - sine * y; y = sine * kept + cosine * y; }
"""
_EIGEN: Final = """
KERNEL void eigen(BATCH GLOBAL T* a, GLOBAL T* v, GLOBAL T* values, GLOBAL T* vectors, int n,
                  int wanted) {
  SHARED int turned[1];
  MATRIX
  a += batch * n * n;
  v += batch * n * n;
  values += batch * n;
  EACH(i, 0, n) for (int j = i + 1; j < n; ++j) a[(i64)i * n + j] = a[(i64)j * n + i];
  if (lane == 0) turned[0] = 1;
  SYNC;
  for (int sweep = 0; sweep < SWEEPS && turned[0]; ++sweep) {
    SYNC;
    if (lane == 0) turned[0] = 0;
    for (int p = 0; p < n - 1; ++p) for (int q = p + 1; q < n; ++q) {
      SYNC;
      T first = a[(i64)p * n + p], last = a[(i64)q * n + q], off = a[(i64)p * n + q];
      int turn = fabs(off) > EPS * sqrt(fabs(first) * fabs(last)) && fabs(off) > TINY;
      if (turn && lane == 0) turned[0] = 1;
      SYNC;
      if (turn) {
        ROTATION(first, last, off)
        EACH(k, 0, n) {
          TURN(a[(i64)k * n + p], a[(i64)k * n + q])
          if (wanted) TURN(v[(i64)k * n + p], v[(i64)k * n + q])
        }
      }
      SYNC;
      if (turn) {
        ROTATION(first, last, off)
        EACH(k, 0, n) TURN(a[(i64)p * n + k], a[(i64)q * n + k])
      }
    }
    SYNC;
  }
  SYNC;
  EACH(k, 0, n) {
    T d = a[(i64)k * n + k];
    int rank = 0;
    for (int j = 0; j < n; ++j) {
      T o = a[(i64)j * n + j];
      rank += o < d || (o == d && j < k);
    }
    values[rank] = d;
    if (wanted) for (int i = 0; i < n; ++i)
      vectors[batch * n * n + (i64)i * n + rank] = v[(i64)i * n + k];
  }
}
"""
# One-sided: columns of u are turned until they are orthogonal; their lengths are the values.
_SINGULAR: Final = """
KERNEL void singular(BATCH GLOBAL T* u, GLOBAL T* v, GLOBAL T* values, GLOBAL T* left,
                     GLOBAL T* right, GLOBAL T* lengths, int m, int n, int width, int wanted) {
  SHARED T part[3 * L];
  SHARED int turned[1];
  MATRIX
  u += batch * m * n;
  v += batch * n * n;
  values += batch * n;
  lengths += batch * n;
  if (lane == 0) turned[0] = 1;
  SYNC;
  for (int sweep = 0; sweep < SWEEPS && turned[0]; ++sweep) {
    SYNC;
    if (lane == 0) turned[0] = 0;
    for (int p = 0; p < n - 1; ++p) for (int q = p + 1; q < n; ++q) {
      T mine[3];
      mine[0] = mine[1] = mine[2] = 0;
      EACH(k, 0, m) {
        T x = u[(i64)k * n + p], y = u[(i64)k * n + q];
        mine[0] += x * x;
        mine[1] += y * y;
        mine[2] += x * y;
      }
      for (int j = 0; j < 3; ++j) part[3 * lane + j] = mine[j];
      SYNC;
      T first = 0, last = 0, off = 0;
      for (int j = 0; j < L; ++j) {
        first += part[3 * j];
        last += part[3 * j + 1];
        off += part[3 * j + 2];
      }
      int turn = fabs(off) > EPS * sqrt(first * last) && fabs(off) > TINY;
      if (turn && lane == 0) turned[0] = 1;
      SYNC;
      if (turn) {
        ROTATION(first, last, off)
        EACH(k, 0, m) TURN(u[(i64)k * n + p], u[(i64)k * n + q])
        if (wanted) EACH(k, 0, n) TURN(v[(i64)k * n + p], v[(i64)k * n + q])
      }
      SYNC;
    }
    SYNC;
  }
  EACH(k, 0, n) {
    T total = 0;
    for (int i = 0; i < m; ++i) total += u[(i64)i * n + k] * u[(i64)i * n + k];
    lengths[k] = sqrt(total);
  }
  SYNC;
  T top = 0;
  for (int k = 0; k < n; ++k) top = lengths[k] > top ? lengths[k] : top;
  left += batch * m * width;
  EACH(k, 0, n) {
    T s = lengths[k];
    int rank = 0;
    for (int j = 0; j < n; ++j) rank += lengths[j] > s || (lengths[j] == s && j < k);
    values[rank] = s;
    if (wanted) {
      for (int i = 0; i < n; ++i) right[batch * n * n + (i64)i * n + rank] = v[(i64)i * n + k];
      if (s > top * EPS * m)
        for (int i = 0; i < m; ++i) left[(i64)i * width + rank] = u[(i64)i * n + k] / s;
    }
  }
  SYNC;
  if (!wanted || lane) return;
  // Columns that no value defines: unit vectors made orthogonal to those before, twice.
  int known = 0;
  while (known < n && values[known] > top * EPS * m) ++known;
  for (int c = known, e = 0; c < width; ++e) {
    for (int i = 0; i < m; ++i) left[(i64)i * width + c] = i == e % m;
    T total = 0;
    for (int pass = 0; pass < 2; ++pass) {
      for (int k = 0; k < c; ++k) {
        T dot = 0;
        for (int i = 0; i < m; ++i) dot += left[(i64)i * width + k] * left[(i64)i * width + c];
        for (int i = 0; i < m; ++i) left[(i64)i * width + c] -= dot * left[(i64)i * width + k];
      }
    }
    for (int i = 0; i < m; ++i) total += left[(i64)i * width + c] * left[(i64)i * width + c];
    // Some unit vector keeps at least this much; NaN ends the search.
    if (total * 2 * m < 1) continue;
    for (int i = 0; i < m; ++i) left[(i64)i * width + c] /= sqrt(total);
    ++c;
  }
}
"""


def _source(dense: Dense, body: str) -> str:
    info = np.finfo(dense.type)
    suffix = "f" if dense.type == np.float32 else ""
    macros = f"#define EPS {float(info.eps)!r}{suffix}\n#define TINY {float(info.tiny)!r}{suffix}\n"
    return macros + _HEAD + body


def eigen(dense: Dense, x: Array, wanted: bool) -> tuple[Array, Array]:
    """Eigenvalues from small to large of symmetric matrices, and their vectors if wanted."""
    device, n, work = dense.device, x.shape[-1], dense.copy(x)
    values: Array = device.allocate(x.shape[:-1], x.dtype)
    turns = dense.identity(x.shape)
    vectors: Array = device.allocate(x.shape, x.dtype) if wanted else turns
    numbers = (np.int32(n), np.int32(wanted))
    count, source = x.size // (n * n), _source(dense, _EIGEN)
    dense.groups(source, "eigen", count, n * n, work, turns, values, vectors, *numbers)
    return values, vectors


def singular(dense: Dense, x: Array, wanted: bool, full: bool) -> tuple[Array, Array, Array]:
    """Singular values from large to small, and left and right vectors if wanted."""
    device: Any = dense.device
    *batch, rows, columns = x.shape
    turned = rows < columns
    work = transposed(device, x) if turned else dense.copy(x)
    m, n = max(rows, columns), min(rows, columns)
    width, count = m if full else n, x.size // (m * n)
    values: Array = device.allocate((*batch, n), x.dtype)
    turns, lengths = dense.identity((*batch, n, n)), device.allocate((count, n), x.dtype)
    left, right = values, values
    if wanted:
        left = device.allocate((*batch, m, width), x.dtype)
        right = device.allocate((*batch, n, n), x.dtype)
    numbers = (np.int32(v) for v in (m, n, width, wanted))
    source = _source(dense, _SINGULAR)
    dense.groups(
        source, "singular", count, m * n, work, turns, values, left, right, lengths, *numbers
    )
    return (values, right, left) if turned else (values, left, right)
