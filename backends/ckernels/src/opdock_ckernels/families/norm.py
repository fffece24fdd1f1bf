"""Fused batch normalization, forward and backward: sums per channel, then a pass over the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, dtypes
from opdock_ckernels.folding import fold
from opdock_ckernels.narrow import NARROW, widened
from opdock_ckernels.protocols import Array

__all__ = ["normalization", "table"]

table = KernelTable()
_FLOAT = frozenset({dtypes.float32})
_TYPES = _FLOAT | NARROW
_ROWS = 256

# A channel's elements: `rows` runs of `run` neighbours, `stride` apart (channels last: run is 1).
_SOURCE = """
#define LAYOUT i64 rows, int c, int run
#define AT(r, ch) ((r) / run * c * run + (i64)(ch) * run + (r) % run)
KERNEL void sums(GLOBAL const float* a, GLOBAL const float* x, GLOBAL const float* mean,
                   GLOBAL float* s1, GLOBAL float* s2, int parts, LAYOUT) {
  i64 i = GLOBAL_ID(0);
  if (i >= (i64)parts * c) return;
  int ch = i % c, part = i / c;
  float m = mean[ch], t1 = 0, t2 = 0;
  for (i64 r = part; r < rows; r += parts) {
    float v = a[AT(r, ch)], d = x[AT(r, ch)] - m;
    t1 += v;
    t2 += v * d;
  }
  s1[i] = t1;
  s2[i] = t2;
}
KERNEL void squares(GLOBAL const float* x, GLOBAL const float* mean, GLOBAL float* s,
                      int parts, LAYOUT) {
  i64 i = GLOBAL_ID(0);
  if (i >= (i64)parts * c) return;
  int ch = i % c, part = i / c;
  float m = mean[ch], total = 0;
  for (i64 r = part; r < rows; r += parts) { float d = x[AT(r, ch)] - m; total += d * d; }
  s[i] = total;
}
// On a CPU a work item takes a run of neighbours; the compiler makes vectors of them.
#if !LINES
#define ELEMENTS { \\
  i64 i = GLOBAL_ID(0); \\
  if (i >= n) return; \\
  int ch = i / run % c;
