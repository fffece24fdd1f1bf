"""Segments at run time: a compiled program between a device's buffers and a session's variables."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock import errors
from opdock.compiler.ir.block import Node
from opdock.devices.segment import Loan, SegmentStream, SegmentVariable
from opdock.kernels.select.streams import RandomStream
from opdock.runtime.program.builtin import read_variable
from opdock.runtime.recover.located import culprit
from opdock.runtime.resources import NO_BUFFER, ResourceManager, View, replace

__all__ = ["bind_segment", "misfit"]

Run = Callable[[Any, Any, Any], Any]
"""What is called as an `Executable` is."""

_BEYOND: Final = 1 << 40  # blocks: more than a run draws
_SHIFTS: Final = tuple(range(0, 128, 32))
_WORD: Final = (1 << 32) - 1
_FORM: Final = "a pair of results ({}) and new values of variables ({})"


def bind_segment(
    node: Node, resources: ResourceManager, call: Run, cells: tuple[Any, ...] = ()
) -> Callable[..., Any]:
    """The callable of a segment's node: takes its inputs and the cells of its variables.

    Variables that it updates are locked from when they are read until they are written, so that no
    other update is lost in between. They keep their values until the whole segment has succeeded:
    an executable that fails, whenever it does, has lost nothing.

    Args:
        node: the segment's.
        resources: has the random streams.
        call: the executable, or what checks it.
        cells: those of its variables, where every step has the same; then they may be left out.
    """
    segment = node.attrs["segment"]
    count, single = len(segment.inputs), len(node.out_dtypes) == 1
    nowhere = np.zeros((0, 6), np.uint32)
    outputs, written = _sizes(node)

    def run(data: Any, state: Any, places: Any) -> Any:
        answer = call(data, state, places)
        try:
            results, fresh = answer
            if len(results) == outputs and len(fresh) == written:
                return answer
        except (TypeError, ValueError):
            pass
        raise errors.InternalError(None, None, f"{culprit(node)} {misfit(node, answer)}")

    def plain(*inputs: Any) -> Any:
        results, _ = run(inputs, (), nowhere)
        return results

    def alone(*inputs: Any) -> Any:
        answer = call(inputs, (), nowhere)
        try:
            (result,), () = answer
        except (TypeError, ValueError):
            raise errors.InternalError(
                None, None, f"{culprit(node)} {misfit(node, answer)}"
            ) from None
        return result

    if not segment.variables and not segment.streams:
        return alone if single else plain
    variables = _Variables(segment.variables, node.attrs["executable"], run)
    streams = _Places(segment.streams, resources) if segment.streams else None
    if streams is None:

        def updating(*inputs: Any) -> Any:
            results = variables.step(inputs[:count], inputs[count:] or cells, nowhere)
            return results[0] if single else results

        return updating

    def drawing(*inputs: Any) -> Any:
        with streams.taken() as places:
            results = variables.step(inputs[:count], inputs[count:] or cells, places)
        return results[0] if single else results

    return drawing


def misfit(node: Node, answer: Any) -> str:
    """What is wrong with the form of an executable's answer; empty where nothing is."""
    given, expected = None, _sizes(node)
    if isinstance(answer, (tuple, list)) and len(answer) == 2:
        given = tuple(len(x) if hasattr(x, "__len__") else type(x).__name__ for x in answer)
        if given == expected:
            return ""
    told = type(answer).__name__ if given is None else _FORM.format(*given)
    return f"returned {told}; expected {_FORM.format(*expected)}"


def _sizes(node: Node) -> tuple[int, int]:
    """How many results and how many new values of variables an executable gives."""
    segment = node.attrs["segment"]
    return len(segment.outputs), sum(v.written for v in segment.variables)


