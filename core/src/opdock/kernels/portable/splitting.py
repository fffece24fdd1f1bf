"""Portable kernels that cut a tensor into several."""

from __future__ import annotations

from typing import Any

from opdock.kernels.array_api import copy, dims, ints, invalid
from opdock.kernels.portable import portable
from opdock.kernels.signature import NodeSig

# Outputs beyond these are copied, since the record names views one by one.
_VIEWS = 256


def parts(xp: Any, value: Any, axis: int, lengths: list[int]) -> Any:
    """The consecutive pieces of `value`, as views."""
    before = (slice(None),) * axis
    out, start = [], 0
    for i, length in enumerate(lengths):
        piece = value[(*before, slice(start, start + length), ...)]
        out.append(piece if i < _VIEWS else copy(xp, piece))
        start += length
    return out[0] if len(out) == 1 else tuple(out)


def _axis(split_dim: Any, rank: int) -> int:
    (axis,) = ints(split_dim)
    if not -rank <= axis < rank:
        raise invalid(f"-input rank(-{rank}) <= split_dim < input rank ({rank}), but got {axis}")
    return axis % rank


@portable("Split", host_inputs=("split_dim",), may_alias=dict.fromkeys(range(_VIEWS), 1))
def split(xp: Any, sig: NodeSig) -> Any:
    """Equal pieces."""
    count = sig.attrs["num_split"]

    def run(split_dim: Any, value: Any) -> Any:
        axis = _axis(split_dim, len(value.shape))
        size = value.shape[axis]
        if size % count:
            raise invalid(
                "Number of ways to split should evenly divide the split dimension, but got "
                f"split_dim {axis} (size = {size}) and num_split {count}"
            )
        return parts(xp, value, axis, [size // count] * count)

    return run


@portable(
    "SplitV", host_inputs=("size_splits", "split_dim"),
    may_alias=dict.fromkeys(range(_VIEWS), 0),
)  # fmt: skip
def split_v(xp: Any, sig: NodeSig) -> Any:
    """Pieces of given lengths."""

    def run(value: Any, size_splits: Any, split_dim: Any) -> Any:
        axis, sizes = _axis(split_dim, len(value.shape)), ints(size_splits)
        total, given = value.shape[axis], sum(s for s in sizes if s != -1)
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
                f"specified. Got: {given}, size {total} along dimension {axis} of "
                f"{dims(value.shape)}"
            )
        return parts(xp, value, axis, [total - given if s == -1 else s for s in sizes])

    return run


@portable("Unpack", may_alias=dict.fromkeys(range(_VIEWS), 0))
def unpack(xp: Any, sig: NodeSig) -> Any:
    """The slices along a dimension."""
    count, given = sig.attrs["num"], sig.attrs["axis"]

    def run(value: Any) -> Any:
        rank = len(value.shape)
        if not -rank <= given < rank:
            raise invalid(f"axis = {given} not in [{-rank}, {rank})")
        axis = given % rank
        if value.shape[axis] != count:
            raise invalid(
                f"Input shape axis {axis} must equal {count}, got shape {dims(value.shape)}"
            )
        before = (slice(None),) * axis
        out = [value[(*before, i, ...)] for i in range(count)]
        out[_VIEWS:] = [copy(xp, piece) for piece in out[_VIEWS:]]
        return out[0] if count == 1 else tuple(out)

    return run
