"""Convolution kernels, 2-D and 3-D, both data formats: unfold and multiply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, windows
from opdock_cpu.halves import narrowed, widened
from opdock_cpu.im2col import conv_backward_data, conv_backward_filter, conv_forward
from opdock_cpu.windows import channels_first, channels_last

__all__ = ["Geometry", "table"]

Array = npt.NDArray[Any]

table = KernelTable()


class Geometry(windows.Layout):
    """A node's layout, and its images with channels last in the type to compute in."""

    def last(self, x: Array) -> Array:
        """A channels-last view in the type to compute in."""
        return widened(channels_last(x, self.first))

    def finish(self, x: Array, dtype: Any) -> Array:
        """The result in the node's format and type."""
        return narrowed(channels_first(x, self.first), dtype)

    def check_grad(self, grad: Array, batch: int, where: windows.Window, outputs: int) -> None:
        """That a gradient has the shape of the outputs."""
        windows.check_shape("out_backprop", grad.shape, self.shape(batch, where.out, outputs))


@table.binder("Conv2D", "Conv3D")
def conv(sig: NodeSig) -> Callable[..., Array]:
    """Convolution of images or volumes."""
    geometry = Geometry(sig.attrs)

    def run(x: Array, kernel: Array) -> Array:
        data = geometry.last(x)
        where = geometry.window(data.shape[1:-1], kernel.shape[:-2])
        windows.groups(data.shape[-1], *kernel.shape[-2:])
        return geometry.finish(conv_forward(data, widened(kernel), where), x.dtype)

    return run


@table.binder("Conv2DBackpropInput", "Conv3DBackpropInputV2", host_inputs=("input_sizes",))
def conv_backprop_input(sig: NodeSig) -> Callable[..., Array]:
    """The gradient with respect to the input; also transposed convolution."""
    geometry = Geometry(sig.attrs)

    def run(input_sizes: Array, kernel: Array, grad: Array) -> Array:
        batch, size, channels = geometry.parts(input_sizes.tolist())
        where = geometry.window(size, kernel.shape[:-2])
        geometry.check_grad(grad, batch, where, kernel.shape[-1])
        windows.groups(channels, *kernel.shape[-2:])
        result = conv_backward_data(geometry.last(grad), widened(kernel), where, channels)
        return geometry.finish(result, grad.dtype)

    return run


@table.binder("Conv2DBackpropFilter", "Conv3DBackpropFilterV2", host_inputs=("filter_sizes",))
def conv_backprop_filter(sig: NodeSig) -> Callable[..., Array]:
    """The gradient with respect to the filter."""
    geometry = Geometry(sig.attrs)

    def run(x: Array, filter_sizes: Array, grad: Array) -> Array:
        shape = tuple(filter_sizes.tolist())
        batch, size, channels = geometry.parts(x.shape)
        where = geometry.window(size, shape[:-2])
        geometry.check_grad(grad, batch, where, shape[-1])
        windows.groups(channels, *shape[-2:])
        data, back = geometry.last(x), geometry.last(grad)
        result = conv_backward_filter(data, back, where, shape[-2])
        return narrowed(np.ascontiguousarray(result), x.dtype)

    return run
