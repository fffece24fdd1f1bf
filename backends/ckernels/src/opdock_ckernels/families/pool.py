"""Pooling of images and volumes and its gradients.

Kernels see volumes with channels last. Other formats are read as such: channels that come first
join the batch, channels that are pooled become the only spatial dimension. Gradients gather: each
input element asks the windows that cover it, so nothing is added in an order that varies. On a CPU
a work item takes all channels of a place, so that the compiler makes vectors of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock.plugin import FLOATS, REALS, DType, KernelTable, NodeSig, checks, dtypes, windows
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.narrow import computed, widened
from opdock_ckernels.pointwise import formula
from opdock_ckernels.protocols import Array
from opdock_ckernels.windows import VOLUME, volume

__all__ = ["table"]

table = KernelTable()

_SOURCE = (
    VOLUME
    + """
#define AT(n, s, r, q, D, H, W) ((((((n) * D + (s)) * H + (r)) * W + (q))) * c)
#if LINES
#define CHANNELS for (int ch = 0; ch < c; ++ch)
#define OUT (i * c + ch)
#define START CHANNELS y[OUT] = 0;
#define MINE y[OUT]
#define END
#define TAKE_CHANNEL
#else
#define CHANNELS
#define OUT i
#define START T total = 0;
#define MINE total
#define END y[i] = total;
#define TAKE_CHANNEL int ch = image % c; image /= c;
#endif
#define SPLIT(D, H, W) \\
  INDEX i = GLOBAL_ID(0), image = i; \\
  if (i >= n) return; \\
  TAKE_CHANNEL \\
  int q = image % W; image /= W; \\
  int r = image % H; image /= H; \\
  int s = image % D; image /= D;
#define SPAN(lo, hi, at, step, pad, k, size) \\
  int lo = (at) * step - pad, hi = lo + k < size ? lo + k : size; \\
  lo = lo > 0 ? lo : 0;
#define SPANS(t, u, v) \\
  SPAN(s0, s1, t, sd, pd, kd, id) SPAN(r0, r1, u, sh, ph, kh, ih) SPAN(q0, q1, v, sw, pw, kw, iw)
#define INSIDE \\
  for (int e = s0; e < s1; ++e) for (int a = r0; a < r1; ++a) for (int b = q0; b < q1; ++b)
#define FIRST(at, pad, k, step) ((at) + pad >= k ? ((at) + pad - k + step) / step : 0)
#define COVERING \\
  for (int t = FIRST(s, pd, kd, sd); t < od && t * sd - pd <= s; ++t) \\
  for (int u = FIRST(r, ph, kh, sh); u < oh && u * sh - ph <= r; ++u) \\
  for (int v = FIRST(q, pw, kw, sw); v < ow && v * sw - pw <= q; ++v)

