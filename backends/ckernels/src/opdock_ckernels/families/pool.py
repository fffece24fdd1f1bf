"""Pooling of images and its gradients, both data formats: strides tell the formats apart.

Gradients gather: each input element asks the windows that cover it, so nothing is added twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, codegen, dtypes
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.protocols import Array
from opdock_ckernels.windows import Window

__all__ = ["table"]

table = KernelTable()
_TYPES = frozenset({dtypes.float32, dtypes.float64})

_SOURCE = """
#define WINDOW int first, int c, int ih, int iw, int kh, int kw, int sh, int sw, int dh, int dw, \\
               int ph, int pw, int oh, int ow
#define AT(n, r, q, ch, H, W) \\
  (first ? (((n) * c + ch) * H + r) * W + q : (((n) * H + r) * W + q) * c + ch)
#define SPLIT(H, W) \\
  i64 i = GLOBAL_ID(0); \\
  if (i >= n) return; \\
  i64 rest = i; \\
  int ch, r, q; \\
  if (first) { q = rest % W; rest /= W; r = rest % H; rest /= H; ch = rest % c; rest /= c; } \\
  else { ch = rest % c; rest /= c; q = rest % W; rest /= W; r = rest % H; rest /= H; } \\
  i64 image = rest;
#define SPAN(lo, hi, at, step, pad, k, size) \\
  int lo = max(at * step - pad, 0), hi = min(at * step - pad + k, size);

