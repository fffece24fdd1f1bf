"""Where planned buffers go: places in one block of memory a device, or buffers that are shared.

A device that can make buffers over parts of a block (`ArenaDevice`) gets one block, in which a
place is free again for results of any shape; on others a buffer serves results of its own shape.
"""

from __future__ import annotations

import bisect
import math
from typing import Any, Final, NamedTuple

from opdock import shapes
from opdock.compiler.place.target import Target
from opdock.devices.answers import as_buffer, strange
from opdock.devices.protocols import ArenaDevice, has_arena
from opdock.dtypes import DType
from opdock.late import record
from opdock.shapes import Shape

ALIGNMENT: Final = 64
"""Of places in a block: a cache line, and the widest vector."""


@record(frozen=True, slots=True, eq=False)
class Form:
    """What a result's buffer must be like; `Forms` makes one of each, so that few are compared.

    Attributes:
        nbytes: how much memory the elements take.
    """

    target: Target
    shape: tuple[int, ...]
    dtype: DType
    nbytes: int


class Forms:
    """The forms of a program, each made once."""

    def __init__(self) -> None:
        # By the types' numbers, whose hashes are no calls of Python.
        self._known: dict[tuple[Target, Shape, int], Form | None] = {}

    def of(self, target: Target, shape: Shape, dtype: DType) -> Form | None:
        """The form of elements of a type; None where the shape is not known."""
        key = target, shape, dtype._enum
        if key not in self._known:
            self._known[key] = None
            if shape is not None and None not in shape:
                known = tuple([n for n in shape if n is not None])
                self._known[key] = Form(target, known, dtype, math.prod(known) * dtype.size)
        return self._known[key]


class Planned(NamedTuple):
    """A buffer to allocate; `offset` is its place in the device's block, if it is in one."""

    form: Form
    offset: int | None = None


class Buffers:
    """Hands out buffers by index while a program is planned.

    Attributes:
        planned: the buffers, by index.
        blocks: how large a block each device needs.
    """

    def __init__(self) -> None:
        self.planned: list[Planned] = []
        self.blocks: dict[Target, _Block] = {}
        self._free: dict[Form, list[int]] = {}
        self._index: dict[Planned, int] = {}
        self._in_block: dict[Form, _Block | None] = {}

    def take(self, form: Form) -> int:
        """The index of a buffer of that form that nobody uses."""
        block = self._block_of(form)
        if block is None:
            idle = self._free.get(form)
            return idle.pop() if idle else self._new(Planned(form))
        planned = Planned(form, block.take(form.nbytes))
        # The same place in the same form is the same buffer.
        found = self._index.get(planned)
        if found is None:
            found = self._index[planned] = self._new(planned)
        return found

    def give(self, index: int) -> None:
        """Says that a buffer's value is not needed any more."""
        planned = self.planned[index]
        if planned.offset is None:
            self._free.setdefault(planned.form, []).append(index)
        else:
            self.blocks[planned.form.target].give(planned.offset, planned.form.nbytes)

    @property
    def nbytes(self) -> int:
        """The size of all blocks and buffers."""
        alone = sum(p.form.nbytes for p in self.planned if p.offset is None)
        return alone + sum(b.size for b in self.blocks.values())

    def _block_of(self, form: Form) -> _Block | None:
        """The block in which buffers of a form are places, or None where each is by itself."""
        if form not in self._in_block:
            plain = form.dtype.is_numpy_compatible and form.dtype.name != "string"
            placed = plain and has_arena(form.target.device)
            self._in_block[form] = self.blocks.setdefault(form.target, _Block()) if placed else None
        return self._in_block[form]

    def _new(self, planned: Planned) -> int:
        self.planned.append(planned)
        return len(self.planned) - 1


class _Block:
    """A block of memory and what of it is free: the smallest place that fits is taken."""

    def __init__(self) -> None:
        self.size = 0
        # A place that is free, by its size and, as no two touch, by where it begins and ends.
        self._by_size: list[tuple[int, int]] = []  # (size, offset), in order
        self._from: dict[int, int] = {}
        self._until: dict[int, int] = {}

    @property
    def free(self) -> list[tuple[int, int]]:
        """The free places as (offset, size), in order."""
        return sorted((offset, end - offset) for offset, end in self._from.items())

    def take(self, nbytes: int) -> int:
        size = _rounded(nbytes)
        at = bisect.bisect_left(self._by_size, (size, 0))
        if at < len(self._by_size):
            found, offset = self._by_size[at]
            self._close(offset, found)
            if found > size:
                self._open(offset + size, found - size)
            return offset
        # What is free at the end becomes part of the new place.
        offset = self._until.get(self.size, self.size)
        if offset < self.size:
            self._close(offset, self.size - offset)
        self.size = offset + size
        return offset

    def give(self, offset: int, nbytes: int) -> None:
        end = offset + _rounded(nbytes)
        after = self._from.get(end)
        if after is not None:
            self._close(end, after - end)
            end = after
        before = self._until.get(offset)
        if before is not None:
            self._close(before, offset - before)
            offset = before
        self._open(offset, end - offset)

    def _open(self, offset: int, size: int) -> None:
        bisect.insort(self._by_size, (size, offset))
        self._from[offset], self._until[offset + size] = offset + size, offset

    def _close(self, offset: int, size: int) -> None:
        del self._by_size[bisect.bisect_left(self._by_size, (size, offset))]
        del self._from[offset], self._until[offset + size]


def _rounded(nbytes: int) -> int:
    return max(-(-nbytes // ALIGNMENT), 1) * ALIGNMENT


def allocate(buffers: list[Planned], blocks: dict[Target, int]) -> list[Any]:
    """The buffers, by index.

    Raises:
        OpError, MemoryError: a device cannot give what is asked for.
    """
    made: list[Any] = [None] * len(buffers)
    for target, size in blocks.items():
        inside = [(i, b.offset, b.form) for i, b in enumerate(buffers)
                  if b.offset is not None and b.form.target is target]  # fmt: skip
        places = [(offset, form.shape, form.dtype) for _, offset, form in inside]
        device = target.device
        assert has_arena(device)  # or nothing would have been planned in a block
        for (i, _, _), buffer in zip(inside, _arena(device, size, places), strict=True):
            made[i] = _fitting(buffer, buffers[i].form, "arena")
    for i, planned in enumerate(buffers):
        if planned.offset is None:
            buffer = planned.form.target.device.empty(planned.form.shape, planned.form.dtype)
            made[i] = _fitting(buffer, planned.form, "empty")
    return made


def _fitting(buffer: Any, form: Form, what: str) -> Any:
    """The buffer that a device gave; InternalError if it has not the shape that was asked for."""
    device = form.target.device
    if tuple(as_buffer(buffer, device, what).shape) == form.shape:
        return buffer
    raise strange(buffer, device, what, f"a buffer of shape {shapes.text(form.shape)}")


def _arena(device: ArenaDevice, size: int, places: list[Any]) -> list[Any]:
    given = device.arena(size, places)
    if not isinstance(given, (list, tuple)) or len(given) != len(places):
        raise strange(given, device, "arena", f"a list of {len(places)} buffers")
    return list(given)


__all__ = ["ALIGNMENT", "Buffers", "Form", "Forms", "Planned", "allocate"]
