"""What ops that only move elements make of a place in memory: views, which cost a turn nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from opdock import axes, dtypes, errors, shapes
from opdock.compiler.ir.block import Node, Value
from opdock.graph.nodes import slicespec

__all__ = ["Place", "joined", "multiplied", "packed", "picked", "viewed"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the elements of an array lie in memory.

    Attributes:
        base: the value whose memory it is.
        shape: the array's.
        strides: elements to go for each index.
        offset: the place of the first element.
    """

    base: Value
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @classmethod
    def of(cls, base: Value, shape: tuple[int, ...]) -> Place:
        """All of a value's memory, row by row."""
        return cls(base, shape, packed(shape))

    @property
    def is_all(self) -> bool:
        """Whether it is the base's memory, element by element."""
        return not self.offset and self.strides == packed(self.shape)

    def broadcast(self, shape: tuple[int, ...]) -> Place:
        """The array repeated to a shape to which it broadcasts."""
        missing = len(shape) - len(self.shape)
        strides = [
            0 if size == 1 else stride
            for size, stride in zip(self.shape, self.strides, strict=True)
        ]
        return replace(self, shape=shape, strides=(0,) * missing + tuple(strides))

    def part(self, axis: int, start: int, count: int, step: int = 1) -> Place:
        """Some indices of an axis."""
        shape, strides = list(self.shape), list(self.strides)
        offset = self.offset + start * strides[axis]
        shape[axis], strides[axis] = count, strides[axis] * step if count != 1 else 0
        return replace(self, shape=tuple(shape), strides=tuple(strides), offset=offset)

    def without(self, axis: int) -> Place:
        """The array at the first index of an axis."""
        shape, strides = list(self.shape), list(self.strides)
        del shape[axis], strides[axis]
        return replace(self, shape=tuple(shape), strides=tuple(strides))

    def permuted(self, order: Sequence[int]) -> Place:
        """The array with its axes in another order."""
        shape, strides = (tuple(of[i] for i in order) for of in (self.shape, self.strides))
        return replace(self, shape=shape, strides=strides)

    def reshaped(self, shape: tuple[int, ...]) -> Place | None:
        """The array in another shape; None if its elements would have to move."""
        long = [(n, s) for n, s in zip(self.shape, self.strides, strict=True) if n != 1]
        if [n for n in shape if n != 1] == [n for n, _ in long]:
            left = iter(long)
            strides = tuple(0 if n == 1 else next(left)[1] for n in shape)
            return replace(self, shape=shape, strides=strides)
        rest = 1
        for n, stride in reversed(long):
            if stride != rest:
                return None
            rest *= n
        return replace(self, shape=shape, strides=packed(shape))


