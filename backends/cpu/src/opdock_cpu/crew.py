"""The process's helper threads, and calls of generated code that they take part in.

There are as many helpers as calls ask for, started when the first one does, and all sessions share
them. How work gets to them is told in `jit/crew_source.py`: nobody ever waits for a helper that has
not begun. They run no Python.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import platform
import sys
import threading
from typing import Any, Final

import numpy as np

from opdock.plugin import sheltered
from opdock_cpu.jit import llvm
from opdock_cpu.jit.compiled import caller, ffi
from opdock_cpu.jit.crew_source import WORDS, Call, Head, known, source
from opdock_cpu.sharing import GOVERNOR, Governor, least
from opdock_cpu.signals import thread
from opdock_cpu.threads import threads

__all__ = ["Crew", "Held", "Loop", "alone", "crew", "sharing", "why_none"]

_SPINS: Final = 1 << 10
"""Looks of an idle helper, one or two microseconds, before it sleeps."""
_LINE: Final = 128
_NANO: Final = 1e-9


@functools.cache
def why_none() -> str:
    """Why there are no helpers; empty where there are."""
    if not (sys.platform == "linux" and known(platform.machine())):
        return f"threads do not help each other on {sys.platform} ({platform.machine()})"
    return llvm.why_not()


class Crew:
    """Helper threads and what they share.

    Attributes:
        head: the address of what is shared.
        run: that of the code that opens a loop.
        loops, chunks, helped: how many loops were handed out, how many chunks they had, and how
            many of those helpers did; what threads count at the same moment may be missing.

    Raises:
        ImportError, OSError, RuntimeError: there is no generated code.
    """

    def __init__(self) -> None:
        text = source("NAME", platform.machine())
        name = f"opdock_crew_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        self._code = llvm.compile_ir(text.replace("@NAME(", f"@{name}("), name)
        raw = np.zeros(WORDS + _LINE // 8, np.int64)
        start = -raw.ctypes.data % _LINE // 8
        self._words = raw[start : start + WORDS]
        self.head = int(self._words.ctypes.data)
        self._begin()

    def _begin(self) -> None:
        self.loops = self.chunks = self.helped = 0
        self._threads: list[threading.Thread] = []
        self._lock = threading.RLock()
        self._call(self._code.address)
        self._words[Head.SPINS] = _SPINS
        self.run = int(self._words[Head.RUN])

    def _call(self, address: int) -> None:
        caller(1)(address)(ffi().cast("void *", self.head), 0)

    def _serve(self, address: int) -> None:
        thread.ready()  # a helper may be given parts of oneDNN's
        self._call(address)

    @property
    def size(self) -> int:
        """How many helpers there are."""
        return len(self._threads)

    @property
    def all_asleep(self) -> bool:
        """Whether no helper is awake, or there is none."""
        return bool(self._words.item(Head.SLEEPERS) >= len(self._threads))

    def recruit(self, count: int) -> None:
        """Sees to it that there are so many helpers, as far as the system has room for them."""
        if len(self._threads) >= count:
            return
        with self._lock:
            while len(self._threads) < count:
                serve = int(self._words[Head.SERVE])
                helper = threading.Thread(
                    target=self._serve, args=(serve,), name="opdock-helper", daemon=True
                )
                try:
                    helper.start()
                except RuntimeError:
                    return  # the system has no room for more; whoever asked does the work
                self._threads.append(helper)

    def dismiss(self) -> None:
        """Ends the helpers, each after the chunk that it is at."""
        self._call(int(self._words[Head.QUIT]))
        for helper in self._threads:
            helper.join()

    def after_fork(self) -> None:
        """A child has no helpers, and nobody is in a loop: all is as in the beginning."""
        self._words[:] = 0
        self._begin()


_crew: Crew | None = None
_starting = threading.Lock()


def crew() -> Crew | None:
    """The process's; None where there is none, and callers work alone."""
    return _gathered() if _crew is None and not why_none() else _crew


