"""Depthwise convolution and its gradients, straight from the definition.

Gradients gather: each element asks the windows that cover it, so the order of sums is fixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks, windows
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.families.conv import TYPES_OF_CONV, Finish, check_grad
from opdock_ckernels.folding import fold
from opdock_ckernels.narrow import computed, widened
from opdock_ckernels.protocols import Array
from opdock_ckernels.windows import channels_first, channels_last, numbers

__all__ = ["depthwise_convolution", "table"]

table = KernelTable()

_PLACES = 1024
"""Places of the output that one work item adds up for the filter's gradient, at least."""

# On a CPU a work item computes all channels of a place, so that the compiler makes vectors of them.
_SOURCE = """
#define WINDOW int ih, int iw, int kh, int kw, int sh, int sw, int dh, int dw, int ph, int pw, \\
               int oh, int ow
#if LINES
#define CHANNELS(n) GLOBAL T* to = y + i * (n); \\
                    for (int k = 0; k < (n); ++k) to[k] = 0;
#else
#define CHANNELS(n) int k = rest % (n); rest /= n; T total = 0;
#endif
KERNEL void forward(GLOBAL const T* x, GLOBAL const T* w, GLOBAL T* y, i64 items, int c, int m,
                    WINDOW) {
  i64 i = GLOBAL_ID(0), rest = i;
  if (i >= items) return;
  CHANNELS(c * m)
  int v = rest % ow; rest /= ow;
  int u = rest % oh; rest /= oh;
  for (int a = 0; a < kh; ++a) {
    int r = u * sh - ph + a * dh;
    if (r < 0 || r >= ih) continue;
    for (int b = 0; b < kw; ++b) {
      int q = v * sw - pw + b * dw;
      if (q < 0 || q >= iw) continue;
      GLOBAL const T* from = x + ((rest * ih + r) * iw + q) * c;
      GLOBAL const T* tap = w + (i64)(a * kw + b) * c * m;
#if LINES
      if (m == 1) for (int k = 0; k < c; ++k) to[k] += from[k] * tap[k];
      else for (int k = 0; k < c * m; ++k) to[k] += from[k / m] * tap[k];
#else
      total += from[k / m] * tap[k];
#endif
    }
  }
#if !LINES
  y[i] = total;
#endif
}
KERNEL void back_input(GLOBAL const T* g, GLOBAL const T* w, GLOBAL T* y, i64 items, int c, int m,
                       WINDOW) {
  i64 i = GLOBAL_ID(0), rest = i;
  if (i >= items) return;
  CHANNELS(c)
  int q = rest % iw; rest /= iw;
  int r = rest % ih; rest /= ih;
  for (int a = 0; a < kh; ++a) {
    int u = r + ph - a * dh;
    if (u < 0 || u % sh || u / sh >= oh) continue;
    for (int b = 0; b < kw; ++b) {
      int v = q + pw - b * dw;
      if (v < 0 || v % sw || v / sw >= ow) continue;
      GLOBAL const T* from = g + ((rest * oh + u / sh) * ow + v / sw) * c * m;
      GLOBAL const T* tap = w + (i64)(a * kw + b) * c * m;
#if LINES
      if (m == 1) for (int k = 0; k < c; ++k) to[k] += from[k] * tap[k];
      else for (int k = 0; k < c; ++k)
        for (int j = 0; j < m; ++j) to[k] += from[k * m + j] * tap[k * m + j];
#else
      for (int j = 0; j < m; ++j) total += from[k * m + j] * tap[k * m + j];
#endif
    }
  }
#if !LINES
  y[i] = total;
#endif
}
KERNEL void back_filter(GLOBAL const T* x, GLOBAL const T* g, GLOBAL T* y, i64 items, int c, int m,
                        i64 places, int parts, WINDOW) {
  i64 i = GLOBAL_ID(0), rest = i;
  if (i >= items) return;
  CHANNELS(c * m)
  int b = rest % kw; rest /= kw;
  int a = rest % kh; rest /= kh;
  i64 step = (places + parts - 1) / parts, p = rest * step;
  i64 end = p + step < places ? p + step : places;
  for (; p < end; ++p) {
    int v = p % ow, u = p / ow % oh;
    i64 image = p / ow / oh;
    int r = u * sh - ph + a * dh, q = v * sw - pw + b * dw;
    if (r < 0 || r >= ih || q < 0 || q >= iw) continue;
    GLOBAL const T* from = x + ((image * ih + r) * iw + q) * c;
    GLOBAL const T* back = g + p * c * m;
#if LINES
    if (m == 1) for (int k = 0; k < c; ++k) to[k] += from[k] * back[k];
    else for (int k = 0; k < c * m; ++k) to[k] += from[k / m] * back[k];
#else
    total += from[k / m] * back[k];
#endif
  }
#if !LINES
  y[i] = total;
#endif
}
"""


