"""Convolution and its gradients: windows times the filter, a part of the batch at once.

Where the device multiplies matrices whose rows lie as windows do, they are read from the image;
elsewhere, and where there are groups, they are unfolded before.

Images and volumes, both data formats, any number of groups: the groups are a batch of products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from opdock.plugin import DType, KernelTable, NodeSig, checks, dtypes, windows
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.margins import within_margins
from opdock_ckernels.narrow import NARROW, computed, widened
from opdock_ckernels.product import Factor, Lines, multiply
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import contiguous, strides_of, take, zeros
from opdock_ckernels.windows import VOLUME, channels_first, channels_last, volume

__all__ = ["Finish", "check_grad", "convolution", "table"]

table = KernelTable()

TYPES_OF_CONV = frozenset({dtypes.float32, dtypes.float64}) | NARROW
"""The element types of convolutions."""
Finish = Callable[..., None]
"""What is done in place to rows of outputs, channels last, as soon as they are computed.

It takes the rows, and what the fused op has beside the product's own inputs.
"""

_INT_MAX = 2**31 - 1
_LINES_OF_A_GROUP = 8
"""Work items of a group of a CPU that unfold a line: a group is what a thread takes."""
_AT_ONCE = {True: 4 << 20, False: 64 << 20}  # bytes; on a CPU they should stay in cache

# Rows are (group, image, place); columns (window element, channel of the group). On a CPU a work
# item writes a row of the window, with all channels, for a line of places, else one element.
_SOURCE = (
    VOLUME
    + """
