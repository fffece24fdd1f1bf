"""Rules to ONNX: what changes shapes, joins and takes parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.onnx.exporting import Exporter, exports
from opdock.onnx.library import NoRuleError, code_of

_END = np.iinfo(np.int64).max


def _wide(to: Exporter, tensor: Tensor) -> str:
    """Sizes and indices as int64."""
    if tensor.dtype is dtypes.int64:
        return to.name(tensor)
    return to.emit("Cast", tensor, to=code_of(dtypes.int64))


def _rank(tensor: Tensor) -> int:
    rank = tensor.get_shape().ndims
    if rank is None:
        raise NoRuleError("its rank is not known")
    return int(rank)


@exports("Reshape")
def _reshape(to: Exporter, op: Operation) -> None:
    x, shape = op.inputs
    to.emit("Reshape", x, _wide(to, shape), out=op.outputs[0], allowzero=1)


@exports("Transpose")
def _transpose(to: Exporter, op: Operation) -> None:
    order = [int(a) for a in to.known(op.inputs[1], "permutation")]
    to.emit("Transpose", op.inputs[0], out=op.outputs[0], perm=order)


@exports("Squeeze")
def _squeeze(to: Exporter, op: Operation) -> None:
    axes = [int(a) for a in op.attrs["squeeze_dims"]]
    more = [to.constant(axes, np.int64)] if axes else []
    to.emit("Squeeze", op.inputs[0], *more, out=op.outputs[0])


@exports("ExpandDims")
def _expand(to: Exporter, op: Operation) -> None:
    axes = to.constant([int(to.known(op.inputs[1], "axis"))], np.int64)
    to.emit("Unsqueeze", op.inputs[0], axes, out=op.outputs[0])


@exports("Concat", "ConcatV2")
def _join(to: Exporter, op: Operation) -> None:
    *values, axis = op.inputs if op.type == "ConcatV2" else [*op.inputs[1:], op.inputs[0]]
    to.emit("Concat", *values, out=op.outputs[0], axis=int(to.known(axis, "axis")))


@exports("Pack")
def _stack(to: Exporter, op: Operation) -> None:
    axis = int(op.attrs["axis"])
    axes = to.constant([axis], np.int64)
    parts = [to.emit("Unsqueeze", t, axes) for t in op.inputs]
    to.emit("Concat", *parts, out=op.outputs[0], axis=axis)


@exports("Unpack")
def _unstack(to: Exporter, op: Operation) -> None:
    axis = int(op.attrs["axis"])
    for i, tensor in enumerate(op.outputs):
        to.emit("Gather", op.inputs[0], to.constant(i, np.int64), out=tensor, axis=axis)


@exports("Split", "SplitV")
def _split(to: Exporter, op: Operation) -> None:
    axis, x, more = op.inputs[0], op.inputs[1], []
    if op.type == "SplitV":
        x, sizes, axis = op.inputs
        more = [_wide(to, sizes)]
    names = [to.name(t) for t in op.outputs]
    to.several("Split", [x, *more], names, axis=int(to.known(axis, "axis")))


@exports("Pad", "PadV2", "MirrorPad")
def _pad(to: Exporter, op: Operation) -> None:
    pads = to.constant(np.asarray(to.known(op.inputs[1], "padding")).T.ravel(), np.int64)
    mode = {"REFLECT": "reflect", "SYMMETRIC": ""}.get(op.attrs.get("mode", ""), "constant")
    if not mode:
        raise NoRuleError("ONNX has no symmetric padding")
    more = [to.name(op.inputs[2])] if op.type == "PadV2" else []
    to.emit("Pad", op.inputs[0], pads, *more, out=op.outputs[0], mode=mode)


@exports("Slice")
def _slice(to: Exporter, op: Operation) -> None:
    begin, size = (np.asarray(to.known(t, what)) for t, what in zip(
        op.inputs[1:], ("begin", "size"), strict=True))  # fmt: skip
    end = np.where(size == -1, _END, begin + size)
    _cut(to, op, begin, end, np.ones_like(begin), op.outputs[0])


def _cut(to: Exporter, op: Operation, begin: Any, end: Any, step: Any, out: Tensor | None) -> str:
    axes = np.arange(len(begin))
    parts = [to.constant(v, np.int64) for v in (begin, end, axes, step)]
    return to.emit("Slice", op.inputs[0], *parts, out=out)


@exports("StridedSlice")
def _strided(to: Exporter, op: Operation) -> None:
    attrs = op.attrs
    if attrs["ellipsis_mask"] or attrs["new_axis_mask"]:
        raise NoRuleError("it has an ellipsis or a new axis")
    begin, end, step = (
        np.array(to.known(t, what), np.int64)
        for t, what in zip(op.inputs[1:], ("begin", "end", "stride"), strict=True)
    )
    gone = []
    for i in range(len(begin)):
        forward = step[i] > 0
        if attrs["shrink_axis_mask"] >> i & 1:
            gone.append(i)
            end[i], step[i] = begin[i] + 1 or _END, 1
            continue
        if attrs["begin_mask"] >> i & 1:
            begin[i] = 0 if forward else _END
        if attrs["end_mask"] >> i & 1:
            end[i] = _END if forward else -_END
    if not gone:
        _cut(to, op, begin, end, step, op.outputs[0])
        return
    found = _cut(to, op, begin, end, step, None)
    to.emit("Squeeze", found, to.constant(gone, np.int64), out=op.outputs[0])


@exports("Shape", "Size")
def _shape(to: Exporter, op: Operation) -> None:
    out = op.outputs[0]
    if out.dtype is dtypes.int64:
        to.emit(op.type, op.inputs[0], out=out)
    else:
        to.emit("Cast", to.emit(op.type, op.inputs[0]), out=out, to=code_of(out.dtype))


@exports("Gather", "GatherV2")
def _gather(to: Exporter, op: Operation) -> None:
    if op.attrs.get("batch_dims"):
        raise NoRuleError("it has batch dimensions")
    axis = int(to.known(op.inputs[2], "axis")) if op.type == "GatherV2" else 0
    to.emit("Gather", *op.inputs[:2], out=op.outputs[0], axis=axis)


@exports("Tile")
def _tile(to: Exporter, op: Operation) -> None:
    to.emit("Tile", op.inputs[0], _wide(to, op.inputs[1]), out=op.outputs[0])


@exports("Fill", "BroadcastTo")
def _fill(to: Exporter, op: Operation) -> None:
    value, shape = (op.inputs[1], op.inputs[0]) if op.type == "Fill" else op.inputs
    to.emit("Expand", value, _wide(to, shape), out=op.outputs[0])


@exports("SpaceToDepth", "DepthToSpace")
def _blocks(to: Exporter, op: Operation) -> None:
    if op.attrs.get("data_format", "NHWC") != "NHWC" or _rank(op.inputs[0]) != 4:
        raise NoRuleError("its channels are not last")
    first = to.emit("Transpose", op.inputs[0], perm=[0, 3, 1, 2])
    found = to.emit(op.type, first, blocksize=int(op.attrs["block_size"]))
    to.emit("Transpose", found, out=op.outputs[0], perm=[0, 2, 3, 1])