KERNEL void max_pool(GLOBAL const T* x, GLOBAL T* y, i64 n, int c, VOLUME) {
  SPLIT(od, oh, ow) SPANS(s, r, q)
  int found = 0;
  START
  INSIDE {
    INDEX at = AT(image, e, a, b, id, ih, iw);
    CHANNELS {
      T v = x[at + ch];
      if (!found || v > MINE || (v != v && MINE == MINE)) MINE = v;
    }
    found = 1;
  }
  END
}
KERNEL void max_place(GLOBAL const T* x, GLOBAL i64* best, i64 entry, i64 n, int c, VOLUME) {
  SPLIT(od, oh, ow) SPANS(s, r, q)
  CHANNELS {
    T top = 0;
    i64 where = -1;
    INSIDE {
      INDEX at = AT(image, e, a, b, id, ih, iw) + ch;
      T v = x[at];
      if (where < 0 || v > top || (v != v && top == top)) { top = v; where = at; }
    }
    best[OUT] = entry && where >= 0 ? where % entry : where;
  }
}
KERNEL void max_grad(GLOBAL const I* best, GLOBAL const T* g, GLOBAL T* y, i64 entry, i64 n,
                     int c, VOLUME) {
  SPLIT(id, ih, iw)
  START
#if LINES
  INDEX first = i * c;
#else
  INDEX first = i - ch;
#endif
  if (entry) first %= (INDEX)entry;
  COVERING {
    INDEX at = AT(image, t, u, v, od, oh, ow);
    CHANNELS if (best[at + ch] == first + ch) MINE += g[at + ch];
  }
  END
}
KERNEL void equal_grad(GLOBAL const T* x, GLOBAL const T* top, GLOBAL const T* g, GLOBAL T* y,
                       i64 n, int c, VOLUME) {
  SPLIT(id, ih, iw)
  START
  COVERING {
    INDEX at = AT(image, t, u, v, od, oh, ow);
    CHANNELS {
      T gap = top[at + ch] - x[OUT];
      if (gap == 0 || (gap < (T)1e-5 && -gap < (T)1e-5)) MINE += g[at + ch];
    }
  }
  END
}
KERNEL void pick(GLOBAL const I* best, GLOBAL const T* g, GLOBAL T* y, i64 n, i64 outputs,
                 i64 entry) {
  i64 i = GLOBAL_ID(0);
  if (i >= n) return;
  i64 at = best[i];
  y[i] = at < 0 ? (T)0 : g[entry ? at + i / outputs * entry : at];
}
KERNEL void check(GLOBAL const I* best, GLOBAL int* outside, GLOBAL int* stray, i64 size,
                  i64 entry, i64 outputs, i64 n, int c, VOLUME) {
  SPLIT(od, oh, ow) SPANS(s, r, q)
  CHANNELS {
    i64 at = best[OUT];
    if (at < 0 || at >= (entry ? entry : size)) { *outside = 1; return; }
    if (entry) at += OUT / outputs * entry;
    int found = 0;
    INSIDE if (at == AT(image, e, a, b, id, ih, iw) + ch) found = 1;
    if (!found) *stray = 1;
  }
}
KERNEL void scatter(GLOBAL const I* best, GLOBAL const T* g, GLOBAL T* y, i64 n, i64 outputs,
                    i64 entry) {
  i64 i = GLOBAL_ID(0);
  if (i >= n) return;
  for (i64 j = i * outputs; j < (i + 1) * outputs; ++j)
    y[entry ? best[j] + i * entry : best[j]] += g[j];
}
KERNEL void avg_pool(GLOBAL const T* x, GLOBAL T* y, i64 n, int c, VOLUME) {
  SPLIT(od, oh, ow) SPANS(s, r, q)
  START
  INSIDE {
    INDEX at = AT(image, e, a, b, id, ih, iw);
    CHANNELS MINE += x[at + ch];
  }
  T count = (s1 - s0) * (r1 - r0) * (q1 - q0);
  CHANNELS MINE /= count;
  END
}
KERNEL void avg_grad(GLOBAL const T* g, GLOBAL T* y, i64 n, int c, VOLUME) {
  SPLIT(id, ih, iw)
  START
  COVERING {
    SPANS(t, u, v)
    INDEX at = AT(image, t, u, v, od, oh, ow);
    T count = (s1 - s0) * (r1 - r0) * (q1 - q0);
    CHANNELS MINE += g[at + ch] / count;
  }
  END
}
"""
)
_INT_MAX = 2**31 - 1


class _Pooling:
    """A node's windows, and its kernels.

    Args:
        sig: the node.
        dtype: the type of its values.
        ksize, strides: where they are inputs instead of attributes.
    """

    def __init__(self, sig: NodeSig, dtype: DType, ksize: Any = None, strides: Any = None) -> None:
        self.device, self.layout = sig.device, windows.Pool(sig.attrs, ksize, strides)
        self._type = TYPES[computed(dtype).name]

    def kernel(self, name: str, size: int, places: str = "i64") -> Any:
        """A kernel of the program for arrays of up to `size` elements.

        Args:
            name: the kernel.
            size: decides how wide indices are.
            places: the type of places.
        """
        index = "i64" if size > _INT_MAX else "int"
        lines = int(self.device.is_cpu)
        return self.device.kernel(_SOURCE, name, T=self._type, I=places, INDEX=index, LINES=lines)

    def launch(self, kernel: Any, size: int, numbers: tuple[Any, ...], *args: Any) -> None:
        """Queues a kernel over `size` elements; `numbers` are those of `place`."""
        items = size // max(int(numbers[0]), 1) if self.device.is_cpu else size
        self.device.launch(kernel, items, *args, np.int64(items), *numbers)

    def place(self, shape: Sequence[int]) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """The output's shape, and the channels and geometry as kernels take them."""
        # What lies behind the pooled dimensions counts as channels, what lies before as batch.
        channels = math.prod(shape[max(self.layout.pooled) + 1 :])
        return self.layout.result(shape), (np.int32(channels), *volume(self.layout.on(shape)))

    def places(self, x: Array, entry: int = 0) -> tuple[Array, tuple[Any, ...]]:
        """Where the first maximum of each window lies in the memory of `x`, or of its entry."""
        shape, numbers = self.place(x.shape)
        best: Array = self.device.allocate(shape, np.dtype(np.int64))
        kernel = self.kernel("max_place", x.size)
        self.launch(kernel, best.size, numbers, x, best, np.int64(entry))
        return best, numbers


