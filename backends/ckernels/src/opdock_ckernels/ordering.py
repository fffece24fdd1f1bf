"""Stable sorting of rows: ranks within blocks, then runs merged in pairs by binary search.

Every pass writes each element to a place that no other element has, so results repeat and nothing
is atomic. Equal elements keep their order; NaN comes last in ascending and first in descending
order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.plugin import DType, as_dtype, codegen
from opdock_ckernels.dialect import TYPES, WORDS
from opdock_ckernels.made import once
from opdock_ckernels.protocols import Array

__all__ = ["find", "largest", "sort"]

_BLOCK = 64
_STRETCH = 2048
"""Elements of a block that a work item of a CPU goes through."""
_GROUP_OF_CPU = 4
"""Such work items of a group: a group is what a thread takes."""
_SORT = """
KERNEL void blocks(GLOBAL const T* x, GLOBAL W* y, GLOBAL int* at, i64 total, i64 n, i64 block) {
  i64 i = GLOBAL_ID(0);
  if (i >= total) return;
  i64 j = i % n, low = j - j % block, high = low + block < n ? low + block : n, base = i - j;
  A v = LOAD(i);
  i64 rank = low;
  for (i64 k = low; k < high; ++k) {
    A u = LOAD(base + k);
    if (BEFORE(u, v) || (k < j && !BEFORE(v, u))) ++rank;
  }
  y[base + rank] = ((GLOBAL const W*)x)[i];
  at[base + rank] = (int)j;
}

KERNEL void merge(GLOBAL const T* x, GLOBAL const int* from, GLOBAL W* y, GLOBAL int* at,
                  i64 total, i64 n, i64 run) {
  i64 i = GLOBAL_ID(0);
  if (i >= total) return;
  i64 j = i % n, base = i - j, start = j - j % (2 * run);
  i64 middle = start + run < n ? start + run : n, end = middle + run < n ? middle + run : n;
  int left = j < middle;
  i64 low = left ? middle : start, high = left ? end : middle, first = low;
  A v = LOAD(i);
  while (low < high) {
    i64 k = (low + high) / 2;
    A u = LOAD(base + k);
    if (left ? BEFORE(u, v) : !BEFORE(v, u)) low = k + 1;
    else high = k;
  }
  i64 place = base + (left ? j : start + (j - middle)) + (low - first);
  y[place] = ((GLOBAL const W*)x)[i];
  at[place] = from[i];
}

KERNEL void best(GLOBAL const T* x, GLOBAL const int* from, GLOBAL W* y, GLOBAL int* at,
                 i64 total, i64 n, i64 block, i64 k, i64 kept, int first) {
  i64 i = GLOBAL_ID(0);
  if (i >= total) return;
  i64 j = i % n, low = j - j % block, high = low + block < n ? low + block : n, base = i - j;
  A v = LOAD(i);
  i64 rank = 0;
  for (i64 p = low; p < high && rank < k; ++p) {
    A u = LOAD(base + p);
    if (BEFORE(u, v) || (p < j && !BEFORE(v, u))) ++rank;
  }
  if (rank >= k) return;
  i64 place = (i / n) * kept + (low / block) * k + rank;
  y[place] = ((GLOBAL const W*)x)[i];
  at[place] = first ? (int)j : from[i];
}

