"""Convolution of images and its gradients by cuDNN, alone and with a bias and a relu behind it.

Images stay in their own layout, channels last or first; filters are turned into the one that
cuDNN's engines take. Padding that is not the same on both sides is written out first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.plugin import KernelTable, NodeSig, checks, windows
from opdock_ckernels.families import conv as shared
from opdock_ckernels.families import fusion
from opdock_ckernels.strided import contiguous, place, strides_of, take
from opdock_cuda import dnn

__all__ = ["table"]

table = KernelTable()
_PRIORITY = 20
_CHANNELS_LAST, _CHANNELS_FIRST = (0, 2, 3, 1), (0, 1, 2, 3)


def _when(sig: NodeSig) -> bool | str:
    return dnn.missing() or True


def _own(sig: NodeSig) -> Callable[..., Any]:
    """The shared kernel, for what cuDNN has no engine for."""
    for table_ in (shared.table, fusion.table):
        for kernel in table_:
            if kernel.op == sig.op and kernel.bind is not None:
                return kernel.bind(sig)
    raise LookupError(f"no shared kernel of {sig.op}")


class _Node:
    """A convolution's attributes in cuDNN's terms."""

    def __init__(self, sig: NodeSig, attrs: Any) -> None:
        self.device, self.dtype = sig.device, sig.out_dtypes[0]
        self.layout = windows.Layout(attrs)
        self.first = self.layout.first
        self.order = _CHANNELS_FIRST if self.first else _CHANNELS_LAST
        self.own = _own(sig)

    def dims(self, shape: tuple[int, ...]) -> list[int]:
        """The shape of images as (N, C, H, W)."""
        n, a, b, c = shape
        return [n, a, b, c] if self.first else [n, c, a, b]

    def shape(self, dims: list[int]) -> tuple[int, ...]:
        """(N, C, H, W) in the node's format."""
        n, c, h, w = dims
        return (n, c, h, w) if self.first else (n, h, w, c)

    def padded(self, shape: tuple[int, ...], where: windows.Window) -> tuple[int, ...]:
        """The shape of images with their padding written out."""
        out = list(shape)
        for axis, size in zip(self.layout.space, where.padded, strict=True):
            out[axis] = size
        return tuple(out)

    def pad(self, x: Any, where: windows.Window) -> Any:
        """Images with their padding written out, where cuDNN cannot pad by itself."""
        if _even(where):
            return x
        out = self.device.allocate(self.padded(x.shape, where), x.dtype)
        self.device.fill_zero(out)
        place(self.device, x, out, strides_of(out.shape), self.corner(out.shape, where))
        return out

    def corner(self, shape: tuple[int, ...], where: windows.Window) -> int:
        """The offset of the first element that is no padding."""
        steps = strides_of(shape)
        pads = zip(self.layout.space, where.pads, strict=True)
        return sum(before * steps[axis] for axis, (before, _) in pads)

    def filter_dims(self, shape: tuple[int, ...]) -> list[int]:
        """A filter's shape as (K, C, R, S)."""
        r, s, c, k = shape
        return [k, c, r, s]

    def turn(self, w: Any) -> Any:
        """A filter's elements in the order of the images' layout."""
        return contiguous(self.device, w, (3, 2, 0, 1) if self.first else (3, 0, 1, 2))

    def turn_back(self, w: Any) -> Any:
        """A filter in TensorFlow's order."""
        return contiguous(self.device, w, (2, 3, 1, 0) if self.first else (1, 2, 3, 0))

    def tensor(self, graph: Any, name: str, dims: list[int]) -> Any:
        """A tensor of a graph in the images' layout."""
        return graph.tensor(name=name, dim=dims, stride=dnn.strides_of(dims, self.order))

    def moves(self, where: windows.Window) -> dict[str, list[int]]:
        """Padding, strides and dilations as keyword arguments."""
        pad = [p[0] if _even(where) else 0 for p in where.pads]
        return {
            "pre_padding": pad, "post_padding": pad, "stride": list(where.strides),
            "dilation": list(where.dilations),
        }  # fmt: skip

    def output(self, tensor: Any, dims: list[int]) -> Any:
        """Marks a graph's result."""
        tensor.set_output(True).set_dim(dims).set_stride(dnn.strides_of(dims, self.order))
        return tensor

    def graph(self, kind: str, build: Any, *key: Any) -> dnn.Graph | None:
        """The planned graph of these shapes, or None."""
        found: dnn.Graph | None = self.device.dnn.graph((kind, self.first, *key), self.dtype, build)
        return found

    def gradient(
        self, kind: str, build: Any, dims: tuple[list[int], ...], where: windows.Window, moves: Any
    ) -> dnn.Graph | None:
        """The planned graph of a gradient; None where the shapes do not fit each other."""
        image, weight, loss = dims
        fits = loss == [image[0], weight[0], *where.out] and 0 not in (*image, *weight, *loss)
        if not fits or image[1] % weight[1]:
            return None
        return self.graph(kind, build, *map(tuple, dims), tuple(map(tuple, moves.values())))


def _even(where: windows.Window) -> bool:
    return all(before == after for before, after in where.pads)


