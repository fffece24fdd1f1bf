"""`ProgramCache`: the program for what a step fetches, in which structure, and what it is fed.

Every other part of a session asks here. What a program was made from, the graph's nodes and where
they may be placed, tells the cache of a change; all that is kept then goes at once, and a look-up
has nothing to compare. A step under way ends with what it has found.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from opdock.dtypes import DType
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Tensor
from opdock.runtime.cache.keys import LIST, TUPLE, UNKEYED, structure_key
from opdock.runtime.cache.variants import Compile, Entry, Key, Variants
from opdock.runtime.fetch import FetchPlan
from opdock.runtime.running import Runner
from opdock.shapes import Shape

_CALLS: Final = 1024
_PROGRAMS: Final = 1024


class Call:
    """Fetches, analysed.

    Attributes:
        plan: what they stand for.
        restore: makes the caller's structure of a list with the value of each tensor.
        programs: the programs by what is fed, shared by all structures of the same elements.
        version: the cache's when the call was prepared.
        used: whether the call came again since eviction last looked at it.
    """

    __slots__ = ("plan", "programs", "restore", "used", "version")

    def __init__(self, plan: FetchPlan, programs: Programs, version: object) -> None:
        self.plan = plan
        self.restore = plan.restore
        self.programs = programs
        self.version = version
        self.used = False


class Programs(Variants):
    """The programs that compute the same elements.

    Attributes:
        computed: the elements.
        calls: how many of the calls that are kept have these programs.
    """

    __slots__ = ("calls", "computed")

    def __init__(self, computed: Hashable) -> None:
        super().__init__()
        self.computed = computed
        self.calls = 0


class Kept:
    """What was prepared since the last change; callers of its methods take turns.

    Attributes:
        version: of this and all that is in it.
        fed: the element type of the arrays for each tensor that is known to be allowed as a feed.
        named: these tensors by their names.
        calls: by the keys of what was fetched.
    """

    __slots__ = ("calls", "count", "fed", "named", "programs", "version")

    def __init__(self) -> None:
        self.version = object()
        self.fed: dict[Tensor, np.dtype[Any]] = {}
        self.named: dict[Any, Tensor] = {}
        self.calls: dict[Hashable, Call] = {}
        self.programs: dict[Hashable, Programs] = {}
        self.count = 0

    def allow(self, tensor: Tensor) -> None:
        """Notes that a tensor, or its name, may be fed arrays without another look."""
        base = tensor._dtype.base_dtype
        if base.is_numpy_compatible and base.name != "string":
            self.fed[tensor] = base.np
            self.named[tensor.name] = tensor

    def unnamed(self, feed_dict: Any) -> dict[Any, Any] | None:
        """The feeds with known tensors in place of their names; None where no name is known."""
        if self.named.keys().isdisjoint(feed_dict):
            return None
        found = {self.named.get(key, key): value for key, value in feed_dict.items()}
        # A tensor that is fed by its name as well is for a closer look.
        return found if len(found) == len(feed_dict) else None

    def add(self, key: Hashable | None, plan: FetchPlan) -> Call:
        """The call for a plan, kept for the next time."""
        computed = (UNKEYED, tuple(plan.tensors), tuple(plan.targets))
        programs = self.programs.get(computed)
        if programs is None:
            programs = self.programs[computed] = Programs(computed)
        call = Call(plan, programs, self.version)
        # A structure that has to be analysed each time finds its programs again.
        found = self.calls.setdefault(computed if key is None else key, call)
        if found is call:
            programs.calls += 1
            self._make_room()
        else:
            found.used = True
        return call

    def compile(self, call: Call, key: Key, compile_: Compile) -> Entry:
        """The program for what is fed when that has none of its own."""
        programs = call.programs
        before = len(programs)
        entry = programs.find(key, compile_)
        if self.programs.get(programs.computed) is programs:
            self.count += len(programs) - before
            self._make_room()
        return entry

    def _make_room(self) -> None:
        """Lets calls go, those first that came earliest and not again since the last look."""
        while len(self.calls) > _CALLS or (self.count > _PROGRAMS and len(self.calls) > 1):
            key = next(iter(self.calls))
            call = self.calls.pop(key)
            if call.used:
                call.used = False
                self.calls[key] = call
                continue
            programs = call.programs
            programs.calls -= 1
            if not programs.calls:
                del self.programs[programs.computed]
                self.count -= len(programs)


class ProgramCache:
    """The programs of a session, bounded, and dropped when the graph or the placement changes.

    Look-ups take no lock; what a missing call or program needs is done by one thread at a time.

    Args:
        graph: the session's graph.
        engine: compiles.

    Attributes:
        kept: all there is; a change puts an empty one in its place.
    """

    def __init__(self, graph: Graph, engine: Runner) -> None:
        self._graph = graph
        self._engine = engine
        self._lock = threading.RLock()
        self.forget()
        graph._watch(self.forget)
        engine.experience.watch(self.forget)

    def forget(self) -> None:
        """Drops everything: what it was made from has changed.

        Nothing waits for this. Whoever is compiling goes on, and adds to what nobody will find.
        """
        self.kept = Kept()

    def entries(self) -> list[Entry]:
        """All programs that a later step could find."""
        with self._lock:
            return [e for programs in self.kept.programs.values() for e in programs.values()]

    # ------------------------------------------------------------ calls
    def find(self, fetches: Any) -> Call | None:
        """The call for fetches, if it was prepared."""
        kind = type(fetches)
        calls = self.kept.calls
        try:
            if kind is list:
                call = calls[LIST, *fetches]
            elif kind is tuple:
                call = calls[TUPLE, *fetches]
            else:
                call = calls[fetches if kind is not dict else structure_key(fetches)]
        except (KeyError, TypeError):
            found = calls.get(structure_key(fetches))
            if found is None:
                return None
            call = found
        call.used = True
        return call

    def prepare(self, fetches: Any) -> Call:
        """The call for fetches.

        Raises:
            TypeError: a fetch has a wrong type.
            ValueError: a fetch names nothing.
        """
        # If the graph changes meanwhile, this goes with all that was kept before.
        kept = self.kept
        key, plan = structure_key(fetches), FetchPlan(self._graph, fetches)
        with self._lock:
            return kept.add(key, plan)

    def renew(self, call: Call) -> Call:
        """The same call, after a change."""
        with self._lock:
            return self.kept.add(None, call.plan)

    # ------------------------------------------------------------ programs
    def compile(self, call: Call, key: Key) -> Entry:
        """The program of a call for what is fed when that has none of its own."""
        with self._lock:
            # Another thread may have been quicker.
            found: Entry | None = call.programs.get(key)
            return found or self.kept.compile(call, key, functools.partial(self._compile, call))

    def _compile(self, call: Call, tensors: Sequence[Tensor], concrete: Sequence[Shape]) -> Entry:
        feeds: list[tuple[Tensor, DType, Shape]] = [
            (t, t._dtype.base_dtype, s) for t, s in zip(tensors, concrete, strict=True)
        ]
        plan = call.plan
        program = self._engine.compile(self._graph, plan.tensors, plan.targets, feeds)
        return Entry(program, self._engine.plain(program))
