"""How long workloads take on devices, in turns, and whether their answers are right there."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import opdock as tf
from opdock import errors
from opdock.testing.levels.device import DeviceUnderTest
from opdock.testing.workloads.spec import Workload
from opdock.testing.workloads.steps import Steps, error

__all__ = ["Effort", "Measured", "measure"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure.

    Attributes:
        seconds: of each turn, after a first one that is not counted.
        turns: of each device, one after the other, so that what else the machine does meets all.
        threads: of an op, and of ops that run at once; None for the session's own choice.
    """

    seconds: float = 0.25
    turns: int = 3
    threads: int | None = None


@dataclass(slots=True)
class Measured:
    """One workload on one device.

    Attributes:
        workload, device: their names.
        wrong: what is wrong with its answers, or why it does not run; empty where all is well.
        first: seconds of the first step, in which the program is compiled; NaN if it did not run.
        times: seconds of the steps that count.
        elsewhere: how many of its ops run on other devices.
        ops: how many ops it has, after the compiler's passes.
    """

    workload: str
    device: str
    wrong: str = ""
    first: float = math.nan
    times: list[float] = field(default_factory=list)
    elsewhere: int = 0
    ops: int = 0

    @property
    def step(self) -> float:
        """The median of the steps, in seconds; NaN if none ran."""
        return statistics.median(self.times) if self.times else math.nan

    def to_dict(self) -> dict[str, Any]:
        """As plain data, times in milliseconds; null for what was not measured."""
        return {
            "workload": self.workload, "device": self.device, "ms": _milliseconds(self.step),
            "fastest_ms": _milliseconds(min(self.times, default=math.nan)),
            "first_ms": _milliseconds(self.first), "steps": len(self.times),
            "ops": self.ops, "elsewhere": self.elsewhere, "wrong": self.wrong,
        }  # fmt: skip


def _milliseconds(seconds: float) -> float | None:
    return None if math.isnan(seconds) else seconds * 1000


def measure(
    workload: Workload, devices: Sequence[DeviceUnderTest], effort: Effort = Effort()
) -> list[Measured]:
    """A workload on each device: checked at its tiny size, then timed at its own.

    A wrong answer is not timed. An error of the device's or of its kernels ends the measurements
    there, not those of the other devices.
    """
    found = [Measured(workload.name, device.asked) for device in devices]
    running: list[tuple[Measured, Steps]] = []
    with workload.prepared(workload.smoke) as sizes:
        for one, device in zip(found, devices, strict=True):
            _tried(one, _check, workload, sizes, device)
    with workload.prepared({}) as sizes:
        data = workload.inputs(sizes)
        for one, device in zip(found, devices, strict=True):
            if (steps := _tried(one, _started, workload, data, device, effort)) is not None:
                running.append((one, steps))
        for turn in range(effort.turns + 1):
            for one, steps in running:
                _tried(one, _run, steps, effort, turn > 0)
        for _, steps in running:
            steps.close()
    return found


def _tried(one: Measured, do: Callable[..., T], *args: Any) -> T | None:
    """Does it, unless something was wrong before; None where something is."""
    if one.wrong:
        return None
    try:
        return do(one, *args)
    except (errors.OpError, ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as e:
        text = str(e).strip().splitlines() or [""]
        one.wrong, one.times = f"{type(e).__name__}: {text[0]}", []
        return None


def _check(one: Measured, workload: Workload, sizes: Any, device: DeviceUnderTest) -> None:
    """Compares the first steps at the tiny size with the right answer."""
    data = workload.inputs(sizes)
    steps = Steps(tf, workload, data, device.scope)
    try:
        apart = error(steps.timed, workload, data)
    finally:
        steps.close()
    if not apart <= workload.tolerance:
        one.wrong = f"{apart:.1e} from the right answer, where {workload.tolerance:.0e} may be"


def _started(
    one: Measured, workload: Workload, data: Any, device: DeviceUnderTest, effort: Effort
) -> Steps:
    """The steps at the workload's own size, of which the first has run."""
    steps = Steps(tf, workload, data, device.scope, effort.threads)
    one.first = steps.timed()[0]
    if steps.session is not None:
        rows = steps.session.explain(steps.fetches, steps.feeds).rows
        ran = [row for row in rows if row.how in ("native", "portable", "decomposed")]
        one.ops, one.elsewhere = len(ran), sum(row.device != device.name for row in ran)
    return steps


def _run(one: Measured, steps: Steps, effort: Effort, counts: bool) -> None:
    """Steps of one turn, at least one."""
    end = time.perf_counter() + effort.seconds
    while True:
        seconds = steps.timed()[0]
        if counts:
            one.times.append(seconds)
        if time.perf_counter() >= end:
            return
