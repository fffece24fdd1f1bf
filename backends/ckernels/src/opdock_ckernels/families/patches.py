"""Patches of images and volumes, laid out in the depth dimension."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from opdock.plugin import KernelTable, NodeSig, windows
from opdock_ckernels.dialect import WORDS
from opdock_ckernels.families.array import HELD
from opdock_ckernels.protocols import Array
from opdock_ckernels.windows import VOLUME, volume

__all__ = ["table"]

table = KernelTable()

_SOURCE = (
    VOLUME
    + """
KERNEL void patches(GLOBAL const T* x, GLOBAL T* y, i64 n, int c, VOLUME) {
  i64 i = GLOBAL_ID(0), rest = i;
  if (i >= n) return;
  int ch = rest % c; rest /= c;
  int b = rest % kw; rest /= kw;
  int a = rest % kh; rest /= kh;
  int e = rest % kd; rest /= kd;
  int v = rest % ow; rest /= ow;
  int u = rest % oh; rest /= oh;
  int t = rest % od; rest /= od;
  int s = t * sd - pd + e * dd, r = u * sh - ph + a * dh, q = v * sw - pw + b * dw;
  int inside = s >= 0 && s < id && r >= 0 && r < ih && q >= 0 && q < iw;
  y[i] = inside ? x[(((rest * id + s) * ih + r) * iw + q) * c + ch] : 0;
}
"""
)


@table.binder("ExtractImagePatches", "ExtractVolumePatches", T=HELD)
def patches(sig: NodeSig) -> Callable[[Array], Array]:
    """The elements under each position of a window, as channels; zeros where it sticks out."""
    device, size, layout = sig.device, sig.in_dtypes[0].size, windows.Layout(sig.attrs)
    words = 2 if size == 16 else 1  # an element of 16 bytes is two channels
    kernel = device.kernel(_SOURCE, "patches", T=WORDS[size // words])

    def run(x: Array) -> Array:
        where = layout.window(x.shape[1:-1], sig.attrs["ksizes"][1:-1])
        width = math.prod(where.window) * x.shape[-1]
        out: Array = device.allocate((x.shape[0], *where.out, width), x.dtype)
        count, channels = out.size * words, x.shape[-1] * words
        device.launch(kernel, count, x, out, np.int64(count), np.int32(channels), *volume(where))
        return out

    return run