def packed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array that lies row by row; those of single elements are 0."""
    return tuple(0 if n == 1 else math.prod(shape[i + 1 :]) for i, n in enumerate(shape))


# ---------------------------------------------------------------- ops
def viewed(node: Node) -> tuple[int, Callable[[Place, int], Place | None]] | None:
    """Which input a node's outputs are views of, and how: of its place and the output's index.

    None if the node does something else, or something else than its inputs' shapes tell.
    """
    if node.traits.reshapes:
        return 0, lambda place, _: place.reshaped(_known(node.out_shapes[0]))
    found = _VIEWS.get(node.op)
    if found is None:
        return None
    data, view = found
    shape = node.inputs[data].shape
    if shape is None:
        return None
    try:
        make = view(node, _known(shape))
    except (errors.OpError, ValueError, _Open):
        # What is wrong, or not known yet, the op itself says when it runs.
        return None
    return data, make


class _Open(Exception):
    """What decides a view is not constant."""


def _known(shape: Any) -> tuple[int, ...]:
    if shape is None or None in shape:
        raise _Open
    return tuple(shape)


def _constant(node: Node, index: int) -> Any:
    value = node.inputs[index].node.const()
    if value is None:
        raise _Open
    return value


View = Callable[[Place, int], Place | None]


def _permuted(node: Node, shape: tuple[int, ...]) -> View:
    order = axes.permutation(_constant(node, 1), len(shape))
    return lambda place, _: place.permuted(order)


def _block(node: Node, shape: tuple[int, ...]) -> View:
    index = axes.block(shape, _constant(node, 1), _constant(node, 2))
    return lambda place, _: _subscript(place, index)


def _strided(node: Node, shape: tuple[int, ...]) -> View:
    begin, end, strides = (_constant(node, i).tolist() for i in (1, 2, 3))
    index = slicespec.resolve(shape, begin, end, strides, node.attrs).subscript
    if index is None:
        raise _Open
    found = index
    return lambda place, _: _subscript(place, found)


def _subscript(place: Place, index: Sequence[Any]) -> Place:
    axis = 0
    for part in index:
        if part is None:
            shape, strides = place.shape, place.strides
            place = replace(
                place, shape=(*shape[:axis], 1, *shape[axis:]),
                strides=(*strides[:axis], 0, *strides[axis:]),
            )  # fmt: skip
            axis += 1
        elif isinstance(part, slice):
            taken = range(*part.indices(place.shape[axis]))
            place = place.part(axis, taken.start, len(taken), taken.step)
            axis += 1
        else:
            at = int(part) + (place.shape[axis] if part < 0 else 0)
            place = place.part(axis, at, 1).without(axis)
    return place


def _cut(axis_at: int, data: int) -> Callable[[Node, tuple[int, ...]], View]:
    """Equal or given pieces along an axis: each has the length of its output."""

    def view(node: Node, shape: tuple[int, ...]) -> View:
        axis = axes.split(_constant(node, axis_at), len(shape))
        lengths = [_known(out)[axis] for out in node.out_shapes]
        if sum(lengths) != shape[axis]:
            raise _Open
        return lambda place, i: place.part(axis, sum(lengths[:i]), lengths[i])

    return view


def _unpacked(node: Node, shape: tuple[int, ...]) -> View:
    axis = int(node.attrs["axis"]) % len(shape)
    return lambda place, i: place.part(axis, i, 1).without(axis)


def _repeated(node: Node, shape: tuple[int, ...]) -> View:
    result = _known(node.out_shapes[0])
    return lambda place, _: place.broadcast(result)


_VIEWS: Final[dict[str, tuple[int, Callable[[Node, tuple[int, ...]], View]]]] = {
    "Transpose": (0, _permuted), "Slice": (0, _block), "StridedSlice": (0, _strided),
    "Split": (1, _cut(0, 1)), "SplitV": (0, _cut(2, 0)), "Unpack": (0, _unpacked),
    "BroadcastTo": (0, _repeated),
}  # fmt: skip


_ADDITIONS: Final = frozenset({"Add", "AddV2", "AddN"})
_PLACED: Final = {
    "ConcatV2": slice(0, -1), "ExpandDims": slice(0, 1), "Pad": slice(0, 1),
    "Reshape": slice(0, 1), "Squeeze": slice(0, 1), "StridedSliceGrad": slice(4, 5),
    "Transpose": slice(0, 1),
}  # fmt: skip
"""Which inputs are of the elements that are placed."""


def multiplied(node: Node) -> tuple[bool, bool] | None:
    """Whether a product of two matrices takes its inputs transposed; None if it is none."""
    if node.op != "MatMul":
        return None
    return bool(node.attrs["transpose_a"]), bool(node.attrs["transpose_b"])


def read_by(node: Node) -> Value | None:
    """The handle of the variable that a node reads; None if it does something else."""
    return node.inputs[0] if node.op == "ReadVariableOp" else None


def adds(node: Node) -> bool:
    """Whether a node adds values of one shape."""
    shape = node.out_shapes[0]
    return node.op in _ADDITIONS and all(v.shape == shape for v in node.inputs)


def placed(node: Node) -> Sequence[Value] | None:
    """What a node puts among zeros, in places that are known; None for others.

    A sum of such results is the result of the sum.
    """
    where = _PLACED.get(node.op)
    if where is None:
        return None
    data = node.inputs[where]
    known = all(v.node.is_const for v in node.inputs if v not in data)
    return data if known and shapes.is_fully_defined(node.out_shapes[0]) else None


def picked(node: Node) -> tuple[Value, Value] | None:
    """What a node reads a row of, and which row; None if it does something else."""
    index: Value | None = None
    if node.op in ("Gather", "GatherV2"):
        index = node.inputs[1]
        axis = 0 if node.op == "Gather" else node.inputs[2].node.const()
        if axis is None or int(axis) != 0 or node.attrs.get("batch_dims"):
            return None
    elif node.op == "StridedSlice":
        index = _subscripted(node)
    if index is None or index.shape != () or index.dtype is not dtypes.int32:
        return None
    return node.inputs[0], index


def _subscripted(node: Node) -> Value | None:
    """The i of x[i] or x[i, :, ...]; None if it is another slice."""
    put, attrs, steps = node.inputs[1].node, node.attrs, node.inputs[3].node.const()
    masks = ("shrink_axis_mask", "begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask")
    shrunk, begin, end, ellipsis, new = (int(attrs[mask]) for mask in masks)
    # Of one number a vector is made by reshaping it.
    if not (put.op == "Pack" or put.traits.reshapes) or steps is None or (steps != 1).any():
        return None
    rest = (1 << len(steps)) - 2
    whole = begin == rest and end & ~1 == rest
    return put.inputs[0] if whole and shrunk == 1 and not ellipsis and not new else None


def joined(node: Node, base: Value) -> list[tuple[Value, Place]] | None:
    """What a node puts together, and where each piece goes in the memory of its result.

    None if it does something else.
    """
    shape = node.out_shapes[0]
    if node.op not in ("ConcatV2", "Concat", "Pack") or shape is None or None in shape:
        return None
    whole = Place.of(base, _known(shape))
    if node.op == "Pack":
        axis = int(node.attrs["axis"]) % len(whole.shape)
        return [(v, whole.part(axis, i, 1).without(axis)) for i, v in enumerate(node.inputs)]
    data = node.inputs[:-1] if node.op == "ConcatV2" else node.inputs[1:]
    given = node.inputs[-1 if node.op == "ConcatV2" else 0].node.const()
    if given is None or any(v.shape is None or None in v.shape for v in data):
        return None
    axis, start, pieces = int(given) % len(whole.shape), 0, []
    for value in data:
        length = _known(value.shape)[axis]
        pieces.append((value, whole.part(axis, start, length)))
        start += length
    return pieces if start == whole.shape[axis] else None
