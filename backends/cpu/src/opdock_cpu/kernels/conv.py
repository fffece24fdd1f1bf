"""Convolution kernels, 2-D and 3-D, both data formats: unfold and multiply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, errors
from opdock_cpu.im2col import conv_backward_data, conv_backward_filter, conv_forward
from opdock_cpu.windows import Window, channels_first, channels_last, narrow, widen

__all__ = ["Geometry", "table"]

Array = npt.NDArray[Any]

table = KernelTable()


class Geometry:
    """A node's window, worked out once per input shape."""

    def __init__(self, sig: NodeSig) -> None:
        attrs = sig.attrs
        rank = len(attrs["strides"])
        self.first = attrs.get("data_format", "NHWC").startswith("NC")
        self._space = range(2, rank) if self.first else range(1, rank - 1)
        self._strides = self._spatial(attrs["strides"])
        self._dilations = self._spatial(attrs["dilations"])
        self._padding = attrs["padding"]
        explicit = attrs.get("explicit_paddings") or [0] * (2 * rank)
        self._explicit = [(explicit[2 * a], explicit[2 * a + 1]) for a in self._space]
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], Window] = {}

    def _spatial(self, values: Sequence[int]) -> list[int]:
        return [int(values[a]) for a in self._space]

    def __call__(self, size: tuple[int, ...], window: tuple[int, ...]) -> Window:
        """The window for spatial input sizes and window sizes."""
        found = self._known.get((size, window))
        if found is None:
            if len(self._known) > 64:
                self._known.clear()
            found = self._known[size, window] = Window.make(
                size, window, self._strides, self._dilations, self._padding, self._explicit
            )
        return found

    def last(self, x: Array) -> Array:
        """A channels-last view in the type to compute in."""
        return widen(channels_last(x, self.first))

    def finish(self, x: Array, dtype: Any) -> Array:
        """The result in the node's format and type."""
        return narrow(channels_first(x, self.first), dtype)

    def sizes(self, shape: Array) -> tuple[tuple[int, ...], int]:
        """The spatial sizes and the channels of a shape vector in the node's format."""
        dims = [int(d) for d in shape]
        return tuple(dims[a] for a in self._space), dims[1 if self.first else -1]


def check_grad(grad: Array, batch: int, where: Window, outputs: int) -> None:
    expected = (batch, *where.out, outputs)
    if grad.shape != expected:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"out_backprop has shape {list(grad.shape)} (channels last), expected {list(expected)} "
            "from the input, the filter, strides and padding",
        )


@table.binder("Conv2D", "Conv3D")
def conv(sig: NodeSig) -> Callable[..., Array]:
    """Convolution of images or volumes."""
    geometry = Geometry(sig)

    def run(x: Array, kernel: Array) -> Array:
        data = geometry.last(x)
        where = geometry(data.shape[1:-1], kernel.shape[:-2])
        return geometry.finish(conv_forward(data, widen(kernel), where), x.dtype)

    return run


@table.binder("Conv2DBackpropInput", "Conv3DBackpropInputV2", host_inputs=("input_sizes",))
def conv_backprop_input(sig: NodeSig) -> Callable[..., Array]:
    """The gradient with respect to the input; also transposed convolution."""
    geometry = Geometry(sig)

    def run(input_sizes: Array, kernel: Array, grad: Array) -> Array:
        size, channels = geometry.sizes(input_sizes)
        where = geometry(size, kernel.shape[:-2])
        data = geometry.last(grad)
        check_grad(data, int(input_sizes[0]), where, kernel.shape[-1])
        check_channels(channels, kernel.shape[-2])
        result = conv_backward_data(data, widen(kernel), where, channels)
        return geometry.finish(result, grad.dtype)

    return run


def check_channels(channels: int, inner: int) -> None:
    if channels != inner and (inner == 0 or channels % inner):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"input_sizes has {channels} channels, expected a multiple of the filter's {inner}",
        )


@table.binder("Conv2DBackpropFilter", "Conv3DBackpropFilterV2", host_inputs=("filter_sizes",))
def conv_backprop_filter(sig: NodeSig) -> Callable[..., Array]:
    """The gradient with respect to the filter."""
    geometry = Geometry(sig)

    def run(x: Array, filter_sizes: Array, grad: Array) -> Array:
        shape = tuple(int(d) for d in filter_sizes)
        data, back = geometry.last(x), geometry.last(grad)
        where = geometry(data.shape[1:-1], shape[:-2])
        check_grad(back, data.shape[0], where, shape[-1])
        check_channels(data.shape[-1], shape[-2])
        result = conv_backward_filter(data, back, where, shape[-2])
        return narrow(np.ascontiguousarray(result), x.dtype)

    return run
