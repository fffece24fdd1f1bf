"""Portable kernels that cut a tensor into several."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import axes, shapes
from opdock.kernels.array_api import copy, dims, ints, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

# Outputs beyond these are copied, since the record names views one by one.
_VIEWS = 256


def pieces(axis: int, lengths: list[int]) -> list[Any]:
    """The subscripts of consecutive pieces along a dimension."""
    before = (slice(None),) * axis
    out, start = [], 0
    for length in lengths:
        out.append((*before, slice(start, start + length), ...))
        start += length
    return out


def parts(xp: Any, value: Any, where: list[Any]) -> Any:
    """The pieces of `value`, as views."""
    out = [value[index] for index in where]
    out[_VIEWS:] = [copy(xp, piece) for piece in out[_VIEWS:]]
    return out[0] if len(out) == 1 else tuple(out)


def _known(sig: NodeSig, value: int, *consts: int) -> bool:
    """Whether the pieces can be found before the program runs."""
    return shapes.is_fully_defined(sig.in_shapes[value]) and all(
        sig.const(i) is not None for i in consts
    )


def equal_lengths(shape: Any, split_dim: Any, count: int) -> tuple[int, list[int]]:
    """The dimension that is split, and the lengths of `count` equal pieces of it.

    Raises:
        InvalidArgumentError: the pieces would not be equal.
    """
    axis = axes.split(split_dim, len(shape))
    size = shape[axis]
    if size % count:
        raise invalid(
            "Number of ways to split should evenly divide the split dimension, but got "
            f"split_dim {axis} (size = {size}) and num_split {count}"
        )
    return axis, [size // count] * count


def given_lengths(
    shape: Any, size_splits: Any, split_dim: Any, count: int | None = None
) -> tuple[int, list[int]]:
    """The dimension that is split, and the lengths of its pieces, of which -1 is the rest.

    Raises:
        InvalidArgumentError: the lengths do not make up the dimension, or are not `count`.
    """
    axis, sizes = axes.split(split_dim, len(shape)), ints(size_splits)
    if count is not None and len(sizes) != count:
        raise invalid(
            "size of the split_tensor must be 1-D and have the same elements as outputs got "
            f"{np.ndim(size_splits)} -D and {len(sizes)} elements"
        )
    total, given = shape[axis], sum(s for s in sizes if s != -1)
    if sizes.count(-1) > 1:
        raise invalid("There can only be one -1 in the input.")
    if any(s < -1 for s in sizes):
        raise invalid(
            f"Split size at index {sizes.index(min(sizes))} must be >= 0, got {min(sizes)}"
        )
    if (given > total) if -1 in sizes else (given != total):
        raise invalid(
            "Determined shape must either match input shape along split_dim exactly if fully "
            "specified, or be less than the size of the input along split_dim if not fully "
            f"specified. Got: {given}, size {total} along dimension {axis} of {dims(shape)}"
        )
    return axis, [total - given if s == -1 else s for s in sizes]


def unpacked_axis(shape: Any, given: int, count: int) -> int:
    """The dimension, not negative, that `count` slices are taken along.

    Raises:
        InvalidArgumentError: it is not there, or has another size.
    """
    rank = len(shape)
    if not -rank <= given < rank:
        raise invalid(f"axis = {given} not in [{-rank}, {rank})")
    axis = given % rank
    if shape[axis] != count:
        raise invalid(f"Input shape axis {axis} must equal {count}, got shape {dims(shape)}")
    return axis


@portable("Split", host_inputs=("split_dim",), may_alias=dict.fromkeys(range(_VIEWS), 1))
def split(xp: Any, sig: NodeSig) -> Any:
    """Equal pieces."""
    count = sig.attrs["num_split"]

    def find(shape: Any, split_dim: Any) -> list[Any]:
        return pieces(*equal_lengths(shape, split_dim, count))

    if _known(sig, 1, 0):
        fixed = find(sig.in_shapes[1], sig.const(0))
        return lambda split_dim, value: parts(xp, value, fixed)
    return lambda split_dim, value: parts(xp, value, find(value.shape, split_dim))


@portable(
    "SplitV", host_inputs=("size_splits", "split_dim"),
    may_alias=dict.fromkeys(range(_VIEWS), 0),
)  # fmt: skip
def split_v(xp: Any, sig: NodeSig) -> Any:
    """Pieces of given lengths."""

    def find(shape: Any, size_splits: Any, split_dim: Any) -> list[Any]:
        return pieces(*given_lengths(shape, size_splits, split_dim, sig.attrs["num_split"]))

    if _known(sig, 0, 1, 2):
        fixed = find(sig.in_shapes[0], sig.const(1), sig.const(2))
        return lambda value, size_splits, split_dim: parts(xp, value, fixed)
    return lambda value, size_splits, split_dim: parts(
        xp, value, find(value.shape, size_splits, split_dim)
    )


@portable("Unpack", may_alias=dict.fromkeys(range(_VIEWS), 0))
def unpack(xp: Any, sig: NodeSig) -> Any:
    """The slices along a dimension."""
    count, given = sig.attrs["num"], sig.attrs["axis"]

    def run(value: Any) -> Any:
        before = (slice(None),) * unpacked_axis(value.shape, given, count)
        out = [value[(*before, i, ...)] for i in range(count)]
        out[_VIEWS:] = [copy(xp, piece) for piece in out[_VIEWS:]]
        return out[0] if count == 1 else tuple(out)

    return run
