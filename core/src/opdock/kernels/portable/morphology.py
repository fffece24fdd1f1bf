"""Portable kernels of grayscale dilation: a maximum of sums, and its first-wins gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opdock.dtypes import REALS
from opdock.kernels.array_api import invalid
from opdock.kernels.portable import portable
from opdock.kernels.portable.pool import Sliding
from opdock.kernels.portable.segment import wide
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.windows import Layout, Window


class Dilation(Sliding):
    """A node's windows; 16-bit floats are computed in 32 bits."""

    def __init__(self, xp: Any, sig: NodeSig) -> None:
        super().__init__(xp)
        self.layout = Layout({**sig.attrs, "dilations": sig.attrs["rates"]})
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
        if x.shape[3] != kernel.shape[2]:
            raise invalid(
                "input and filter must have the same depth: "
                f"{x.shape[3]} vs {kernel.shape[2]}"
            )
        return self.layout.window(tuple(x.shape[1:3]), tuple(kernel.shape[:2]))

    def maxima(self, data: Any, kernel: Any, where: Window) -> Iterator[tuple[Any, Any]]:
        """For each element of the window: the maxima so far, and where this one is a new maximum.

        Padding never wins, whatever the filter adds to it.
        """
        xp, device = self.xp, getattr(data, "device", None)
        padded = self.pad(data, where, 0)
        inside = xp.ones((1, *where.size, 1), dtype=xp.bool, device=device)
        inside = self.pad(inside, where, value=False)
        unseen = xp.ones((1, *where.out, 1), dtype=xp.bool, device=device)
        best = self.nothing(data, where)
        for offset, here in where.taps():
            index = (slice(None), *here, slice(None))
            value, counts = padded[index] + kernel[(*offset, slice(None))], inside[index]
            better = xp.logical_and(xp.logical_or(value > best, unseen), counts)
            unseen = xp.logical_and(unseen, xp.logical_not(counts))
            best = xp.where(better, value, best)
            yield best, better

    def nothing(self, data: Any, where: Window) -> Any:
        """What windows without any input have for a maximum."""
        shape, device = (data.shape[0], *where.out, data.shape[3]), getattr(data, "device", None)
        return self.xp.full(shape, self.lowest(data), dtype=data.dtype, device=device)

    def gradients(
        self, data: Any, kernel: Any, grad: Any, where: Window
    ) -> Iterator[tuple[Any, Any, Any]]:
        """For each element of the window: its index, its place, the gradients of those that won."""
        xp = self.xp
        if tuple(grad.shape) != (data.shape[0], *where.out, data.shape[3]):
            raise invalid("out_backprop has incompatible size.")
        winner = xp.full(grad.shape, -1, dtype=xp.int32, device=getattr(data, "device", None))
        for number, (_, better) in enumerate(self.maxima(data, kernel, where)):
            winner = xp.where(better, xp.full_like(winner, number), winner)
        none = xp.zeros_like(grad)
        for number, (offset, here) in enumerate(where.taps()):
            won = xp.where(winner == number, grad, none)
            yield (*offset, slice(None)), (slice(None), *here, slice(None)), won


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
        out = dilation.pad(xp.zeros_like(data), where, 0)
        for _, place, won in dilation.gradients(data, taps, back, where):
            out[place] = out[place] + won
        return xp.astype(out[(slice(None), *where.inner, slice(None))], x.dtype)

    return run


@portable("Dilation2DBackpropFilter", T=REALS)
def dilation2d_backprop_filter(xp: Any, sig: NodeSig) -> Any:
    """The gradient goes to the filter element that won."""
    dilation = Dilation(xp, sig)

    def run(x: Any, kernel: Any, grad: Any) -> Any:
        where = dilation.window(x, kernel)
        data, taps, back = dilation.enter(x, kernel, grad)
        out = xp.zeros_like(taps)
        for offset, _, won in dilation.gradients(data, taps, back, where):
            out[offset] = xp.sum(won, axis=(0, 1, 2), dtype=out.dtype)
        return xp.astype(out, kernel.dtype, copy=False)

    return run
