"""Where blocks of space go in the batch and the depth."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _ravel(digits: list[int], bases: list[int]) -> int:
    number = 0
    for digit, base in zip(digits, bases, strict=True):
        number = number * base + digit
    return number


def _to_batch(x: Array, block: list[int], paddings: Array) -> Array:
    """Element p of a padded dimension goes to p // block, in the batch entry of p % block."""
    n, batch = len(block), x.shape[0]
    padded = [x.shape[1 + i] + int(paddings[i].sum()) for i in range(n)]
    counts = [p // b for p, b in zip(padded, block, strict=True)]
    zero = b"" if x.dtype.kind in "OSU" else 0
    volume = int(np.prod(block, dtype=np.int64))
    out = np.full((volume * batch, *counts, *x.shape[1 + n :]), zero, x.dtype)
    for place in np.ndindex(*x.shape):
        at = [place[1 + i] + int(paddings[i][0]) for i in range(n)]
        offset = _ravel([a % b for a, b in zip(at, block, strict=True)], block)
        cell = [a // b for a, b in zip(at, block, strict=True)]
        out[(offset * batch + place[0], *cell, *place[1 + n :])] = x[place]
    return out


def _to_space(x: Array, block: list[int], crops: Array) -> Array:
    """The way back, without the ends that are cropped."""
    n = len(block)
    batch = x.shape[0] // int(np.prod(block, dtype=np.int64))
    grown = [x.shape[1 + i] * block[i] for i in range(n)]
    kept = [g - int(crops[i].sum()) for i, g in enumerate(grown)]
    out = np.empty((batch, *kept, *x.shape[1 + n :]), x.dtype)
    for place in np.ndindex(*out.shape):
        at = [place[1 + i] + int(crops[i][0]) for i in range(n)]
        offset = _ravel([a % b for a, b in zip(at, block, strict=True)], block)
        cell = [a // b for a, b in zip(at, block, strict=True)]
        out[place] = x[(offset * batch + place[0], *cell, *place[1 + n :])]
    return out


@reference("SpaceToBatchND")
def space_to_batch_nd(attrs: Attrs, x: Array, block: Array, paddings: Array) -> Array:
    """Blocks into the batch."""
    return _to_batch(x, [int(b) for b in block], paddings)


@reference("SpaceToBatch")
def space_to_batch(attrs: Attrs, x: Array, paddings: Array) -> Array:
    """Square blocks into the batch."""
    return _to_batch(x, [attrs["block_size"]] * 2, paddings)


@reference("BatchToSpaceND")
def batch_to_space_nd(attrs: Attrs, x: Array, block: Array, crops: Array) -> Array:
    """The batch into blocks."""
    return _to_space(x, [int(b) for b in block], crops)


@reference("BatchToSpace")
def batch_to_space(attrs: Attrs, x: Array, crops: Array) -> Array:
    """The batch into square blocks."""
    return _to_space(x, [attrs["block_size"]] * 2, crops)


def _channels_last(x: Array, data_format: str) -> Array:
    if data_format == "NHWC":
        return x
    return np.moveaxis(x, 1, 3)


def _channels_back(x: Array, data_format: str) -> Array:
    return x if data_format == "NHWC" else np.moveaxis(x, 3, 1)


@reference("SpaceToDepth")
def space_to_depth(attrs: Attrs, x: Array) -> Array:
    """Block offset and depth together are the new depth."""
    b = attrs["block_size"]
    x = _channels_last(x, attrs["data_format"])
    n, h, w, c, *rest = x.shape
    out = np.empty((n, h // b, w // b, b * b * c, *rest), x.dtype)
    for i, j, k in np.ndindex(h, w, c):
        out[:, i // b, j // b, ((i % b) * b + j % b) * c + k] = x[:, i, j, k]
    return _channels_back(out, attrs["data_format"])


@reference("DepthToSpace")
def depth_to_space(attrs: Attrs, x: Array) -> Array:
    """The way back."""
    b = attrs["block_size"]
    x = _channels_last(x, attrs["data_format"])
    n, h, w, c, *rest = x.shape
    depth = c // (b * b)
    out = np.empty((n, h * b, w * b, depth, *rest), x.dtype)
    for i, j, k in np.ndindex(h * b, w * b, depth):
        out[:, i, j, k] = x[:, i // b, j // b, ((i % b) * b + j % b) * depth + k]
    return _channels_back(out, attrs["data_format"])
