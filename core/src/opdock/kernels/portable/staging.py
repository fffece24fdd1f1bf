"""Portable kernels of staging areas. An area outlives steps; elements are buffers, as they are."""

from __future__ import annotations

import itertools
import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from opdock import errors
from opdock.dtypes import DType
from opdock.kernels.array_api import ints, invalid
from opdock.kernels.expr.elements import Element, element
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


class _Staged(NamedTuple):
    """A tensor, and how many bytes it has."""

    element: Element
    size: int


Tuple = list[_Staged]
Partial = list[_Staged | None]
Wait = Callable[[threading.Condition, Callable[[], bool]], None]
_A = TypeVar("_A", bound="_Area")


class _Area:
    """What is staged, and how much of it there may be.

    Args:
        capacity: how many elements; 0 for any number.
        limit: how many bytes; 0 for any number.

    Attributes:
        changed: held by whoever looks at the area, and told of every change.
    """

    def __init__(self, capacity: int, limit: int) -> None:
        self.capacity, self.limit = capacity, limit
        self.changed = threading.Condition()
        self._bytes = 0

    def __len__(self) -> int:
        raise NotImplementedError

    def _await_room(self, size: int, wait: Wait, counts: bool = True) -> None:
        """Waits until so many bytes fit, and another element if it `counts`."""
        if 0 < self.limit < size:
            raise errors.ResourceExhaustedError(
                None, None,
                f"Attempted to insert tensors with combined size of '{size}' bytes into Staging "
                f"Area with a memory limit of '{self.limit}'.",
            )  # fmt: skip
        wait(
            self.changed,
            lambda: (
                (not self.limit or self._bytes + size <= self.limit)
                and not (counts and 0 < self.capacity <= len(self))
            ),
        )

    def _change(self, size: int) -> None:
        self._bytes += size
        self.changed.notify_all()


class _Line(_Area):
    """Tuples in the order in which they came."""

    def __init__(self, capacity: int, limit: int) -> None:
        super().__init__(capacity, limit)
        self._tuples: deque[Tuple] = deque()

    def __len__(self) -> int:
        return len(self._tuples)

    def put(self, values: Tuple, wait: Wait) -> None:
        """Adds a tuple when there is room.

        Raises:
            ResourceExhaustedError: there is never room for it.
        """
        size = _size(values)
        with self.changed:
            self._await_room(size, wait)
            self._tuples.append(values)
            self._change(size)

    def take(self, wait: Wait) -> Tuple:
        """The first tuple, when there is one."""
        with self.changed:
            wait(self.changed, lambda: bool(self._tuples))
            found = self._tuples.popleft()
            self._change(-_size(found))
        return found

    def peek(self, index: int, wait: Wait) -> Tuple:
        """The tuple in some place, when there are as many; it stays.

        Raises:
            InvalidArgumentError: the index is negative.
        """
        if index < 0:
            raise invalid(f"StagePeek: index must be >= 0, got {index}")
        with self.changed:
            wait(self.changed, lambda: index < len(self._tuples))
            return self._tuples[index]

    def clear(self) -> None:
        """Drops all."""
        with self.changed:
            self._tuples.clear()
            self._change(-self._bytes)


