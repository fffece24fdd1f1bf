"""Maxima with their places, and gradients of maxima, as loops over windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import isnan
from typing import Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, dtypes, windows
from opdock_cpu.jit import llvm
from opdock_cpu.jit.looped import Array, Looped, single
from opdock_cpu.portable import portable_kernel
from opdock_cpu.windows import channels_first, channels_last

__all__ = ["max_pool_grad", "table"]

table = KernelTable()
_FLOATS: Final = frozenset({dtypes.float32, dtypes.float64})
_NEAR: Final = 1e-5


def _winners(
    begin: int, end: int, best: Array, winner: Array, x: Array,
    height: int, width: int, depth: int, rows: int, columns: int, down: int, right: int,
    top: int, left: int, out_rows: int, out_columns: int,
) -> None:  # fmt: skip
    """A turn is a row of windows; who wins is told by the number within the window.

    The numbers are real ones as wide as the elements, so that vectors of both have as many lanes.
    """
    for t in range(begin, end):
        image, y = t // out_rows * height, t % out_rows * down - top
        for ox in range(out_columns):
            o, at = (t * out_columns + ox) * depth, ox * right - left
            first = 1
            for ky in range(max(-y, 0), min(rows, height - y)):
                for kx in range(max(-at, 0), min(columns, width - at)):
                    i = ((image + y + ky) * width + at + kx) * depth
                    number = single(ky * columns + kx)
                    if first == 1:
                        first = 0
                        for c in range(depth):
                            best[o + c] = x[i + c]
                            winner[o + c] = number
                    else:
                        for c in range(depth):
                            value, most, who = x[i + c], best[o + c], winner[o + c]
                            more = (not value <= most) & (not isnan(most))
                            best[o + c] = value if more else most
                            winner[o + c] = number if more else who


def _to_winners(
    begin: int, end: int, out: Array, grad: Array, winner: Array,
    height: int, width: int, depth: int, rows: int, columns: int, down: int, right: int,
    top: int, left: int, out_rows: int, out_columns: int,
) -> None:  # fmt: skip
    """A turn is a row of the input: it gets the gradients of those windows in which it won."""
    for t in range(begin, end):
        image, y = t // height * out_rows, t % height + top
        for oy in range(max(y - rows + down, 0) // down, min(y // down + 1, out_rows)):
            for ox in range(out_columns):
                o, at = ((image + oy) * out_columns + ox) * depth, ox * right - left
                nothing = single(0)
                for kx in range(max(-at, 0), min(columns, width - at)):
                    i = (t * width + at + kx) * depth
                    number = single((y - oy * down) * columns + kx)
                    for c in range(depth):
                        given = grad[o + c]
                        given = given if winner[o + c] == number else nothing
                        out[i + c] = out[i + c] + given


def _places(
    begin: int, end: int, place: Array, winner: Array, offsets: Array,
    height: int, width: int, depth: int, rows: int, columns: int, down: int, right: int,
    top: int, left: int, out_rows: int, out_columns: int, batches: int,
) -> None:  # fmt: skip
    """A turn is a row of windows; places are counted from the first image if `batches` is 1."""
    for t in range(begin, end):
        y = t // out_rows * height * batches + t % out_rows * down - top
        for ox in range(out_columns):
            o, start = (t * out_columns + ox) * depth, (y * width + ox * right - left) * depth
            for c in range(depth):
                place[o + c] = start + offsets[int(winner[o + c])] + c


def _to_near(
    begin: int, end: int, out: Array, x: Array, best: Array, grad: Array,
    planes: int, height: int, width: int, depth: int, tall: int, rows: int, columns: int,
    far: int, down: int, right: int, front: int, top: int, left: int,
    out_planes: int, out_rows: int, out_columns: int,
) -> None:  # fmt: skip
    """A turn is an image; all that is near the maximum of a window gets its gradient."""
    nothing = single(0)
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
                                    given, gap = grad[o + c], abs(x[i + c] - best[o + c])
                                    out[i + c] += given if gap < _NEAR else nothing


_WINNERS, _PLACES, _TO_NEAR = Looped(_winners), Looped(_places), Looped(_to_near)
_TO_WINNERS: Final = Looped(_to_winners)


def _when(sig: NodeSig) -> bool | str:
    return llvm.available() or llvm.why_not()


class _Pooled:
    """A node's windows on images of one shape, channels last."""

    def __init__(self, layout: windows.Pool, shape: tuple[int, ...]) -> None:
        where = self._where = layout.window(shape[1:3], layout.ksize)
        before = (pad for pad, _ in where.pads)
        self.shape = (shape[0], *where.out, shape[3])
        self.numbers = (*shape[1:], *where.window, *where.strides, *before, *where.out)
        self.steps = math.prod(self.shape) * math.prod(where.window)

    def winners(self, x: Array) -> tuple[Array, Array] | None:
        """The maxima, and which of a window's elements they are; None without code."""
        best, winner = np.empty(self.shape, x.dtype), np.empty(self.shape, x.dtype)
        turns = self.shape[0] * self.shape[1]
        done = _WINNERS(turns, self.steps, best, winner, x, *self.numbers)
        return (best, winner) if done else None

    def places(self, winner: Array, whole: bool) -> Array | None:
        """Where winners lie; counted from the first image if the whole batch counts."""
        place, (rows, columns) = np.empty(self.shape, np.int64), self._where.window
        _, width, depth, *_ = self.numbers
        offsets = (np.arange(rows)[:, None] * width + np.arange(columns)) * depth
        turns, numbers = self.shape[0] * self.shape[1], (*self.numbers, int(whole))
        return place if _PLACES(turns, place.size, place, winner, offsets, *numbers) else None

    def to(self, winner: Array, grad: Array, out: Array) -> bool:
        """Adds each gradient to the winner of its window; whether there is code for it."""
        out[...] = 0
        turns = out.shape[0] * out.shape[1]
        return _TO_WINNERS(turns, self.steps, out, grad, winner, *self.numbers)

    def of(self, winner: Array, grad: Array, out: Array) -> bool:
        """Takes the gradient of the winner of each window; whether there is code for it."""
        place = self.places(winner, whole=True)
        if place is not None:
            np.take(grad, place, out=out, mode="clip")  # else a copy is made of `out`
        return place is not None


