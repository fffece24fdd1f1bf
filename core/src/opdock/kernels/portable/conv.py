"""Portable kernels of convolution and its gradients: unfolded windows times the filter.

Images and volumes, both data formats, any number of groups of channels: the groups are a batch of
products.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from opdock.dtypes import FLOATS
from opdock.kernels.array_api import full, ints
from opdock.kernels.portable import portable
from opdock.kernels.portable.segment import wide
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.sliding import Sliding
from opdock.windows import Layout, Window, check_depth, check_shape, groups

_UNFOLDED: Final = 1 << 20
"""How many elements of unfolded windows there are at a time, about."""


class Convolution(Sliding):
    """A node's convolution for given shapes of its input and filter.

    Attributes:
        dtype: the result's type.
        where: the positions of the filter.
        result: the shape of the outputs, in the node's format.
        empty: whether there is nothing to multiply.
    """

    def __init__(self, xp: Any, sig: NodeSig, layout: Layout, source: Any, taps: Any) -> None:
        super().__init__(xp)
        self.dtype = sig.out_dtypes[0].base_dtype
        self._layout, self._taps = layout, taps
        self._batch, space, self._channels = layout.parts(source)
        *window, inner, outputs = taps
        if sig.op.startswith("Depthwise"):
            check_depth(self._channels, inner)
            self._groups, outputs = inner, inner * outputs
        else:
            self._groups = groups(self._channels, inner, outputs)
        self.where: Window = layout.window(space, window)
        self.result = layout.shape(self._batch, self.where.out, outputs)
        self.empty = 0 in (*source, *taps, *self.result)

    def zeros(self, shape: Any, like: Any) -> Any:
        """What sums over nothing are."""
        return full(self.xp, tuple(shape), 0, self.dtype, like)

    def last(self, x: Any) -> Any:
        """Channels last, 16-bit floats as float32."""
        x = self.wide(x)
        return self.xp.moveaxis(x, 1, -1) if self._layout.first else x

    def wide(self, x: Any) -> Any:
        """16-bit floats as float32."""
        return wide(self.xp, x, self.dtype)

    def finish(self, x: Any, like: Any) -> Any:
        """In the node's format and the type of `like`."""
        x = self.xp.moveaxis(x, -1, 1) if self._layout.first else x
        return self.xp.astype(x, like.dtype, copy=False)

    def blocks(self) -> Iterator[slice]:
        """Parts of the batch whose unfolded windows are not too large."""
        image = math.prod(self.where.out) * math.prod(self.where.window) * self._channels
        step = max(1, _UNFOLDED // image)
        return (slice(i, min(i + step, self._batch)) for i in range(0, self._batch, step))

    def unfolded(self, data: Any) -> Any:
        """The windows [groups, positions, taps * channels] of images with channels last."""
        xp, shape = self.xp, (-1, self._groups, self._channels // self._groups)
        seen = xp.stack([xp.reshape(t, shape) for t in self.taps(data, self.where)], axis=2)
        return xp.reshape(xp.permute_dims(seen, (1, 0, 2, 3)), (*seen.shape[1::-1], -1))

    def folded(self, rows: Any, like: Any) -> Any:
        """The sums of what windows [groups, positions, taps * channels] say of each element."""
        xp, shape = self.xp, (like.shape[0], *self.where.out, self._channels)
        size = (*rows.shape[:2], -1, self._channels // self._groups)
        parts = xp.permute_dims(xp.reshape(rows, size), (2, 1, 0, 3))
        every = (xp.reshape(parts[i, ...], shape) for i in range(parts.shape[0]))
        return self.add_up(every, self.where, like)

    def split(self, x: Any) -> Any:
        """Outputs, channels last, as [groups, positions, outputs of a group]."""
        shape = (-1, self._groups, x.shape[-1] // self._groups)
        return self.xp.permute_dims(self.xp.reshape(x, shape), (1, 0, 2))

    def joined(self, rows: Any) -> Any:
        """Outputs [groups, positions, outputs of a group], channels last."""
        shape = (-1, *self.where.out, rows.shape[0] * rows.shape[2])
        return self.xp.reshape(self.xp.permute_dims(rows, (1, 0, 2)), shape)

    def matrices(self, kernel: Any) -> Any:
        """The filter as [groups, taps * channels, outputs of a group]."""
        xp, count = self.xp, math.prod(self.where.window)
        shape = (count, self._channels // self._groups, self._groups, -1)
        parts = xp.permute_dims(xp.reshape(self.wide(kernel), shape), (2, 0, 1, 3))
        return xp.reshape(parts, (self._groups, -1, parts.shape[3]))

    def filter(self, matrices: Any) -> Any:
        """The filter that `matrices` takes apart."""
        xp, count = self.xp, math.prod(self.where.window)
        shape = (self._groups, count, -1, matrices.shape[2])
        parts = xp.permute_dims(xp.reshape(matrices, shape), (1, 2, 0, 3))
        return xp.reshape(parts, tuple(self._taps))


def _joined(xp: Any, parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)


@portable("Conv2D", "Conv3D", T=FLOATS)
def conv(xp: Any, sig: NodeSig) -> Any:
    """The sum over each window of input times filter."""
    layout = Layout(sig.attrs)

    def run(x: Any, kernel: Any) -> Any:
        node = Convolution(xp, sig, layout, x.shape, kernel.shape)
        if node.empty:
            return node.zeros(node.result, x)
        data, weights = node.last(x), node.matrices(kernel)
        rows = (xp.matmul(node.unfolded(data[part, ...]), weights) for part in node.blocks())
        return node.finish(_joined(xp, [node.joined(r) for r in rows]), x)

    return run


@portable("Conv2DBackpropInput", "Conv3DBackpropInputV2", T=FLOATS, host_inputs=("input_sizes",))
def conv_backprop_input(xp: Any, sig: NodeSig) -> Any:
    """The gradient with respect to the input; also transposed convolution."""
    layout = Layout(sig.attrs)

    def run(input_sizes: Any, kernel: Any, grad: Any) -> Any:
        node = Convolution(xp, sig, layout, ints(input_sizes), kernel.shape)
        check_shape("out_backprop", grad.shape, node.result)
        out = node.zeros(ints(input_sizes), grad)
        if node.empty:
            return out
        data, back = node.last(out), node.last(grad)
        weights = xp.matrix_transpose(node.matrices(kernel))
        parts = [
            node.folded(xp.matmul(node.split(back[part, ...]), weights), data[part, ...])
            for part in node.blocks()
        ]
        return node.finish(_joined(xp, parts), grad)

    return run


@portable("Conv2DBackpropFilter", "Conv3DBackpropFilterV2", T=FLOATS, host_inputs=("filter_sizes",))
def conv_backprop_filter(xp: Any, sig: NodeSig) -> Any:
    """The gradient with respect to the filter."""
    layout = Layout(sig.attrs)

    def run(x: Any, filter_sizes: Any, grad: Any) -> Any:
        shape = ints(filter_sizes)
        node = Convolution(xp, sig, layout, x.shape, shape)
        check_shape("out_backprop", grad.shape, node.result)
        if node.empty:
            return node.zeros(shape, x)
        data, back = node.last(x), node.last(grad)
        products = (
            xp.matmul(
                xp.matrix_transpose(node.unfolded(data[part, ...])), node.split(back[part, ...])
            )
            for part in node.blocks()
        )
        return xp.astype(node.filter(node.fold("add", products, node.dtype)), x.dtype, copy=False)

    return run
