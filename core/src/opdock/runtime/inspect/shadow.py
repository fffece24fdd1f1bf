"""`Session.shadow`: a share of the ops of a session runs on a second device too."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from opdock import errors
from opdock.compiler.emit.schedule import Step
from opdock.compiler.ir.block import HOST
from opdock.compiler.place.target import Target, memory_of
from opdock.dtypes import DType
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.runtime.engine import Engine
from opdock.runtime.inspect.cases import difference
from opdock.runtime.inspect.walk import found_device, largest
from opdock.runtime.program.program import Program
from opdock.shapes import Shape

__all__ = ["Compared", "Shadow"]

_Slack = tuple[float | None, float | None]


@dataclass
class Compared:
    """What is known of one node.

    Attributes:
        node, op: its name and op type.
        line: the user's line that made it.
        count: how often it was compared.
        absolute, relative: the largest differences.
        error: the first difference beyond the tolerance, in words; empty if there was none.
    """

    node: str
    op: str
    line: str
    count: int = 0
    absolute: float = 0.0
    relative: float = 0.0
    error: str = ""


class Shadow:
    """Watches the steps of a session; see `Session.shadow`.

    Attributes:
        found: what was compared, by node.
        skipped: nodes that the second device cannot compute, with the reasons.
        cost: the seconds that all of this took.
        steps: the seconds that the steps themselves took.
    """

    def __init__(
        self, engine: Engine, device: str, share: float, budget: float, seed: int, slack: _Slack,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:  # fmt: skip
        if not 0 <= share <= 1 or budget < 0:
            told = f"share must be from 0 to 1, and budget not below 0, got {share} and {budget}"
            raise ValueError(told)
        self._target = found_device(engine, device)
        self._engine, self._share, self._budget, self._slack = engine, share, budget, slack
        self._random = np.random.default_rng(seed)
        self._clock = clock
        self._lock = threading.RLock()
        self.found: dict[str, Compared] = {}
        self.skipped: dict[str, str] = {}
        self.cost = self.steps = 0.0
        engine.watch(self)

    def close(self) -> None:
        """Ends the comparison; the record stays."""
        if self._engine.watcher is self:
            self._engine.watch(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None,
        tb: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def __bool__(self) -> bool:
        """Whether anything was beyond the tolerance."""
        return any(c.error for c in self.found.values())

    def __str__(self) -> str:
        count = sum(c.count for c in self.found.values())
        took = f"{self.cost:.3g} s beside {self.steps:.3g} s of steps"
        lines = [
            f"{self._target.name}: {count} results of {len(self.found)} ops compared in {took}"
        ]
        for c in sorted(self.found.values(), key=lambda c: (not c.error, -c.relative)):
            at = f", defined at {c.line}" if c.line else ""
            told = f": {c.error}" if c.error else ""
            lines.append(
                f"  {c.node} ({c.op}{at}): {c.absolute:.3g} absolute, {c.relative:.3g} relative, "
                f"{c.count} time(s){told}"
            )
        return "\n".join(lines)

    # ------------------------------------------------------------ steps
    def compiled(
        self, program: Program, fetches: Sequence[Tensor], runs: Sequence[Operation],
        feeds: Sequence[tuple[Tensor, DType, Shape]],
    ) -> None:  # fmt: skip
        """What a program was made of does not matter."""

    def run(self, engine: Engine, program: Program, values: Sequence[Any]) -> Sequence[Any]:
        """One step; what there is no time for is not compared."""
        comparison = _Comparison(self, self._target)
        try:
            if not self.affordable(0.0, 0.0):
                return program.run(values)
            return program.interpret(values, comparison)
        finally:
            own = comparison.own()
            with self._lock:
                self.steps += own

    def affordable(self, more: float, own: float) -> bool:
        """Whether there is time for something.

        Args:
            more: the seconds that it takes.
            own: those of the step that is running, so far.
        """
        return self.cost + more <= self._budget * (self.steps + own)

    def chosen(self, own: float) -> bool:
        """Whether the next op is to be compared, in a step that has taken so long by itself."""
        with self._lock:
            count = sum(c.count for c in self.found.values())
            each = self.cost / count if count else 0.0
            return bool(self._random.random() < self._share) and self.affordable(each, own)

    def spend(self, seconds: float) -> None:
        """Counts what a comparison took."""
        with self._lock:
            self.cost += seconds


_DECLINED: Final = (errors.OpError, NotImplementedError, MemoryError)


class _Comparison:
    """One step of a shadowed session."""

    def __init__(self, shadow: Shadow, target: Target) -> None:
        self._shadow, self._target = shadow, target
        self._expected: Sequence[Any] | None = None
        self._begin, self._spent = shadow._clock(), 0.0

    def own(self) -> float:
        """The seconds that the step has taken by itself."""
        return self._shadow._clock() - self._begin - self._spent

    def _spend(self, since: float) -> None:
        took = self._shadow._clock() - since
        self._spent += took
        self._shadow.spend(took)

    def before(self, step: Step, inputs: Sequence[Any]) -> None:
        """Computes an op on the second device first: the first one may overwrite its inputs."""
        node, shadow = step.node, self._shadow
        self._expected = None
        pure = not (node.stateful if node.spec is None else node.spec.is_stateful)
        if step.kind != "kernel" or node.target is self._target or not pure:
            return
        if node.name in shadow.skipped or not shadow.chosen(self.own()):
            return
        begin = shadow._clock()
        try:
            given = shadow._engine.fallback.elsewhere(node, self._target, inputs)
            if given is None:
                shadow.skipped[node.name] = "the device has no kernel for it"
            else:
                self._expected = [self._host(step, i, v) for i, v in enumerate(given)]
        except _DECLINED as e:
            shadow.skipped[node.name] = str(e).partition("\n")[0]
        self._spend(begin)

    def after(self, step: Step, begin: float, end: float, results: Sequence[Any]) -> None:
        """Compares what both devices gave."""
        if self._expected is None:
            return
        shadow, node = self._shadow, step.node
        start = shadow._clock()
        line = node.origin.user_line if node.origin is not None else ""
        found = shadow.found.setdefault(node.name, Compared(node.name, node.op, line))
        found.count += 1
        for i, (other, value) in enumerate(zip(self._expected, results)):
            own = self._host(step, i, value)
            absolute, relative = largest([own], [other])
            found.absolute = max(found.absolute, absolute)
            found.relative = max(found.relative, relative)
            found.error = found.error or difference(other, own, f"{node.name}:{i}", *shadow._slack)
        self._spend(start)

    def _host(self, step: Step, i: int, value: Any) -> Any:
        where = HOST if i in step.node.host_outputs else memory_of(step.node.target)
        return self._shadow._engine.to_host(value, where)