def _forward(pooling: _Pooling, name: str, x: Array) -> Array:
    shape, numbers = pooling.place(x.shape)
    out: Array = pooling.device.allocate(shape, x.dtype)
    kernel = pooling.kernel(name, max(x.size, out.size))
    pooling.launch(kernel, out.size, numbers, x, out)
    return out


@table.binder("MaxPool", "MaxPool3D", T=REALS, when=windows.plain_format)
@table.binder("AvgPool", "AvgPool3D", T=FLOATS, when=windows.plain_format)
def pool(sig: NodeSig) -> Callable[[Array], Array]:
    """The maximum of each window, or the mean of its elements that are not padding."""
    pooling = _Pooling(sig, sig.in_dtypes[0])
    name = "avg_pool" if sig.op.startswith("Avg") else "max_pool"
    return widened(sig.device, sig.in_dtypes[0], lambda x: _forward(pooling, name, x))


@table.binder("MaxPoolV2", T=REALS, when=windows.plain_format, host_inputs=("ksize", "strides"))
def max_pool_v2(sig: NodeSig) -> Callable[[Array, Any, Any], Array]:
    """The maximum of each window, the window given as input."""
    dtype = sig.in_dtypes[0]

    def run(x: Array, ksize: Any, strides: Any) -> Array:
        return _forward(_Pooling(sig, dtype, ksize, strides), "max_pool", x)

    return widened(sig.device, dtype, run)


# ---------------------------------------------------------------- gradients
def _gradient(pooling: _Pooling, op: str, x: Array, out: Array, grad: Array) -> Array:
    device = pooling.device
    shape, numbers = pooling.place(x.shape)
    second = "GradGrad" in op
    windows.check_shape("orig_output", out.shape, shape)
    windows.check_shape("grad", grad.shape, x.shape if second else shape)
    result: Array = device.allocate(shape if second else x.shape, grad.dtype)
    if op == "MaxPool3DGrad":  # TF's rule for volumes: every element that is as good as the maximum
        kernel = pooling.kernel("equal_grad", x.size)
        pooling.launch(kernel, result.size, numbers, x, out, grad, result)
        return result
    best, numbers = pooling.places(x)
    if second:
        sizes = (np.int64(v) for v in (result.size, 1, 0))
        device.launch(pooling.kernel("pick", x.size), result.size, best, grad, result, *sizes)
    else:
        kernel = pooling.kernel("max_grad", x.size)
        pooling.launch(kernel, result.size, numbers, best, grad, result, np.int64(0))
    return result


@table.binder(
    "MaxPoolGrad", "MaxPoolGradGrad", "MaxPool3DGrad", "MaxPool3DGradGrad", T=REALS,
    when=windows.plain_format,
)  # fmt: skip
def max_pool_grad(sig: NodeSig) -> Callable[[Array, Array, Array], Array]:
    """The gradient goes to the first maximum of each window; and the gradient of that."""
    pooling = _Pooling(sig, sig.in_dtypes[0])

    def run(x: Array, out: Array, grad: Array) -> Array:
        return _gradient(pooling, sig.op, x, out, grad)

    return widened(sig.device, sig.in_dtypes[0], run)


@table.binder(
    "MaxPoolGradV2", "MaxPoolGradGradV2", T=REALS, when=windows.plain_format,
    host_inputs=("ksize", "strides"),
)  # fmt: skip
def max_pool_grad_v2(sig: NodeSig) -> Callable[..., Array]:
    """As `max_pool_grad`, the window given as input."""
    dtype = sig.in_dtypes[0]

    def run(x: Array, out: Array, grad: Array, ksize: Any, strides: Any) -> Array:
        return _gradient(_Pooling(sig, dtype, ksize, strides), sig.op, x, out, grad)

    return widened(sig.device, dtype, run)


