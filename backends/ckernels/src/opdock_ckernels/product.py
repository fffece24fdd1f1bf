"""Batched matrix products: by the device's best means, else one work item an element."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock.plugin import as_dtype
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.protocols import Array

__all__ = ["Factor", "Lines", "multiply"]

_PLAIN = """
KERNEL void plain(GLOBAL const T* a, GLOBAL const T* b, GLOBAL T* c,
                    GLOBAL const int* batches, int count, int m, int n, int depth,
                    i64 ao, i64 az, i64 am, i64 ak, i64 bo, i64 bz, i64 bn, i64 bk,
                    int add) {
  i64 i = GLOBAL_ID(0);
  if (i >= (i64)count * m * n) return;
  int col = i % n;
  i64 rest = i / n;
  int row = rest % m;
  int z = rest / m;
  a += ao + batches[2 * z] * az + row * am;
  b += bo + batches[2 * z + 1] * bz + col * bn;
  T total = 0;
  for (int k = 0; k < depth; ++k) total += a[k * ak] * b[k * bk];
  c[i] = add ? c[i] + total : total;
}
"""


Lines = Sequence[tuple[int, int]]
"""Sizes and strides, in elements."""


class Factor:
    """A batch of matrices in memory.

    Args:
        data: the array.
        batch: how many matrices.
        shape: rows and columns of each, as they lie in memory.
        turned: whether the matrices are to be taken transposed.
        offset: the first matrix's first element.

    Attributes:
        lines: where the rows and the columns of a matrix lie, each as the sizes and the strides of
            some dimensions, the last one being the one that moves first.
    """

    __slots__ = ("batch", "columns", "data", "lines", "offset", "rows", "step", "steps")

    def __init__(
        self, data: Array, batch: int, shape: tuple[int, ...], turned: bool = False,
        offset: int = 0,
    ) -> None:  # fmt: skip
        rows, columns = shape
        self.data, self.batch, self.offset = data, batch, offset
        self.step = rows * columns
        self.rows, self.columns = (columns, rows) if turned else (rows, columns)
        self.steps = (1, columns) if turned else (columns, 1)
        self.lines: tuple[Lines, Lines] | None = None

    @classmethod
    def of_lines(cls, data: Array, rows: Lines, columns: Lines, offset: int = 0) -> Factor:
        """One matrix whose rows and columns lie as the indices of several dimensions do.

        Only a device that says that it `takes_lines` multiplies such a one, on the left.
        """
        shape = math.prod(n for n, _ in rows), math.prod(n for n, _ in columns)
        found = cls(data, 1, shape, offset=offset)
        found.lines = _merged(rows), _merged(columns)
        return found


def _merged(lines: Lines) -> Lines:
    """The same places with as few dimensions as there can be."""
    out: list[tuple[int, int]] = []
    for n, step in lines:
        if n == 1:
            continue
        if out and out[-1][1] == n * step:
            out[-1] = out[-1][0] * n, step
        else:
            out.append((n, step))
    return out or [(1, 1)]


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
    if device.multiply(a, b, out, pairs, add):
        return
    kernel = device.kernel(_PLAIN, "plain", T=TYPES[as_dtype(out.dtype).name])
    sizes = [np.int32(v) for v in (count, m, n, depth)]
    steps = [a.offset, a.step, *a.steps, b.offset, b.step, b.steps[1], b.steps[0]]
    device.launch(
        kernel, out.size, a.data, b.data, out, pairs, *sizes,
        *(np.int64(v) for v in steps), np.int32(add),
    )  # fmt: skip
