"""The suite: which units each level has, and one run over all that is asked for."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Final

from opdock.testing.harness.case import Result, Skip, Unit
from opdock.testing.harness.plugins import load_plugins
from opdock.testing.harness.sample import load_families
from opdock.testing.levels import bringup, forward, fusion, gradients, lifecycle, programs, runtime
from opdock.testing.levels.device import DeviceUnderTest
from opdock.testing.levels.forward import as_known_bug
from opdock.testing.levels.fuzz import FuzzOptions, fuzz_units
from opdock.testing.reference import _registry
from opdock.testing.report import survey
from opdock.testing.report.report import Report, UnitOutcome

__all__ = ["LEVELS", "run", "units"]

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
        ValueError: a level does not exist.
    """
    unknown = set(levels) - set(LEVELS)
    if unknown:
        raise ValueError(
            f"There is no level {', '.join(sorted(unknown))}; levels are {', '.join(LEVELS)}"
        )
    only = frozenset(ops)
    found = list(_broken_files())
    for level, (_, make) in LEVELS.items():
        if level == "L7" and fuzz is not None:
            found += fuzz_units(dut, only, fuzz)
        elif level in levels or (not levels and level != "L7"):
            found += [_declared(dut, u) for u in make(dut, only) if u.since <= dut.api]
    return found


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
) -> Report:
    """Runs the suite.

    Args:
        dut: the device under test.
        levels: names of levels; when empty all but L7, which runs on demand.
        ops: op types or test names; all when empty.
        progress: called before each unit with its number, how many there are, and the unit.
        fuzz: adds L7 with these options.

    Returns:
        The report.
    """
    start = time.perf_counter()
    todo = units(dut, levels, ops, fuzz)
    outcomes = []
    began: float | None = None
    for number, unit in enumerate(todo):
        if unit.level == "L7":
            began = time.perf_counter() if began is None else began
            if fuzz and fuzz.seconds and time.perf_counter() - began > fuzz.seconds:
                break
        if progress is not None:
            progress(number, len(todo), unit)
        results, seconds = unit.results()
        outcomes.append(UnitOutcome.of(unit, results, seconds))
    return Report.of(dut, outcomes, time.perf_counter() - start)
