"""Portable kernels that move blocks between space, batch and depth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opdock.kernels.array_api import dims, ints, invalid, put, turned, zeros
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


def check_blocks(x: Any, block: list[int], pairs: np.ndarray[Any, Any]) -> None:
    """Raises InvalidArgumentError unless blocks and margins fit the rank of `x`."""
    if len(x.shape) < 1 + len(block):
        raise invalid(f"input rank should be >= {1 + len(block)} instead of {len(x.shape)}")
    if pairs.shape != (len(block), 2):
        raise invalid(
            f"paddings should have shape [{len(block)}, 2] instead of {dims(pairs.shape)}"
        )
    if any(b < 1 for b in block):
        raise invalid(f"All values in block_shape must be positive, got {block}")
    if (pairs < 0).any():
        raise invalid("Paddings must be non-negative")


def padded_sizes(x: Any, block: list[int], pairs: np.ndarray[Any, Any]) -> list[int]:
    """The spatial sizes of `x` with margins, which blocks divide.

    Raises:
        InvalidArgumentError: they do not, or something does not fit the rank of `x`.
    """
    check_blocks(x, block, pairs)
    spatial = x.shape[1 : 1 + len(block)]
    padded = [int(d + a + b) for d, (a, b) in zip(spatial, pairs, strict=True)]
    for i, (size, b) in enumerate(zip(padded, block, strict=True)):
        if size % b:
            raise invalid(f"padded_shape[{i}]={size} is not divisible by block_shape[{i}]={b}")
    return padded


def grown_sizes(x: Any, block: list[int], pairs: np.ndarray[Any, Any]) -> list[int]:
    """The spatial sizes of what becomes of `x` when its batch goes to blocks, before it is cropped.

    Raises:
        InvalidArgumentError: the batch does not make whole blocks, or more is to be cropped than
            there is.
    """
    check_blocks(x, block, pairs)
    volume = math.prod(block)
    if x.shape[0] % volume:
        raise invalid(
            f"Input batch dimension ({x.shape[0]}) is not divisible by product of block sizes "
            f"({volume})"
        )
    grown = [int(d * b) for d, b in zip(x.shape[1 : 1 + len(block)], block, strict=True)]
    for i, (size, (a, b)) in enumerate(zip(grown, pairs, strict=True)):
        if size < a + b:
            raise invalid(f"cropped_shape[{i}]={size - a - b} must be non-negative")
    return grown


def _to_batch(xp: Any, sig: NodeSig, x: Any, block: list[int], paddings: Any) -> Any:
    pairs = np.asarray(paddings)
    padded, n = padded_sizes(x, block, pairs), len(block)
    rest = tuple(x.shape[1 + n :])
    if (pairs != 0).any():
        wide = zeros(xp, (x.shape[0], *padded, *rest), x, sig.out_dtypes[0])
        inner = tuple(
            slice(int(a), int(a) + d) for d, (a, _) in zip(x.shape[1 : 1 + n], pairs, strict=True)
        )
        wide = put(xp, wide, (slice(None), *inner, ...), x)
    else:
        wide = x
    counts = [size // b for size, b in zip(padded, block, strict=True)]
    split = [v for pair in zip(counts, block, strict=True) for v in pair]
    wide = xp.reshape(wide, (x.shape[0], *split, math.prod(rest)))
    order = (*range(2, 2 * n + 1, 2), 0, *range(1, 2 * n, 2), 2 * n + 1)
    return turned(xp, wide, order, (x.shape[0] * math.prod(block), *counts, *rest))


def _to_space(xp: Any, x: Any, block: list[int], crops: Any) -> Any:
    pairs = np.asarray(crops)
    grown, n = grown_sizes(x, block, pairs), len(block)
    rest = tuple(x.shape[1 + n :])
    batch, counts = x.shape[0] // math.prod(block), tuple(x.shape[1 : 1 + n])
    split = xp.reshape(x, (*block, batch, *counts, math.prod(rest)))
    order = [n]
    for i in range(n):
        order += [n + 1 + i, i]
    out = turned(xp, split, (*order, 2 * n + 1), (batch, *grown, *rest))
    inner = tuple(slice(int(a), size - int(b)) for size, (a, b) in zip(grown, pairs, strict=True))
    return out[(slice(None), *inner, ...)]


@portable("SpaceToBatchND", host_inputs=("block_shape", "paddings"), may_alias={0: 0})
def space_to_batch_nd(xp: Any, sig: NodeSig) -> Any:
    """Blocks of space into the batch."""
    return lambda x, block, paddings: _to_batch(xp, sig, x, ints(block), paddings)


@portable("SpaceToBatch", host_inputs=("paddings",), may_alias={0: 0})
def space_to_batch(xp: Any, sig: NodeSig) -> Any:
    """Square blocks of images into the batch."""
    block = [sig.attrs["block_size"]] * 2
    return lambda x, paddings: _to_batch(xp, sig, x, block, paddings)


@portable("BatchToSpaceND", host_inputs=("block_shape", "crops"), may_alias={0: 0})
def batch_to_space_nd(xp: Any, sig: NodeSig) -> Any:
    """The batch into blocks of space."""
    return lambda x, block, crops: _to_space(xp, x, ints(block), crops)


@portable("BatchToSpace", host_inputs=("crops",), may_alias={0: 0})
def batch_to_space(xp: Any, sig: NodeSig) -> Any:
    """The batch into square blocks of images."""
    block = [sig.attrs["block_size"]] * 2
    return lambda x, crops: _to_space(xp, x, block, crops)


@portable("SpaceToDepth", may_alias={0: 0})
def space_to_depth(xp: Any, sig: NodeSig) -> Any:
    """Square blocks of images into their depth."""
    b, data_format = sig.attrs["block_size"], sig.attrs["data_format"]

    def nhwc(x: Any) -> Any:
        n, h, w, c = x.shape
        check_multiple("height and width", (h, w), b)
        split = xp.reshape(x, (n, h // b, b, w // b, b, c))
        return turned(xp, split, (0, 1, 3, 2, 4, 5), (n, h // b, w // b, b * b * c))

    def nchw(x: Any) -> Any:
        n, c, h, w, *rest = x.shape
        check_multiple("height and width", (h, w), b)
        split = xp.reshape(x, (n, c, h // b, b, w // b, b, *rest))
        tail = (6,) if rest else ()
        order = (0, 3, 5, 1, 2, 4, *tail)
        return turned(xp, split, order, (n, b * b * c, h // b, w // b, *rest))

    return nhwc if data_format == "NHWC" else nchw


@portable("DepthToSpace", may_alias={0: 0})
def depth_to_space(xp: Any, sig: NodeSig) -> Any:
    """The depth of images over square blocks."""
    b, data_format = sig.attrs["block_size"], sig.attrs["data_format"]

    def nhwc(x: Any) -> Any:
        n, h, w, c = x.shape
        check_multiple("depth", (c,), b * b)
        split = xp.reshape(x, (n, h, w, b, b, c // (b * b)))
        return turned(xp, split, (0, 1, 3, 2, 4, 5), (n, h * b, w * b, c // (b * b)))

    def nchw(x: Any) -> Any:
        n, c, h, w, *rest = x.shape
        check_multiple("depth", (c,), b * b)
        split = xp.reshape(x, (n, b, b, c // (b * b), h, w, *rest))
        tail = (6,) if rest else ()
        order = (0, 3, 4, 1, 5, 2, *tail)
        return turned(xp, split, order, (n, c // (b * b), h * b, w * b, *rest))

    return nhwc if data_format == "NHWC" else nchw


def check_multiple(what: str, sizes: tuple[int, ...], block: int) -> None:
    """Raises InvalidArgumentError unless all sizes are multiples of `block`."""
    for size in sizes:
        if size % block:
            raise invalid(f"Image {what} {size} should be divisible by {block}")
