"""Convolution and its gradients: unfolded windows times the filter, a part of the batch at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, codegen, dtypes, errors
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.product import Factor, multiply
from opdock_ckernels.protocols import Array
from opdock_ckernels.windows import Window, channels_first, channels_last

__all__ = ["table"]

table = KernelTable()
_TYPES = frozenset({dtypes.float32, dtypes.float64})
_UNFOLDED_BYTES = 64 << 20

_SOURCE = """
#define WINDOW int ih, int iw, int kh, int kw, int sh, int sw, int dh, int dw, int ph, int pw, \\
               int oh, int ow
KERNEL void unfold(GLOBAL const T* x, GLOBAL T* y, i64 start, i64 n, int c, WINDOW) {
  i64 i = GLOBAL_ID(0);
  if (i >= n) return;
  int ch = i % c;
  i64 rest = i / c;
  int b = rest % kw; rest /= kw;
  int a = rest % kh; rest /= kh;
  int v = rest % ow; rest /= ow;
  int u = rest % oh; rest /= oh;
  int r = u * sh - ph + a * dh, q = v * sw - pw + b * dw;
  int inside = r >= 0 && r < ih && q >= 0 && q < iw;
  y[i] = inside ? x[(((start + rest) * ih + r) * iw + q) * c + ch] : 0;
}
KERNEL void refold(GLOBAL const T* y, GLOBAL T* x, i64 start, i64 n, int c, WINDOW) {
  i64 i = GLOBAL_ID(0);
  if (i >= n) return;
  int ch = i % c;
  i64 rest = i / c;
  int q = rest % iw; rest /= iw;
  int r = rest % ih; rest /= ih;
  T total = 0;
  for (int a = 0; a < kh; ++a) {
    int u = r + ph - a * dh;
    if (u < 0 || u % sh || u / sh >= oh) continue;
    for (int b = 0; b < kw; ++b) {
      int v = q + pw - b * dw;
      if (v < 0 || v % sw || v / sw >= ow) continue;
      total += y[((((rest * oh + u / sh) * ow + v / sw) * kh + a) * kw + b) * c + ch];
    }
  }
  x[start * ih * iw * c + i] = total;
}
"""


class _Convolution:
    """A node's attributes, and the passes over blocks of its batch."""

    def __init__(self, sig: NodeSig, dtype: Any) -> None:
        attrs, self.device = sig.attrs, sig.device
        self.first = attrs.get("data_format", "NHWC") == "NCHW"
        self.space = (2, 3) if self.first else (1, 2)
        self.strides = [int(attrs["strides"][a]) for a in self.space]
        self.dilations = [int(attrs["dilations"][a]) for a in self.space]
        pads = attrs.get("explicit_paddings") or [0] * 8
        self.padding = attrs["padding"]
        self.explicit = [(int(pads[2 * a]), int(pads[2 * a + 1])) for a in self.space]
        kind = TYPES[dtype.name]
        self.unfold = self.device.kernel(_SOURCE, "unfold", T=kind)
        self.refold = self.device.kernel(_SOURCE, "refold", T=kind)
        self.one = self.device.upload(np.zeros(2, np.int32))

    def window(self, size: tuple[int, ...], kernel: tuple[int, ...]) -> Window:
        """The geometry for spatial input sizes and a filter's shape."""
        return Window.make(
            size, kernel[:2], self.strides, self.dilations, self.padding, self.explicit
        )

    def blocks(self, batch: int, where: Window, channels: int, size: int) -> Any:
        """(first image, number of images) whose unfolded windows fit the limit."""
        row = math.prod(where.out) * math.prod(where.window) * channels * size
        step = max(1, _UNFOLDED_BYTES // max(row, 1))
        return [(i, min(step, batch - i)) for i in range(0, batch, step)]

    def unfolded(self, x: Array, where: Window, start: int, count: int) -> Array:
        """The windows of some images as the rows of a matrix."""
        channels = x.shape[-1]
        width = math.prod(where.window) * channels
        out: Array = self.device.allocate((count * math.prod(where.out), width), x.dtype)
        self.device.launch(
            self.unfold, out.size, x, out, np.int64(start), np.int64(out.size),
            np.int32(channels), *map(np.int32, where.numbers),
        )  # fmt: skip
        return out


def _same_channels(given: int, inner: int) -> None:
    if given != inner:
        if inner == 0 or given % inner:
            raise codegen.invalid(
                f"input depth must be evenly divisible by filter depth: {given} vs {inner}"
            )
        raise errors.UnimplementedError(None, None, "grouped convolution on OpenCL")


@table.binder("Conv2D", T=_TYPES)
def conv2d(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """Convolution of images."""
    device, node = sig.device, _Convolution(sig, sig.in_dtypes[0])

    def run(x: Array, kernel: Array) -> Array:
        data = channels_last(device, x, node.first)
        _same_channels(data.shape[-1], kernel.shape[2])
        where = node.window(data.shape[1:3], kernel.shape)
        outputs = kernel.shape[3]
        result: Array = device.allocate((data.shape[0], *where.out, outputs), x.dtype)
        image = math.prod(where.out) * outputs
        blocks = node.blocks(data.shape[0], where, data.shape[-1], x.dtype.itemsize)
        for start, count in blocks if result.size else ():
            rows = node.unfolded(data, where, start, count)
            part = result
            if len(blocks) > 1:
                part = device.allocate((rows.shape[0], outputs), x.dtype)
            weights = Factor(kernel, 1, (rows.shape[1], outputs))
            multiply(device, Factor(rows, 1, rows.shape), weights, part, node.one)
            if part is not result:
                device.copy_into(part, result, start * image)
        return channels_first(device, result, node.first)

    return run


def _check_grad(grad: Array, batch: int, where: Window, outputs: int) -> None:
    expected = (batch, *where.out, outputs)
    if grad.shape != expected:
        raise codegen.invalid(
            f"out_backprop has shape {list(grad.shape)} (channels last), expected {list(expected)} "
            "from the input, the filter, strides and padding"
        )


@table.binder("Conv2DBackpropInput", T=_TYPES, host_inputs=("input_sizes",))
def conv2d_backprop_input(sig: NodeSig) -> Callable[[Any, Array, Array], Array]:
    """The gradient with respect to the input; also transposed convolution."""
    device, node = sig.device, _Convolution(sig, sig.in_dtypes[1])

    def run(input_sizes: Any, kernel: Array, grad: Array) -> Array:
        dims = codegen.ints(input_sizes)
        size, channels = tuple(dims[a] for a in node.space), dims[1 if node.first else 3]
        where, back = node.window(size, kernel.shape), channels_last(device, grad, node.first)
        outputs = kernel.shape[3]
        _check_grad(back, dims[0], where, outputs)
        _same_channels(channels, kernel.shape[2])
        result: Array = device.allocate((dims[0], *size, channels), grad.dtype)
        if not result.size or not grad.size:
            device.fill_zero(result)
            return channels_first(device, result, node.first)
        places, width = math.prod(where.out), math.prod(where.window) * channels
        for start, count in node.blocks(dims[0], where, channels, grad.dtype.itemsize):
            rows = Factor(back, 1, (count * places, outputs), offset=start * places * outputs)
            columns: Array = device.allocate((count * places, width), grad.dtype)
            multiply(device, rows, Factor(kernel, 1, (width, outputs), True), columns, node.one)
            n = count * math.prod(size) * channels
            device.launch(
                node.refold, n, columns, result, np.int64(start), np.int64(n),
                np.int32(channels), *map(np.int32, where.numbers),
            )  # fmt: skip
        return channels_first(device, result, node.first)

    return run


@table.binder("Conv2DBackpropFilter", T=_TYPES, host_inputs=("filter_sizes",))
def conv2d_backprop_filter(sig: NodeSig) -> Callable[[Array, Any, Array], Array]:
    """The gradient with respect to the filter."""
    device, node = sig.device, _Convolution(sig, sig.in_dtypes[0])

    def run(x: Array, filter_sizes: Any, grad: Array) -> Array:
        shape = tuple(codegen.ints(filter_sizes))
        data, back = (channels_last(device, v, node.first) for v in (x, grad))
        where = node.window(data.shape[1:3], shape)
        _check_grad(back, data.shape[0], where, shape[3])
        _same_channels(data.shape[-1], shape[2])
        result: Array = device.allocate(shape, x.dtype)
        device.fill_zero(result)
        places = math.prod(where.out)
        blocks = node.blocks(data.shape[0], where, data.shape[-1], x.dtype.itemsize)
        for start, count in blocks if result.size and back.size else ():
            rows = node.unfolded(data, where, start, count)
            left = Factor(rows, 1, rows.shape, True)
            right = Factor(back, 1, (count * places, shape[3]), offset=start * places * shape[3])
            flat = result.reshape(left.rows, shape[3])
            multiply(device, left, right, flat, node.one, add=True)
        return result

    return run