def _forward(sig: NodeSig, attrs: Any, relu: bool) -> Callable[..., Any]:
    """The convolution, plus a bias where one is given, and a relu."""
    node, device = _Node(sig, attrs), sig.device

    def run(x: Any, w: Any, *bias: Any) -> Any:
        where = node.layout.window(node.layout.spatial(x.shape), w.shape[:2])
        image, weight = (
            node.dims(node.padded(x.shape, where) if not _even(where) else x.shape),
            (node.filter_dims(w.shape)),
        )
        result = [image[0], weight[0], *where.out]
        moves = node.moves(where)

        def build(cudnn: Any, graph: Any) -> dict[str, Any]:
            tensors = {
                "x": node.tensor(graph, "x", image), "w": node.tensor(graph, "w", weight),
            }  # fmt: skip
            y = graph.conv_fprop(image=tensors["x"], weight=tensors["w"], **moves)
            if bias:
                tensors["b"] = node.tensor(graph, "b", [1, weight[0], 1, 1])
                y = graph.bias(name="biased", input=y, bias=tensors["b"])
            if relu:
                y = graph.relu(name="activated", input=y)
            return {**tensors, "y": node.output(y, result)}

        key = (tuple(image), tuple(weight), tuple(map(tuple, moves.values())), bool(bias), relu)
        fits = 0 not in (*image, *weight, *result) and image[1] % weight[1] == 0
        graph = node.graph("fprop", build, *key) if fits else None
        if graph is None:
            return node.own(x, w, *bias)
        out = device.allocate(node.shape(result), x.dtype)
        more = {"b": bias[0]} if bias else {}
        graph.run(x=node.pad(x, where), w=node.turn(w), y=out, **more)
        return out

    return run


@table.binder("Conv2D", T=dnn.TYPES, when=_when, priority=_PRIORITY)
def conv2d(sig: NodeSig) -> Callable[..., Any]:
    """Convolution of images."""
    return _forward(sig, sig.attrs, relu=False)


@table.binder("ckernels>Conv2DBias", T=dnn.TYPES, when=_when, priority=_PRIORITY)
def conv2d_bias(sig: NodeSig) -> Callable[..., Any]:
    """Convolution and bias in one pass."""
    return _forward(sig, sig.attrs["product"], relu=False)


@table.binder("ckernels>Conv2DBiasRelu", T=dnn.TYPES, when=_when, priority=_PRIORITY)
def conv2d_bias_relu(sig: NodeSig) -> Callable[..., Any]:
    """Convolution, bias and relu in one pass."""
    return _forward(sig, sig.attrs["product"], relu=True)


@table.binder(
    "Conv2DBackpropInput", T=dnn.TYPES, when=_when, priority=_PRIORITY,
    host_inputs=("input_sizes",),
)  # fmt: skip
def conv2d_backprop_input(sig: NodeSig) -> Callable[..., Any]:
    """The gradient with respect to the input; also transposed convolution."""
    node, device = _Node(sig, sig.attrs), sig.device

    def run(input_sizes: Any, w: Any, grad: Any) -> Any:
        shape = tuple(checks.ints(input_sizes))
        where = node.layout.window(node.layout.spatial(shape), w.shape[:2])
        whole = shape if _even(where) else node.padded(shape, where)
        image, weight, loss = node.dims(whole), node.filter_dims(w.shape), node.dims(grad.shape)
        moves = node.moves(where)

        def build(cudnn: Any, graph: Any) -> dict[str, Any]:
            dy, filter_ = node.tensor(graph, "dy", loss), node.tensor(graph, "w", weight)
            dx = graph.conv_dgrad(loss=dy, filter=filter_, **moves)
            return {"dy": dy, "w": filter_, "dx": node.output(dx, image)}

        graph = node.gradient("dgrad", build, (image, weight, loss), where, moves)
        if graph is None:
            return node.own(input_sizes, w, grad)
        out = device.allocate(whole, grad.dtype)
        graph.run(dy=grad, w=node.turn(w), dx=out)
        if whole == shape:
            return out
        return take(device, out, shape, strides_of(whole), node.corner(whole, where))

    return run


@table.binder(
    "Conv2DBackpropFilter", T=dnn.TYPES, when=_when, priority=_PRIORITY,
    host_inputs=("filter_sizes",),
)  # fmt: skip
def conv2d_backprop_filter(sig: NodeSig) -> Callable[..., Any]:
    """The gradient with respect to the filter."""
    node, device = _Node(sig, sig.attrs), sig.device

    def run(x: Any, filter_sizes: Any, grad: Any) -> Any:
        shape = tuple(checks.ints(filter_sizes))
        where = node.layout.window(node.layout.spatial(x.shape), shape[:2])
        whole = x.shape if _even(where) else node.padded(x.shape, where)
        image, weight, loss = node.dims(whole), node.filter_dims(shape), node.dims(grad.shape)
        moves = node.moves(where)

        def build(cudnn: Any, graph: Any) -> dict[str, Any]:
            data, dy = node.tensor(graph, "x", image), node.tensor(graph, "dy", loss)
            dw = graph.conv_wgrad(image=data, loss=dy, **moves)
            return {"x": data, "dy": dy, "dw": node.output(dw, weight)}

        graph = node.gradient("wgrad", build, (image, weight, loss), where, moves)
        if graph is None:
            return node.own(x, filter_sizes, grad)
        k, c, r, s = weight
        turned = device.allocate((k, c, r, s) if node.first else (k, r, s, c), x.dtype)
        graph.run(x=node.pad(x, where), dy=grad, dw=turned)
        return node.turn_back(turned)

    return run