def _last(layout: windows.Pool, x: Array) -> Array:
    return np.ascontiguousarray(channels_last(x, layout.first))


@table.binder("MaxPoolWithArgmax", T=_FLOATS, when=_when)
def max_pool_with_argmax(sig: NodeSig) -> Callable[[Array], tuple[Array, Array]]:
    """The maxima and their flat places, per image unless the batch is included."""
    layout, whole = windows.Pool(sig.attrs), bool(sig.attrs["include_batch_in_index"])
    element = sig.out_dtypes[1].np
    plain: Callable[[Array], tuple[Array, Array]] = portable_kernel(sig)

    def run(x: Array) -> tuple[Array, Array]:
        if x.ndim != 4 or layout.deep or layout.first or not x.size:
            return plain(x)
        pooled = _Pooled(layout, x.shape)
        found = pooled.winners(x)
        place = None if found is None else pooled.places(found[1], whole)
        if found is None or place is None:
            return plain(x)
        return found[0], place.astype(element, copy=False)

    return run


def _back(
    layout: windows.Pool, second: bool, x: Array, y: Array, grad: Array, out: Array | None
) -> Array | None:
    """To the first maximum of each window, or from it; None where the loops do not serve."""
    if layout.deep or not (x.ndim == y.ndim == grad.ndim == 4 and x.size and y.size):
        return None
    if y.shape != layout.result(x.shape) or grad.shape != (x.shape if second else y.shape):
        return None
    images = _last(layout, x)
    pooled = _Pooled(layout, images.shape)
    found = pooled.winners(images)
    if found is None:
        return None
    best, winner = found
    if out is None or layout.first:
        mine = best if second else np.empty_like(images)
    else:
        mine = out
    if not (pooled.of if second else pooled.to)(winner, _last(layout, grad), mine):
        return None
    result = channels_first(mine, layout.first)
    if out is None or out is result:
        return result
    out[...] = result
    return out


@table.binder("MaxPoolGrad", "MaxPoolGradGrad", T=_FLOATS, when=_when, out=True)
def max_pool_grad(sig: NodeSig) -> Callable[..., Array]:
    """The gradient goes to the first maximum of each window; the gradient of that comes from it."""
    layout, second = windows.Pool(sig.attrs), sig.op.endswith("GradGrad")
    plain: Callable[..., Array] = portable_kernel(sig, out=True)

    def run(x: Array, y: Array, grad: Array, out: Array | None = None) -> Array:
        found = _back(layout, second, x, y, grad, out)
        return plain(x, y, grad, out) if found is None else found

    return run


@table.binder(
    "MaxPoolGradV2", "MaxPoolGradGradV2", T=_FLOATS, when=_when, host_inputs=("ksize", "strides")
)
def max_pool_grad_v2(sig: NodeSig) -> Callable[..., Array]:
    """The same, the window given as input."""
    second = sig.op.endswith("GradGradV2")
    plain: Callable[..., Array] = portable_kernel(sig)

    def run(x: Array, y: Array, grad: Array, ksize: Array, strides: Array) -> Array:
        found = _back(windows.Pool(sig.attrs, ksize, strides), second, x, y, grad, None)
        return plain(x, y, grad, ksize, strides) if found is None else found

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
