"""`tf.contrib.tfprof.ProfileContext`: profiles of the steps of all sessions while it lasts."""

from __future__ import annotations

import functools
import os
import random
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Self

from opdock import errors
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.io import files, protos
from opdock.profiler.model_analyzer import Profiler
from opdock.runtime.fetch import FetchPlan
from opdock.runtime.session import BaseSession

__all__ = ["ProfileContext"]

_WARM_UP: Final = 10
_MOST_TRACED: Final = 100
_VIEWS: Final = {
    "code": Profiler.profile_python,
    "graph": Profiler.profile_graph,
    "op": Profiler.profile_operations,
    "scope": Profiler.profile_name_scope,
}


class ProfileContext:
    """Traces steps of the sessions that run inside, and profiles and keeps what they took.

    Steps are counted over all sessions, from 0; one that runs beside another is only counted.

    Args:
        profile_dir: the folder for what is kept, `profile_STEP` for a `ProfileProto`.
        trace_steps: the steps to trace; when None, the first run of each set of fetches after the
            first ten steps, and some others while few of the graph's nodes have been seen.
        dump_steps: the steps after which to keep the profile; step 100 when None.
        enabled: whether to do anything at all.
        debug: whether to keep the traces as text, too, and to tell of them.

    Raises:
        ValueError: there is no folder, or there are more than 100 steps to trace.
    """

    def __init__(
        self,
        profile_dir: str,
        trace_steps: Iterable[int] | None = None,
        dump_steps: Iterable[int] | None = None,
        enabled: bool = True,
        debug: bool = False,
    ) -> None:
        self._enabled = enabled
        if not enabled:
            return
        if not profile_dir:
            raise ValueError("ProfileContext needs a directory for what it keeps.")
        self._trace_steps = set(() if trace_steps is None else trace_steps)
        if len(self._trace_steps) > _MOST_TRACED:
            raise ValueError(f"At most {_MOST_TRACED} steps can be traced.")
        self._directory, self._debug = files.as_path(profile_dir), debug
        self._chooses = trace_steps is None
        self._dump_steps = {_MOST_TRACED} if dump_steps is None else set(dump_steps)
        self._random = random.Random(111)  # noqa: S311 - which steps to trace is no secret
        self._seen: set[str] = set()
        self._trace_next = self._dump_next = False
        self._step = self._traced = 0
        self._automatic: list[tuple[str, Mapping[str, Any], set[int]]] = []
        self._profiler: Profiler | None = None
        self._views: dict[str, dict[int, Any]] = {}
        self._lock = threading.Lock()
        self._run: Callable[..., Any] = BaseSession.run

    def add_auto_profiling(
        self, cmd: str, options: Mapping[str, Any], profile_steps: Iterable[int]
    ) -> None:
        """Traces some steps and profiles after each of them.

        Args:
            cmd: the view, "scope", "graph", "op" or "code".
            options: those of the profile.
            profile_steps: the steps.

        Raises:
            ValueError: there is no such view.
        """
        if not self._enabled:
            return
        if cmd not in _VIEWS:
            raise ValueError(f"Unknown cmd: {cmd}")
        steps = set(profile_steps)
        self._automatic.append((cmd, options, steps))
        self._trace_steps |= steps

    def get_profiles(self, cmd: str) -> dict[int, Any]:
        """The profiles of a view that `add_auto_profiling` has had made, by step.

        Raises:
            ValueError: there is none.
        """
        if not self._enabled or cmd not in self._views:
            raise ValueError(f"No profile has been made automatically for the command: {cmd}")
        return self._views[cmd]

    @property
    def profiler(self) -> Profiler | None:
        """The profiler that has the traced steps; None if the context is not enabled."""
        return self._made() if self._enabled else None

    def _made(self) -> Profiler:
        if self._profiler is None:
            self._profiler = Profiler(get_default_graph())
        return self._profiler

    def trace_next_step(self) -> None:
        """Has the next step traced."""
        if self._enabled:
            self._trace_next = True

    def dump_next_step(self) -> None:
        """Has the profile kept after the next step."""
        if self._enabled:
            self._dump_next = True

    def __enter__(self) -> Self:
        if not self._enabled:
            return self
        if getattr(BaseSession, "profile_context", None) is not None:
            raise errors.InternalError(None, None, "Another ProfileContext is active.")
        BaseSession.profile_context = self  # type: ignore[attr-defined]
        original = self._run = BaseSession.run

        @functools.wraps(original)
        def run(
            session: BaseSession, fetches: Any, feed_dict: Any = None, options: Any = None,
            run_metadata: Any = None,
        ) -> Any:  # fmt: skip
            return self._profiled(session, fetches, feed_dict, options, run_metadata)

        # Every session's steps count, those that are open already and those of libraries.
        BaseSession.run = run  # type: ignore[method-assign,assignment]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._enabled:
            BaseSession.run = self._run  # type: ignore[method-assign]
            BaseSession.profile_context = None  # type: ignore[attr-defined]

    def _profiled(
        self, session: BaseSession, fetches: Any, feed_dict: Any, options: Any, run_metadata: Any
    ) -> Any:
        """One step, traced if it is its turn, and what is to happen after it."""
        alone = self._lock.acquire(blocking=False)
        step = self._step
        try:
            if not alone or not self._should_trace(step, session.graph, fetches):
                result = self._run(session, fetches, feed_dict, options, run_metadata)
            else:
                result = self._traced_run(step, session, fetches, feed_dict, options, run_metadata)
            if alone:
                self._after(step)
            return result
        finally:
            self._step += 1
            self._trace_next = self._dump_next = False
            if alone:
                self._lock.release()

    def _should_trace(self, step: int, graph: Graph, fetches: Any) -> bool:
        if self._traced > _MOST_TRACED:
            return False
        if step in self._trace_steps or self._trace_next:
            return True
        if not self._chooses or step <= _WARM_UP:
            return False
        plan = FetchPlan(graph, fetches)
        names = "-".join(sorted([t.name for t in plan.tensors] + [op.name for op in plan.targets]))
        if names not in self._seen:
            self._seen.add(names)
            return True
        covered = self._profiler is not None and self._profiler._coverage >= 0.5
        return not covered and step < _MOST_TRACED and self._random.randint(0, 10) < 2

    def _traced_run(
        self,
        step: int,
        session: BaseSession,
        fetches: Any,
        feed_dict: Any,
        options: Any,
        run_metadata: Any,
    ) -> Any:
        self._traced += 1
        full = protos.RunOptions()
        if options is not None:
            full.CopyFrom(options)
        full.trace_level = protos.RunOptions.FULL_TRACE
        record = protos.RunMetadata() if run_metadata is None else run_metadata
        result = self._run(session, fetches, feed_dict, full, record)
        if self._debug:
            print(f"ProfileContext: traced step {step}", file=sys.stderr)
            self._keep(f"run_meta_{step}", str(record).encode())
        profiler = self._made()
        profiler._graph = session.graph
        profiler.add_step(step, record)
        return result

    def _after(self, step: int) -> None:
        if step in self._dump_steps or self._dump_next:
            self._keep(f"profile_{step}", self._made().serialize_to_string())
        for cmd, options, steps in self._automatic:
            if step in steps:
                self._views.setdefault(cmd, {})[step] = _VIEWS[cmd](self._made(), options)

    def _keep(self, name: str, content: bytes) -> None:
        files.make_directories(self._directory)
        files.write_file(os.path.join(self._directory, name), content)
