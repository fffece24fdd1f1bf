"""Segments at run time: a compiled program between a device's buffers and a session's variables."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.compiler.ir.block import Node
from opdock.devices.segment import Loan, SegmentStream, SegmentVariable
from opdock.kernels.select.streams import RandomStream
from opdock.runtime.resources import ResourceManager

__all__ = ["bind_segment"]

_SHIFTS: Final = tuple(range(0, 128, 32))
_WORD: Final = (1 << 32) - 1
_NOTHING: Final = contextlib.nullcontext()


def bind_segment(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    """The callable of a segment's node: takes its inputs and the cells of its variables.

    Variables that it updates are locked from when they are read until they are written, so that no
    other update is lost in between. They keep their values until the whole segment has succeeded:
    an executable that fails, whenever it does, has lost nothing.
    """
    segment, executable = node.attrs["segment"], node.attrs["executable"]
    count, single = len(segment.inputs), len(node.out_dtypes) == 1
    variables = _Variables(segment.variables, executable)
    streams = _Places(segment.streams, resources) if segment.streams else None
    nowhere = np.zeros((0, 6), np.uint32)

    def plain(*inputs: Any) -> Any:
        results, _ = executable(inputs, (), nowhere)
        return results[0] if single else results

    def run(*inputs: Any) -> Any:
        data, cells = inputs[:count], inputs[count:]
        with variables.locked(cells), streams.taken() if streams else _NOTHING as places:
            state, versions = variables.read(cells)
            results, fresh = executable(data, state, nowhere if places is None else places)
            variables.write(cells, fresh, versions)
        return results[0] if single else results

    return run if segment.variables or streams else plain


class _Variables:
    """What a segment does to the variables that it gets as cells."""

    def __init__(self, variables: Sequence[SegmentVariable], executable: Any) -> None:
        self._executable = executable
        self._count = len(variables)
        self._reads = [i for i, v in enumerate(variables) if v.read]
        self._writes = [(i, v.read) for i, v in enumerate(variables) if v.written]
        self._updates = [i for i, read in self._writes if read]

    def locked(self, cells: Sequence[Any]) -> contextlib.AbstractContextManager[Any]:
        """Keeps out whoever else would update one of the variables."""
        if not self._updates:
            return _NOTHING
        # In one order for all, so that two segments never wait for each other.
        return _Locks(sorted((cells[i] for i in self._updates), key=id))

    def read(self, cells: Sequence[Any]) -> tuple[list[Any], list[int]]:
        """The values that are needed, and the versions that they are."""
        state: list[Any] = [None] * self._count
        versions = [0] * self._count
        for i in self._updates:
            state[i], versions[i] = cells[i].held()
        for i in self._reads:
            value = cells[i].value if state[i] is None else state[i]
            if type(value) is Loan and value.owner is not self._executable:
                value = cells[i].settle(value)
            if value is None:
                cells[i].read()  # which says what is missing
            state[i] = value
        return state, versions

    def write(self, cells: Sequence[Any], fresh: Sequence[Any], versions: Sequence[int]) -> None:
        """The new values; what somebody has assigned to an update's variable meanwhile stays."""
        for (i, read), value in zip(self._writes, fresh, strict=True):
            if read:
                cells[i].update(value, versions[i])
            else:
                cells[i].write(value)


class _Locks:
    """The locks of variables, taken together: in less time than `contextlib.ExitStack` needs."""

    __slots__ = ("_cells", "_taken")

    def __init__(self, cells: Sequence[Any]) -> None:
        self._cells = cells
        self._taken = 0

    def __enter__(self) -> None:
        try:
            for cell in self._cells:
                cell.lock.acquire()
                self._taken += 1
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        while self._taken:
            self._taken -= 1
            self._cells[self._taken].lock.release()


class _Places:
    """Where the random streams of a segment stand."""

    def __init__(self, streams: Sequence[SegmentStream], resources: ResourceManager) -> None:
        self._streams = streams
        self._kept: list[RandomStream] = [resources.node_state(s.name, s.start) for s in streams]
        self._first = threading.Lock()

    @contextlib.contextmanager
    def taken(self) -> Iterator[npt.NDArray[np.uint32]]:
        """The places for one run: a row of key and counter for each stream.

        A run that fails has drawn nothing: what takes its place draws the same.
        """
        if any(s.blocks is None for s in self._streams):
            # How much a stream gives is known once a run has told; until then, one at a time.
            with self._first:
                yield _words([kept.reserve(0) for kept in self._kept])
                self._reserve()
            return
        places = self._reserve()
        try:
            yield _words(places)
        except BaseException:
            for kept, stream, place in zip(self._kept, self._streams, places, strict=True):
                kept.give_back(place, stream.blocks or 0)
            raise

    def _reserve(self) -> list[tuple[int, int]]:
        both = zip(self._kept, self._streams, strict=True)
        return [kept.reserve(s.blocks or 0) for kept, s in both]


def _words(places: Sequence[tuple[int, int]]) -> npt.NDArray[np.uint32]:
    rows = [
        [*(key >> i & _WORD for i in _SHIFTS[:2]), *(counter >> i & _WORD for i in _SHIFTS)]
        for key, counter in places
    ]
    return np.array(rows, np.uint32)
