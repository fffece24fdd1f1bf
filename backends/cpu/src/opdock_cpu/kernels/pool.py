"""Maxima with their places, and gradients of maxima in three dimensions, as loops over windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import isnan
from typing import Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, dtypes, windows
from opdock_cpu.jit import llvm
from opdock_cpu.jit.looped import Array, Looped
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()
_FLOATS: Final = frozenset({dtypes.float32, dtypes.float64})
_NEAR: Final = 1e-5


def _largest(
    begin: int, end: int, out: Array, place: Array, x: Array,
    height: int, width: int, depth: int, rows: int, columns: int, down: int, right: int,
    top: int, left: int, out_rows: int, out_columns: int, batches: int,
) -> None:  # fmt: skip
    """A turn is a row of the result; places are counted from the first image if `batches` is 1."""
    for t in range(begin, end):
        image = t // out_rows * height
        for ox in range(out_columns):
            o = (t * out_columns + ox) * depth
            for c in range(depth):
                place[o + c] = -1
            for ky in range(rows):
                y = t % out_rows * down - top + ky
                if y < 0 or y >= height:
                    continue
                for kx in range(columns):
                    at = ox * right - left + kx
                    if at < 0 or at >= width:
                        continue
                    i = ((image + y) * width + at) * depth
                    number = ((image * batches + y) * width + at) * depth
                    for c in range(depth):
                        value, best = x[i + c], out[o + c]
                        more = (value > best) | (isnan(value) & (not isnan(best)))
                        if more | (place[o + c] < 0):
                            out[o + c] = value
                            place[o + c] = number + c


def _to_near(
    begin: int, end: int, out: Array, x: Array, best: Array, grad: Array,
    planes: int, height: int, width: int, depth: int, tall: int, rows: int, columns: int,
    far: int, down: int, right: int, front: int, top: int, left: int,
    out_planes: int, out_rows: int, out_columns: int,
) -> None:  # fmt: skip
    """A turn is an image; all that is near the maximum of a window gets its gradient."""
    for b in range(begin, end):
        for oz in range(out_planes):
            for oy in range(out_rows):
                for ox in range(out_columns):
                    o = (((b * out_planes + oz) * out_rows + oy) * out_columns + ox) * depth
                    z0, y0, x0 = oz * far - front, oy * down - top, ox * right - left
                    for z in range(max(z0, 0), min(z0 + tall, planes)):
                        for y in range(max(y0, 0), min(y0 + rows, height)):
                            for at in range(max(x0, 0), min(x0 + columns, width)):
                                i = (((b * planes + z) * height + y) * width + at) * depth
                                for c in range(depth):
                                    if abs(x[i + c] - best[o + c]) < _NEAR:
                                        out[i + c] += grad[o + c]


_LARGEST, _TO_NEAR = Looped(_largest), Looped(_to_near)


def _when(sig: NodeSig) -> bool | str:
    return llvm.available() or llvm.why_not()


@table.binder("MaxPoolWithArgmax", T=_FLOATS, when=_when)
def max_pool_with_argmax(sig: NodeSig) -> Callable[[Array], tuple[Array, Array]]:
    """The maxima and their flat places, per image unless the batch is included."""
    layout, whole = windows.Pool(sig.attrs), int(bool(sig.attrs["include_batch_in_index"]))
    element = sig.out_dtypes[1].np
    plain: Callable[[Array], tuple[Array, Array]] = portable_kernel(sig)

    def run(x: Array) -> tuple[Array, Array]:
        if x.ndim != 4 or layout.deep or layout.first or not x.size:
            return plain(x)
        where = layout.on(x.shape)
        shape = layout.result(x.shape)
        out, place = np.empty(shape, x.dtype), np.empty(shape, np.int64)
        before = (pad for pad, _ in where.pads)
        numbers = (*x.shape[1:], *where.window, *where.strides, *before, *where.out, whole)
        taps = where.window[0] * where.window[1]
        if not _LARGEST(shape[0] * shape[1], out.size * taps, out, place, x, *numbers):
            return plain(x)
        return out, place.astype(element, copy=False)

    return run


@table.binder("MaxPool3DGrad", T=_FLOATS, when=_when)
def max_pool_3d_grad(sig: NodeSig) -> Callable[..., Array]:
    """The gradient of a maximum goes to all that is near it, which is TF's rule for volumes."""
    layout = windows.Pool(sig.attrs)
    plain: Callable[..., Array] = portable_kernel(sig)

    def run(x: Array, best: Array, grad: Array) -> Array:
        fits = x.ndim == 5 and x.size > 0 and best.shape == grad.shape == layout.result(x.shape)
        if not fits or layout.deep or layout.first:
            return plain(x, best, grad)
        where = layout.on(x.shape)
        out = np.zeros(x.shape, grad.dtype)
        before = (pad for pad, _ in where.pads)
        numbers = (*x.shape[1:], *where.window, *where.strides, *before, *where.out)
        steps = grad.size * math.prod(where.window)
        done = _TO_NEAR(len(x), steps, out, x, best, grad, *numbers)
        return out if done else plain(x, best, grad)

    return run