KERNEL void chosen(GLOBAL const T* x, GLOBAL const int* from, GLOBAL T* y, GLOBAL int* at,
                   i64 items, i64 n, i64 block, i64 k, i64 kept, int first) {
  i64 i = GLOBAL_ID(0);
  if (i >= items) return;
  i64 blocks = (n + block - 1) / block, row = i / blocks, low = i % blocks * block;
  i64 high = low + block < n ? low + block : n, most = k < high - low ? k : high - low;
  i64 base = row * n, place = row * kept + i % blocks * k, count = 0;
  A least = 0;
  for (i64 p = low; p < high; ++p) {
    A v = LOAD(base + p);
    if (count == most && !BEFORE(v, least)) continue;
    i64 q = place + (count < most ? count++ : most - 1);
    for (; q > place && BEFORE(v, LOAD_Y(q - 1)); --q) {
      ((GLOBAL W*)y)[q] = ((GLOBAL W*)y)[q - 1];
      at[q] = at[q - 1];
    }
    ((GLOBAL W*)y)[q] = ((GLOBAL const W*)x)[base + p];
    at[q] = first ? (int)p : from[base + p];
    least = LOAD_Y(place + count - 1);
  }
}
"""


@once
def _kernel(device: Any, name: str, dtype: DType, descending: bool) -> Any:
    """A kernel of the program; where `dtype` is floating, NaN is beyond every number."""
    sign, number, other = (">", "b", "a") if descending else ("<", "a", "b")
    before = f"(a) {sign} (b)"
    if dtype.is_floating:
        before += f" || (({other}) != ({other}) && ({number}) == ({number}))"
    dialect: codegen.Dialect = device.dialect
    macros = [
        f"#define T {TYPES[dtype.name]}",
        f"#define W {WORDS[dtype.size]}",
        f"#define A {dialect.computed(dtype)}",
        f"#define LOAD(p) {dialect.load(dtype, 'x', '(p)')}",
        f"#define LOAD_Y(p) {dialect.load(dtype, 'y', '(p)')}",
        f"#define BEFORE(a, b) ({before})",
    ]
    text = "\n".join([codegen.helpers(dialect, "\n".join(macros)), *macros, _SORT])
    return device.kernel(text, name)


def sort(device: Any, keys: Array, descending: bool = False) -> tuple[Array, Array]:
    """The rows of a matrix in order, or a vector, and where each element was in its row.

    Args:
        device: the open device.
        keys: a vector or a matrix of real numbers or truth values.
        descending: whether the largest comes first.

    Returns:
        The sorted elements, and their old positions as int32, both in the shape of `keys`.
    """
    dtype = as_dtype(keys.dtype)
    n, total = keys.shape[-1], np.int64(keys.size)
    values: Array = device.allocate(keys.shape, keys.dtype)
    at: Array = device.allocate(keys.shape, np.dtype(np.int32))
    sizes = (total, np.int64(n), np.int64(_BLOCK))
    blocks = _kernel(device, "blocks", dtype, descending)
    device.launch(blocks, keys.size, keys, values, at, *sizes)
    run = _BLOCK
    while run < n:
        more: Array = device.allocate(keys.shape, keys.dtype)
        where: Array = device.allocate(keys.shape, np.dtype(np.int32))
        sizes = (total, np.int64(n), np.int64(run))
        merge = _kernel(device, "merge", dtype, descending)
        device.launch(merge, keys.size, values, at, more, where, *sizes)
        values, at, run = more, where, 2 * run
    return values, at


def largest(device: Any, rows: Array, k: int) -> tuple[Array, Array]:
    """The `k` largest of each row in descending order; of equals the first comes first.

    Blocks of a row hand on their `k` largest, until one block is left. On a CPU a work item goes
    through a block, and most elements are behind the last that it keeps; elsewhere one has an
    element, and counts those of the block that come before.

    Args:
        device: the open device.
        rows: a matrix with rows of at least `k` elements.
        k: above zero, and small: every element is compared with a few times as many.

    Returns:
        The elements, and their places in the rows as int32.
    """
    alone = device.is_cpu
    kernel = _kernel(device, "chosen" if alone else "best", as_dtype(rows.dtype), True)
    count, block = rows.shape[0], max(_STRETCH if alone else _BLOCK, 2 * k)
    values, first = rows, True
    at: Array = device.allocate((1,), np.dtype(np.int32))
    while True:
        n = values.shape[1]
        kept = n // block * k + min(k, n % block)
        fewer: Array = device.allocate((count, kept), rows.dtype)
        where: Array = device.allocate((count, kept), np.dtype(np.int32))
        items = count * -(-n // block) if alone else values.size
        sizes = [np.int64(v) for v in (items, n, block, k, kept)]
        group = _GROUP_OF_CPU if alone else 0
        device.launch(kernel, items, values, at, fewer, where, *sizes, np.int32(first), group=group)
        values, at, first = fewer, where, False
        if n <= block:
            return values, at


_FIND = """
KERNEL void find(GLOBAL const T* x, GLOBAL const T* v, GLOBAL O* y, i64 total, i64 n, i64 m) {
  i64 i = GLOBAL_ID(0);
  if (i >= total) return;
  i64 base = (i / m) * n, low = 0, high = n;
  A wanted = LOAD_V(i);
  while (low < high) {
    i64 k = (low + high) / 2;
    A u = LOAD(base + k);
    if (LEFT) low = k + 1;
    else high = k;
  }
  y[i] = (O)low;
}
"""


@once
def _finder(device: Any, dtype: DType, out: DType, right: bool) -> Any:
    dialect = device.dialect
    beyond = " || (wanted != wanted && u == u)" if dtype.is_floating else ""
    left = f"u < wanted{beyond}"
    if right:
        beyond = " && u == u" if dtype.is_floating else ""
        left = f"!(wanted < u{beyond})" + (" && (u == u || wanted != wanted)" if beyond else "")
    macros = [
        f"#define T {TYPES[dtype.name]}",
        f"#define A {dialect.computed(dtype)}",
        f"#define O {TYPES[out.name]}",
        f"#define LOAD(p) {dialect.load(dtype, 'x', '(p)')}",
        f"#define LOAD_V(p) {dialect.load(dtype, 'v', '(p)')}",
        f"#define LEFT ({left})",
    ]
    text = "\n".join([codegen.helpers(dialect, "\n".join(macros)), *macros, _FIND])
    return device.kernel(text, "find")


def find(device: Any, rows: Array, values: Array, out: np.dtype[Any], right: bool = False) -> Array:
    """Where the values of each row fit into the sorted row of the same number.

    Args:
        device: the open device.
        rows: sorted rows, as a matrix.
        values: as many rows of what to look for, of the same type.
        out: the integer type of the result.
        right: whether a value goes behind its equals.
    """
    kernel = _finder(device, as_dtype(rows.dtype), as_dtype(out), right)
    found: Array = device.allocate(values.shape, out)
    sizes = (np.int64(v) for v in (values.size, rows.shape[-1], values.shape[-1]))
    device.launch(kernel, values.size, rows, values, found, *sizes)
    return found