@table.binder("AvgPoolGrad", "AvgPool3DGrad", T=FLOATS, host_inputs=("orig_input_shape",))
def avg_pool_grad(sig: NodeSig) -> Callable[[Any, Array], Array]:
    """Each input element's shares of the windows that cover it."""
    dtype, device = sig.in_dtypes[1], sig.device
    pooling = _Pooling(sig, dtype)

    def run(shape: Any, grad: Array) -> Array:
        source = tuple(checks.ints(shape))
        expected, numbers = pooling.place(source)
        windows.check_shape("grad", grad.shape, expected)
        out: Array = device.allocate(source, grad.dtype)
        kernel = pooling.kernel("avg_grad", out.size)
        pooling.launch(kernel, out.size, numbers, grad, out)
        return out

    return widened(device, dtype, run)


# ---------------------------------------------------------------- with the maximum's place
@table.binder("MaxPoolWithArgmax", T=REALS, when=windows.plain_format)
def max_pool_with_argmax(sig: NodeSig) -> Callable[[Array], tuple[Array, Array]]:
    """The maxima and their flat places, within the batch entry unless the batch is included."""
    pooling, whole = _Pooling(sig, sig.in_dtypes[0]), bool(sig.attrs["include_batch_in_index"])
    device, index = sig.device, sig.out_dtypes[1].np
    cut = formula(device, "cast(x, int32)", {"x": dtypes.int64}, dtypes.int32)

    def run(x: Array) -> tuple[Array, Array]:
        out = _forward(pooling, "max_pool", x)
        best, _ = pooling.places(x, 0 if whole else math.prod(x.shape[1:]))
        if index.itemsize == best.dtype.itemsize:
            return out, best
        return out, cut(best)

    return widened(device, sig.in_dtypes[0], run)


@table.binder(
    "MaxPoolGradWithArgmax", "MaxPoolGradGradWithArgmax", T=REALS, when=windows.plain_format
)
def max_pool_grad_with_argmax(sig: NodeSig) -> Callable[[Array, Array, Array], Array]:
    """Adds each gradient to the input element that its place names; and the gradient of that."""
    device, pooling = sig.device, _Pooling(sig, sig.in_dtypes[0])
    whole, index = bool(sig.attrs["include_batch_in_index"]), TYPES[sig.in_dtypes[2].name]
    second = sig.op == "MaxPoolGradGradWithArgmax"

    def run(x: Array, grad: Array, argmax: Array) -> Array:
        entry = 0 if whole else math.prod(x.shape[1:])
        shape, numbers = pooling.place(x.shape)
        windows.check_shape("argmax", argmax.shape, shape)
        windows.check_shape("grad", grad.shape, x.shape if second else shape)
        result: Array = device.allocate(shape if second else x.shape, grad.dtype)
        if not result.size or not argmax.size:
            device.fill_zero(result)
            return result
        outside, stray = device.flag(), device.flag()
        outputs = math.prod(shape[1:])
        sizes = (np.int64(v) for v in (x.size, entry, outputs))
        check = pooling.kernel("check", x.size, index)
        pooling.launch(check, argmax.size, numbers, argmax, outside, stray, *sizes)
        if device.read_int(outside):
            raise checks.outside_of_input(x.size)
        if second:
            sizes = (np.int64(v) for v in (result.size, outputs, entry))
            kernel = pooling.kernel("pick", x.size, index)
            device.launch(kernel, result.size, argmax, grad, result, *sizes)
        elif device.read_int(stray):  # places that no window of this node explains
            entries, each = (1, argmax.size) if whole else (shape[0], outputs)
            device.fill_zero(result)
            sizes = (np.int64(v) for v in (entries, each, entry))
            kernel = pooling.kernel("scatter", x.size, index)
            device.launch(kernel, entries, argmax, grad, result, *sizes)
        else:
            kernel = pooling.kernel("max_grad", x.size, index)
            pooling.launch(kernel, result.size, numbers, argmax, grad, result, np.int64(entry))
        return result

    return widened(device, sig.in_dtypes[0], run)
