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
_NONE: Final[list[Any]] = []


def bind_segment(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    """The callable of a segment's node: takes its inputs and the cells of its variables.

    Variables that it updates are locked from when they are read until they are written, so that no
    other update is lost in between. They keep their values until the whole segment has succeeded:
    an executable that fails, whenever it does, has lost nothing.
    """
    segment, executable = node.attrs["segment"], node.attrs["executable"]
    count, single = len(segment.inputs), len(node.out_dtypes) == 1
    nowhere = np.zeros((0, 6), np.uint32)

    def plain(*inputs: Any) -> Any:
        results, _ = executable(inputs, (), nowhere)
        return results[0] if single else results

    if not segment.variables and not segment.streams:
        return plain
    variables = _Variables(segment.variables, executable)
    streams = _Places(segment.streams, resources) if segment.streams else None
    if streams is None:

        def run(*inputs: Any) -> Any:
            results = variables.step(inputs[:count], inputs[count:], nowhere)
            return results[0] if single else results

        return run

    def drawing(*inputs: Any) -> Any:
        with streams.taken() as places:
            results = variables.step(inputs[:count], inputs[count:], places)
        return results[0] if single else results

    return drawing


class _Variables:
    """A segment's runs on the variables that it gets as cells."""

    def __init__(self, variables: Sequence[SegmentVariable], executable: Any) -> None:
        self._executable = executable
        # Whether a variable is read, and whether it is an update that other updates have to await.
        self._needs = [(v.read, v.read and v.written) for v in variables]
        self._writes = [(i, v.read) for i, v in enumerate(variables) if v.written]
        self._updates = [i for i, (_, update) in enumerate(self._needs) if update]
        self._seen: tuple[tuple[Any, ...], list[Any]] = ((), [])

    def step(self, data: tuple[Any, ...], cells: tuple[Any, ...], places: Any) -> Any:
        """Runs once: reads the variables, and writes them when all has succeeded."""
        locks, taken = self._locks(cells) if self._updates else _NONE, 0
        try:
            for lock in locks:
                lock.acquire()
                taken += 1
            state, versions = self._read(cells)
            results, fresh = self._executable(data, state, places)
            for (i, update), value in zip(self._writes, fresh, strict=True):
                if update:
                    # What somebody has assigned meanwhile stays.
                    cells[i].update(value, versions[i])
                else:
                    cells[i].write(value)
        finally:
            for lock in locks[:taken]:
                lock.release()
        return results

    def _locks(self, cells: tuple[Any, ...]) -> list[Any]:
        """The locks that keep out whoever else would update one of the variables.

        In one order for all, so that two segments never wait for each other.
        """
        seen, locks = self._seen
        if seen != cells:
            locks = [c.lock for c in sorted((cells[i] for i in self._updates), key=id)]
            self._seen = (cells, locks)
        return locks

    def _read(self, cells: Sequence[Any]) -> tuple[list[Any], list[int]]:
        """The values that are needed, and the versions of those that are updated."""
        state: list[Any] = []
        versions: list[int] = []
        for cell, (read, update) in zip(cells, self._needs, strict=True):
            value, version = None, 0
            if update:
                value, version = cell.held()
            elif read:
                value = cell.value
            if type(value) is Loan and value.owner is not self._executable:
                value = cell.settle(value)
            if value is None and read:
                cell.read()  # which says what is missing
            state.append(value)
            versions.append(version)
        return state, versions


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
