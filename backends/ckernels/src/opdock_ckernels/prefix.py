"""Running totals of counts, for results whose size depends on the data.

Blocks are added up, their totals are scanned the same way, and the blocks are walked once more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import zeros

__all__ = ["offsets"]

_BLOCK = 64
_SOURCE = """
KERNEL void totals(GLOBAL const int* x, GLOBAL int* y, i64 blocks, i64 n) {
  i64 i = GLOBAL_ID(0);
  if (i >= blocks) return;
  i64 low = i * BLOCK, high = low + BLOCK < n ? low + BLOCK : n;
  int sum = 0;
  for (i64 k = low; k < high; ++k) sum += x[k];
  y[i] = sum;
}

KERNEL void spread(GLOBAL const int* x, GLOBAL const int* before, GLOBAL int* y,
                   i64 blocks, i64 n) {
  i64 i = GLOBAL_ID(0);
  if (i >= blocks) return;
  i64 low = i * BLOCK, high = low + BLOCK < n ? low + BLOCK : n;
  int sum = before[i];
  for (i64 k = low; k < high; ++k) { int v = x[k]; y[k] = sum; sum += v; }
}
"""


def offsets(device: Any, counts: Array) -> tuple[Array, Array]:
    """The sum of all counts before each, and of all.

    Args:
        device: the open device.
        counts: an int32 vector of at least one element whose sum is below 2**31.

    Returns:
        A vector of the same size, and one of one element.
    """
    n = counts.size
    blocks = -(-n // _BLOCK)
    sums: Array = device.allocate((blocks,), counts.dtype)
    sizes = (np.int64(blocks), np.int64(n))
    kernel = device.kernel(_SOURCE, "totals", BLOCK=_BLOCK)
    device.launch(kernel, blocks, counts, sums, *sizes)
    if blocks == 1:
        total, before = sums, zeros(device, (1,), counts.dtype)
    else:
        before, total = offsets(device, sums)
    out: Array = device.allocate((n,), counts.dtype)
    kernel = device.kernel(_SOURCE, "spread", BLOCK=_BLOCK)
    device.launch(kernel, blocks, counts, before, out, *sizes)
    return out, total
