"""`opdock bench`: how long common programs take on each device here."""

from __future__ import annotations

import math
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Final

import click

from opdock.cli._command import Command, Wrong, emit, json_option
from opdock.cli._report import short
from opdock.cli._screen import Cell, Screen, counting, styled
from opdock.devices.pool import DevicePool
from opdock.nearest import meant

if TYPE_CHECKING:
    from opdock.testing.levels.device import DeviceUnderTest
    from opdock.testing.measure import Measured
    from opdock.testing.workloads.spec import Workload

_KEYS: Final = {
    "workload": "its name",
    "device": "where it ran, as asked for",
    "ms": "the median of its steps; null where it did not run",
    "fastest_ms": "the fastest step",
    "first_ms": "the first step, in which the program is compiled",
    "steps": "how many were timed",
    "ops": "how many ops run in a step",
    "elsewhere": "how many of them run on another device",
    "wrong": "what is wrong with its answers, or why it does not run; empty otherwise",
}


@click.command(
    "bench", cls=Command, example="opdock bench 'run_*' --device cpu:0 --seconds 0.05",
    keys=_KEYS, each="workload and device", found="a device gives a wrong answer, or fails",
)  # fmt: skip
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--device", "devices", multiple=True,
    help="Where to run, repeatable (default: all that sessions take by themselves).",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), default=0.25, show_default=True,
    help="Of each of the turns that devices take.",
)  # fmt: skip
@click.option("--threads", type=click.IntRange(1), help="Of each session (default: all cores).")
@click.option("--list", "listed", is_flag=True, help="Say what there is, and run nothing.")
@json_option
def command(
    names: tuple[str, ...],
    devices: tuple[str, ...],
    seconds: float,
    threads: int | None,
    listed: bool,
    json_output: bool,
) -> None:
    """Time steps of common programs on devices, beside each other.

    NAME is a workload or a pattern, "mlp*"; all of them without one. Answers are checked against
    NumPy before anything is timed. Machines do other things meanwhile: believe ratios, not times,
    and measure twice.
    """
    from opdock.testing.measure import Effort, measure
    from opdock.testing.workloads.table import ALL

    chosen = [ALL[name] for name in _chosen(names, list(ALL))]
    if listed:
        _tell(chosen, json_output)
        return
    opened = _open(devices)
    effort = Effort(seconds, threads=threads)
    found: list[Measured] = []
    with counting("workloads") as count:
        for number, workload in enumerate(chosen):
            count(workload.name, number, len(chosen))
            found += measure(workload, opened, effort)
    if json_output:
        emit([one.to_dict() for one in found])
    else:
        _print(found, [device.asked for device in opened])
    raise SystemExit(1 if any(one.wrong for one in found) else 0)


def _chosen(patterns: tuple[str, ...], known: list[str]) -> list[str]:
    for pattern in patterns:
        if not any(fnmatch(name, pattern) for name in known):
            raise Wrong(f"there is no workload {pattern}{meant(pattern, known)} (--list)")
    return [name for name in known if not patterns or any(fnmatch(name, p) for p in patterns)]


def _open(names: tuple[str, ...]) -> list[DeviceUnderTest]:
    from opdock.plugins.manager import get_manager
    from opdock.testing.levels.device import open_device

    if not names:
        pool = DevicePool.build(get_manager().devices())
        found = [short(device.name) for device in pool if device.automatic]
        names = tuple(name.removeprefix("/device:").lower() for name in found)
    try:
        return [open_device(name) for name in names]
    except (LookupError, ValueError) as e:
        raise Wrong(str(e.args[0])) from None


def _tell(workloads: list[Workload], json_output: bool) -> None:
    if json_output:
        emit([{"workload": w.name, "about": w.text()} for w in workloads])
        return
    Screen().table(("workload", "what a step computes"), [(w.name, w.text()) for w in workloads])


def _print(found: list[Measured], devices: list[str]) -> None:
    screen = Screen()
    rows = [
        [found[i].workload, *_cells(found[i : i + len(devices)])]
        for i in range(0, len(found), len(devices))
    ]
    columns = ["ms a step", devices[0]]
    for name in devices[1:]:
        columns += [name, f"{devices[0]} / {name}"]
    screen.table(columns, rows, numbers=columns[1:])
    for one in found:
        if one.wrong:
            screen.say(f"{one.workload} on {one.device}: {one.wrong}", "wrong ", "red", indent=2)
        elif one.elsewhere:
            told = f"{one.elsewhere} of {one.ops} ops of {one.workload} run on another device"
            screen.say(f"{told} than {one.device}", "moved ", "yellow", indent=2)


def _cells(row: list[Measured]) -> list[Cell]:
    """The times of one workload, and behind each but the first how many times as fast it is."""
    cells = [_time(row[0])]
    for one in row[1:]:
        ratio = row[0].step / one.step
        cells += [_time(one), "-" if math.isnan(ratio) else f"{ratio:.2f}"]
    return cells


def _time(one: Measured) -> Cell:
    return styled("wrong", "red") if one.wrong else f"{one.step * 1000:.3g}"
