"""Pools and their gradients as loops over windows, for what oneDNN has no code."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from math import isnan
from typing import Final

import numpy as np

from opdock.plugin import REALS, KernelTable, NodeSig, dtypes, windows
from opdock_cpu.jit import llvm
from opdock_cpu.jit.looped import Array, Looped, single
from opdock_cpu.portable import portable_kernel
from opdock_cpu.windows import channels_first, channels_last, counts

__all__ = ["max_pool_grad", "table"]

table = KernelTable()
_FLOATS: Final = frozenset({dtypes.float32, dtypes.float64})
_LOOPED: Final = REALS - {dtypes.float16, dtypes.bfloat16}
_NEAR: Final = 1e-5


def _maxima(
    begin: int, end: int, out: Array, x: Array,
    planes: int, height: int, width: int, depth: int, tall: int, rows: int, columns: int,
    far: int, down: int, right: int, front: int, top: int, left: int,
    out_planes: int, out_rows: int, out_columns: int,
) -> None:  # fmt: skip
    """A turn is a row of windows."""
    for t in range(begin, end):
        row = t // out_rows
        image, z0 = row // out_planes * planes, row % out_planes * far - front
        y0 = t % out_rows * down - top
        for ox in range(out_columns):
            o, x0 = (t * out_columns + ox) * depth, ox * right - left
            first = 1
            for z in range(max(z0, 0), min(z0 + tall, planes)):
                for y in range(max(y0, 0), min(y0 + rows, height)):
                    for at in range(max(x0, 0), min(x0 + columns, width)):
                        i = (((image + z) * height + y) * width + at) * depth
                        if first == 1:
                            first = 0
                            for c in range(depth):
                                out[o + c] = x[i + c]
                        else:
                            for c in range(depth):
                                value, most = x[i + c], out[o + c]
                                keep = (most > value) | isnan(most)
                                out[o + c] = most if keep else value


def _sums(
    begin: int, end: int, out: Array, x: Array,
    planes: int, height: int, width: int, depth: int, tall: int, rows: int, columns: int,
    far: int, down: int, right: int, front: int, top: int, left: int,
    out_planes: int, out_rows: int, out_columns: int,
) -> None:  # fmt: skip
    """A turn is a row of windows."""
    for t in range(begin, end):
        row = t // out_rows
        image, z0 = row // out_planes * planes, row % out_planes * far - front
        y0 = t % out_rows * down - top
        for ox in range(out_columns):
            o, x0 = (t * out_columns + ox) * depth, ox * right - left
            for c in range(depth):
                out[o + c] = 0
            for z in range(max(z0, 0), min(z0 + tall, planes)):
                for y in range(max(y0, 0), min(y0 + rows, height)):
                    for at in range(max(x0, 0), min(x0 + columns, width)):
                        i = (((image + z) * height + y) * width + at) * depth
                        for c in range(depth):
                            out[o + c] = out[o + c] + x[i + c]


def _spread(
    begin: int, end: int, out: Array, share: Array,
    planes: int, height: int, width: int, depth: int, tall: int, rows: int, columns: int,
    far: int, down: int, right: int, front: int, top: int, left: int,
    out_planes: int, out_rows: int, out_columns: int,
) -> None:  # fmt: skip
    """A turn is a row of the input: it gets the shares of all windows that it is in."""
    for t in range(begin, end):
        row = t // height
        image, z, y = row // planes * out_planes, row % planes + front, t % height + top
        for c in range(t * width * depth, (t + 1) * width * depth):
            out[c] = 0
        for oz in range(max(z - tall + far, 0) // far, min(z // far + 1, out_planes)):
            for oy in range(max(y - rows + down, 0) // down, min(y // down + 1, out_rows)):
                for ox in range(out_columns):
                    o = (((image + oz) * out_rows + oy) * out_columns + ox) * depth
                    at = ox * right - left
                    for to in range(max(at, 0), min(at + columns, width)):
                        i = (t * width + to) * depth
                        for c in range(depth):
                            out[i + c] = out[i + c] + share[o + c]


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
                for kx in range(max(-at, 0), min(columns, width - at)):
                    i = (t * width + at + kx) * depth
                    number = single((y - oy * down) * columns + kx)
                    for c in range(depth):
                        given = grad[o + c]
                        given = given if winner[o + c] == number else 0
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
_MAXIMA, _SUMS = Looped(_maxima, ("depth",)), Looped(_sums, ("depth",))
_SPREAD: Final = Looped(_spread, ("depth",))


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
        best = np.empty(self.shape, x.dtype)
        winner = np.empty(self.shape, x.dtype if x.dtype.kind == "f" else np.float32)
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


# ---------------------------------------------------------------- values
_counts = functools.lru_cache(maxsize=64)(counts)


def _volume(where: windows.Window, depth: int) -> tuple[int, ...]:
    """What loops over volumes take; an image is one of a single plane."""
    more = 3 - len(where.size)
    one, none, before = (1,) * more, (0,) * more, [pad for pad, _ in where.pads]
    sizes = (*one, *where.size, depth, *one, *where.window, *one, *where.strides)
    return (*sizes, *none, *before, *one, *where.out)


def _pooled(
    loop: Looped, layout: windows.Pool, x: Array, out: Array | None
) -> tuple[Array, windows.Window] | None:
    """What a loop makes of the windows, channels last, and these; None where it does not serve."""
    if layout.deep or x.ndim not in (4, 5) or not x.size:
        return None
    images = _last(layout, x)
    where = layout.window(images.shape[1:-1], layout.ksize)
    shape = (len(images), *where.out, images.shape[-1])
    if not shape[0] or not _counts(where, x.dtype).all():
        return None  # some see nothing but padding
    found = np.empty(shape, x.dtype) if out is None or layout.first else out
    turns = math.prod(shape[:-2])
    steps = math.prod(shape) * math.prod(where.window)
    done = loop(turns, steps, found, images, *_volume(where, shape[-1]))
    return (found, where) if done else None


def _put(found: Array, layout: windows.Pool, out: Array | None) -> Array:
    """A result in the node's format, in the buffer that is given."""
    result = channels_first(found, layout.first)
    if out is None or out is result:
        return result
    out[...] = result
    return out


