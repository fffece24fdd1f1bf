"""Rules from ONNX: convolutions, pools, normalization, with channels last as most kernels like."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.graph.nodes.operation import Tensor
from opdock.onnx.importing import Importer, Node, imports
from opdock.onnx.library import NoRuleError


def _turned(graph: Importer, x: Tensor, order: list[int]) -> Any:
    return graph.emit("Transpose", x, graph.constant(order, np.int32))


def _images(graph: Importer, node: Node) -> Any:
    if node.rank() != 4:
        raise NoRuleError("its input has not 2 spatial dimensions")
    return _turned(graph, node.tensor(0), [0, 2, 3, 1])


def _back(graph: Importer, x: Any) -> Any:
    return _turned(graph, x, [0, 3, 1, 2])


def _padding(node: Node) -> tuple[str, list[tuple[int, int]]]:
    """TensorFlow's padding, and what to pad before."""
    auto = node.attrs.get("auto_pad", "NOTSET")
    if auto == "SAME_LOWER":
        raise NoRuleError("what it pads unevenly it pads before")
    if auto == "SAME_UPPER":
        return "SAME", []
    pads = node.attrs.get("pads", [0] * 4)
    if auto == "VALID" or not any(pads):
        return "VALID", []
    if len(pads) != 4 or min(pads) < 0:
        raise NoRuleError(f"its padding is {list(pads)}")
    return "VALID", [(pads[0], pads[2]), (pads[1], pads[3])]


def _padded(graph: Importer, x: Any, pads: list[tuple[int, int]], value: float = 0.0) -> Any:
    if not pads:
        return x
    whole = graph.constant([(0, 0), *pads, (0, 0)], np.int32)
    return graph.emit("PadV2", x, whole, graph.constant(value, x.dtype.np))


def _spread(values: Any) -> list[int]:
    return [1, *(int(v) for v in values), 1]


@imports("Conv")
def _convolution(graph: Importer, node: Node) -> Any:
    kernel, group = node.tensor(1), node.attrs.get("group", 1)
    sizes = kernel.get_shape().as_list()
    if len(sizes) != 4 or None in sizes:
        raise NoRuleError("its filter has not 4 known dimensions")
    outputs, inputs, height, width = sizes
    x, (padding, pads) = _images(graph, node), _padding(node)
    x = _padded(graph, x, pads)
    window = {
        "strides": _spread(node.attrs.get("strides", [1, 1])), "padding": padding,
        "dilations": _spread(node.attrs.get("dilations", [1, 1])),
    }  # fmt: skip
    if group > 1 and inputs == 1:
        shape = graph.constant([group, outputs // group, height, width], np.int32)
        turned = _turned(graph, graph.emit("Reshape", kernel, shape), [2, 3, 0, 1])
        out = graph.emit("DepthwiseConv2dNative", x, turned, **window)
    else:
        out = graph.emit("Conv2D", x, _turned(graph, kernel, [2, 3, 1, 0]), **window)
    bias = node.optional(2)
    if bias is not None:
        out = graph.emit("BiasAdd", out, bias)
    return _back(graph, out)


@imports("MaxPool", "AveragePool")
def _pool(graph: Importer, node: Node) -> Any:
    attrs = node.attrs
    if node.outputs > 1 or attrs.get("ceil_mode") or set(attrs.get("dilations", [1])) != {1}:
        raise NoRuleError("its indices are taken, it rounds sizes up, or it is dilated")
    (padding, pads), x = _padding(node), _images(graph, node)
    window = {
        "ksize": _spread(attrs["kernel_shape"]), "padding": padding,
        "strides": _spread(attrs.get("strides", [1, 1])),
    }  # fmt: skip
    if node.op == "MaxPool":
        lowest = float(np.finfo(x.dtype.np).min) if x.dtype.is_floating else 0.0
        return _back(graph, graph.emit("MaxPool", _padded(graph, x, pads, lowest), **window))
    if pads and not attrs.get("count_include_pad"):
        # The mean of those that are no padding: mean of all, over the share of those.
        ones = _padded(graph, graph.emit("OnesLike", x), pads)
        mean = graph.emit("AvgPool", _padded(graph, x, pads), **window)
        share = graph.emit("AvgPool", ones, **window)
        return _back(graph, graph.emit("RealDiv", mean, share))
    if padding == "SAME" and attrs.get("count_include_pad"):
        raise NoRuleError("it counts what it pads by itself")
    return _back(graph, graph.emit("AvgPool", _padded(graph, x, pads), **window))


@imports("GlobalAveragePool", "GlobalMaxPool")
def _global(graph: Importer, node: Node) -> Any:
    axes = graph.constant(list(range(2, node.rank())), np.int32)
    op = "Mean" if node.op == "GlobalAveragePool" else "Max"
    return graph.emit(op, node.tensor(0), axes, keep_dims=True)


@imports("BatchNormalization")
def _normalization(graph: Importer, node: Node) -> Any:
    if node.attrs.get("training_mode") or node.outputs > 1:
        raise NoRuleError("it is in training")
    vectors = [node.tensor(i) for i in range(1, 5)]
    epsilon = node.attrs.get("epsilon", 1e-5)
    if node.rank() == 4:
        made = graph.emit(
            "FusedBatchNormV3", _images(graph, node), *vectors, epsilon=epsilon, is_training=False
        )
        return _back(graph, made[0])
    shape = graph.constant([-1, *[1] * (node.rank() - 2)], np.int32)
    scale, offset, mean, variance = (graph.emit("Reshape", v, shape) for v in vectors)
    low = graph.emit("AddV2", variance, graph.constant(epsilon, variance.dtype.np))
    factor = graph.emit("Mul", graph.emit("Rsqrt", low), scale)
    centred = graph.emit("Sub", node.tensor(0), mean)
    return graph.emit("AddV2", graph.emit("Mul", centred, factor), offset)
