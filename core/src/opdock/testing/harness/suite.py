"""The suite: which units each level has, and one run over all that is asked for."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from opdock.graph.nodes import registry
from opdock.nearest import nearest
from opdock.testing.harness.case import Result, Skip, Unit, checked
from opdock.testing.harness.plugins import load_plugins
from opdock.testing.harness.sample import load_families
from opdock.testing.harness.watch import Overdue, Watch
from opdock.testing.levels import bringup, forward, fusion, gradients, lifecycle, programs, runtime
from opdock.testing.levels.device import DeviceUnderTest
from opdock.testing.levels.forward import as_known_bug
from opdock.testing.levels.fuzz import FuzzOptions, fuzz_units
from opdock.testing.reference import _registry
from opdock.testing.report import survey
from opdock.testing.report.report import Report, UnitOutcome

__all__ = ["LEVELS", "check_names", "run", "units"]

_EVERY: Final = 5.0
"""Seconds between two reports that are kept while the suite runs."""
_TRIM_EVERY: Final = 8
"""Ops after which the device may drop what it kept for them."""

Units = Callable[[DeviceUnderTest, frozenset[str]], Iterator[Unit]]

LEVELS: Final = MappingProxyType({
    "L0": ("device", lifecycle.lifecycle_units),
    "L1": ("bring-up", bringup.bring_up_units),
    "L2": ("all ops", forward.forward_units),
    "L3": ("gradients", gradients.gradient_units),
    "L4": ("programs", programs.program_units),
    "L5": ("fusion", fusion.fusion_units),
    "L6": ("runtime", runtime.runtime_units),
    "L7": ("fuzz", fuzz_units),
    "ops": ("survey", survey.survey_units),
})  # fmt: skip
"""Level -> title and the function that gives its units for a device."""


def units(
    dut: DeviceUnderTest,
    levels: Sequence[str] = (),
    ops: Iterable[str] = (),
    fuzz: FuzzOptions | None = None,
) -> list[Unit]:
    """What there is to run for a device.

    Args:
        dut: the device under test.
        levels: names of levels; when empty all but L7, which runs on demand.
        ops: op types or test names; all when empty.
        fuzz: adds L7 with these options.

    Raises:
        ValueError: a level does not exist, or nothing is called as one of `ops`.
    """
    unknown = set(levels) - set(LEVELS)
    if unknown:
        raise ValueError(
            f"There is no level {', '.join(sorted(unknown))}; levels are {', '.join(LEVELS)}"
        )
    only = frozenset(ops)
    found = list(_broken_files())
    check_names(dut, only)
    for level, (_, make) in LEVELS.items():
        if level == "L7" and fuzz is not None:
            found += fuzz_units(dut, only, fuzz)
        elif level in levels or (not levels and level != "L7"):
            found += [_declared(dut, u) for u in make(dut, only) if u.since <= dut.api]
    return found


def check_names(dut: DeviceUnderTest, only: frozenset[str]) -> None:
    """Looks for a misspelt name.

    Raises:
        ValueError: one of the names is neither an op's, nor a kernel's, nor that of any unit.
    """
    strange = {n for n in only if registry.find(n) is None and n not in dut.kernels}
    if not strange:
        return
    every = frozenset[str]()
    tests = {u.op for _, make in LEVELS.values() for u in make(dut, every)}
    for name in sorted(strange - tests):
        known = [*tests, *(spec.name for spec in registry.all_ops())]
        close = nearest(name, known)
        hint = f"; did you mean {close}?" if close else ""
        raise ValueError(f"There is no op or test {name!r}{hint}")


def _declared(dut: DeviceUnderTest, unit: Unit) -> Unit:
    """The unit under what the plugin says of its test; claims look their own records up."""
    record = dut.requirement(unit.op, unit.dtype)
    if record is None or unit.level in ("L1", "L2", "L3", "ops"):
        return unit

    def run() -> Iterable[Result]:
        if record.status != "bug":
            raise Skip(record.status, record.reason)
        return as_known_bug(unit.results()[0], f"{record.reason} {record.issue}".strip())

    return dataclasses.replace(unit, run=run)


def _broken_files() -> Iterator[Unit]:
    """A failing unit for each file of samples or references that cannot be imported."""
    failures = dict(load_families())
    failures.update(_registry.load_families())
    failures.update(load_plugins())
    for family, reason in failures.items():

        def run(family: str = family, reason: str = reason) -> list[Result]:
            return [Result("L2", f"samples of {family}", status="failed", reason=reason)]

        yield Unit("L2", f"samples of {family}", "", run)


def run(
    dut: DeviceUnderTest,
    levels: Sequence[str] = (),
    ops: Iterable[str] = (),
    progress: Callable[[int, int, Unit], None] | None = None,
    fuzz: FuzzOptions | None = None,
    watch: Watch | None = None,
    keep: Callable[[Report], None] | None = None,
    known: Mapping[str, Any] | None = None,
) -> Report:
    """Runs the suite.

    Args:
        dut: the device under test.
        levels: names of levels; when empty all but L7, which runs on demand.
        ops: op types or test names; all when empty.
        progress: called before each unit with its number, how many there are, and the unit.
        fuzz: adds L7 with these options.
        watch: runs the units, and limits the time of each; by default there is no limit.
        keep: called with a report of what has run every few seconds.
        known: a baseline; what passed when it was made is taken over and does not run.

    Returns:
        The report; of a run that Ctrl-C ended, of what ran until then.
    """
    start = kept = time.perf_counter()
    todo = units(dut, levels, ops, fuzz)
    watch = watch or Watch()
    outcomes: list[UnitOutcome] = []
    if known is not None:
        outcomes += filter(None, (UnitOutcome.before(unit, known) for unit in todo))
        found = {outcome.id for outcome in outcomes}
        todo = [unit for unit in todo if unit.id not in found]
    taken = len(outcomes)

    def report(left: int = 0) -> Report:
        # In the order of the levels, whatever ran.
        order = sorted(outcomes, key=lambda o: [*LEVELS].index(o.level))
        return Report.of(dut, order, time.perf_counter() - start, left, taken)

    try:
        with checked(), _settled():
            for unit in _in_time(dut, todo, fuzz):
                if progress is not None:
                    progress(len(outcomes) - taken, len(todo), unit)
                outcomes.append(_outcome(watch, unit))
                if keep is not None and time.perf_counter() - kept >= _EVERY:
                    keep(report(len(todo) + taken - len(outcomes)))
                    kept = time.perf_counter()
    except KeyboardInterrupt:
        return report(len(todo) + taken - len(outcomes))
    finally:
        watch.close()
    return report()


@contextlib.contextmanager
def _settled() -> Iterator[None]:
    """Keeps what is there before the first unit out of the search for garbage.

    Modules, records and the units themselves outlive the run; the search after every few ops is
    for the sessions and graphs of those alone. Who has frozen objects of their own keeps them.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _in_time(
    dut: DeviceUnderTest, todo: Iterable[Unit], fuzz: FuzzOptions | None
) -> Iterator[Unit]:
    """The units in order, those of L7 as long as there is time for them."""
    began: float | None = None
    for number, (_, of_one_op) in enumerate(itertools.groupby(todo, key=lambda u: u.op)):
        if number % _TRIM_EVERY == 0:
            gc.collect()  # sessions and graphs refer to each other
            dut.device.trim()
        for unit in of_one_op:
            if unit.level == "L7":
                began = time.perf_counter() if began is None else began
                if fuzz and fuzz.seconds and time.perf_counter() - began > fuzz.seconds:
                    return
            yield unit


def _outcome(watch: Watch, unit: Unit) -> UnitOutcome:
    switches = {k: v for k, v in os.environ.items() if k.startswith("OPDOCK_")}
    try:
        results, seconds = watch.run(unit.results, unit.id)
    except Overdue as late:
        # What the unit had set for its sessions is not for those of others.
        for name in [k for k in os.environ if k.startswith("OPDOCK_")]:
            del os.environ[name]
        os.environ.update(switches)
        results, seconds = [unit.result("failed", str(late), "timeout")], late.limit
    return UnitOutcome.of(unit, results, seconds)
