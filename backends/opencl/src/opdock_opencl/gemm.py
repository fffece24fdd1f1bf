"""Matrix products, register-blocked: a work item keeps a tile of the result in vectors.

Both factors are first packed into panels with zeros up to whole tiles; packing also takes care of
transposed and broadcast factors, so the product itself reads memory in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.plugin import DType, as_dtype
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.product import Factor
from opdock_opencl.array import Array

__all__ = ["tiled"]

_SMALL = 1 << 15
"""Multiplications in a product that is not worth packing."""

_PANELS = """
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

def _options(device: Any, dtype: DType) -> tuple[int, int, dict[str, object], str]:
    """Tile height and width, macros and source: vectors of 64 bytes on a CPU."""
    width = (16 if device.is_cpu else 4) if dtype.size == 4 else (8 if device.is_cpu else 2)
    height = 8 if device.is_cpu else 4
    name = TYPES[dtype.name]
    rows = " ".join(f"acc[{r}] = fma((V)(p[{r}]), v, acc[{r}]);" for r in range(height))
    macros: dict[str, object] = {
        "T": name, "V": f"{name}{width}", "H": height, "W": width, "VLOAD": f"vload{width}",
        "VSTORE": f"vstore{width}",
    }  # fmt: skip
    return height, width, macros, _TILES.replace("ROWS", rows)


def _packed(device: Any, factor: Factor, by_rows: bool, size: int, name: str) -> tuple[Array, int]:
    lines, depth = (factor.rows, factor.columns) if by_rows else (factor.columns, factor.rows)
    steps = factor.steps if by_rows else factor.steps[::-1]
    panels = -(-lines // size)
    count = factor.batch * panels * depth * size
    out: Array = device.allocate((count,), factor.data.dtype)
    kernel = device.kernel(_PANELS, "pack", T=name, W=size)
    device.launch(
        kernel, count, factor.data, out,
        *(np.int32(v) for v in (factor.batch, lines, depth, panels)),
        *(np.int64(v) for v in (factor.step, *steps, factor.offset)),
    )  # fmt: skip
    return out, panels


def tiled(device: Any, a: Factor, b: Factor, out: Any, pairs: Any, add: bool) -> bool:
    """`out = a @ b` or `out += a @ b` in tiles; False where the plain kernel is the better one.

    Args:
        device: the open device.
        a, b: the factors.
        out: a contiguous batch of results.
        pairs: int32 numbers of the two matrices of each product.
        add: whether the product is added to what `out` holds.
    """
    m, n, depth = a.rows, b.columns, a.columns
    dtype = as_dtype(out.dtype)
    if not dtype.is_floating or m * n * depth < _SMALL:
        return False
    height, width, macros, source = _options(device, dtype)
    left, mp = _packed(device, a, True, height, TYPES[dtype.name])
    right, np_ = _packed(device, b, False, width, TYPES[dtype.name])
    sizes = (np.int32(v) for v in (m, n, depth, mp, np_, add))
    kernel = device.kernel(source, "tiles", **macros)
    grid = (np_, mp, out.size // (m * n))
    device.launch_grid(kernel, grid, None, left, right, out, pairs, *sizes)
    return True
