"""Moves along one dimension by a formula: where each place's element comes from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opdock_ckernels.dialect import WORDS
from opdock_ckernels.protocols import Array

__all__ = ["along"]

_SOURCE = """
KERNEL void along(GLOBAL const W* x, GLOBAL W* y, i64 total, i64 size, i64 n, i64 inner,
                  i64 p, i64 q) {
  i64 i = GLOBAL_ID(0);
  if (i >= total) return;
  i64 c = i % inner, rest = i / inner, j = rest % size;
  i64 from = FROM;
  y[i] = x[((rest / size) * n + from) * inner + c];
}
"""


def along(
    device: Any, x: Array, axis: int, size: int, formula: str, p: int = 0, q: int = 0
) -> Array:
    """An array that differs from `x` in which slices along `axis` it is made of.

    Args:
        device: the open device.
        x: the array.
        axis: the dimension.
        size: its new size.
        formula: the old place of place `j`, in C, from `j`, the old size `n`, `p` and `q`.
        p, q: numbers that the formula may use.
    """
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    out: Array = device.allocate(shape, x.dtype)
    if out.size:
        text = _SOURCE.replace("FROM", formula)
        kernel = device.kernel(text, "along", W=WORDS[x.dtype.itemsize])
        inner = math.prod(shape[axis + 1 :])
        sizes = (out.size, size, x.shape[axis], inner, p, q)
        device.launch(kernel, out.size, x, out, *map(np.int64, sizes))
    return out
