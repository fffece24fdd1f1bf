"""Axes and blocks that ops are given as numbers: checked, and counted from the front.

No array but the numbers themselves is touched, so shape functions and kernels on every kind of
buffer share it. TF words some errors in one way as a node is made (`static`) and in another as it
runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock import errors

__all__ = [
    "block", "gathered", "ints", "joined", "permutation", "reduced", "reversed_", "rolled",
    "scanned", "searched", "split",
]  # fmt: skip


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def ints(value: Any) -> list[int]:
    """A host array of integers as a flat list."""
    flat = np.asarray(value).reshape(-1)
    return flat.tolist() if flat.dtype.kind in "iu" else [int(v) for v in flat]


def _text(shape: Sequence[int]) -> str:
    return "[" + ",".join(str(d) for d in shape) + "]"


def _axis(axis: int, rank: int, message: str) -> int:
    """The axis counted from the front.

    Raises:
        InvalidArgumentError: it is out of range; with `message`.
    """
    if not -rank <= axis < rank:
        raise _invalid(message)
    return axis % rank


def _range(rank: int) -> str:
    return f"in the range [{-rank}, {rank})"


def reduced(indices: Any, rank: int, *, static: bool = False) -> tuple[int, ...]:
    """The sorted axes that a reduction names; one may be named more than once."""
    axes: list[int] = []
    for given in ints(indices):
        axis = _axis(
            given, rank, f"Invalid reduction dimension {given} for input with {rank} dimensions."
            if static
            else f"Invalid reduction dimension ({given} for input with {rank} dimension(s)",
        )  # fmt: skip
        axes.append(axis)
    return tuple(sorted(set(axes)))


def searched(dimension: Any, shape: Sequence[int | None], *, static: bool = False) -> int:
    """The axis that ArgMax or ArgMin searches, which is not empty."""
    (given,), rank = ints(dimension), len(shape)
    axis = _axis(
        given, rank, f"Dimension ({given}) must be {_range(rank)}, where {rank} is the number of "
        "dimensions in the input."
        if static
        else f"Expected dimension {_range(rank)}, but got {given}",
    )  # fmt: skip
    if shape[axis] == 0 and not static:
        raise _invalid(f"Reduction axis {given} is empty in shape {_text(shape)}")  # type: ignore[arg-type]
    return axis


def scanned(axis: Any, rank: int) -> int:
    """The axis of a running sum."""
    if np.ndim(axis):
        raise _invalid(f"ScanOp: axis must be a scalar, not {_text(np.shape(axis))}")
    (given,) = ints(axis)
    return _axis(given, rank, f"ScanOp: Expected scan axis {_range(rank)}, but got {given}")


def gathered(axis: Any, rank: int) -> int:
    """The axis along which a gather picks."""
    (given,) = ints(axis)
    return _axis(given, rank, f"Expected axis {_range(rank)}, but got {given}")


def split(split_dim: Any, rank: int) -> int:
    """The axis that is cut to pieces."""
    found = ints(split_dim)
    if len(found) != 1:
        raise _invalid("split_dim tensor must have exactly one element.")
    (given,) = found
    return _axis(
        given, rank, f"-input rank(-{rank}) <= split_dim < input rank ({rank}), but got {given}"
    )


def joined(values: Sequence[Any], axis: Any) -> int:
    """The axis along which arrays can be joined; InvalidArgumentError where they do not fit."""
    shapes = [tuple(value.shape) for value in values]
    first, (given,) = shapes[0], ints(axis)
    rank = len(first)
    at = _axis(
        given, rank, f"ConcatOp : Expected concatenating dimensions {_range(rank)}, but got {given}"
    )
    for i, shape in enumerate(shapes):
        if len(shape) != rank:
            what = "Ranks of all input tensors should match"
        elif shape[:at] + shape[at + 1 :] != first[:at] + first[at + 1 :]:
            what = "Dimensions of inputs should match"
        else:
            continue
        raise _invalid(
            f"ConcatOp : {what}: shape[0] = {_text(first)} vs. shape[{i}] = {_text(shape)}"
        )
    return at


def reversed_(axes: Any, rank: int) -> tuple[int, ...]:
    """The axes along which a tensor is turned around."""
    found: list[int] = []
    for i, given in enumerate(ints(axes)):
        axis = _axis(given, rank, f"'axis'[{i}] = {given} is out of valid range [0, {rank - 1}]")
        if axis in found:
            raise _invalid(f"axis {axis} specified more than once.")
        found.append(axis)
    return tuple(found)


def rolled(shift: Any, axis: Any, rank: int) -> dict[int, int]:
    """How far each axis is shifted around."""
    if rank < 1:
        raise _invalid("input must be 1-D or higher")
    for name, given in (("shift", shift), ("axis", axis)):
        if np.ndim(given) > 1:
            raise _invalid(
                f"{name} must be a scalar or a 1-D vector. Found: {_text(np.shape(given))}"
            )
    if np.shape(shift) != np.shape(axis):
        raise _invalid(
            f"shift and axis must have the same size: {_text(np.shape(shift))} vs. "
            f"{_text(np.shape(axis))}"
        )
    total: dict[int, int] = {}
    for given, steps in zip(ints(axis), ints(shift), strict=True):
        at = _axis(given, rank, f"axis {given} is out of range")
        total[at] = total.get(at, 0) + steps
    return total


def permutation(perm: Any, rank: int, *, static: bool = False) -> tuple[int, ...]:
    """The order of axes that a transpose is given."""
    given = ints(perm)
    if len(given) != rank:
        raise _invalid(
            f"transpose expects a vector of size {rank}. But input(1) is a vector of size "
            f"{len(given)}"
        )
    axes = tuple(
        _axis(
            axis, rank, f"perm dim {axis} is out of range of input rank {rank}"
            if static
            else f"{axis} is out of range [0 .. {rank})",
        )
        for axis in given
    )  # fmt: skip
    missing = [axis for axis in range(rank) if axis not in axes]
    # A graph that is never run may have an axis twice.
    if missing and not static:
        raise _invalid(f"{missing[0]} is missing from {{{','.join(map(str, axes))}}}.")
    return axes


def block(shape: Sequence[Any], begin: Any, size: Any) -> tuple[slice, ...]:
    """The subscript of a block; a size of -1 reaches to the end."""
    starts, sizes = ints(begin), ints(size)
    if len(starts) != len(shape) or len(sizes) != len(shape):
        raise _invalid(
            f"Expected begin and size arguments to be 1-D tensors of size {len(shape)}, but got "
            f"shapes [{len(starts)}] and [{len(sizes)}] instead."
        )
    out = []
    for i, (dim, start, length) in enumerate(zip(shape, starts, sizes, strict=True)):
        if not 0 <= start <= dim:
            raise _invalid(f"Expected begin[{i}] in [0, {dim}], but got {start}")
        n = dim - start if length == -1 else length
        if not 0 <= n <= dim - start:
            raise _invalid(f"Expected size[{i}] in [0, {dim - start}], but got {n}")
        out.append(slice(start, start + n))
    return tuple(out)