@sheltered
def _gathered() -> Crew | None:
    global _crew
    with _starting:
        if _crew is None:
            try:
                _crew = Crew()
            except (ImportError, OSError, RuntimeError):
                return None
            atexit.register(_crew.dismiss)
        return _crew


def _after_fork() -> None:
    global _starting
    _starting = threading.Lock()
    if _crew is not None:
        _crew.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Held:
    """The words of one call.

    Attributes:
        words: see `crew_source.Call`.
        address: where they are.
    """

    __slots__ = ("address", "words")

    def __init__(self) -> None:
        lib = ffi()
        self.words: Any = lib.new("int64_t[]", Call.WORDS)
        self.address = int(lib.cast("intptr_t", self.words))


@functools.cache
def _whole() -> Held:
    held = Held()
    held.words[Call.CHUNKS] = 1
    return held


def alone() -> int:
    """The address of the words of calls that the caller computes alone, in one chunk."""
    return _whole().address


class Loop:
    """One place that calls generated code whose work is in chunks.

    A call is put between `begin` and `end`. Any number of threads may be at it at the same time.
    What its chunks are must not depend on the threads: then its results do not either.

    Args:
        governor: knows whether helpers gain anything just now.
    """

    __slots__ = ("_chunk", "_free", "_governor", "_known")

    def __init__(self, governor: Governor = GOVERNOR) -> None:
        self._governor = governor
        self._free: list[Held] = []
        self._chunk = 0.0  # the least seconds of a chunk
        self._known = True  # not after a first call of which the caller did nothing

    def begin(self, chunks: int, threads: int, quiet: bool = False) -> Held:
        """The words for a call; they are the caller's until `end`.

        Args:
            chunks: how many there are.
            threads: how many may work on them, the caller's own included.
            quiet: whether only helpers take part that are awake, watching for more after the work
                before it: this work is too short to wake one for.
        """
        try:
            held = self._free.pop()
        except IndexError:
            held = Held()
        words = held.words
        words[Call.CHUNKS], words[Call.ENTRY] = chunks, 0
        helpers = crew() if threads > 1 else None
        if helpers is not None and not (quiet and helpers.all_asleep):
            seats = 0
            if self._known and self._governor.wanted(self._chunk * chunks):
                seats = min(threads, chunks) - 1
                if not quiet:
                    helpers.recruit(seats)
            words[Call.CREW], words[Call.SEATS] = helpers.head, seats
            words[Call.ENTRY], words[Call.QUIET] = helpers.run, quiet
        return held

    def end(self, held: Held) -> None:
        """After the call."""
        words = held.words
        if words[Call.ENTRY]:
            self._learn(words)
        self._free.append(held)

    def _learn(self, words: Any) -> None:
        chunks, mine, seats = words[Call.CHUNKS], words[Call.MINE], words[Call.SEATS]
        if mine:
            # What its own chunks took the caller says what all of them would have taken it.
            self._chunk = least(self._chunk, words[Call.OWN] * _NANO / mine)
        self._known = self._chunk > 0
        if words[Call.QUIET] and mine == chunks:
            return  # that nobody was awake says nothing of what several threads gain
        if self._known:
            self._governor.judge(seats > 0, words[Call.SPENT] * _NANO, self._chunk * chunks)
        if seats and _crew is not None:
            _crew.loops += 1
            _crew.chunks += chunks
            _crew.helped += chunks - mine


def sharing() -> str:
    """What became of work that could be shared out over threads, in words."""
    if why_none():
        return f"generated code runs on one thread: {why_none()}"
    if _crew is None or not _crew.loops:
        return f"{threads()} threads at most; no work was shared out yet"
    now = "is" if GOVERNOR.shares else "is not, as it lost time,"
    return (
        f"{threads()} threads at most; {_crew.loops} loops were shared out, and helpers did "
        f"{100 * _crew.helped / _crew.chunks:.0f} % of their chunks; short work {now} shared out "
        "just now"
    )
