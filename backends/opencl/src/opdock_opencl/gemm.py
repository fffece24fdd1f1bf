"""Matrix products, register-blocked: a work item keeps a tile of the result in vectors.

Both factors are first packed into panels with zeros up to whole tiles; packing also takes care of
transposed and broadcast factors, so the product itself reads memory in order. Small products and
integers use one work item an element.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.plugin import DType, as_dtype, dtypes
from opdock_opencl.array import Array
from opdock_opencl.dialect import TYPES

__all__ = ["Factor", "multiply"]

_SMALL = 1 << 15
"""Multiplications in a product that is not worth packing."""

_PANELS = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel void pack(__global const T* x, __global T* y, int batch, int lines, int depth,
                   int panels, long step, long line_step, long depth_step, long offset) {
  long i = get_global_id(0);
  if (i >= (long)batch * panels * depth * W) return;
  int lane = i % W;
  long rest = i / W;
  int k = rest % depth;
  rest /= depth;
  int line = (int)(rest % panels) * W + lane;
  long b = rest / panels;
  y[i] = line < lines ? x[offset + b * step + line * line_step + k * depth_step] : 0;
}
"""

_TILES = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel void tiles(__global const T* restrict a, __global const T* restrict b,
                    __global T* restrict c, __global const int* batches,
                    int m, int n, int depth, int mp, int np, int add) {
  int pn = get_global_id(0), pm = get_global_id(1), z = get_global_id(2);
  a += ((long)batches[2 * z] * mp + pm) * depth * H;
  b += ((long)batches[2 * z + 1] * np + pn) * depth * W;
  c += (long)z * m * n + (long)pm * H * n + pn * W;
  V acc[H];
  for (int r = 0; r < H; ++r) acc[r] = (V)(0);
  for (int k = 0; k < depth; ++k) {
    V v = VLOAD(0, b + (long)k * W);
    __global const T* p = a + (long)k * H;
    ROWS
  }
  int rows = min(H, m - pm * H), columns = min(W, n - pn * W);
  for (int r = 0; r < rows; ++r) {
    __global T* q = c + (long)r * n;
    if (columns == W) {
      VSTORE(add ? VLOAD(0, q) + acc[r] : acc[r], 0, q);
    } else {
      T part[W];
      VSTORE(acc[r], 0, part);
      for (int j = 0; j < columns; ++j) q[j] = add ? q[j] + part[j] : part[j];
    }
  }
}
"""

_PLAIN = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel void plain(__global const T* a, __global const T* b, __global T* c,
                    __global const int* batches, int count, int m, int n, int depth,
                    long ao, long az, long am, long ak, long bo, long bz, long bn, long bk,
                    int add) {
  long i = get_global_id(0);
  if (i >= (long)count * m * n) return;
  int col = i % n;
  long rest = i / n;
  int row = rest % m;
  int z = rest / m;
  a += ao + batches[2 * z] * az + row * am;
  b += bo + batches[2 * z + 1] * bz + col * bn;
  T total = 0;
  for (int k = 0; k < depth; ++k) total += a[k * ak] * b[k * bk];
  c[i] = add ? c[i] + total : total;
}
"""


class Factor:
    """A batch of matrices in memory.

    Args:
        data: the array.
        batch: how many matrices.
        shape: rows and columns of each, as they lie in memory.
        turned: whether the matrices are to be taken transposed.
        offset: the first matrix's first element.
    """

    __slots__ = ("batch", "columns", "data", "offset", "rows", "step", "steps")

    def __init__(
        self, data: Array, batch: int, shape: tuple[int, ...], turned: bool = False,
        offset: int = 0,
    ) -> None:  # fmt: skip
        rows, columns = shape
        self.data, self.batch, self.offset = data, batch, offset
        self.step = rows * columns
        self.rows, self.columns = (columns, rows) if turned else (rows, columns)
        self.steps = (1, columns) if turned else (columns, 1)


def _options(device: Any, dtype: DType) -> tuple[int, int, str, str]:
    """Tile height and width, compiler options and source: vectors of 64 bytes on a CPU."""
    width = (16 if device.is_cpu else 4) if dtype is dtypes.float32 else (8 if device.is_cpu else 2)
    height = 8 if device.is_cpu else 4
    name = TYPES[dtype.name]
    rows = " ".join(f"acc[{r}] = fma((V)(p[{r}]), v, acc[{r}]);" for r in range(height))
    text = f"-DT={name} -DV={name}{width} -DH={height} -DW={width} "
    text += f"-DVLOAD=vload{width} -DVSTORE=vstore{width}"
    return height, width, text, _TILES.replace("ROWS", rows)


def _packed(device: Any, factor: Factor, by_rows: bool, size: int, name: str) -> tuple[Array, int]:
    lines, depth = (factor.rows, factor.columns) if by_rows else (factor.columns, factor.rows)
    steps = factor.steps if by_rows else factor.steps[::-1]
    panels = -(-lines // size)
    count = factor.batch * panels * depth * size
    out: Array = device.allocate((count,), factor.data.dtype)
    kernel = device.kernel(_PANELS, "pack", f"-DT={name} -DW={size}")
    device.launch(
        kernel, count, factor.data, out,
        *(np.int32(v) for v in (factor.batch, lines, depth, panels)),
        *(np.int64(v) for v in (factor.step, *steps, factor.offset)),
    )  # fmt: skip
    return out, panels


def multiply(
    device: Any, a: Factor, b: Factor, out: Array, pairs: Array | None = None, add: bool = False
) -> None:
    """`out = a @ b`, or `out += a @ b`.

    Args:
        device: the open device.
        a, b: the factors.
        out: a contiguous batch of results.
        pairs: int32 numbers of the two matrices of each product; None: all with their like.
        add: whether the product is added to what `out` holds.
    """
    m, n, depth = a.rows, b.columns, a.columns
    if not out.size:
        return
    if depth == 0:
        if not add:
            device.fill_zero(out)
        return
    count = out.size // (m * n)
    if pairs is None:
        pairs = device.upload(np.repeat(np.arange(count, dtype=np.int32), 2))
    dtype = as_dtype(out.dtype)
    sizes = [np.int32(v) for v in (m, n, depth)]
    if dtype.is_integer or m * n * depth < _SMALL:
        kernel = device.kernel(_PLAIN, "plain", f"-DT={TYPES[dtype.name]}")
        steps = [a.offset, a.step, *a.steps, b.offset, b.step, b.steps[1], b.steps[0]]
        device.launch(
            kernel, out.size, a.data, b.data, out, pairs, np.int32(count), *sizes,
            *(np.int64(v) for v in steps), np.int32(add),
        )  # fmt: skip
        return
    height, width, options, source = _options(device, dtype)
    left, mp = _packed(device, a, True, height, TYPES[dtype.name])
    right, np_ = _packed(device, b, False, width, TYPES[dtype.name])
    kernel = device.kernel(source, "tiles", options)
    device.launch_grid(
        kernel, (np_, mp, count), None, left, right, out, pairs, *sizes,
        np.int32(mp), np.int32(np_), np.int32(add),
    )  # fmt: skip
