"""Portable kernels of depthwise convolution: a multiply-add for each element of the window."""

from __future__ import annotations

from typing import Any

from opdock.dtypes import FLOATS
from opdock.kernels.array_api import ints
from opdock.kernels.portable import portable
from opdock.kernels.portable.conv import Convolution
from opdock.kernels.select.signature import NodeSig
from opdock.windows import Layout, check_shape


class Depthwise(Convolution):
    """A node's convolution, whose outputs are numbered by input channel and multiple."""

    def each(self, kernel: Any) -> list[Any]:
        """The filter's [channels, multiples] for each element of the window."""
        flat = self.xp.reshape(self.wide(kernel), (-1, *kernel.shape[2:]))
        return [flat[i, ...] for i in range(flat.shape[0])]

    def apart(self, x: Any, multiples: int) -> Any:
        """Channels last, each channel's multiples in a dimension of their own."""
        return self.xp.reshape(x, (*x.shape[:-1], -1, multiples))

    def product(self, x: Any, kernel: Any) -> Any:
        """The outputs, channels last."""
        seen = (self.apart(value, 1) for value in self.taps(self.last(x), self.where))
        parts = (value * tap for value, tap in zip(seen, self.each(kernel)))
        total = self.fold("add", parts, self.dtype)
        return self.xp.reshape(total, (*total.shape[:-2], -1))


@portable("DepthwiseConv2dNative", T=FLOATS)
def depthwise(xp: Any, sig: NodeSig) -> Any:
    """Each input channel under its own filters."""
    layout = Layout(sig.attrs)

    def run(x: Any, kernel: Any) -> Any:
        node = Depthwise(xp, sig, layout, x.shape, kernel.shape)
        return node.zeros(node.result, x) if node.empty else node.finish(node.product(x, kernel), x)

    return run


@portable("DepthwiseConv2dNativeBackpropInput", T=FLOATS, host_inputs=("input_sizes",))
def depthwise_backprop_input(xp: Any, sig: NodeSig) -> Any:
    """The gradient with respect to the input."""
    layout = Layout(sig.attrs)

    def run(input_sizes: Any, kernel: Any, grad: Any) -> Any:
        node = Depthwise(xp, sig, layout, ints(input_sizes), kernel.shape)
        check_shape("out_backprop", grad.shape, node.result)
        out = node.zeros(ints(input_sizes), grad)
        if node.empty:
            return out
        back = node.apart(node.last(grad), kernel.shape[3])
        parts = (xp.sum(back * tap, axis=-1, dtype=back.dtype) for tap in node.each(kernel))
        return node.finish(node.add_up(parts, node.where, node.last(out)), grad)

    return run


@portable("DepthwiseConv2dNativeBackpropFilter", T=FLOATS, host_inputs=("filter_sizes",))
def depthwise_backprop_filter(xp: Any, sig: NodeSig) -> Any:
    """The gradient with respect to the filter."""
    layout = Layout(sig.attrs)

    def run(x: Any, filter_sizes: Any, grad: Any) -> Any:
        shape = tuple(ints(filter_sizes))
        node = Depthwise(xp, sig, layout, x.shape, shape)
        check_shape("out_backprop", grad.shape, node.result)
        if node.empty:
            return node.zeros(shape, x)
        back = node.apart(node.last(grad), shape[3])
        seen = (node.apart(value, 1) for value in node.taps(node.last(x), node.where))
        rows = [xp.sum(value * back, axis=(0, 1, 2), dtype=back.dtype) for value in seen]
        return xp.astype(xp.reshape(xp.stack(rows), shape), x.dtype, copy=False)

    return run
