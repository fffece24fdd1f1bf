"""Matrix products, register-blocked: a work item keeps a tile of the result in vectors.

A work item walks down `H` rows of the left factor, whatever their strides, and takes each row of a
panel of the right factor into vectors. Panels are packed first, with zeros up to the tile's width,
which takes care of transposed and ragged factors; small untransposed ones are read as they lie.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from opdock.plugin import DType, as_dtype
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.product import Factor
from opdock_opencl.array import Array

__all__ = ["tiled"]

_SMALL = 1 << 15
"""Multiplications in a product that is not worth a tile."""
_UNPACKED = 512
"""Columns up to which neighbouring rows of the right factor share few enough cache sets."""

_PACK = """
__kernel void pack(__global const T* x, __global T* y, int n, int depth, long step,
                   long column_step, long depth_step, long offset) {
  int k = get_global_id(0), panel = get_global_id(1), batch = get_global_id(2);
  x += offset + batch * step + k * depth_step + (long)panel * COLUMNS * column_step;
  y += (((long)batch * get_global_size(1) + panel) * depth + k) * COLUMNS;
  int room = n - panel * COLUMNS;
  if (room >= COLUMNS && column_step == 1)
    for (int j = 0; j < COLUMNS / W; ++j) VSTORE(VLOAD(j, x), j, y);
  else
    for (int j = 0; j < COLUMNS; ++j) y[j] = j < room ? x[j * column_step] : 0;
}
"""

_TILE = """
__kernel void tile(__global const T* restrict a, __global const T* restrict b,
                   __global T* restrict c, __global const int* batches, int m, int n, int depth,
                   long a_offset, long a_step, long row_step, long k_step,
                   long b_offset, long b_step, long panel_step, long line_step, int add) {
  int col = get_global_id(0) * COLUMNS, row = get_global_id(1) * H, z = get_global_id(2);
  a += a_offset + batches[2 * z] * a_step;
  b += b_offset + batches[2 * z + 1] * b_step + get_global_id(0) * panel_step;
  c += (long)z * m * n;
  START
  for (int k = 0; k < depth; ++k, b += line_step) {
    STEP
  }
  FINISH
}
"""
_STORE = """
#define STORE(p, value, room) \\
  if ((room) >= W) VSTORE(add ? VLOAD(0, p) + value : value, 0, p); \\
  else if ((room) > 0) { \\
    T part[W]; \\
    VSTORE(value, 0, part); \\
    for (int j = 0; j < (room); ++j) (p)[j] = add ? (p)[j] + part[j] : part[j]; \\
  }
"""


@cache
def _tile(height: int, vectors: int) -> str:
    """The kernel with its rows and vectors written out, so that they stay in registers."""
    rows, cells = range(height), range(vectors)
    # Rows beyond the last are computed from it and not stored.
    start = [f"__global const T* a{r} = a + min(row + {r}, m - 1) * row_step;" for r in rows]
    start += [f"V acc{r}_{v} = 0;" for r in rows for v in cells]
    step = [f"V b{v} = VLOAD({v}, b);" for v in cells]
    for r in rows:
        sums = " ".join(f"acc{r}_{v} = fma((V)(s), b{v}, acc{r}_{v});" for v in cells)
        step.append(f"{{ T s = a{r}[k * k_step]; {sums} }}")
    finish = []
    for r in rows:
        stores = " ".join(
            f"STORE(c + (long)(row + {r}) * n + col + {v} * W, acc{r}_{v}, n - col - {v} * W)"
            for v in cells
        )
        finish.append(f"if (row + {r} < m) {{ {stores} }}")
    text = _TILE.replace("START", "\n  ".join(start)).replace("STEP", "\n    ".join(step))
    return _STORE + text.replace("FINISH", "\n  ".join(finish))


def _shape(device: Any, dtype: DType, m: int) -> tuple[int, int, int]:
    """Rows, vectors and elements a vector of a tile: what fills, but not spills, registers."""
    if device.is_cpu:
        width = 64 // dtype.size
        return (12 if m > 4 else 4), 2, width
    return 4, 1, 16 // dtype.size


def _packed(device: Any, b: Factor, columns: int, macros: dict[str, object]) -> Array:
    n, depth = b.columns, b.rows
    panels = -(-n // columns)
    out: Array = device.allocate((b.batch, panels, depth, columns), b.data.dtype)
    device.launch_grid(
        device.kernel(_PACK, "pack", **macros), (depth, panels, b.batch), None, b.data, out,
        np.int32(n), np.int32(depth), *map(np.int64, (b.step, b.steps[1], b.steps[0], b.offset)),
    )  # fmt: skip
    return out


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
    height, vectors, width = _shape(device, dtype, m)
    columns, name = vectors * width, TYPES[dtype.name]
    macros: dict[str, object] = {
        "T": name, "V": f"{name}{width}", "H": height, "W": width, "COLUMNS": columns,
        "VLOAD": f"vload{width}", "VSTORE": f"vstore{width}",
    }  # fmt: skip
    panels = -(-n // columns)
    if b.steps[1] == 1 and n % columns == 0 and n <= _UNPACKED:
        right, place = b.data, (b.offset, b.step, columns, b.steps[0])
    else:
        right = _packed(device, b, columns, macros)
        place = (0, panels * depth * columns, depth * columns, columns)
    strides = map(np.int64, (a.offset, a.step, *a.steps, *place))
    device.launch_grid(
        device.kernel(_tile(height, vectors), "tile", **macros),
        (panels, -(-m // height), out.size // (m * n)), None, a.data, right, out, pairs,
        *map(np.int32, (m, n, depth)), *strides, np.int32(add),
    )  # fmt: skip
    return True
