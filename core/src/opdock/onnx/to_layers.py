"""Rules to ONNX: convolutions, pools, normalization. ONNX has channels first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock.graph.nodes.operation import Operation, Tensor
from opdock.onnx.exporting import Exporter, exports
from opdock.onnx.library import NoRuleError
from opdock.shapes import dimension_value

_FIRST, _LAST = [0, 3, 1, 2], [0, 2, 3, 1]


def _images(to: Exporter, op: Operation, tensor: Tensor) -> str:
    """Images with their channels first."""
    if _format(op) == "NCHW":
        return to.name(tensor)
    return to.emit("Transpose", tensor, perm=_FIRST)


def _format(op: Operation) -> str:
    found = op.attrs.get("data_format", "NHWC")
    if found not in ("NHWC", "NCHW"):
        raise NoRuleError(f"its data format is {found}")
    return str(found)


def _result(to: Exporter, op: Operation, kind: str, inputs: Sequence[str], **attrs: Any) -> None:
    """Adds a layer, and turns its result back."""
    if _format(op) == "NCHW":
        to.emit(kind, *inputs, out=op.outputs[0], **attrs)
    else:
        found = to.emit(kind, *inputs, **attrs)
        to.emit("Transpose", found, out=op.outputs[0], perm=_LAST)


def _window(op: Operation, sizes: Sequence[int]) -> dict[str, Any]:
    """Strides, dilations and padding."""
    space = slice(2, 4) if _format(op) == "NCHW" else slice(1, 3)
    found: dict[str, Any] = {
        "kernel_shape": list(sizes), "strides": [int(s) for s in op.attrs["strides"][space]],
    }  # fmt: skip
    dilations = [int(d) for d in op.attrs.get("dilations", [1] * 4)[space]]
    if set(dilations) != {1}:
        found["dilations"] = dilations
    padding = op.attrs["padding"]
    if padding == "EXPLICIT":
        pads = np.reshape(op.attrs["explicit_paddings"], (4, 2))[space]
        found["pads"] = [int(p) for p in pads.T.ravel()]
    else:
        found["auto_pad"] = "SAME_UPPER" if padding == "SAME" else "VALID"
    return found


def _sizes(kernel: Tensor) -> list[int]:
    shape = kernel.get_shape()
    if not shape.is_fully_defined():
        raise NoRuleError("its shapes are not known")
    return [int(n or 0) for n in shape.as_list()]


@exports("Conv2D")
def _convolution(to: Exporter, op: Operation) -> None:
    sizes = _sizes(op.inputs[1])
    channels = dimension_value(op.inputs[0].get_shape()[1 if _format(op) == "NCHW" else 3])
    if channels is None:
        raise NoRuleError("its shapes are not known")
    kernel = to.emit("Transpose", op.inputs[1], perm=[3, 2, 0, 1])
    inputs = [_images(to, op, op.inputs[0]), kernel]
    _result(to, op, "Conv", inputs, group=channels // sizes[2], **_window(op, sizes[:2]))


@exports("DepthwiseConv2dNative")
def _depthwise(to: Exporter, op: Operation) -> None:
    sizes = _sizes(op.inputs[1])
    height, width, channels, multiple = sizes
    turned = to.emit("Transpose", op.inputs[1], perm=[2, 3, 0, 1])
    shape = to.constant([channels * multiple, 1, height, width], np.int64)
    inputs = [_images(to, op, op.inputs[0]), to.emit("Reshape", turned, shape)]
    _result(to, op, "Conv", inputs, group=channels, **_window(op, sizes[:2]))


@exports("MaxPool", "AvgPool")
def _pool(to: Exporter, op: Operation) -> None:
    first = _format(op) == "NCHW"
    sizes, strides = ([int(n) for n in op.attrs[k]] for k in ("ksize", "strides"))
    rest = slice(0, 2) if first else slice(0, 4, 3)
    if set(sizes[rest]) | set(strides[rest]) != {1}:
        raise NoRuleError("it pools over batch or channels")
    kind = "MaxPool" if op.type == "MaxPool" else "AveragePool"
    window = _window(op, sizes[2:4] if first else sizes[1:3])
    _result(to, op, kind, [_images(to, op, op.inputs[0])], **window)


@exports("BiasAdd")
def _bias(to: Exporter, op: Operation) -> None:
    x, bias = op.inputs
    rank, names = x.get_shape().ndims, [to.name(x), to.name(bias)]
    if op.attrs.get("data_format") == "NCHW":
        if rank is None:
            raise NoRuleError("its rank is not known")
        shape = to.constant([-1, *[1] * (rank - 2)], np.int64)
        names[1] = to.emit("Reshape", bias, shape)
    to.emit("Add", *names, out=op.outputs[0])


@exports("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def _normalization(to: Exporter, op: Operation) -> None:
    if op.attrs["is_training"]:
        raise NoRuleError("it is in training")
    if any(tensor.consumers() for tensor in op.outputs[1:]):
        raise NoRuleError("its statistics are taken")
    vectors = [to.name(t) for t in op.inputs[1:5]]
    inputs = [_images(to, op, op.inputs[0]), *vectors]
    _result(to, op, "BatchNormalization", inputs, epsilon=float(op.attrs["epsilon"]))


@exports("ResizeNearestNeighbor", "ResizeBilinear")
def _resize(to: Exporter, op: Operation) -> None:
    attrs = op.attrs
    if attrs.get("align_corners"):
        where = "align_corners"
    else:
        where = "half_pixel" if attrs.get("half_pixel_centers") else "asymmetric"
    nearest = op.type == "ResizeNearestNeighbor"
    if nearest and where != "asymmetric":
        raise NoRuleError(f"{where} rounds in another way in ONNX")
    x, channels = op.inputs[0], dimension_value(op.inputs[0].get_shape()[3])
    batch = dimension_value(x.get_shape()[0])
    if batch is None or channels is None:
        raise NoRuleError("its shape is not known")
    sizes = [batch, channels, *map(int, to.known(op.inputs[1], "size"))]
    found = to.emit(
        "Resize", to.emit("Transpose", x, perm=_FIRST), "", "", to.constant(sizes, np.int64),
        mode="nearest" if nearest else "linear", coordinate_transformation_mode=where,
        nearest_mode="floor",
    )  # fmt: skip
    if op.outputs[0].dtype is not x.dtype:
        found = to.emit("Cast", found, to=1)
    to.emit("Transpose", found, out=op.outputs[0], perm=_LAST)