#elif ROWS
#define ELEMENTS \\
  i64 item = GLOBAL_ID(0); \\
  if (item >= n / c) return; \\
  for (int ch = 0; ch < c; ++ch) { \\
    i64 i = item * c + ch;
#else
#define ELEMENTS \\
  i64 item = GLOBAL_ID(0); \\
  if (item >= n / run) return; \\
  int ch = item % c; \\
  for (i64 i = item * run; i < (item + 1) * run; ++i) {
#endif
KERNEL void inverse(GLOBAL const float* variance, GLOBAL float* y, float epsilon, int c) {
  int i = GLOBAL_ID(0);
  if (i < c) y[i] = 1 / sqrt(variance[i] + epsilon);
}
KERNEL void scale_shift(GLOBAL const float* x, GLOBAL float* y, GLOBAL const float* mean,
                        GLOBAL const float* inverse, GLOBAL const float* scale,
                        GLOBAL const float* offset, i64 n, int c, int run) {
  ELEMENTS
    float v = (x[i] - mean[ch]) * (scale[ch] * inverse[ch]) + offset[ch];
    y[i] = RELU && v < 0 ? 0 : v;
  }
}
KERNEL void moments(GLOBAL const float* mean, GLOBAL const float* variance,
                      GLOBAL const float* old_mean, GLOBAL const float* old_variance,
                      GLOBAL float* new_mean, GLOBAL float* new_variance, float bessel,
                      float factor, int c) {
  int i = GLOBAL_ID(0);
  if (i >= c) return;
  float m = mean[i], v = variance[i] * bessel;
  new_mean[i] = factor == 1 ? m : old_mean[i] * (1 - factor) + m * factor;
  new_variance[i] = factor == 1 ? v : old_variance[i] * (1 - factor) + v * factor;
}
KERNEL void backward(GLOBAL const float* dy, GLOBAL const float* x, GLOBAL float* dx,
                     GLOBAL const float* mean, GLOBAL const float* inverse,
                     GLOBAL const float* scale, GLOBAL const float* total,
                     GLOBAL const float* projected, float share, i64 n, int c, int run) {
  ELEMENTS
    float inv = inverse[ch], g = dy[i];
    g -= share * ((x[i] - mean[ch]) * (inv * inv * projected[ch]) + total[ch]);
    dx[i] = g * (scale[ch] * inv);
  }
}
KERNEL void product(GLOBAL const float* a, GLOBAL const float* b, GLOBAL float* y, int c) {
  int i = GLOBAL_ID(0);
  if (i < c) y[i] = a[i] * b[i];
}
"""


class _Layout:
    """Where the channels of a tensor lie, and sums over them."""

    def __init__(self, sig: NodeSig) -> None:
        self.device, self.first = sig.device, sig.attrs["data_format"] == "NCHW"

    def kernel(self, name: str, run: int = 1, relu: bool = False) -> Any:
        """A kernel of the program; `run` is the third of what `of` gives."""
        macros = {"RELU": int(relu), "LINES": int(self.device.is_cpu), "ROWS": int(run == 1)}
        return self.device.kernel(_SOURCE, name, **macros)

    def launch(self, kernel: Any, x: Array, *args: Any) -> None:
        """Queues a kernel over the elements of `x`."""
        _, c, run = self.of(x)
        items = x.size
        if self.device.is_cpu:
            items //= max(c, 1) if run == 1 else run
        self.device.launch(kernel, items, *args, np.int64(x.size), np.int32(c), np.int32(run))

    def inverse(self, variance: Array, epsilon: np.float32) -> Array:
        """The inverse of each channel's deviation."""
        out: Array = self.device.allocate(variance.shape, variance.dtype)
        kernel = self.kernel("inverse")
        self.device.launch(kernel, out.size, variance, out, epsilon, np.int32(out.size))
        return out

    def of(self, x: Array) -> tuple[int, int, int]:
        """Elements a channel, channels, and neighbouring elements of one channel."""
        channels = x.shape[1] if self.first else x.shape[-1]
        run = int(np.prod(x.shape[2:], dtype=np.int64)) if self.first else 1
        return (x.size // channels if channels else 0), channels, max(run, 1)

    def parts(self, rows: int) -> int:
        """How many work items share the sum of a channel."""
        return max(1, min(1024, -(-rows // _ROWS)))

    def partial(self, name: str, count: int, x: Array, *inputs: Array) -> list[Array]:
        """The sums of a kernel with `count` results, folded to one value a channel."""
        rows, channels, run = self.of(x)
        parts, float32 = self.parts(rows), np.dtype(np.float32)
        outs = [self.device.allocate((parts, channels), float32) for _ in range(count)]
        numbers = (np.int32(parts), np.int64(rows), np.int32(channels), np.int32(run))
        self.device.launch(self.kernel(name), parts * channels, *inputs, *outs, *numbers)
        return [fold(self.device, "sum", o, (0,)) for o in outs]


def normalization(sig: NodeSig, relu: bool = False) -> Callable[..., tuple[Any, ...]]:
    """The normalization of a node; `relu` sets its negative results to zero."""
    device, layout, attrs = sig.device, _Layout(sig), sig.attrs
    training, third = bool(attrs["is_training"]), sig.op == "FusedBatchNormV3"
    epsilon = np.float32(attrs["epsilon"])
    factor = np.float32(attrs.get("exponential_avg_factor", 1.0))
    moments = layout.kernel("moments")

    def vector(n: int) -> Array:
        out: Array = device.allocate((n,), np.dtype(np.float32))
        return out

    def run(x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> Any:
        rows, c, run = layout.of(x)
        used, spread, bessel, share = mean, variance, 1.0, np.float32(1)
        if training:
            channel = 1 if layout.first else x.ndim - 1
            axes = [a for a in range(x.ndim) if a != channel]
            # The mean of no elements is 0 / 0, NaN as in TF.
            used = fold(device, "sum", x, axes, last=f"total / {rows}.0f")
            (total,) = layout.partial("squares", 1, x, x, used)
            spread = fold(device, "sum", total.reshape(1, c), (0,), last=f"total / {rows}.0f")
            bessel, share = rows / max(rows - 1, 1), factor
        y: Array = device.allocate(x.shape, x.dtype)
        inverse = layout.inverse(spread, epsilon)
        kernel = layout.kernel("scale_shift", run, relu)
        layout.launch(kernel, x, x, y, used, inverse, scale, offset)
        outs = [vector(c) for _ in range(4)]
        given = (mean, variance) if share != 1 else (used, spread)
        for pair, weight, part in ((outs[:2], bessel, share), (outs[2:], 1.0, np.float32(1))):
            device.launch(
                moments, c, used, spread, *given, *pair, np.float32(weight), part, np.int32(c)
            )
        extra = (device.upload(np.zeros((), np.float32)),) if third else ()
        return (y, *outs, *extra)

    return run


@table.binder("FusedBatchNorm", T=_FLOAT)
@table.binder("FusedBatchNormV2", "FusedBatchNormV3", T=_TYPES, U=_FLOAT)
def fused_batch_norm(sig: NodeSig) -> Callable[..., tuple[Any, ...]]:
    """Normalizes by the batch's statistics or by given ones."""
    return widened(sig.device, sig.in_dtypes[0], normalization(sig), 1)


@table.binder("FusedBatchNormGrad", T=_FLOAT)
@table.binder("FusedBatchNormGradV2", "FusedBatchNormGradV3", T=_TYPES, U=_FLOAT)
def fused_batch_norm_grad(sig: NodeSig) -> Callable[..., tuple[Any, ...]]:
    """Gradients with respect to x, scale and offset."""
    device, layout = sig.device, _Layout(sig)
    training, epsilon = bool(sig.attrs["is_training"]), np.float32(sig.attrs["epsilon"])

    def run(grad: Array, x: Array, scale: Array, mean: Array, variance: Array, *unused: Any) -> Any:
        rows, c, run = layout.of(x)
        total, projected = layout.partial("sums", 2, x, grad, x, mean)
        dx: Array = device.allocate(x.shape, x.dtype)
        inverse, share = layout.inverse(variance, epsilon), training / max(rows, 1)
        kernel = layout.kernel("backward", run)
        layout.launch(
            kernel, x, grad, x, dx, mean, inverse, scale, total, projected, np.float32(share)
        )
        dscale = projected
        if x.size:
            dscale = device.allocate((c,), np.dtype(np.float32))
            device.launch(layout.kernel("product"), c, projected, inverse, dscale, np.int32(c))
        nothing = [device.allocate((0,), np.dtype(np.float32)) for _ in range(2)]
        return (dx, dscale, total, *nothing)

    return widened(device, sig.in_dtypes[0], run, 1)