@table.binder("MaxPool", "MaxPool3D", T=_LOOPED, when=_when, out=True)
def max_pool(sig: NodeSig) -> Callable[..., Array]:
    """The maximum of each window."""
    layout = windows.Pool(sig.attrs)
    plain: Callable[..., Array] = portable_kernel(sig, out=True)

    def run(x: Array, out: Array | None = None) -> Array:
        found = _pooled(_MAXIMA, layout, x, out)
        return plain(x, out) if found is None else _put(found[0], layout, out)

    return run


@table.binder("MaxPoolV2", T=_LOOPED, when=_when, host_inputs=("ksize", "strides"))
def max_pool_v2(sig: NodeSig) -> Callable[..., Array]:
    """The same, the window given as input."""
    plain: Callable[..., Array] = portable_kernel(sig)

    def run(x: Array, ksize: Array, strides: Array) -> Array:
        layout = windows.Pool(sig.attrs, ksize, strides)
        found = _pooled(_MAXIMA, layout, x, None)
        return plain(x, ksize, strides) if found is None else _put(found[0], layout, None)

    return run


@table.binder("AvgPool", "AvgPool3D", T=_FLOATS, when=_when, out=True)
def avg_pool(sig: NodeSig) -> Callable[..., Array]:
    """The mean of each window's elements that are not padding."""
    layout = windows.Pool(sig.attrs)
    plain: Callable[..., Array] = portable_kernel(sig, out=True)

    def run(x: Array, out: Array | None = None) -> Array:
        found = _pooled(_SUMS, layout, x, out)
        if found is None:
            return plain(x, out)
        total, where = found
        np.divide(total, _counts(where, x.dtype), out=total)
        return _put(total, layout, out)

    return run


@table.binder(
    "AvgPoolGrad", "AvgPool3DGrad", T=_FLOATS, when=_when, out=True,
    host_inputs=("orig_input_shape",),
)  # fmt: skip
def avg_pool_grad(sig: NodeSig) -> Callable[..., Array]:
    """Each gradient shared out over its window."""
    layout = windows.Pool(sig.attrs)
    plain: Callable[..., Array] = portable_kernel(sig, out=True)

    def run(like: Array, grad: Array, out: Array | None = None) -> Array:
        shape = tuple(like.tolist())
        fits = len(shape) in (4, 5) and not layout.deep and math.prod(shape) and grad.size
        if not fits or grad.shape != layout.result(shape):
            return plain(like, grad, out)
        back = channels_last(grad, layout.first)
        batch, space, depth = layout.parts(shape)
        where = layout.window(space, layout.ksize)
        share = np.ascontiguousarray(back / _counts(where, grad.dtype))
        mine = out
        if mine is None or layout.first:
            mine = np.empty((batch, *space, depth), grad.dtype)
        steps = grad.size * math.prod(where.window)
        turns = batch * math.prod(space[:-1])
        if not _SPREAD(turns, steps, mine, share, *_volume(where, depth)):
            return plain(like, grad, out)
        return _put(mine, layout, out)

    return run


# ---------------------------------------------------------------- maxima with places
@table.binder("MaxPoolWithArgmax", T=_LOOPED, when=_when)
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
    return _put(mine, layout, out)


@table.binder("MaxPoolGrad", "MaxPoolGradGrad", T=_LOOPED, when=_when, out=True)
def max_pool_grad(sig: NodeSig) -> Callable[..., Array]:
    """The gradient goes to the first maximum of each window; the gradient of that comes from it."""
    layout, second = windows.Pool(sig.attrs), sig.op.endswith("GradGrad")
    plain: Callable[..., Array] = portable_kernel(sig, out=True)

    def run(x: Array, y: Array, grad: Array, out: Array | None = None) -> Array:
        found = _back(layout, second, x, y, grad, out)
        return plain(x, y, grad, out) if found is None else found

    return run


@table.binder(
    "MaxPoolGradV2", "MaxPoolGradGradV2", T=_LOOPED, when=_when, host_inputs=("ksize", "strides")
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
