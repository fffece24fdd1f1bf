"""Patches of images and volumes, laid out in the depth dimension."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from opdock.plugin import KernelTable, NodeSig
from opdock_ckernels.dialect import WORDS
from opdock_ckernels.families.array import HELD
from opdock_ckernels.protocols import Array
from opdock_ckernels.windows import VOLUME, Window

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


def _window(space: tuple[int, ...], sig: NodeSig) -> Window:
    """As for convolutions, but a window that is too wide has no positions."""
    attrs = sig.attrs
    sizes, strides = attrs["ksizes"][1:-1], attrs["strides"][1:-1]
    rates = attrs["rates"][1:-1] if "rates" in attrs else [1] * len(space)
    reach = [(k - 1) * d + 1 for k, d in zip(sizes, rates, strict=True)]
    if attrs["padding"] == "VALID" and any(r > n for r, n in zip(reach, space, strict=True)):
        zero = tuple(
            max(0, (n - r) // s + 1) for n, r, s in zip(space, reach, strides, strict=True)
        )
        none = (0,) * len(space)
        return Window(space, tuple(sizes), tuple(strides), tuple(rates), none, zero)
    return Window.make(space, sizes, strides, rates, attrs["padding"])


@table.binder("ExtractImagePatches", "ExtractVolumePatches", T=HELD)
def patches(sig: NodeSig) -> Callable[[Array], Array]:
    """The elements under each position of a window, as channels; zeros where it sticks out."""
    device, size = sig.device, sig.in_dtypes[0].size
    words = 2 if size == 16 else 1  # an element of 16 bytes is two channels
    kernel = device.kernel(_SOURCE, "patches", T=WORDS[size // words])

    def run(x: Array) -> Array:
        where = _window(x.shape[1:-1], sig)
        width = math.prod(where.window) * x.shape[-1]
        out: Array = device.allocate((x.shape[0], *where.out, width), x.dtype)
        count, channels = out.size * words, x.shape[-1] * words
        device.launch(kernel, count, x, out, np.int64(count), np.int32(channels), *where.volume)
        return out

    return run
