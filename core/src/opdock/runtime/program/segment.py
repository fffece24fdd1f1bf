"""Segments at run time: a compiled program between a device's buffers and a session's variables."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.compiler.ir.block import Node
from opdock.devices.segment import Loan, SegmentStream
from opdock.kernels.select.streams import RandomStream
from opdock.runtime.resources import ResourceManager

__all__ = ["bind_segment"]

_SHIFTS: Final = tuple(range(0, 128, 32))
_WORD: Final = (1 << 32) - 1


def bind_segment(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    """The callable of a segment's node: takes its inputs and the cells of its variables.

    Variables that it updates are locked from when they are read until they are written, so that no
    other update is lost in between. Nothing is written unless the whole segment succeeds.
    """
    segment, executable = node.attrs["segment"], node.attrs["executable"]
    count = len(segment.inputs)
    variables = segment.variables
    reads = [i for i, v in enumerate(variables) if v.read]
    writes = [i for i, v in enumerate(variables) if v.written]
    updates = [i for i in writes if variables[i].read]
    streams = _Places(segment.streams, resources)
    single = len(node.out_dtypes) == 1

    def compute(data: Sequence[Any], cells: Sequence[Any], places: Any) -> Sequence[Any]:
        state: list[Any] = [None] * len(cells)
        versions = [0] * len(cells)
        for i in reads:
            held, versions[i] = cells[i].held()
            if type(held) is Loan:
                held = held if held.owner is executable else cells[i].settle(held)
            state[i] = cells[i].read() if held is None else held
        results, fresh = executable(data, state, places)
        for i, value in zip(writes, fresh, strict=True):
            if variables[i].read:
                # What somebody has assigned meanwhile came later, and stays.
                cells[i].update(value, versions[i])
            else:
                cells[i].write(value)
        return results  # type: ignore[no-any-return]

    def run(*inputs: Any) -> Any:
        cells = inputs[count:]
        with contextlib.ExitStack() as held:
            # In one order for all, so that two segments never wait for each other.
            for cell in sorted((cells[i] for i in updates), key=id):
                held.enter_context(cell.lock)
            places = held.enter_context(streams.taken())
            results = compute(inputs[:count], cells, places)
        return results[0] if single else tuple(results)

    return run


class _Places:
    """Where the random streams of a segment stand."""

    def __init__(self, streams: Sequence[SegmentStream], resources: ResourceManager) -> None:
        self._streams = streams
        self._kept: list[RandomStream] = [resources.node_state(s.name, s.start) for s in streams]
        self._first = threading.Lock()

    @contextlib.contextmanager
    def taken(self) -> Any:
        """The places for one run: a uint32 array, a row of key and counter for each stream."""
        known = all(s.blocks is not None for s in self._streams)
        # How much a stream gives is known once a run has told; until then, one at a time.
        with contextlib.nullcontext() if known else self._first:
            if known:
                yield self._reserved()
            else:
                yield self._words([s.reserve(0) for s in self._kept])
                self._reserved()

    def _reserved(self) -> npt.NDArray[np.uint32]:
        both = zip(self._kept, self._streams, strict=True)
        return self._words([kept.reserve(s.blocks or 0) for kept, s in both])

    def _words(self, places: Sequence[tuple[int, int]]) -> npt.NDArray[np.uint32]:
        rows = [
            [*(key >> i & _WORD for i in _SHIFTS[:2]), *(counter >> i & _WORD for i in _SHIFTS)]
            for key, counter in places
        ]
        return np.array(rows, np.uint32).reshape(-1, 6)
