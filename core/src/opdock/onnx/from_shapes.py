"""Rules from ONNX: what changes shapes, joins and takes parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.operation import Tensor
from opdock.onnx.importing import Importer, Node, imports
from opdock.onnx.library import NoRuleError

_LARGE: Final = 1 << 31


@imports("Reshape")
def _reshape(graph: Importer, node: Node) -> Any:
    x, shape = node.tensor(0), node.tensor(1)
    if not node.attrs.get("allowzero"):
        wanted = node.known(1, "shape")
        if 0 in wanted:
            sizes = x.get_shape().as_list()
            kept = [sizes[i] if n == 0 else int(n) for i, n in enumerate(wanted)]
            if kept.count(None) + kept.count(-1) > 1:
                raise NoRuleError("it keeps dimensions that are not known")
            shape = graph.constant([-1 if n is None else n for n in kept], np.int32)
    return graph.emit("Reshape", x, shape)


@imports("Flatten")
def _flatten(graph: Importer, node: Node) -> Any:
    axis, sizes = node.attrs.get("axis", 1), node.tensor(0).get_shape()
    if sizes.ndims is None:
        raise NoRuleError("the rank of its input is not known")
    axis = axis % sizes.ndims if axis < 0 else axis
    ends = [sizes[:axis].num_elements(), sizes[axis:].num_elements()]
    if None in ends and ends.count(None) == 2:
        raise NoRuleError("the shape of its input is not known")
    shape = graph.constant([-1 if n is None else n for n in ends], np.int32)
    return graph.emit("Reshape", node.tensor(0), shape)


@imports("Transpose")
def _transpose(graph: Importer, node: Node) -> Any:
    order = node.attrs.get("perm", list(range(node.rank()))[::-1])
    return graph.emit("Transpose", node.tensor(0), graph.constant(list(order), np.int32))


def _axes(node: Node) -> list[int]:
    found = node.attrs.get("axes", node.known(1, "axes"))
    return [] if found is None else [int(a) for a in found]


@imports("Squeeze")
def _squeeze(graph: Importer, node: Node) -> Any:
    return graph.emit("Squeeze", node.tensor(0), squeeze_dims=_axes(node))


@imports("Unsqueeze")
def _unsqueeze(graph: Importer, node: Node) -> Any:
    axes, x = _axes(node), node.tensor(0)
    rank = node.rank() + len(axes)
    for axis in sorted(a % rank for a in axes):
        x = graph.emit("ExpandDims", x, graph.constant(axis, np.int32))
    return x


@imports("Concat")
def _join(graph: Importer, node: Node) -> Any:
    axis = graph.constant(node.attrs["axis"], np.int32)
    return graph.emit("ConcatV2", [node.tensor(i) for i in range(len(node.inputs))], axis)


@imports("Split")
def _split(graph: Importer, node: Node) -> Sequence[Tensor]:
    axis = graph.constant(node.attrs.get("axis", 0), np.int32)
    sizes = node.attrs.get("split", node.known(1, "sizes"))
    if sizes is None:
        return list(graph.emit("Split", axis, node.tensor(0), num_split=node.outputs))
    sizes = graph.constant(np.array(sizes, np.int64))
    return list(graph.emit("SplitV", node.tensor(0), sizes, axis, num_split=node.outputs))


@imports("Pad")
def _pad(graph: Importer, node: Node) -> Any:
    mode, x = node.attrs.get("mode", "constant"), node.tensor(0)
    pads = node.attrs.get("pads", node.known(1, "padding"))
    if mode not in ("constant", "reflect") or min(pads, default=0) < 0:
        raise NoRuleError(f"mode {mode}, padding {list(pads)}")
    whole = graph.constant(np.reshape(pads, (2, -1)).T.astype(np.int32))
    if mode == "reflect":
        return graph.emit("MirrorPad", x, whole, mode="REFLECT")
    value = node.optional(2)
    if value is None:
        value = graph.constant(node.attrs.get("value", 0), x.dtype.np)
    return graph.emit("PadV2", x, whole, value)


@imports("Slice")
def _slice(graph: Importer, node: Node) -> Any:
    names = ("starts", "ends", "axes", "steps")
    parts = [node.attrs.get(n, node.known(i + 1, n)) for i, n in enumerate(names)]
    starts, ends, axes, steps = parts
    rank = node.rank()
    axes = list(range(len(starts))) if axes is None else [int(a) % rank for a in axes]
    begin, end, step = [0] * rank, [0] * rank, [1] * rank
    whole_begin = whole_end = (1 << rank) - 1
    for i, axis in enumerate(axes):
        step[axis] = 1 if steps is None else int(steps[i])
        whole_begin &= ~(1 << axis)
        begin[axis] = int(np.clip(starts[i], -_LARGE + 1, _LARGE - 1))
        if abs(int(ends[i])) < _LARGE - 1:
            end[axis] = int(ends[i])
            whole_end &= ~(1 << axis)
    return graph.emit(
        "StridedSlice", node.tensor(0), *(graph.constant(v, np.int32) for v in (begin, end, step)),
        begin_mask=whole_begin, end_mask=whole_end,
    )  # fmt: skip


@imports("Shape", "Size")
def _shape(graph: Importer, node: Node) -> Any:
    if node.attrs.keys() & {"start", "end"}:
        raise NoRuleError("it wants a part of the shape")
    return graph.emit(node.op, node.tensor(0), out_type=dtypes.int64)


@imports("Gather")
def _gather(graph: Importer, node: Node) -> Any:
    axis = graph.constant(node.attrs.get("axis", 0), np.int32)
    return graph.emit("GatherV2", node.tensor(0), node.tensor(1), axis)


@imports("Tile", "Expand")
def _tile(graph: Importer, node: Node) -> Any:
    x, shape = node.tensor(0), node.tensor(1)
    if node.op == "Tile":
        return graph.emit("Tile", x, shape)
    if x.get_shape().ndims == 0:
        return graph.emit("Fill", shape, x)
    # Both broadcast: sizes of 1 in the shape keep those of the input.
    common = graph.emit("BroadcastArgs", graph.emit("Shape", x, out_type=dtypes.int64), shape)
    return graph.emit("BroadcastTo", x, common)


@imports("SpaceToDepth", "DepthToSpace")
def _blocks(graph: Importer, node: Node) -> Any:
    if node.attrs.get("mode", "DCR") != "DCR":
        raise NoRuleError("its order is not DCR")
    last = graph.emit("Transpose", node.tensor(0), graph.constant([0, 2, 3, 1], np.int32))
    found = graph.emit(node.op, last, block_size=node.attrs["blocksize"])
    return graph.emit("Transpose", found, graph.constant([0, 3, 1, 2], np.int32))