class _Map(_Area):
    """Tuples by key. Parts of one can be put and taken; it is there when all parts have come.

    Args:
        capacity, limit: as for any area.
        ordered: whether a take without a key gives the smallest key.
    """

    def __init__(self, capacity: int, limit: int, ordered: bool) -> None:
        super().__init__(capacity, limit)
        self._ordered = ordered
        self._tuples: dict[int, Partial] = {}
        self._incomplete: dict[int, Partial] = {}

    def __len__(self) -> int:
        return len(self._tuples)

    @property
    def incomplete(self) -> int:
        """How many tuples lack parts."""
        return len(self._incomplete)

    def put(self, key: int, indices: Sequence[int], values: Tuple, width: int, wait: Wait) -> None:
        """Adds the parts in some places of a tuple of so many, when there is room.

        Raises:
            InvalidArgumentError: a place is none, or taken.
            ResourceExhaustedError: there is never room for them.
        """
        _check_places(key, indices, width)
        if len(indices) != len(values):
            raise invalid(f"{len(values)} values for key '{key}', but {len(indices)} indices")
        size, whole = _size(values), len(indices) == width
        with self.changed:
            # What is begun counts in bytes alone, or nobody could finish it.
            self._await_room(size, wait, counts=whole)
            begun = self._incomplete.get(key, [None] * width)
            parts: Partial = [None] * width if whole else list(begun)
            for i, value in zip(indices, values, strict=True):
                if parts[i] is not None:
                    raise invalid(
                        f"The tensor for index '{i}' for key '{key}' was already initialized "
                        f"'{width}'."
                    )
                parts[i] = value
            if any(p is None for p in parts):
                self._incomplete[key] = parts
                self._change(size)
                return
            if not whole:
                self._incomplete.pop(key, None)
            if key in self._tuples:
                # As in TF the one that came first stays.
                size -= _size(parts)
            else:
                self._tuples[key] = parts
            self._change(size)

    def take(
        self, key: int | None, indices: Sequence[int], wait: Wait, keep: bool = False
    ) -> tuple[int, Tuple]:
        """The parts in some places of a tuple, when it is complete.

        Args:
            key: which; None for any.
            indices: the places.
            wait: waits until a condition holds.
            keep: whether they stay.

        Returns:
            The key and the parts.

        Raises:
            InvalidArgumentError: a place is none, or empty by now.
        """
        with self.changed:
            wait(self.changed, lambda: bool(self._tuples) if key is None else key in self._tuples)
            if key is None:
                key = min(self._tuples) if self._ordered else next(iter(self._tuples))
            parts = self._tuples[key]
            _check_places(key, indices, len(parts))
            found = [_part(parts, key, i) for i in indices]
            if not keep:
                for i in indices:
                    parts[i] = None
                if all(p is None for p in parts):
                    del self._tuples[key]
                self._change(-_size(found))
        return key, found

    def clear(self) -> None:
        """Drops all."""
        with self.changed:
            self._tuples.clear()
            self._incomplete.clear()
            self._change(-self._bytes)


def _part(parts: Partial, key: int, index: int) -> _Staged:
    part = parts[index]
    if part is None:
        raise invalid(f"Tensor at index '{index}' for key '{key}' has already been removed.")
    return part


def _check_places(key: int, indices: Sequence[int], width: int) -> None:
    if any(a >= b for a, b in itertools.pairwise(indices)):
        raise invalid(f"Indices are not strictly ordered: {list(indices)}")
    for i in indices:
        if not 0 <= i < width:
            raise invalid(f"Index '{i}' for key '{key}' was out of bounds '{width}'.")


def _size(values: Sequence[_Staged | None]) -> int:
    return sum(v.size for v in values if v is not None)


# ---------------------------------------------------------------- kernels
class _Found(Generic[_A]):
    """The area of a node, which it finds by name or makes.

    Args:
        sig: the node.
        kind: what areas of the sort are called among a session's resources.
        make: from capacity and memory limit to a new area.
    """

    def __init__(self, sig: NodeSig, kind: str, make: Callable[[int, int], _A]) -> None:
        assert sig.resources is not None
        self._resources, self._kind, self._attrs = sig.resources, kind, sig.attrs
        self._name = sig.attrs["shared_name"] or sig.name
        self._make, self.wait = make, sig.resources.wait

    def __call__(self) -> _A:
        attrs = self._attrs
        found: _A = self._resources.get_or_create(
            self._kind, attrs["container"], self._name,
            lambda: self._make(attrs["capacity"], attrs["memory_limit"]),
        )  # fmt: skip
        return found


def _line(sig: NodeSig) -> _Found[_Line]:
    return _Found(sig, "staging", _Line)


def _map(sig: NodeSig) -> _Found[_Map]:
    ordered = sig.op.startswith("Ordered")
    kind = "ordered_staging_map" if ordered else "staging_map"
    return _Found(sig, kind, lambda capacity, limit: _Map(capacity, limit, ordered))


def _given(values: Sequence[Any], sig: NodeSig) -> Tuple:
    types = sig.in_dtypes[len(sig.in_dtypes) - len(values) :]
    return [_Staged(element(v, sig), _bytes(v, t)) for v, t in zip(values, types, strict=True)]


