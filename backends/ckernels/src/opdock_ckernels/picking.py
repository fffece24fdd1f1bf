"""Rows by number: the last step of every op that selects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock.plugin import as_dtype
from opdock_ckernels.dialect import TYPES, WORDS
from opdock_ckernels.protocols import Array

__all__ = ["pick"]

_SOURCE = """
KERNEL void pick(GLOBAL const W* x, GLOBAL const K* at, GLOBAL W* y, i64 n, i64 width, i64 first) {
  i64 i = GLOBAL_ID(0);
  if (i < n) y[i] = x[(i64)at[first + i / width] * width + i % width];
}
"""


def pick(
    device: Any, x: Array, at: Array, shape: Sequence[int], width: int, first: int = 0
) -> Array:
    """The rows of `x` at the numbers `at`, which are known to be in range.

    Args:
        device: the open device.
        x: rows of `width` elements.
        at: a vector of int32 or int64.
        shape: of the result.
        width: the number of elements of a row.
        first: the first of the numbers that counts; as many follow as the shape asks for.
    """
    out: Array = device.allocate(tuple(shape), x.dtype)
    total = math.prod(shape)
    if total:
        kind = TYPES[as_dtype(at.dtype).name]
        kernel = device.kernel(_SOURCE, "pick", W=WORDS[x.dtype.itemsize], K=kind)
        sizes = (np.int64(v) for v in (total, width, first))
        device.launch(kernel, total, x, at, out, *sizes)
    return out
