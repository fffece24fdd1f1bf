"""Dilation of images: the largest sum of input and filter in each window, and its gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import REALS, KernelTable, NodeSig, windows
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.folding import fold
from opdock_ckernels.narrow import computed, widened
from opdock_ckernels.protocols import Array
from opdock_ckernels.windows import numbers

__all__ = ["table"]

table = KernelTable()

_PLACES = 1024
"""Places of the output that one work item adds up for the filter's gradient, at least."""

_SOURCE = """
#define WINDOW i64 n, int c, int ih, int iw, int kh, int kw, int sh, int sw, int dh, int dw, \\
               int ph, int pw, int oh, int ow
#define SPLIT(H, W) \\
  i64 i = GLOBAL_ID(0), rest = i; \\
  if (i >= n) return; \\
  int ch = rest % c; rest /= c; \\
  int q = rest % W; rest /= W; \\
  int r = rest % H; rest /= H;
KERNEL void winners(GLOBAL const T* x, GLOBAL const T* w, GLOBAL T* y, GLOBAL int* which,
                    int places, WINDOW) {
  SPLIT(oh, ow)
  T best = 0;
  int number = -1;
  for (int a = 0; a < kh; ++a) for (int b = 0; b < kw; ++b) {
    int u = r * sh - ph + a * dh, v = q * sw - pw + b * dw;
    if (u < 0 || u >= ih || v < 0 || v >= iw) continue;
    T value = x[((rest * ih + u) * iw + v) * c + ch] + w[(a * kw + b) * c + ch];
    if (number < 0 || value > best) { best = value; number = a * kw + b; }
  }
  if (places) which[i] = number; else y[i] = best;
}
KERNEL void back_input(GLOBAL const int* which, GLOBAL const T* g, GLOBAL T* y, WINDOW) {
  SPLIT(ih, iw)
  T total = 0;
  for (int a = 0; a < kh; ++a) {
    int u = r + ph - a * dh;
    if (u < 0 || u % sh || u / sh >= oh) continue;
    for (int b = 0; b < kw; ++b) {
      int v = q + pw - b * dw;
      if (v < 0 || v % sw || v / sw >= ow) continue;
      i64 at = ((rest * oh + u / sh) * ow + v / sw) * c + ch;
      if (which[at] == a * kw + b) total += g[at];
    }
  }
  y[i] = total;
}
KERNEL void back_filter(GLOBAL const int* which, GLOBAL const T* g, GLOBAL T* y, i64 places,
                        int parts, WINDOW) {
  i64 i = GLOBAL_ID(0), rest = i;
  if (i >= n) return;
  int ch = rest % c; rest /= c;
  int tap = rest % (kh * kw); rest /= kh * kw;
  i64 step = (places + parts - 1) / parts, p = rest * step;
  i64 end = p + step < places ? p + step : places;
  T total = 0;
  for (; p < end; ++p) if (which[p * c + ch] == tap) total += g[p * c + ch];
  y[i] = total;
}
"""


class _Dilation:
    """A node's window and kernels."""

    def __init__(self, sig: NodeSig) -> None:
        self.device, self._layout = sig.device, windows.Layout(sig.attrs)
        self._type = TYPES[computed(sig.in_dtypes[0]).name]

    def window(self, x: Array, taps: Array) -> windows.Window:
        """The geometry."""
        windows.check_depth(x.shape[3], taps.shape[2])
        return self._layout.window(x.shape[1:3], taps.shape[:2])

    def launch(self, name: str, out: Array, where: windows.Window, *args: Any) -> None:
        """Queues a kernel with an item for each element of `out`."""
        self.device.launch(
            self.device.kernel(_SOURCE, name, T=self._type), out.size, *args, np.int64(out.size),
            np.int32(out.shape[-1]), *numbers(where),
        )  # fmt: skip

    def winners(self, x: Array, taps: Array) -> tuple[Array, windows.Window]:
        """The row-major number of the first window element that gave each maximum."""
        where = self.window(x, taps)
        which: Array = self.device.allocate(
            (x.shape[0], *where.out, x.shape[3]), np.dtype(np.int32)
        )
        self.launch("winners", which, where, x, taps, x, which, np.int32(1))
        return which, where


@table.binder("Dilation2D", T=REALS)
def dilation2d(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """The maximum over the window of input plus filter."""
    device, node = sig.device, _Dilation(sig)

    def run(x: Array, taps: Array) -> Array:
        where = node.window(x, taps)
        out: Array = device.allocate((x.shape[0], *where.out, x.shape[3]), x.dtype)
        unused = device.allocate((1,), np.dtype(np.int32))
        node.launch("winners", out, where, x, taps, out, unused, np.int32(0))
        return out

    return widened(device, sig.in_dtypes[0], run)


@table.binder("Dilation2DBackpropInput", T=REALS)
def dilation2d_backprop_input(sig: NodeSig) -> Callable[[Array, Array, Array], Array]:
    """The gradient goes to the input element that won."""
    device, node = sig.device, _Dilation(sig)

    def run(x: Array, taps: Array, grad: Array) -> Array:
        which, where = node.winners(x, taps)
        out: Array = device.allocate(x.shape, x.dtype)
        node.launch("back_input", out, where, which, grad, out)
        return out

    return widened(device, sig.in_dtypes[0], run)


@table.binder("Dilation2DBackpropFilter", T=REALS)
def dilation2d_backprop_filter(sig: NodeSig) -> Callable[[Array, Array, Array], Array]:
    """The gradient goes to the filter element that won."""
    device, node = sig.device, _Dilation(sig)

    def run(x: Array, taps: Array, grad: Array) -> Array:
        which, where = node.winners(x, taps)
        places = x.shape[0] * math.prod(where.out)
        parts = max(1, min(256, places // _PLACES))
        out: Array = device.allocate((parts, *taps.shape), x.dtype)
        node.launch("back_filter", out, where, which, grad, out, np.int64(places), np.int32(parts))
        return fold(device, "sum", out, (0,)) if parts > 1 else out.reshape(*taps.shape)

    return widened(device, sig.in_dtypes[0], run)