class _Variables:
    """A segment's runs on the variables that it gets as cells."""

    def __init__(self, variables: Sequence[SegmentVariable], executable: Any, run: Run) -> None:
        self._variables = variables
        self._executable = executable
        self._run = run
        # For each new value the index of its variable, and whether it follows from the old one.
        self._writes = [(i, v.read) for i, v in enumerate(variables) if v.written]
        self._updates_all = all(v.read and v.written for v in variables)
        self._unread = [i for i, v in enumerate(variables) if not v.read]
        self._met = _Met((), ())

    def step(self, data: tuple[Any, ...], cells: tuple[Any, ...], places: Any) -> Any:
        """Runs once: reads the variables, and writes them when all has succeeded."""
        met = self._met
        if met.cells is not cells and met.cells != cells:
            met = self._met = _Met(cells, self._writes)
        if not met.written:
            seen = met.view.values
            results, _ = self._run(data, self._seen(met) if seen is None else seen, places)
            return results
        taken = 0
        try:
            for acquire in met.acquire:
                acquire()
                taken += 1
            boxes = [cell.box for cell in cells]
            state = [box[0] for box in boxes]
            if self._unread or not NO_BUFFER.isdisjoint(map(type, state)):
                self._settle(cells, state)
            results, fresh = self._run(data, state, places)
            before = boxes if self._updates_all else [
                boxes[i] if update else None for i, update in self._writes
            ]  # fmt: skip
            replace(met.written, fresh, before)
        finally:
            for release in met.release[:taken]:
                release()
        return results

    def _seen(self, met: _Met) -> Sequence[Any]:
        """The values of variables that it only reads."""
        state: Sequence[Any] = met.view.look(met.cells)
        if met.view.values is None:
            state = list(state)
            self._settle(met.cells, state)
        return state

    def _settle(self, cells: Sequence[Any], state: list[Any]) -> None:
        """Copies what other executables have lent, and takes out what is not read.

        Raises:
            OpError: a variable that is read has no value.
        """
        for i in self._unread:
            state[i] = None
        for i, (variable, value) in enumerate(zip(self._variables, state, strict=True)):
            if type(value) is Loan and value.owner is not self._executable:
                state[i] = cells[i].settle(value)
            elif value is None and variable.read:
                state[i] = read_variable(cells[i])  # which says what is missing


class _Met:
    """The variables of a run: most programs meet the same ones in every step.

    Attributes:
        cells: all of them.
        view: what they hold, where the run writes none.
        written: those that get new values.
        acquire, release: of what keeps out whoever else would update one of them; in one order for
            all, so that two segments never wait for each other.
    """

    __slots__ = ("acquire", "cells", "release", "view", "written")

    def __init__(self, cells: tuple[Any, ...], writes: Sequence[tuple[int, bool]]) -> None:
        self.cells = cells
        self.view = View()
        self.written = [cells[i] for i, _ in writes]
        updated = [cells[i] for i, update in writes if update]
        locks = [cell.lock for cell in sorted(updated, key=id)]
        self.acquire = [lock.acquire for lock in locks]
        self.release = [lock.release for lock in locks]


class _Places:
    """Where the random streams of a segment stand."""

    def __init__(self, streams: Sequence[SegmentStream], resources: ResourceManager) -> None:
        self._streams = streams
        self._kept: list[RandomStream] = [resources.node_state(s.name, s.start) for s in streams]
        self._first, self._drawing = threading.RLock(), False

    @contextlib.contextmanager
    def taken(self) -> Iterator[npt.NDArray[np.uint32]]:
        """The places for one run: a row of key and counter for each stream.

        A run that fails has drawn nothing: what takes its place draws the same.
        """
        if any(s.blocks is None for s in self._streams):
            # How much a stream gives is known once a run has told; until then, one at a time.
            with self._first:
                # A signal handler comes into such a run of its own thread, and draws beyond it.
                before, self._drawing = self._drawing, True
                beyond = _BEYOND if before else 0
                try:
                    for kept in self._kept:
                        kept.reserve(beyond)
                    yield _words([kept.reserve(0) for kept in self._kept])
                    self._reserve()
                finally:
                    self._drawing = before
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
