"""Matrix products, register-blocked: a work item keeps a tile of the result in vectors.

A work item walks down `H` rows of the left factor, whatever their strides, and takes each row of a
panel of the right factor into vectors. Panels are packed first, with zeros up to the tile's width,
which takes care of transposed and ragged factors; small untransposed ones are read as they lie.

Rows and columns of the left factor may each lie as several dimensions do, as the windows of an
image: a convolution is a product without a copy of its windows.
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
                   __global T* restrict c, __global const int* batches, int m, int n,
                   long a_offset, long a_step, long b_offset, long b_step, long panel_step,
                   long line_step, int add, SIZES) {
  int col = get_global_id(0) * COLUMNS, row = get_global_id(1) * H, z = get_global_id(2);
  a += a_offset + batches[2 * z] * a_step;
  b += b_offset + batches[2 * z + 1] * b_step + get_global_id(0) * panel_step;
  c += (long)z * m * n;
  START
  DEPTHS {
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
def _tile(height: int, vectors: int, rows: int, depths: int) -> str:
    """The kernel with its rows and vectors written out, so that they stay in registers.

    Args:
        height: rows of a tile.
        vectors: of each row.
        rows, depths: how many dimensions the rows and the columns of the left factor have.
    """
    lines, cells = range(height), range(vectors)
    start = _starts(height, rows) + [f"V acc{r}_{v} = 0;" for r in lines for v in cells]
    step = [f"V b{v} = VLOAD({v}, b);" for v in cells]
    for r in lines:
        sums = " ".join(f"acc{r}_{v} = fma((V)(s), b{v}, acc{r}_{v});" for v in cells)
        step.append(f"{{ T s = a{r}[k]; {sums} }}")
    loops = [f"for (int j{d} = 0; j{d} < k{d}; ++j{d})" for d in range(depths - 1)]
    outer = " + ".join(f"j{d} * ks{d}" for d in range(depths - 1)) or "0"
    last = depths - 1
    loops.append(
        f"for (long k = {outer}, end = k + k{last} * ks{last}; k != end; "
        f"k += ks{last}, b += line_step)"
    )
    finish = []
    for r in lines:
        stores = " ".join(
            f"STORE(c + (long)(row + {r}) * n + col + {v} * W, acc{r}_{v}, n - col - {v} * W)"
            for v in cells
        )
        finish.append(f"if (row + {r} < m) {{ {stores} }}")
    sizes = [f"int r{d}, long rs{d}" for d in range(rows)]
    sizes += [f"int k{d}, long ks{d}" for d in range(depths)]
    text = _TILE.replace("SIZES", ", ".join(sizes)).replace("DEPTHS", " ".join(loops))
    text = text.replace("START", "\n  ".join(start)).replace("STEP", "\n    ".join(step))
    return _STORE + text.replace("FINISH", "\n  ".join(finish))


def _starts(height: int, rows: int) -> list[str]:
    """Where the rows of a tile begin; those beyond the last are it again, and not stored."""
    last = rows - 1
    if not last:
        return [f"__global const T* a{r} = a + min(row + {r}, m - 1) * rs0;" for r in range(height)]
    start = ["int rest = row;"]
    start += [f"int i{d} = rest % r{d}; rest /= r{d};" for d in range(last, 0, -1)]
    places = " + ".join(["rest * rs0", *(f"i{d} * rs{d}" for d in range(1, rows))])
    start.append(f"__global const T* a0 = a + {places};")
    carry = ""
    for d in range(1, rows):
        carry = f"if (++i{d} == r{d}) {{ i{d} = 0; p += rs{d - 1} - r{d} * rs{d}; {carry} }}"
    for r in range(1, height):
        start.append(
            f"__global const T* a{r} = a{r - 1}; "
            f"if (row + {r} < m) {{ __global const T* p = a{r} + rs{last}; {carry} a{r} = p; }}"
        )
    return start


def _shape(device: Any, dtype: DType, m: int, n: int) -> tuple[int, int, int]:
    """Rows, vectors and elements a vector of a tile: what fills, but not spills, registers."""
    if not device.is_cpu:
        return 4, 1, 16 // dtype.size
    # Half as many registers, and half as wide ones, have processors without AVX-512.
    most, tall = device.vector_bytes // dtype.size, 12 if device.vector_bytes == 64 else 6
    width = most
    while width > 16 // dtype.size and width >= 2 * n:
        width //= 2
    vectors = 1 if n <= width else 2
    if vectors == 2 and -(-n // width) * width * 4 <= -(-n // (2 * width)) * 2 * width * 3:
        vectors = 1  # a third of what two would compute is nothing
    return (tall if m > 4 else 4), vectors, width


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
    if not dtype.is_floating or (m * n * depth < _SMALL and a.lines is None):
        return False
    height, vectors, width = _shape(device, dtype, m, n)
    columns, name = vectors * width, TYPES[dtype.name]
    macros: dict[str, object] = {
        "T": name, "V": f"{name}{width}", "H": height, "W": width, "COLUMNS": columns,
        "VLOAD": f"vload{width}", "VSTORE": f"vstore{width}",
    }  # fmt: skip
    panels = -(-n // columns)
    # What few rows are multiplied with is read no oftener than it would be to be packed.
    if b.steps[1] == 1 and n % columns == 0 and (n <= _UNPACKED or m <= 2 * height):
        right, place = b.data, (b.offset, b.step, columns, b.steps[0])
    else:
        right = _packed(device, b, columns, macros)
        place = (0, panels * depth * columns, depth * columns, columns)
    rows, depths = a.lines or ([(m, a.steps[0])], [(depth, a.steps[1])])
    lines = (v for n, step in (*rows, *depths) for v in (np.int32(n), np.int64(step)))
    device.launch_grid(
        device.kernel(_tile(height, vectors, len(rows), len(depths)), "tile", **macros),
        (panels, -(-m // height), out.size // (m * n)), None, a.data, right, out, pairs,
        np.int32(m), np.int32(n), *map(np.int64, (a.offset, a.step, *place)), np.int32(add),
        *lines,
    )  # fmt: skip
    return True