KERNEL void unfold(GLOBAL const T* x, GLOBAL T* y, i64 start, i64 count, i64 n, int all, int c,
                   VOLUME) {
  INDEX i = GLOBAL_ID(0), rest = i;
#if LINES
  if (i >= n / ((i64)ow * kw * c)) return;
#else
  if (i >= n) return;
  int ch = rest % c; rest /= c;
  int b = rest % kw; rest /= kw;
#endif
  int a = rest % kh; rest /= kh;
  int e = rest % kd; rest /= kd;
#if !LINES
  int v = rest % ow; rest /= ow;
#endif
  int u = rest % oh; rest /= oh;
  int t = rest % od; rest /= od;
  i64 image = start + rest % count, g = rest / count;
  int s = t * sd - pd + e * dd, r = u * sh - ph + a * dh;
  int inside = s >= 0 && s < id && r >= 0 && r < ih;
  GLOBAL const T* row = x + ((image * id + s) * ih + r) * iw * all + g * c;
#if LINES
  int width = kw * c, near = dw == 1 && all == c;
  GLOBAL T* to = y + ((i / (kd * kh) * ow * kd + e) * kh + a) * width;
  for (int v = 0; v < ow; ++v, to += kd * kh * width) {
    int q = v * sw - pw;
    if (inside && near && q >= 0 && q + kw <= iw) {
      GLOBAL const T* from = row + (i64)q * c;
      for (int k = 0; k < width; ++k) to[k] = from[k];
      continue;
    }
    GLOBAL T* cell = to;
    for (int b = 0; b < kw; ++b, q += dw, cell += c) {
      if (inside && q >= 0 && q < iw) {
        GLOBAL const T* from = row + (i64)q * all;
        for (int k = 0; k < c; ++k) cell[k] = from[k];
      } else {
        for (int k = 0; k < c; ++k) cell[k] = 0;
      }
    }
  }
#else
  int q = v * sw - pw + b * dw;
  y[i] = inside && q >= 0 && q < iw ? row[(i64)q * all + ch] : 0;
#endif
}
KERNEL void refold(GLOBAL const T* y, GLOBAL T* x, i64 start, i64 count, i64 n, int all, int c,
                   VOLUME) {
  INDEX i = GLOBAL_ID(0), rest = i;
#if LINES
  if (i >= n / c) return;
  int g = rest % (all / c); rest /= all / c;
#else
  if (i >= n) return;
  int ch = rest % all; rest /= all;
  int g = ch / c;
  ch -= g * c;
#endif
  int q = rest % iw; rest /= iw;
  int r = rest % ih; rest /= ih;
  int s = rest % id; rest /= id;
#if LINES
  GLOBAL T* to = x + start * id * ih * iw * all + (i64)i * c;
  for (int k = 0; k < c; ++k) to[k] = 0;
#else
  T total = 0;
#endif
  for (int e = 0; e < kd; ++e) {
    int t = s + pd - e * dd;
    if (t < 0 || t % sd || t / sd >= od) continue;
    for (int a = 0; a < kh; ++a) {
      int u = r + ph - a * dh;
      if (u < 0 || u % sh || u / sh >= oh) continue;
      for (int b = 0; b < kw; ++b) {
        int v = q + pw - b * dw;
        if (v < 0 || v % sw || v / sw >= ow) continue;
        i64 place = (((g * count + (i64)rest) * od + t / sd) * oh + u / sh) * ow + v / sw;
        GLOBAL const T* from = y + (((place * kd + e) * kh + a) * kw + b) * c;
#if LINES
        for (int k = 0; k < c; ++k) to[k] += from[k];
#else
        total += from[ch];
#endif
      }
    }
  }
#if !LINES
  x[start * id * ih * iw * all + i] = total;
#endif
}
"""
)


class _Convolution:
    """A node's layout, and the passes over blocks of its batch."""

    def __init__(self, sig: NodeSig, dtype: DType) -> None:
        self.device, self.layout = sig.device, windows.Layout(sig.attrs)
        self.type = computed(dtype).np
        self._macros = {"T": TYPES[computed(dtype).name], "LINES": int(self.device.is_cpu)}
        self._pairs: dict[int, Array] = {}

    def kernel(self, name: str, size: int) -> Any:
        """A kernel of the program for arrays of up to `size` elements."""
        index = "i64" if size > _INT_MAX else "int"
        return self.device.kernel(_SOURCE, name, INDEX=index, **self._macros)

    def pairs(self, groups: int) -> Array:
        """Each group's factors with their like."""
        if groups not in self._pairs:
            numbers = np.repeat(np.arange(groups, dtype=np.int32), 2)
            self._pairs[groups] = self.device.upload(numbers)
        return self._pairs[groups]

    def last(self, x: Array) -> Array:
        """With channels last."""
        return channels_last(self.device, x, self.layout.first)

    def finish(self, x: Array) -> Array:
        """In the node's format."""
        return channels_first(self.device, x, self.layout.first)

    def blocks(self, batch: int, image: int) -> Iterator[tuple[int, int]]:
        """(first image, number of images) whose elements, `image` of each, fit the limit."""
        limit = _AT_ONCE[bool(self.device.is_cpu)]
        step = max(1, limit // max(image * self.type.itemsize, 1))
        return ((i, min(step, batch - i)) for i in range(0, batch, step))

    def unfoldings(
        self, batch: int, where: windows.Window, channels: int
    ) -> Iterator[tuple[int, int]]:
        """The same for their unfolded windows."""
        if where.is_pointwise:
            return iter([(0, batch)])
        return self.blocks(batch, math.prod(where.out) * math.prod(where.window) * channels)

    def padded(self, x: Array, where: windows.Window) -> Array:
        """Images with zeros around them."""
        if not where.is_padded:
            return x
        return within_margins(self.device, x, ((0, 0), *where.pads, (0, 0)))

    def lines(self, x: Array, where: windows.Window, count: int) -> tuple[Lines, Lines]:
        """How the windows of padded images lie, and how the elements of a window."""
        image, *steps, _ = strides_of(x.shape)
        near = zip(where.window, (d * n for d, n in zip(where.dilations, steps)))
        far = zip(where.out, (s * n for s, n in zip(where.strides, steps)))
        return [(count, image), *far], [*near, (x.shape[-1], 1)]

    def in_place(self, x: Array, where: windows.Window) -> Factor:
        """All windows as the rows of a matrix, where they lie."""
        data = self.padded(x, where)
        return Factor.of_lines(data, *self.lines(data, where, x.shape[0]))

    def unfolded(
        self, x: Array, where: windows.Window, start: int, count: int, groups: int
    ) -> Array:
        """The windows of some images as the rows of a matrix for each group."""
        channels = x.shape[-1]
        inner = channels // groups
        width, rows = math.prod(where.window) * inner, count * math.prod(where.out)
        if where.is_pointwise and groups == 1:
            return x.reshape(1, rows, width)  # all images are one block
        out: Array = self.device.allocate((groups, rows, width), x.dtype)
        line = where.out[-1] * where.window[-1] * inner if self.device.is_cpu else 1
        items, kernel = out.size // max(line, 1), self.kernel("unfold", out.size)
        sizes = (np.int64(v) for v in (start, count, out.size))
        self.device.launch(
            kernel, items, x, out, *sizes, np.int32(channels), np.int32(inner), *volume(where),
            group=_LINES_OF_A_GROUP if self.device.is_cpu else 0,
        )  # fmt: skip
        return out

    def refolded(
        self, rows: Array, out: Array, where: windows.Window, start: int, count: int, groups: int
    ) -> None:
        """Adds up what the windows' rows say of each element, for some images of `out`."""
        channels = out.shape[-1]
        inner, n = channels // groups, count * math.prod(where.size) * channels
        sizes = (np.int64(v) for v in (start, count, n))
        self.device.launch(
            self.kernel("refold", n), n // inner if self.device.is_cpu else n, rows, out, *sizes,
            np.int32(channels), np.int32(inner), *volume(where),
        )  # fmt: skip

    def split(self, x: Array, groups: int, start: int = 0, rows: int | None = None) -> Factor:
        """The rows of a matrix from `start` on, the last dimension shared out to groups."""
        width = x.shape[-1]
        rows = x.size // max(width, 1) if rows is None else rows
        if groups == 1:
            return Factor(x, 1, (rows, width), offset=start * width)
        flat = x.reshape(x.size // width, groups, width // groups)
        turned = contiguous(self.device, flat, (1, 0, 2))
        share = width // groups
        factor = Factor(turned, groups, (flat.shape[0], share), offset=start * share)
        factor.rows = rows
        return factor

    def joined(self, x: Array, groups: int) -> Array:
        """[groups, rows, share] as [rows, groups * share]."""
        if groups == 1:
            return x
        turned = contiguous(self.device, x, (1, 0, 2))
        return turned.reshape(x.shape[1], groups * x.shape[2])


def convolution(sig: NodeSig, finish: Finish | None = None) -> Callable[..., Array]:
    """The convolution of a node, with something done to each block of outputs behind it."""
    device, node = sig.device, _Convolution(sig, sig.in_dtypes[0])

    def run(x: Array, kernel: Array, *more: Array) -> Array:
        data = node.last(x)
        *window, inner, outputs = kernel.shape
        where = node.layout.window(data.shape[1:-1], window)
        groups = windows.groups(data.shape[-1], inner, outputs)
        result: Array = device.allocate((data.shape[0], *where.out, outputs), x.dtype)
        image = math.prod(where.out) * outputs
        if not result.size:
            return node.finish(result)
        weights = node.split(kernel, groups)
        if groups == 1 and device.takes_lines:
            multiply(device, node.in_place(data, where), weights, result, node.pairs(1))
            if finish is not None:
                finish(result.reshape(result.size // outputs, outputs), *more)
            return node.finish(result)
        for start, count in node.unfoldings(data.shape[0], where, data.shape[-1]):
            rows = node.unfolded(data, where, start, count, groups)
            whole = count == data.shape[0]
            shape = (groups, rows.shape[1], outputs // groups)
            part = result
            if groups > 1 or not whole:
                part = device.allocate(shape, x.dtype)
            left = Factor(rows, groups, rows.shape[1:])
            multiply(device, left, weights, part, node.pairs(groups))
            part = node.joined(part, groups) if groups > 1 else part
            if finish is not None:
                finish(part.reshape(rows.shape[1], outputs), *more)
            if part is not result:
                device.copy_into(part, result, start * image)
        return node.finish(result)

    return run


@table.binder("Conv2D", "Conv3D", T=TYPES_OF_CONV)
def conv(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """Convolution of images or volumes."""
    return widened(sig.device, sig.in_dtypes[0], convolution(sig))


def check_grad(layout: windows.Layout, grad: Array, *sizes: Any) -> None:
    """That a gradient has the shape of the outputs: batch, positions, channels."""
    windows.check_shape("out_backprop", grad.shape, layout.shape(*sizes))


def _turned(where: windows.Window) -> windows.Window | None:
    """The windows on the outputs that each element of the input is in, where they are a window's.

    With steps of more than one they are not, nor where the padding is wider than the window.
    """
    reach = [(k - 1) * d for k, d in zip(where.window, where.dilations)]
    pads = tuple((r - before, r - after) for r, (before, after) in zip(reach, where.pads))
    if any(s != 1 for s in where.strides) or any(min(pair) < 0 for pair in pads):
        return None
    steps = where.strides
    return windows.Window(where.out, where.window, steps, where.dilations, pads, where.size)


def _flipped(device: Any, kernel: Array) -> Array:
    """A filter backwards, from its outputs to its inputs."""
    *window, inner, outputs = kernel.shape
    *steps, across, _ = strides_of(kernel.shape)
    last = sum((k - 1) * s for k, s in zip(window, steps, strict=True))
    strides = [*(-s for s in steps), 1, across]
    return take(device, kernel, (*window, outputs, inner), strides, last)


def _backprop_input(sig: NodeSig) -> Callable[[Any, Array, Array], Array]:
    device, node = sig.device, _Convolution(sig, sig.in_dtypes[1])

    def run(input_sizes: Any, kernel: Array, grad: Array) -> Array:
        dims = checks.ints(input_sizes)
        (batch, size, channels), back = node.layout.parts(dims), node.last(grad)
        *window, inner, outputs = kernel.shape
        where = node.layout.window(size, window)
        check_grad(node.layout, grad, batch, where.out, outputs)
        groups = windows.groups(channels, inner, outputs)
        result: Array = device.allocate((batch, *size, channels), grad.dtype)
        if not result.size or not grad.size:
            device.fill_zero(result)
            return node.finish(result)
        if groups == 1 and device.takes_lines and (turned := _turned(where)) is not None:
            right = Factor(_flipped(device, kernel), 1, (math.prod(window) * outputs, inner))
            multiply(device, node.in_place(back, turned), right, result, node.pairs(1))
            return node.finish(result)
        places, width = math.prod(where.out), math.prod(window) * inner
        weights = node.split(kernel.reshape(width, outputs), groups)
        across = Factor(weights.data, groups, (width, outputs // groups), True)
        for start, count in node.unfoldings(batch, where, channels):
            left = node.split(back, groups, start * places, count * places)
            if where.is_pointwise and groups == 1:
                multiply(device, left, across, result, node.pairs(1))
                break
            columns: Array = device.allocate((groups, count * places, width), grad.dtype)
            multiply(device, left, across, columns, node.pairs(groups))
            node.refolded(columns, result, where, start, count, groups)
        return node.finish(result)

    return run


@table.binder(
    "Conv2DBackpropInput", "Conv3DBackpropInputV2", T=TYPES_OF_CONV, host_inputs=("input_sizes",)
)
def conv_backprop_input(sig: NodeSig) -> Callable[[Any, Array, Array], Array]:
    """The gradient with respect to the input; also transposed convolution."""
    return widened(sig.device, sig.in_dtypes[1], _backprop_input(sig))


@table.binder("Conv3DBackpropInput", T=TYPES_OF_CONV)
def conv3d_backprop_input(sig: NodeSig) -> Callable[[Array, Array, Array], Array]:
    """The gradient with respect to an input that is given."""
    run = _backprop_input(sig)
    by_shape = widened(sig.device, sig.in_dtypes[1], run)
    return lambda x, kernel, grad: by_shape(np.array(x.shape), kernel, grad)


def _backprop_filter(sig: NodeSig) -> Callable[[Array, Any, Array], Array]:
    device, node = sig.device, _Convolution(sig, sig.in_dtypes[0])

    def run(x: Array, filter_sizes: Any, grad: Array) -> Array:
        shape = tuple(checks.ints(filter_sizes))
        *window, inner, outputs = shape
        data, back = node.last(x), node.last(grad)
        where = node.layout.window(data.shape[1:-1], window)
        check_grad(node.layout, grad, x.shape[0], where.out, outputs)
        groups = windows.groups(data.shape[-1], inner, outputs)
        width, places = math.prod(window) * inner, math.prod(where.out)
        result = zeros(device, (groups, width, outputs // groups), x.dtype)
        if groups == 1 and device.takes_lines:
            padded = node.padded(data, where)
            image, share = padded.size // max(x.shape[0], 1), places * outputs
            for start, count in node.blocks(x.shape[0], image + share):
                far, near = node.lines(padded, where, count)
                left = Factor.of_lines(padded, near, far, start * image)
                right = Factor(back, 1, (count * places, outputs), offset=start * share)
                multiply(device, left, right, result, node.pairs(1), add=True)
        elif result.size and back.size:
            for start, count in node.unfoldings(data.shape[0], where, data.shape[-1]):
                rows = node.unfolded(data, where, start, count, groups)
                left = Factor(rows, groups, rows.shape[1:], True)
                right = node.split(back, groups, start * places, count * places)
                multiply(device, left, right, result, node.pairs(groups), add=True)
        return node.joined(result, groups).reshape(*shape)

    return run


@table.binder(
    "Conv2DBackpropFilter", "Conv3DBackpropFilterV2", T=TYPES_OF_CONV,
    host_inputs=("filter_sizes",),
)  # fmt: skip
def conv_backprop_filter(sig: NodeSig) -> Callable[[Array, Any, Array], Array]:
    """The gradient with respect to the filter."""
    return widened(sig.device, sig.in_dtypes[0], _backprop_filter(sig))


@table.binder("Conv3DBackpropFilter", T=TYPES_OF_CONV)
def conv3d_backprop_filter(sig: NodeSig) -> Callable[[Array, Array, Array], Array]:
    """The gradient with respect to a filter that is given."""
    by_shape = widened(sig.device, sig.in_dtypes[0], _backprop_filter(sig))
    return lambda x, kernel, grad: by_shape(x, np.array(kernel.shape), grad)
