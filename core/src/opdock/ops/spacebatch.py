"""Blocks of space moved into the batch or depth dimension, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.registry import Formatted, ShapeSig, Traits, define_op
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__ = [
    "batch_to_space", "batch_to_space_nd", "depth_to_space", "required_space_to_batch_paddings",
    "space_to_batch", "space_to_batch_nd", "space_to_depth",
]  # fmt: skip

_INT = ": {int32, int64} = DT_INT32"
_BLOCK_ATTRS = (
    "T: type, block_size: int >= 2, data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"
)

space_to_batch_nd_op = define_op(
    "SpaceToBatchND", "input: T, block_shape: Tblock_shape, paddings: Tpaddings -> output: T",
    f"T: type, Tblock_shape{_INT}, Tpaddings{_INT}",
)  # fmt: skip
batch_to_space_nd_op = define_op(
    "BatchToSpaceND", "input: T, block_shape: Tblock_shape, crops: Tcrops -> output: T",
    f"T: type, Tblock_shape{_INT}, Tcrops{_INT}",
)  # fmt: skip
space_to_batch_op = define_op(
    "SpaceToBatch", "input: T, paddings: Tpaddings -> output: T",
    f"T: type, Tpaddings{_INT}, block_size: int >= 2",
)  # fmt: skip
batch_to_space_op = define_op(
    "BatchToSpace", "input: T, crops: Tidx -> output: T",
    f"T: type, block_size: int >= 2, Tidx{_INT}",
)  # fmt: skip
space_to_depth_op = define_op("SpaceToDepth", "input: T -> output: T", _BLOCK_ATTRS)
depth_to_space_op = define_op("DepthToSpace", "input: T -> output: T", _BLOCK_ATTRS)
for _op in (space_to_depth_op, depth_to_space_op):
    _op.declare(Traits(layout=Formatted((0,), leads=False)))


# ---------------------------------------------------------------- shapes
def _blocks(sig: ShapeSig, index: int) -> tuple[int | None, list[int] | None]:
    """How many dimensions are blocked, and the block sizes, as far as they are known."""
    count = array_util.vector_length(sig.shapes[index])
    sizes = array_util.const_ints(sig, index)
    if sizes is not None and any(s < 1 for s in sizes):
        raise ValueError("block_shape must be positive")
    return count, sizes


def _pairs(sig: ShapeSig, index: int, count: int, what: str) -> list[tuple[int, int]] | None:
    shapes.merge(sig.shapes[index], (count, 2))
    values = array_util.const_ints(sig, index)
    if values is None:
        return None
    if any(v < 0 for v in values):
        raise ValueError(f"{what} cannot be negative")
    return list(zip(values[::2], values[1::2], strict=True))


@space_to_batch_nd_op.shape
def _space_to_batch_nd_shape(sig: ShapeSig) -> Shape:
    count, sizes = _blocks(sig, 1)
    if count is None:
        return None if sig.shapes[0] is None else (None,) * len(sig.shapes[0])
    source = shapes.with_rank_at_least(sig.shapes[0], count + 1)
    return _to_batch(source, count, sizes, _pairs(sig, 2, count, "paddings"))


@space_to_batch_op.shape
def _space_to_batch_shape(sig: ShapeSig) -> Shape:
    sizes = [sig.attrs["block_size"]] * 2
    source = shapes.with_rank(sig.shapes[0], 4)
    return _to_batch(source, 2, sizes, _pairs(sig, 1, 2, "paddings"))


def _to_batch(
    source: Shape, count: int, sizes: list[int] | None, paddings: list[tuple[int, int]] | None
) -> Shape:
    if source is None:
        return None
    batch = source[0] if count == 0 else None
    if sizes is not None:
        batch = array_util.multiply(source[0], int(np.prod(sizes, dtype=np.int64)))
    space: list[int | None] = [None] * count
    if sizes is not None and paddings is not None:
        for i, (size, pair) in enumerate(zip(sizes, paddings, strict=True)):
            padded = array_util.add(source[i + 1], sum(pair))
            space[i] = array_util.divide_exactly(padded, size)
    return (batch, *space, *source[count + 1 :])


@batch_to_space_nd_op.shape
def _batch_to_space_nd_shape(sig: ShapeSig) -> Shape:
    count, sizes = _blocks(sig, 1)
    if count is None:
        return None if sig.shapes[0] is None else (None,) * len(sig.shapes[0])
    source = shapes.with_rank_at_least(sig.shapes[0], count + 1)
    return _to_space(source, count, sizes, _pairs(sig, 2, count, "crops"))


@batch_to_space_op.shape
def _batch_to_space_shape(sig: ShapeSig) -> Shape:
    sizes = [sig.attrs["block_size"]] * 2
    source = shapes.with_rank(sig.shapes[0], 4)
    return _to_space(source, 2, sizes, _pairs(sig, 1, 2, "crops"))


def _to_space(
    source: Shape, count: int, sizes: list[int] | None, crops: list[tuple[int, int]] | None
) -> Shape:
    if source is None:
        return None
    batch = source[0] if count == 0 else None
    if sizes is not None:
        batch = array_util.divide_exactly(source[0], int(np.prod(sizes, dtype=np.int64)))
    space: list[int | None] = [None] * count
    if sizes is not None and crops is not None:
        for i, (size, pair) in enumerate(zip(sizes, crops, strict=True)):
            grown = array_util.multiply(source[i + 1], size)
            space[i] = array_util.subtract(grown, sum(pair))
    return (batch, *space, *source[count + 1 :])


def _format_axes(data_format: str) -> tuple[int, int, int]:
    """(height, width, channel) positions of the 4-D part of a format."""
    return (1, 2, 3) if data_format == "NHWC" else (2, 3, 1)


def _format_rank(data_format: str) -> int:
    return 5 if data_format == "NCHW_VECT_C" else 4


@space_to_depth_op.shape
def _space_to_depth_shape(sig: ShapeSig) -> Shape:
    data_format, size = sig.attrs["data_format"], sig.attrs["block_size"]
    out = shapes.with_rank(sig.shapes[0], _format_rank(data_format))
    h, w, c = _format_axes(data_format)
    for axis in (h, w):
        out = array_util.replace(out, axis, array_util.divide_exactly(out[axis], size))
    return array_util.replace(out, c, array_util.multiply(out[c], size * size))


@depth_to_space_op.shape
def _depth_to_space_shape(sig: ShapeSig) -> Shape:
    data_format, size = sig.attrs["data_format"], sig.attrs["block_size"]
    out = shapes.with_rank(sig.shapes[0], _format_rank(data_format))
    h, w, c = _format_axes(data_format)
    for axis in (h, w):
        out = array_util.replace(out, axis, array_util.multiply(out[axis], size))
    return array_util.replace(out, c, array_util.divide_exactly(out[c], size * size))


# ---------------------------------------------------------------- gradients
@space_to_batch_nd_op.gradient
def _space_to_batch_nd_grad(op: Operation, grad: Any) -> list[Any]:
    return [batch_to_space_nd_op(grad, op.inputs[1], op.inputs[2]), None, None]


@batch_to_space_nd_op.gradient
def _batch_to_space_nd_grad(op: Operation, grad: Any) -> list[Any]:
    return [space_to_batch_nd_op(grad, op.inputs[1], op.inputs[2]), None, None]


@space_to_batch_op.gradient
def _space_to_batch_grad(op: Operation, grad: Any) -> list[Any]:
    return [batch_to_space_op(grad, op.inputs[1], block_size=op.attrs["block_size"]), None]


@batch_to_space_op.gradient
def _batch_to_space_grad(op: Operation, grad: Any) -> list[Any]:
    return [space_to_batch_op(grad, op.inputs[1], block_size=op.attrs["block_size"]), None]


@space_to_depth_op.gradient
def _space_to_depth_grad(op: Operation, grad: Any) -> Tensor:
    return depth_to_space(grad, op.attrs["block_size"], data_format=op.attrs["data_format"])


@depth_to_space_op.gradient
def _depth_to_space_grad(op: Operation, grad: Any) -> Tensor:
    return space_to_depth(grad, op.attrs["block_size"], data_format=op.attrs["data_format"])


# ---------------------------------------------------------------- public functions
@extensible
def space_to_batch_nd(
    input: Any, block_shape: Any, paddings: Any, name: str | None = None
) -> Tensor:
    """Pads the dimensions after the batch and moves blocks of them into the batch.

    Args:
        input: a tensor of shape [batch, spatial dimensions ..., rest ...].
        block_shape: the block's size in each spatial dimension, a 1-D integer tensor.
        paddings: an integer tensor [len(block_shape), 2] of zeros to add before and after.
        name: a name for the operation.

    Returns:
        A tensor with `prod(block_shape)` times the batch.

    Raises:
        ValueError: a padded dimension is no multiple of its block size.
    """
    return space_to_batch_nd_op(input, block_shape, paddings, name=name)  # type: ignore[no-any-return]


@extensible
def batch_to_space_nd(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """Undoes `space_to_batch_nd`: moves the batch back into blocks and crops the dimensions.

    Args:
        input: a tensor of shape [batch, spatial dimensions ..., rest ...].
        block_shape: the block's size in each spatial dimension, a 1-D integer tensor.
        crops: an integer tensor [len(block_shape), 2] of elements to drop at both ends.
        name: a name for the operation.

    Returns:
        A tensor with the batch divided by `prod(block_shape)`.

    Raises:
        ValueError: the batch is no multiple of the block's size.
    """
    return batch_to_space_nd_op(input, block_shape, crops, name=name)  # type: ignore[no-any-return]


@extensible
def space_to_batch(
    input: Any,
    paddings: Any,
    block_size: int | None = None,
    name: str | None = None,
    block_shape: Any = None,
) -> Tensor:
    """`space_to_batch_nd` of images with square blocks.

    Args:
        input: a tensor of shape [batch, height, width, depth].
        paddings: an integer tensor [2, 2] of zeros to add before and after.
        block_size: the block's size.
        name: a name for the operation.
        block_shape: another name of `block_size`.

    Returns:
        A 4-D tensor.
    """
    size = array_util.renamed("block_size", block_size, "block_shape", block_shape)
    out = space_to_batch_nd(input, np.array([size, size], np.int64), paddings, name=name)
    out.set_shape([None] * 4)
    return out


@extensible
def batch_to_space(
    input: Any,
    crops: Any,
    block_size: int | None = None,
    name: str | None = None,
    block_shape: Any = None,
) -> Tensor:
    """`batch_to_space_nd` of images with square blocks.

    Args:
        input: a tensor of shape [batch, height, width, depth].
        crops: an integer tensor [2, 2] of elements to drop at both ends.
        block_size: the block's size.
        name: a name for the operation.
        block_shape: another name of `block_size`.

    Returns:
        A 4-D tensor.
    """
    size = array_util.renamed("block_size", block_size, "block_shape", block_shape)
    out = batch_to_space_nd(input, np.array([size, size], np.int64), crops, name=name)
    out.set_shape([None] * 4)
    return out


@extensible
def space_to_depth(
    input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC"
) -> Tensor:
    """Moves square blocks of an image into its depth.

    Args:
        input: a 4-D tensor.
        block_size: the block's size, at least 2.
        name: a name for the operation.
        data_format: "NHWC" or "NCHW".

    Returns:
        A tensor of `block_size ** 2` times the depth.

    Raises:
        ValueError: height or width is no multiple of the block size.
    """
    return space_to_depth_op(input, block_size=block_size, data_format=data_format, name=name)  # type: ignore[no-any-return]


@extensible
def depth_to_space(
    input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC"
) -> Tensor:
    """Undoes `space_to_depth`: spreads the depth over square blocks.

    Args:
        input: a 4-D tensor.
        block_size: the block's size, at least 2.
        name: a name for the operation.
        data_format: "NHWC" or "NCHW".

    Returns:
        A tensor of `block_size` times the height and width.

    Raises:
        ValueError: the depth is no multiple of `block_size ** 2`.
    """
    return depth_to_space_op(input, block_size=block_size, data_format=data_format, name=name)  # type: ignore[no-any-return]


def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The paddings that make dimensions multiples of a block, and the crops that undo them.

    Args:
        input_shape: the sizes of the spatial dimensions, a 1-D int32 tensor.
        block_shape: the block's size in each of them.
        base_paddings: the least paddings, of shape [n, 2]; zeros by default.
        name: a name for the operations.

    Returns:
        (paddings, crops), both int32 of shape [n, 2].

    Raises:
        ValueError: the arguments do not fit each other.
    """
    with name_scope(name, "required_space_to_batch_paddings", [input_shape, block_shape]):
        sizes = convert_to_tensor(input_shape, dtypes.int32, "input_shape")
        blocks = convert_to_tensor(block_shape, dtypes.int32, "block_shape")
        n = shapes.with_rank(blocks.raw_shape, 1)[0]
        if n is None:
            raise ValueError("block_shape must be fully defined")
        if n == 0:
            none = convert_to_tensor(np.zeros((0, 2), np.int32))
            return none, none
        shapes.merge(sizes.raw_shape, (n,))
        base = None
        if base_paddings is not None:
            base = convert_to_tensor(base_paddings, dtypes.int32, "base_paddings")
            shapes.merge(base.raw_shape, (n, 2))
        known = [constant_value(t) for t in (sizes, blocks)]
        known_base = np.zeros((n, 2), np.int32) if base is None else constant_value(base)
        if known[0] is not None and known[1] is not None and known_base is not None:
            return _constant_paddings(known[0], known[1], known_base)
        return _computed_paddings(sizes, blocks, base, n)


def _constant_paddings(sizes: Any, blocks: Any, base: Any) -> tuple[Tensor, Tensor]:
    start, end = base[:, 0], base[:, 1]
    extra = (blocks - (sizes + start + end) % blocks) % blocks
    paddings = np.stack([start, end + extra], 1)
    crops = np.stack([np.zeros_like(extra), extra], 1)
    return (
        convert_to_tensor(paddings.astype(np.int32), name="paddings"),
        convert_to_tensor(crops.astype(np.int32), name="crops"),
    )


def _computed_paddings(
    sizes: Tensor, blocks: Tensor, base: Tensor | None, n: int
) -> tuple[Tensor, Tensor]:
    from opdock.ops.joining import stack

    start: Any = 0 if base is None else base[:, 0]
    end: Any = 0 if base is None else base[:, 1]
    extra = (blocks - (sizes + start + end) % blocks) % blocks
    rows = [[0 if base is None else base[i, 0], (end + extra)[i]] for i in range(n)]
    paddings = stack([stack(row) for row in rows], name="paddings")
    crops = stack([stack([0, extra[i]]) for i in range(n)], name="crops")
    return paddings, crops
