"""Grayscale dilation as one loop over windows, which notes who won for the gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import REALS, KernelTable, NodeSig, checks, dtypes, windows
from opdock_cpu.jit import llvm
from opdock_cpu.jit.looped import Array, Looped, single
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()
_LOOPED: Final = REALS - {dtypes.float16, dtypes.bfloat16}


def _dilate(
    begin: int, end: int, out: Array, winner: Array, x: Array, kernel: Array,
    height: int, width: int, depth: int, rows: int, columns: int, down: int, right: int,
    rate_y: int, rate_x: int, top: int, left: int, out_rows: int, out_columns: int,
) -> None:  # fmt: skip
    """A turn is a row of the result; -1 wins windows that see nothing but padding.

    Winners are numbers as wide as the elements, so that vectors of both have as many lanes.
    """
    for t in range(begin, end):
        image = t // out_rows * height
        for ox in range(out_columns):
            o = (t * out_columns + ox) * depth
            for ky in range(rows):
                y = t % out_rows * down - top + ky * rate_y
                if y < 0 or y >= height:
                    continue
                for kx in range(columns):
                    at = ox * right - left + kx * rate_x
                    if at < 0 or at >= width:
                        continue
                    tap = ky * columns + kx
                    i, k, number = ((image + y) * width + at) * depth, tap * depth, single(tap)
                    for c in range(depth):
                        value, most, who = x[i + c] + kernel[k + c], out[o + c], winner[o + c]
                        more = (value > most) | (who < 0)
                        out[o + c] = value if more else most
                        winner[o + c] = number if more else who


def _greatest(
    begin: int, end: int, out: Array, x: Array, kernel: Array,
    height: int, width: int, depth: int, rows: int, columns: int, down: int, right: int,
    rate_y: int, rate_x: int, top: int, left: int, out_rows: int, out_columns: int,
) -> None:  # fmt: skip
    """The same where nobody asks who won."""
    for t in range(begin, end):
        image = t // out_rows * height
        for ox in range(out_columns):
            o, first = (t * out_columns + ox) * depth, 1
            for ky in range(rows):
                y = t % out_rows * down - top + ky * rate_y
                if y < 0 or y >= height:
                    continue
                for kx in range(columns):
                    at = ox * right - left + kx * rate_x
                    if at < 0 or at >= width:
                        continue
                    i, k = ((image + y) * width + at) * depth, (ky * columns + kx) * depth
                    if first == 1:
                        first = 0
                        for c in range(depth):
                            out[o + c] = x[i + c] + kernel[k + c]
                    else:
                        for c in range(depth):
                            out[o + c] = max(out[o + c], x[i + c] + kernel[k + c])


def _to_inputs(
    begin: int, end: int, out: Array, grad: Array, winner: Array,
    height: int, width: int, depth: int, columns: int, down: int, right: int,
    rate_y: int, rate_x: int, top: int, left: int, out_rows: int, out_columns: int,
) -> None:  # fmt: skip
    """A turn is an image."""
    for b in range(begin, end):
        for oy in range(out_rows):
            for ox in range(out_columns):
                o = ((b * out_rows + oy) * out_columns + ox) * depth
                for c in range(depth):
                    tap = int(winner[o + c])
                    if tap >= 0:
                        y = oy * down - top + tap // columns * rate_y
                        at = ox * right - left + tap % columns * rate_x
                        i = ((b * height + y) * width + at) * depth + c
                        out[i] = out[i] + grad[o + c]


def _to_filter(
    begin: int, end: int, out: Array, grad: Array, winner: Array, positions: int, depth: int
) -> None:
    """A turn is a channel."""
    for c in range(begin, end):
        for p in range(positions):
            tap = int(winner[p * depth + c])
            if tap >= 0:
                out[tap * depth + c] = out[tap * depth + c] + grad[p * depth + c]


_GREATEST: Final = Looped(_greatest)
_DILATE, _TO_INPUTS, _TO_FILTER = Looped(_dilate), Looped(_to_inputs), Looped(_to_filter)


def _when(sig: NodeSig) -> bool | str:
    return llvm.available() or llvm.why_not()


class _Dilation:
    """A node's windows on arrays of one call."""

    def __init__(self, layout: windows.Layout, x: Array, kernel: Array) -> None:
        self.where = layout.window(x.shape[1:3], kernel.shape[:2])
        self.x, self.kernel = x, kernel
        self.shape = (x.shape[0], *self.where.out, x.shape[3])

    @property
    def walk(self) -> tuple[int, ...]:
        """How windows move: strides, rates, padding, positions."""
        where = self.where
        return (*where.strides, *where.dilations, *(before for before, _ in where.pads), *where.out)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Sizes of the input and the kernel, and how windows move."""
        return (*self.x.shape[1:], *self.kernel.shape[:2], *self.walk)

    def greatest(self) -> Array | None:
        """The results, or None while there is no code."""
        out = np.full(self.shape, _least(self.x.dtype), self.x.dtype)
        steps = out.size * self.kernel.shape[0] * self.kernel.shape[1]
        turns = self.shape[0] * self.shape[1]
        done = _GREATEST(turns, steps, out, self.x, self.kernel, *self.numbers)
        return out if done else None

    def maxima(self) -> tuple[Array, Array] | None:
        """The results and who won, or None while there is no code."""
        kind = self.x.dtype
        out = np.full(self.shape, _least(kind), kind)
        winner = np.full(self.shape, -1, kind if kind.kind == "f" else np.float32)
        taps = self.kernel.shape[0] * self.kernel.shape[1]
        turns = self.shape[0] * self.shape[1]
        done = _DILATE(turns, out.size * taps, out, winner, self.x, self.kernel, *self.numbers)
        return (out, winner) if done else None


def _least(kind: np.dtype[Any]) -> Any:
    return -np.inf if kind.kind == "f" else np.iinfo(kind).min


def _fits(x: Array, kernel: Array) -> bool:
    """Whether there is something to do, and nothing wrong that the portable kernel would tell."""
    known = x.ndim == 4 and kernel.ndim == 3 and x.shape[3] == kernel.shape[2] and x.size > 0
    return known and kernel.size > 0 and not _wraps(x, kernel)


def _wraps(x: Array, kernel: Array) -> bool:
    """Whether sums may be beyond their type: loops add up in 64 bits."""
    if x.dtype.kind == "f" or x.dtype.itemsize == np.dtype(np.int64).itemsize:
        return False
    info = np.iinfo(x.dtype)
    low, high = (int(f(x)) + int(f(kernel)) for f in (np.min, np.max))
    return low < info.min or high > info.max


@table.binder("Dilation2D", T=_LOOPED, when=_when)
def dilation2d(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """The maximum over the window of input plus filter."""
    layout = windows.Layout(sig.attrs)
    plain: Callable[..., Array] = portable_kernel(sig)

    def run(x: Array, kernel: Array) -> Array:
        found = _Dilation(layout, x, kernel).greatest() if _fits(x, kernel) else None
        return plain(x, kernel) if found is None else found

    return run


@table.binder("Dilation2DBackpropInput", "Dilation2DBackpropFilter", T=_LOOPED, when=_when)
def dilation2d_backprop(sig: NodeSig) -> Callable[[Array, Array, Array], Array]:
    """The gradient goes to the elements of input and filter that won."""
    layout = windows.Layout(sig.attrs)
    plain: Callable[..., Array] = portable_kernel(sig)
    of_input = sig.op.endswith("Input")

    def run(x: Array, kernel: Array, grad: Array) -> Array:
        if not _fits(x, kernel):
            return plain(x, kernel, grad)
        dilation = _Dilation(layout, x, kernel)
        checks.check_dilated(grad, dilation.shape)
        found = dilation.maxima()
        if found is not None:
            winner, depth = found[1], x.shape[3]
            if of_input:
                out = np.zeros_like(x)
                numbers = (*x.shape[1:], kernel.shape[1], *dilation.walk)
                done = _TO_INPUTS(len(x), 4 * grad.size, out, grad, winner, *numbers)
            else:
                # Many small gradients meet: they are added up in double precision.
                out = np.zeros(kernel.shape, np.float64 if x.dtype.kind == "f" else np.int64)
                numbers = (grad.size // depth, depth)
                done = _TO_FILTER(depth, 4 * grad.size, out, grad, winner, *numbers)
            if done:
                return out.astype(x.dtype, copy=False)
        return plain(x, kernel, grad)

    return run