class _Depthwise:
    """A node's layout and kernels."""

    def __init__(self, sig: NodeSig, dtype: Any) -> None:
        self.device, self.layout = sig.device, windows.Layout(sig.attrs)
        self.lines = bool(sig.device.is_cpu)
        self._macros = {"T": TYPES[computed(dtype).name], "LINES": int(self.lines)}

    def last(self, x: Array) -> Array:
        """With channels last."""
        return channels_last(self.device, x, self.layout.first)

    def finish(self, x: Array) -> Array:
        """In the node's format."""
        return channels_first(self.device, x, self.layout.first)

    def launch(
        self, name: str, out: Array, arrays: tuple[Array, Array], taps: tuple[int, ...],
        where: windows.Window, *extra: Any,
    ) -> None:  # fmt: skip
        """Fills `out`, whose last dimension one work item computes where lines are computed."""
        items = out.size // out.shape[-1] if self.lines and out.size else out.size
        self.device.launch(
            self.device.kernel(_SOURCE, name, **self._macros), items, *arrays, out,
            np.int64(items), np.int32(taps[2]), np.int32(taps[3]), *extra,
            *numbers(where),
        )  # fmt: skip


def depthwise_convolution(sig: NodeSig, finish: Finish | None = None) -> Callable[..., Array]:
    """The convolution of a node, with something done to its outputs behind it."""
    device, node = sig.device, _Depthwise(sig, sig.in_dtypes[0])

    def run(x: Array, taps: Array, *more: Array) -> Array:
        data = node.last(x)
        windows.check_depth(data.shape[-1], taps.shape[2])
        where = node.layout.window(data.shape[1:-1], taps.shape[:2])
        outputs = taps.shape[2] * taps.shape[3]
        out: Array = device.allocate((data.shape[0], *where.out, outputs), x.dtype)
        node.launch("forward", out, (data, taps), taps.shape, where)
        if finish is not None:
            finish(out, *more)
        return node.finish(out)

    return run


@table.binder("DepthwiseConv2dNative", T=TYPES_OF_CONV)
def depthwise(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """Each input channel under its own filters."""
    return widened(sig.device, sig.in_dtypes[0], depthwise_convolution(sig))


@table.binder("DepthwiseConv2dNativeBackpropInput", T=TYPES_OF_CONV, host_inputs=("input_sizes",))
def depthwise_backprop_input(sig: NodeSig) -> Callable[..., Array]:
    """The gradient with respect to the input."""
    device, node = sig.device, _Depthwise(sig, sig.in_dtypes[1])

    def run(input_sizes: Any, taps: Array, grad: Array) -> Array:
        dims = checks.ints(input_sizes)
        (batch, size, channels), back = node.layout.parts(dims), node.last(grad)
        where = node.layout.window(size, taps.shape[:2])
        windows.check_depth(channels, taps.shape[2])
        check_grad(node.layout, grad, batch, where.out, channels * taps.shape[3])
        out: Array = device.allocate((batch, *size, channels), grad.dtype)
        node.launch("back_input", out, (back, taps), taps.shape, where)
        return node.finish(out)

    return widened(device, sig.in_dtypes[1], run)


@table.binder("DepthwiseConv2dNativeBackpropFilter", T=TYPES_OF_CONV, host_inputs=("filter_sizes",))
def depthwise_backprop_filter(sig: NodeSig) -> Callable[..., Array]:
    """The gradient with respect to the filter: sums over parts of the places, then over them."""
    device, node = sig.device, _Depthwise(sig, sig.in_dtypes[0])

    def run(x: Array, filter_sizes: Any, grad: Array) -> Array:
        shape = tuple(checks.ints(filter_sizes))
        data, back = node.last(x), node.last(grad)
        where = node.layout.window(data.shape[1:-1], shape[:2])
        windows.check_depth(data.shape[-1], shape[2])
        outputs = shape[2] * shape[3]
        check_grad(node.layout, grad, x.shape[0], where.out, outputs)
        places = data.shape[0] * math.prod(where.out)
        parts = max(1, min(256, places // _PLACES))
        out: Array = device.allocate((parts, *shape[:2], outputs), x.dtype)
        extra = (np.int64(places), np.int32(parts))
        node.launch("back_filter", out, (data, back), shape, where, *extra)
        total = fold(device, "sum", out, (0,)) if parts > 1 else out
        return total.reshape(*shape)

    return widened(device, sig.in_dtypes[0], run)