KERNEL void max_pool(GLOBAL const T* x, GLOBAL T* y, GLOBAL int* best, int places,
                       i64 n, WINDOW) {
  SPLIT(oh, ow)
  SPAN(r0, r1, r, sh, ph, kh, ih) SPAN(q0, q1, q, sw, pw, kw, iw)
  T top = -INFINITY;
  int where = -1;
  for (int u = r0; u < r1; ++u) for (int v = q0; v < q1; ++v) {
    T e = x[AT(image, u, v, ch, ih, iw)];
    if (where < 0 || e > top || (e != e && top == top)) { top = e; where = u * iw + v; }
  }
  if (places) best[i] = where; else y[i] = top;
}
KERNEL void max_grad(GLOBAL const int* best, GLOBAL const T* g, GLOBAL T* y,
                       i64 n, WINDOW) {
  SPLIT(ih, iw)
  T total = 0;
  int u0 = max((r + ph - kh) / sh, 0), v0 = max((q + pw - kw) / sw, 0);
  for (int u = u0; u < oh && u * sh - ph <= r; ++u)
    for (int v = v0; v < ow && v * sw - pw <= q; ++v) {
      i64 at = AT(image, u, v, ch, oh, ow);
      if (best[at] == r * iw + q) total += g[at];
    }
  y[i] = total;
}
KERNEL void avg_pool(GLOBAL const T* x, GLOBAL T* y, i64 n, WINDOW) {
  SPLIT(oh, ow)
  SPAN(r0, r1, r, sh, ph, kh, ih) SPAN(q0, q1, q, sw, pw, kw, iw)
  T total = 0;
  for (int u = r0; u < r1; ++u)
    for (int v = q0; v < q1; ++v) total += x[AT(image, u, v, ch, ih, iw)];
  y[i] = total / (T)((r1 - r0) * (q1 - q0));
}
KERNEL void avg_grad(GLOBAL const T* g, GLOBAL T* y, i64 n, WINDOW) {
  SPLIT(ih, iw)
  T total = 0;
  int u0 = max((r + ph - kh) / sh, 0), v0 = max((q + pw - kw) / sw, 0);
  for (int u = u0; u < oh && u * sh - ph <= r; ++u)
    for (int v = v0; v < ow && v * sw - pw <= q; ++v) {
      SPAN(r0, r1, u, sh, ph, kh, ih) SPAN(q0, q1, v, sw, pw, kw, iw)
      if (r < r1 && q < q1) total += g[AT(image, u, v, ch, oh, ow)] / (T)((r1 - r0) * (q1 - q0));
    }
  y[i] = total;
}
"""


def _when(sig: NodeSig) -> bool | str:
    if sig.attrs.get("data_format", "NHWC") not in ("NHWC", "NCHW"):
        return f"the format {sig.attrs['data_format']} is for int8 hardware only"
    channel = 1 if sig.attrs.get("data_format") == "NCHW" else 3
    for name in ("ksize", "strides"):
        if sig.attrs[name][0] != 1 or sig.attrs[name][channel] != 1:
            return "it pools over height and width only"
        if min(sig.attrs[name]) < 1:
            return f"{name} is not positive"
    return True


class _Pooling:
    """A node's window, and its kernels."""

    def __init__(self, sig: NodeSig, dtype: Any) -> None:
        attrs, self.device = sig.attrs, sig.device
        self.first = attrs.get("data_format") == "NCHW"
        self.space = (2, 3) if self.first else (1, 2)
        self._ksize = [int(attrs["ksize"][a]) for a in self.space]
        self._strides = [int(attrs["strides"][a]) for a in self.space]
        self._padding = attrs["padding"]
        self._type = TYPES[dtype.name]

    def kernel(self, name: str) -> Any:
        """A kernel of the program."""
        return self.device.kernel(_SOURCE, name, T=self._type)

    def place(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """The output's shape, and the geometry as kernels take it."""
        where = Window.make(
            [shape[a] for a in self.space], self._ksize, self._strides, [1, 1], self._padding
        )
        channels = shape[1 if self.first else 3]
        out = (shape[0], channels, *where.out) if self.first else (shape[0], *where.out, channels)
        numbers = tuple(np.int32(v) for v in (self.first, channels, *where.numbers))
        return out, numbers


@table.binder("MaxPool", T=_TYPES, when=_when)
def max_pool(sig: NodeSig) -> Callable[[Array], Array]:
    """The maximum of each window."""
    pooling, device = _Pooling(sig, sig.in_dtypes[0]), sig.device
    kernel = pooling.kernel("max_pool")

    def run(x: Array) -> Array:
        shape, numbers = pooling.place(x.shape)
        out: Array = device.allocate(shape, x.dtype)
        unused = out
        device.launch(
            kernel, out.size, x, out, unused, np.int32(0), np.int64(out.size), *numbers
        )
        return out

    return run


def _check(what: str, got: Array, expected: tuple[int, ...]) -> None:
    if got.shape != expected:
        raise codegen.invalid(f"{what} has shape {list(got.shape)}, expected {list(expected)}")


@table.binder("MaxPoolGrad", T=_TYPES, when=_when)
def max_pool_grad(sig: NodeSig) -> Callable[[Array, Array, Array], Array]:
    """The gradient goes to the first maximum of each window."""
    pooling, device = _Pooling(sig, sig.in_dtypes[0]), sig.device
    find, spread = pooling.kernel("max_pool"), pooling.kernel("max_grad")

    def run(x: Array, out: Array, grad: Array) -> Array:
        shape, numbers = pooling.place(x.shape)
        _check("orig_output", out, shape)
        _check("grad", grad, shape)
        best: Array = device.allocate(shape, np.dtype(np.int32))
        n = best.size
        device.launch(find, n, x, x, best, np.int32(1), np.int64(n), *numbers)
        result: Array = device.allocate(x.shape, x.dtype)
        device.launch(spread, result.size, best, grad, result, np.int64(result.size), *numbers)
        return result

    return run


@table.binder("AvgPool", T=_TYPES, when=_when)
def avg_pool(sig: NodeSig) -> Callable[[Array], Array]:
    """The mean of each window's elements that are not padding."""
    pooling, device = _Pooling(sig, sig.in_dtypes[0]), sig.device
    kernel = pooling.kernel("avg_pool")

    def run(x: Array) -> Array:
        shape, numbers = pooling.place(x.shape)
        out: Array = device.allocate(shape, x.dtype)
        device.launch(kernel, out.size, x, out, np.int64(out.size), *numbers)
        return out

    return run


@table.binder("AvgPoolGrad", T=_TYPES, when=_when, host_inputs=("orig_input_shape",))
def avg_pool_grad(sig: NodeSig) -> Callable[[Any, Array], Array]:
    """Each input element's shares of the windows that cover it."""
    pooling, device = _Pooling(sig, sig.out_dtypes[0]), sig.device
    kernel = pooling.kernel("avg_grad")

    def run(shape: Any, grad: Array) -> Array:
        source = tuple(codegen.ints(shape))
        expected, numbers = pooling.place(source)
        _check("grad", grad, expected)
        out: Array = device.allocate(source, grad.dtype)
        device.launch(kernel, out.size, grad, out, np.int64(out.size), *numbers)
        return out

    return run
