"""Portable kernels of grayscale dilation: a maximum of sums, and its first-wins gradients."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from opdock.dtypes import REALS
from opdock.kernels.array_api import invalid
from opdock.kernels.portable import portable
from opdock.kernels.portable.segment import wide
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.sliding import Sliding
from opdock.windows import Layout, Window, check_depth


def check_dilated(grad: Any, shape: tuple[int, ...]) -> None:
    """Raises InvalidArgumentError unless a gradient is that of a dilation of that shape."""
    if tuple(grad.shape) != shape:
        raise invalid("out_backprop has incompatible size.")


class Dilation(Sliding):
    """A node's windows; 16-bit floats are computed in 32 bits."""

    def __init__(self, xp: Any, sig: NodeSig) -> None:
        super().__init__(xp)
        self.layout = Layout(sig.attrs)
        self.dtype = sig.in_dtypes[0].base_dtype

    def enter(self, *arrays: Any) -> Iterator[Any]:
        """The arrays as they are computed with."""
        return (wide(self.xp, x, self.dtype) for x in arrays)

    def window(self, x: Any, kernel: Any) -> Window:
        """The positions of the filter on the input.

        Raises:
            InvalidArgumentError: the filter does not fit.
        """
        for name, value, rank in (("input", x, 4), ("filter", kernel, 3)):
            if len(value.shape) != rank:
                raise invalid(f"{name} must be {rank}-dimensional: {tuple(value.shape)}")
        check_depth(x.shape[3], kernel.shape[2])
        return self.layout.window(x.shape[1:3], kernel.shape[:2])

    def maxima(self, data: Any, kernel: Any, where: Window) -> Iterator[tuple[Any, Any]]:
        """For each element of the window: the maxima so far, and where this one is a new maximum.

        Padding never wins, whatever the filter adds to it.
        """
        xp, device = self.xp, getattr(data, "device", None)
        inside = xp.ones((1, *where.size, 1), dtype=xp.bool, device=device)
        values, seen = self.taps(data, where), self.taps(inside, where, value=False)
        unseen = xp.ones((1, *where.out, 1), dtype=xp.bool, device=device)
        best = self.nothing(data, where)
        for (offset, _), value, counts in zip(where.taps(), values, seen):
            value = value + kernel[(*offset, slice(None))]
            better = xp.logical_and(xp.logical_or(value > best, unseen), counts)
            unseen = xp.logical_and(unseen, xp.logical_not(counts))
            best = xp.where(better, value, best)
            yield best, better

    def nothing(self, data: Any, where: Window) -> Any:
        """What windows without any input have for a maximum."""
        shape, device = (data.shape[0], *where.out, data.shape[3]), getattr(data, "device", None)
        return self.xp.full(shape, self.lowest(data), dtype=data.dtype, device=device)

    def gradients(self, data: Any, kernel: Any, grad: Any, where: Window) -> Iterator[Any]:
        """For each element of the window: the gradients of the windows in which it won."""
        xp = self.xp
        check_dilated(grad, (data.shape[0], *where.out, data.shape[3]))
        winner = xp.full(grad.shape, -1, dtype=xp.int32, device=getattr(data, "device", None))
        for number, (_, better) in enumerate(self.maxima(data, kernel, where)):
            winner = xp.where(better, xp.full_like(winner, number), winner)
        none = xp.zeros_like(grad)
        for number in range(math.prod(where.window)):
            yield xp.where(winner == number, grad, none)


@portable("Dilation2D", T=REALS)
def dilation2d(xp: Any, sig: NodeSig) -> Any:
    """The maximum over the window of input plus filter."""
    dilation = Dilation(xp, sig)

    def run(x: Any, kernel: Any) -> Any:
        where = dilation.window(x, kernel)
        data, taps = dilation.enter(x, kernel)
        best = dilation.nothing(data, where)
        for found, _ in dilation.maxima(data, taps, where):
            best = found
        return xp.astype(best, x.dtype, copy=False)

    return run


@portable("Dilation2DBackpropInput", T=REALS)
def dilation2d_backprop_input(xp: Any, sig: NodeSig) -> Any:
    """The gradient goes to the input element that won."""
    dilation = Dilation(xp, sig)

    def run(x: Any, kernel: Any, grad: Any) -> Any:
        where = dilation.window(x, kernel)
        data, taps, back = dilation.enter(x, kernel, grad)
        out = dilation.add_up(dilation.gradients(data, taps, back, where), where, data)
        return xp.astype(out, x.dtype)

    return run


@portable("Dilation2DBackpropFilter", T=REALS)
def dilation2d_backprop_filter(xp: Any, sig: NodeSig) -> Any:
    """The gradient goes to the filter element that won."""
    dilation = Dilation(xp, sig)

    def run(x: Any, kernel: Any, grad: Any) -> Any:
        where = dilation.window(x, kernel)
        data, taps, back = dilation.enter(x, kernel, grad)
        won = dilation.gradients(data, taps, back, where)
        rows = [xp.sum(part, axis=(0, 1, 2), dtype=taps.dtype) for part in won]
        return xp.astype(xp.reshape(xp.stack(rows), taps.shape), kernel.dtype, copy=False)

    return run
