"""A step in two parts: what it takes from iterators and queues, then all else for those shapes.

A batch of a data set has as many examples as are left, so nothing that is computed from it has a
shape before it is there. Compiled for what has come, as for arrays that a caller feeds, the rest
of the step is fused, and its memory planned, like that of any other program.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock import errors
from opdock.compiler.ir.block import COPY, Block
from opdock.graph.nodes.operation import Tensor
from opdock.runtime.cache.variants import Entry, Variants
from opdock.runtime.program.executor import Observer
from opdock.runtime.program.program import Program
from opdock.runtime.recover.lost import runs_again
from opdock.shapes import Shape
from opdock.util.lazy import lazy

__all__ = ["InTwo", "comes_here"]

_MOST: Final = 2
"""Programs by shape: for whole batches and the last one. Where more shapes come, sentences of all
lengths say, most come once."""


Compile = Callable[[Sequence[Shape]], Program]
"""The program of the rest, given the shapes of what came."""


def comes_here(taking: Program) -> bool:
    """Whether what a program takes lies in the host's memory, with nothing to copy."""
    return not any(node.op == COPY for node in taking.block.nodes)


class InTwo:
    """What runs a step that takes first.

    Args:
        taking: takes, given what the caller feeds.
        results: the tensors of what it gives.
        compile_rest: makes what is given the caller's feeds and what came.
        fetches: how many results the step has.
    """

    overlap: None = None

    def __init__(
        self, taking: Program, results: Sequence[Tensor], compile_rest: Compile, fetches: int
    ) -> None:
        self._taking, self._first = taking, Entry(taking, plain=True)
        self._results = tuple(results)
        self._compile = compile_rest
        self._fetches = fetches
        self._rests = Variants(_MOST)
        self._latest: Entry | None = None
        self._lock = threading.RLock()

    @property
    def steps_run(self) -> int:
        """How often it ran."""
        return self._taking.steps_run

    @property
    def block(self) -> Block:
        """The nodes of the second part."""
        return self.parts[-1].block

    @property
    def parts(self) -> tuple[Program, ...]:
        """Both; of the second the program of the last step, or one for all shapes before that."""
        rest = self._latest or self._for_any
        assert isinstance(rest.program, Program)
        return self._taking, rest.program

    @property
    def shared_fetches(self) -> list[bool]:
        """None: what somebody else may hold is handed out as a copy."""
        return [False] * self._fetches

    @property
    def kept_feeds(self) -> list[int]:
        """None: the parts copy what they keep."""
        return []

    def run(self, feeds: Sequence[Any]) -> Sequence[Any]:
        """Runs one step and returns the fetched buffers.

        Raises:
            OpError: a kernel failed. If it was one of the rest, what came is lost, as it would be
                if all ran at once.
        """
        return self._step(feeds, None)

    def interpret(self, feeds: Sequence[Any], observer: Observer) -> Sequence[Any]:
        """The same for an observer."""
        return self._step(feeds, observer)

    def _step(self, feeds: Sequence[Any], observer: Observer | None) -> Sequence[Any]:
        came = _run(self._first, feeds, observer)
        return self._go_on([*feeds, *came], came, observer)

    def _go_on(
        self, values: Sequence[Any], came: Sequence[Any], observer: Observer | None
    ) -> Sequence[Any]:
        self._latest = entry = self._entry([getattr(value, "shape", ()) for value in came])
        try:
            raw = _run(entry, values, observer)
        except errors.OpError as e:
            if not runs_again(e):
                raise
        else:
            return [_own(v) if shared else v for v, shared in zip(raw, entry.copies, strict=True)]
        # A device was lost or full, and nothing that the rest did outlasts it. What came is here.
        self._rests = Variants(_MOST)
        return self._go_on(values, came, observer)

    def _entry(self, came: Sequence[Shape]) -> Entry:
        key: list[Any] = []
        for tensor, shape in zip(self._results, came, strict=True):
            key += (tensor, shape)
        found = self._rests.get(tuple(key))
        if found is None:
            with self._lock:
                # Another thread may have been quicker.
                found = self._rests.get(tuple(key)) or self._rests.find(tuple(key), self._made)
        return found

    def _made(self, tensors: Sequence[Tensor], came: Sequence[Shape]) -> Entry:
        try:
            return Entry(self._compile(came), plain=True)
        except errors.InvalidArgumentError:
            return self._for_any  # what does not fit is told by the kernel that meets it

    @lazy
    def _for_any(self) -> Entry:
        """The program for all shapes that the graph allows."""
        return Entry(self._compile([t._shape for t in self._results]), plain=True)


def _run(entry: Entry, values: Sequence[Any], observer: Observer | None) -> Sequence[Any]:
    if entry.keep:
        values = entry.own(values)
    if observer is None:
        return entry.program.run(values)
    assert isinstance(entry.program, Program)
    return entry.program.interpret(values, observer)


def _own(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value
