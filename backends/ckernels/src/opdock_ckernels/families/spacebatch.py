"""Blocks moved between space, batch and depth: strided copies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_ckernels.families.array import HELD
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import contiguous, place, strides_of, take, zeros

__all__ = ["table"]

table = KernelTable()


def _to_batch(device: Any, x: Array, block: list[int], paddings: Any) -> Array:
    pairs, n = np.asarray(paddings), len(block)
    padded, rest = checks.padded_sizes(x, block, pairs), x.shape[1 + n :]
    wide = x
    if pairs.any():
        wide = zeros(device, (x.shape[0], *padded, *rest), x.dtype)
        steps = strides_of(wide.shape)
        offset = sum(int(a) * s for (a, _), s in zip(pairs, steps[1:], strict=False))
        place(device, x, wide, steps, offset)
    counts = [size // b for size, b in zip(padded, block, strict=True)]
    split = [v for pair in zip(counts, block, strict=True) for v in pair]
    wide = wide.reshape(x.shape[0], *split, math.prod(rest))
    order = (*range(2, 2 * n + 1, 2), 0, *range(1, 2 * n, 2), 2 * n + 1)
    return contiguous(device, wide, order).reshape(x.shape[0] * math.prod(block), *counts, *rest)


def _to_space(device: Any, x: Array, block: list[int], crops: Any) -> Array:
    pairs, n = np.asarray(crops), len(block)
    grown, rest = checks.grown_sizes(x, block, pairs), x.shape[1 + n :]
    batch, counts = x.shape[0] // math.prod(block), x.shape[1 : 1 + n]
    split = x.reshape(*block, batch, *counts, math.prod(rest))
    order = [n]
    for i in range(n):
        order += [n + 1 + i, i]
    out = contiguous(device, split, (*order, 2 * n + 1)).reshape(batch, *grown, *rest)
    if not pairs.any():
        return out
    kept = [int(size - a - b) for size, (a, b) in zip(grown, pairs, strict=True)]
    steps = strides_of(out.shape)
    offset = sum(int(a) * s for (a, _), s in zip(pairs, steps[1:], strict=False))
    return take(device, out, (batch, *kept, *rest), steps, offset)


@table.binder("SpaceToBatchND", T=HELD, host_inputs=("block_shape", "paddings"))
def space_to_batch_nd(sig: NodeSig) -> Callable[[Array, Any, Any], Array]:
    """Blocks of space into the batch."""
    device = sig.device
    return lambda x, block, paddings: _to_batch(device, x, checks.ints(block), paddings)


@table.binder("SpaceToBatch", T=HELD, host_inputs=("paddings",))
def space_to_batch(sig: NodeSig) -> Callable[[Array, Any], Array]:
    """Square blocks of images into the batch."""
    device, block = sig.device, [sig.attrs["block_size"]] * 2
    return lambda x, paddings: _to_batch(device, x, block, paddings)


@table.binder("BatchToSpaceND", T=HELD, host_inputs=("block_shape", "crops"))
def batch_to_space_nd(sig: NodeSig) -> Callable[[Array, Any, Any], Array]:
    """The batch into blocks of space."""
    device = sig.device
    return lambda x, block, crops: _to_space(device, x, checks.ints(block), crops)


@table.binder("BatchToSpace", T=HELD, host_inputs=("crops",))
def batch_to_space(sig: NodeSig) -> Callable[[Array, Any], Array]:
    """The batch into square blocks of images."""
    device, block = sig.device, [sig.attrs["block_size"]] * 2
    return lambda x, crops: _to_space(device, x, block, crops)


@table.binder("SpaceToDepth", T=HELD)
def space_to_depth(sig: NodeSig) -> Callable[[Array], Array]:
    """Square blocks of images into their depth."""
    device, b, channels_last = sig.device, sig.attrs["block_size"], _channels_last(sig)

    def run(x: Array) -> Array:
        if channels_last:
            n, h, w, c = x.shape
            checks.check_multiple("height and width", (h, w), b)
            split = x.reshape(n, h // b, b, w // b, b, c)
            turned = contiguous(device, split, (0, 1, 3, 2, 4, 5))
            return turned.reshape(n, h // b, w // b, b * b * c)
        n, c, h, w, *rest = x.shape
        checks.check_multiple("height and width", (h, w), b)
        split = x.reshape(n, c, h // b, b, w // b, b, *rest)
        turned = contiguous(device, split, (0, 3, 5, 1, 2, 4, *range(6, 6 + len(rest))))
        return turned.reshape(n, b * b * c, h // b, w // b, *rest)

    return run


@table.binder("DepthToSpace", T=HELD)
def depth_to_space(sig: NodeSig) -> Callable[[Array], Array]:
    """The depth of images over square blocks."""
    device, b, channels_last = sig.device, sig.attrs["block_size"], _channels_last(sig)

    def run(x: Array) -> Array:
        if channels_last:
            n, h, w, c = x.shape
            checks.check_multiple("depth", (c,), b * b)
            split = x.reshape(n, h, w, b, b, c // (b * b))
            turned = contiguous(device, split, (0, 1, 3, 2, 4, 5))
            return turned.reshape(n, h * b, w * b, c // (b * b))
        n, c, h, w, *rest = x.shape
        checks.check_multiple("depth", (c,), b * b)
        split = x.reshape(n, b, b, c // (b * b), h, w, *rest)
        turned = contiguous(device, split, (0, 3, 4, 1, 5, 2, *range(6, 6 + len(rest))))
        return turned.reshape(n, c // (b * b), h * b, w * b, *rest)

    return run


def _channels_last(sig: NodeSig) -> bool:
    return bool(sig.attrs["data_format"] == "NHWC")
