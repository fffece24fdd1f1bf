"""Slices of a tensor as checkpoints name them: "0,3:0,2", one "start,length" a dimension."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opdock import errors
from opdock.io import protos
from opdock.io.varint import ordered_signed, ordered_string, ordered_unsigned

FULL = -1


@dataclass(frozen=True)
class TensorSlice:
    """(start, length) of every dimension; the length `FULL` takes the whole dimension."""

    extents: tuple[tuple[int, int], ...]

    @classmethod
    def full(cls, rank: int) -> TensorSlice:
        """The slice that is the whole tensor."""
        return cls(((0, FULL),) * rank)

    @classmethod
    def parse(cls, text: str) -> TensorSlice:
        """Reads "0,3:-:2,1", where "-" is a whole dimension.

        Raises:
            InvalidArgumentError: the text has another form.
        """
        extents = []
        for item in text.split(":") if text else []:
            if item == "-":
                extents.append((0, FULL))
                continue
            parts = item.split(",")
            if len(parts) != 2 or not all(p.isdecimal() for p in parts) or int(parts[1]) < 1:
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    f"Expected a pair of numbers or '-' but got '{item}': string = {text}",
                )
            extents.append((int(parts[0]), int(parts[1])))
        return cls(tuple(extents))

    @classmethod
    def from_proto(cls, proto: Any) -> TensorSlice:
        """Reads a TensorSliceProto."""
        return cls(
            tuple((e.start, e.length if e.HasField("length") else FULL) for e in proto.extent)
        )

    def to_proto(self) -> Any:
        """This slice as a TensorSliceProto."""
        proto = protos.TensorSliceProto()
        for start, length in self.extents:
            extent = proto.extent.add()
            if length != FULL:
                extent.start, extent.length = start, length
        return proto

    def __str__(self) -> str:
        return ":".join("-" if n == FULL else f"{s},{n}" for s, n in self.extents)

    @property
    def is_full(self) -> bool:
        """Whether every dimension is taken whole."""
        return all(length == FULL for _, length in self.extents)

    def ranges(self, shape: Sequence[int]) -> list[tuple[int, int]]:
        """(start, stop) of every dimension inside a tensor of `shape`.

        Raises:
            InvalidArgumentError: the slice reaches outside the shape.
        """
        if len(shape) != len(self.extents):
            raise errors.InvalidArgumentError(
                None, None, f"Slice {self} has {len(self.extents)} dimensions, shape {list(shape)}"
            )
        out = []
        for (start, length), size in zip(self.extents, shape, strict=True):
            stop = size if length == FULL else start + length
            if start < 0 or stop < start or stop > size:
                raise errors.InvalidArgumentError(
                    None, None, f"Extent in slice {self} is out of the shape {list(shape)}"
                )
            out.append((start, stop))
        return out

    def shape_in(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of this slice of a tensor of `shape`."""
        return tuple(stop - start for start, stop in self.ranges(shape))

    def overlap(self, other: TensorSlice, shape: Sequence[int]) -> list[tuple[int, int]] | None:
        """The ranges that two slices of a tensor of `shape` share, or None."""
        both = zip(self.ranges(shape), other.ranges(shape), strict=True)
        common = [(max(a, c), min(b, d)) for (a, b), (c, d) in both]
        return common if all(a < b for a, b in common) else None

    def index(self, shape: Sequence[int]) -> tuple[slice, ...]:
        """This slice as an index of an array of `shape`."""
        return tuple(slice(start, stop) for start, stop in self.ranges(shape))


def parse_shape_and_slice(text: str) -> tuple[tuple[int, ...], TensorSlice]:
    """Reads a Saver's "8 3 0,3:0,3": the full shape, then the slice.

    Raises:
        InvalidArgumentError: the text has another form, or the slice does not fit the shape.
    """
    *dims, last = text.split(" ")
    if not dims:
        raise errors.InvalidArgumentError(
            None, None, f"Need least two elements in shape_and_slice specification: {text}"
        )
    if not all(d.isdecimal() for d in dims):
        raise errors.InvalidArgumentError(
            None, None, f"Non numerical dimension in shape_and_slice: {text}"
        )
    shape = tuple(int(d) for d in dims)
    part = TensorSlice.parse(last)
    part.ranges(shape)
    return shape, part


def gather(
    wanted: TensorSlice,
    shape: Sequence[int],
    dtype: np.dtype[Any],
    pieces: Iterable[tuple[TensorSlice, Callable[[], np.ndarray[Any, Any]]]],
) -> np.ndarray[Any, Any] | None:
    """Puts a slice together from the disjoint pieces that were saved.

    Args:
        wanted: the slice to build.
        shape: the whole tensor's.
        dtype: the elements'.
        pieces: each with a function that loads its value.

    Returns:
        The array, or None when the pieces do not cover the slice.

    Raises:
        DataLossError: a piece is not of the tensor's type or the slice's shape.
        ResourceExhaustedError: memory does not suffice for the slice.
    """
    needed = [(p, load, c) for p, load in pieces if (c := p.overlap(wanted, shape)) is not None]
    result_shape = wanted.shape_in(shape)
    # Before allocating: a damaged file may claim any shape.
    if sum(math.prod(b - a for a, b in c) for *_, c in needed) != math.prod(result_shape):
        return None
    if len(needed) == 1 and needed[0][0].shape_in(shape) == result_shape:
        return _loaded(*needed[0][:2], shape, dtype)
    try:
        out = np.empty(result_shape, dtype)
    except MemoryError:  # the slices may claim any shape, too, and are read one by one
        raise errors.ResourceExhaustedError(
            None, None, f"OOM when allocating {list(result_shape)} of {dtype} for saved slices"
        ) from None
    target = wanted.ranges(shape)
    for part, load, common in needed:
        piece = _loaded(part, load, shape, dtype)
        out[_relative(common, target)] = piece[_relative(common, part.ranges(shape))]
    return out


def _loaded(
    part: TensorSlice, load: Callable[[], np.ndarray[Any, Any]], shape: Sequence[int],
    dtype: np.dtype[Any],
) -> np.ndarray[Any, Any]:  # fmt: skip
    """A piece, which has a type and a shape of its own in the file."""
    found = load()
    wanted = part.shape_in(shape)
    if found.shape != wanted or found.dtype != dtype:
        raise errors.DataLossError(
            None, None,
            f"Slice {part} of {list(shape)} should be {dtype} of shape {list(wanted)}, but is "
            f"{found.dtype} of shape {list(found.shape)}",
        )  # fmt: skip
    return found


def _relative(part: list[tuple[int, int]], whole: list[tuple[int, int]]) -> tuple[slice, ...]:
    """The index of the ranges `part` inside an array that holds the ranges `whole`."""
    return tuple(slice(a - w, b - w) for (a, b), (w, _) in zip(part, whole, strict=True))


def encode_key(name: str | bytes, part: TensorSlice) -> bytes:
    """The table key of one slice of the tensor `name`."""
    out = bytearray()
    ordered_unsigned(out, 0)
    ordered_string(out, name.encode() if isinstance(name, str) else name)
    ordered_unsigned(out, len(part.extents))
    for start, length in part.extents:
        ordered_signed(out, start)
        ordered_signed(out, length)
    return bytes(out)