def _bytes(value: Any, dtype: DType) -> int:
    """The bytes of a buffer; of strings those that they are made of."""
    if dtype.np.kind == "O":
        return sum(len(text) for text in np.ravel(value))
    return int(math.prod(value.shape) * dtype.np.itemsize)


def _handed(found: Tuple, sig: NodeSig, types: Sequence[DType]) -> Any:
    if len(found) != len(types):
        raise invalid(f"Mismatch stage/unstage: {len(found)} vs. {len(types)}")
    values = [v.element.on(sig.device) for v in found]
    return values[0] if len(values) == 1 else tuple(values)


@portable("Stage")
def stage(xp: Any, sig: NodeSig) -> Any:
    """Adds a tuple."""
    area = _line(sig)

    def run(*values: Any) -> tuple[()]:
        area().put(_given(values, sig), area.wait)
        return ()

    return run


@portable("Unstage")
def unstage(xp: Any, sig: NodeSig) -> Any:
    """Takes the first tuple."""
    area, types = _line(sig), sig.attrs["dtypes"]
    return lambda: _handed(area().take(area.wait), sig, types)


@portable("StagePeek", host_inputs=("index",))
def stage_peek(xp: Any, sig: NodeSig) -> Any:
    """The tuple in some place."""
    area, types = _line(sig), sig.attrs["dtypes"]
    return lambda index: _handed(area().peek(int(index), area.wait), sig, types)


@portable("MapStage", "OrderedMapStage", host_inputs=("key", "indices"))
def map_stage(xp: Any, sig: NodeSig) -> Any:
    """Adds parts of a tuple."""
    # A node that takes has the types of what it takes: whoever puts knows how many there are.
    area, width = _map(sig), len(sig.attrs["dtypes"])

    def run(key: Any, indices: Any, *values: Any) -> tuple[()]:
        area().put(int(key), ints(indices), _given(values, sig), width, area.wait)
        return ()

    return run


@portable("MapPeek", "OrderedMapPeek", host_inputs=("key", "indices"))
def map_peek(xp: Any, sig: NodeSig) -> Any:
    """Parts of a tuple, which stay."""
    return _take(sig, keep=True)


@portable("MapUnstage", "OrderedMapUnstage", host_inputs=("key", "indices"))
def map_unstage(xp: Any, sig: NodeSig) -> Any:
    """Takes parts of a tuple."""
    return _take(sig, keep=False)


def _take(sig: NodeSig, keep: bool) -> Any:
    area, types = _map(sig), sig.attrs["dtypes"]

    def run(key: Any, indices: Any) -> Any:
        _, found = area().take(int(key), ints(indices), area.wait, keep)
        return _handed(found, sig, types)

    return run


@portable(
    "MapUnstageNoKey", "OrderedMapUnstageNoKey", host_inputs=("indices",), host_outputs=("key",)
)
def map_unstage_no_key(xp: Any, sig: NodeSig) -> Any:
    """Takes parts of any tuple, or of that with the smallest key."""
    area, types = _map(sig), sig.attrs["dtypes"]

    def run(indices: Any) -> Any:
        key, found = area().take(None, ints(indices), area.wait)
        values = _handed(found, sig, types)
        return (np.array(key, np.int64), *(values if isinstance(values, tuple) else (values,)))

    return run


@portable(
    "StageSize", "MapSize", "OrderedMapSize", "MapIncompleteSize", "OrderedMapIncompleteSize",
    host_outputs=("size",),
)  # fmt: skip
def size(xp: Any, sig: NodeSig) -> Any:
    """How many tuples there are, or lack parts."""
    if "Incomplete" in sig.op:
        parts = _map(sig)
        return lambda: np.array(parts().incomplete, np.int32)
    area = _of(sig)
    return lambda: np.array(len(area()), np.int32)


@portable("StageClear", "MapClear", "OrderedMapClear")
def clear(xp: Any, sig: NodeSig) -> Any:
    """Drops all that is staged."""
    area = _of(sig)

    def run() -> tuple[()]:
        area().clear()
        return ()

    return run


def _of(sig: NodeSig) -> Any:
    return _line(sig) if sig.op.startswith("Stage") else _map(sig)
