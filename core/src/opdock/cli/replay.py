"""`opdock replay`: runs recorded steps on a device, and tells how far each op drifts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from opdock.cli._command import Command, Wrong, emit, json_option
from opdock.cli._screen import Cell, Screen, counting, styled

if TYPE_CHECKING:
    from opdock.runtime.inspect.replay import ReplayedStep

_KEYS: Final = {
    "device": "where the steps ran",
    "against": "the device whose values count as right",
    "steps": "of each: number, compared, ok, results (of fetches that are not as recorded, what "
    "differs) and drifts (op, type, value, line, absolute, relative, error)",
}
_SHOWN: Final = 20


@click.command(
    "replay", cls=Command, example="opdock replay steps.npz --device cpu:0", keys=_KEYS,
    found="a value is beyond the tolerance of its type",
)  # fmt: skip
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--device", default="cpu:0", show_default=True, help="Where to run the steps.")
@click.option("--against", default="cpu:0", show_default=True, help="Whose values are right.")
@click.option("--rtol", type=float, help="Relative slack, in place of that of each type.")
@click.option("--atol", type=float, help="Absolute slack likewise.")
@click.option("--all", "every", is_flag=True, help="List all values that differ at all.")
@json_option
def command(
    file: Path,
    device: str,
    against: str,
    rtol: float | None,
    atol: float | None,
    every: bool,
    json_output: bool,
) -> None:
    """Run the steps that `opdock record` kept on a device, and compare them op by op."""
    from opdock.runtime.inspect.recording import load_recording
    from opdock.runtime.inspect.replay import replay

    found: list[ReplayedStep] = []
    try:
        recording = load_recording(file)
        total = len(recording.steps)
        with counting("steps") as count:
            for number in range(total):
                count("", number, total)
                found.append(replay(recording, number, device, against, rtol, atol))
    except (OSError, ValueError) as e:
        raise Wrong(str(e)) from e
    if json_output:
        steps = [{**asdict(step), "ok": step.ok} for step in found]
        emit({"device": device, "against": against, "steps": steps})
    else:
        _print(found, device, against, every)
    raise SystemExit(0 if all(step.ok for step in found) else 1)


def _print(found: list[ReplayedStep], device: str, against: str, every: bool) -> None:
    screen = Screen()
    for step in found:
        bad = sum(bool(d.error) for d in step.drifts)
        screen.say(
            f"step {step.number}: {step.compared} values of {device} against {against}: "
            f"{len(step.drifts)} differ, {bad} beyond tolerance"
        )
        rows = _rows(step, every)
        if rows:
            columns = ("op", "type", "value", "absolute", "relative", "line")
            screen.table(columns, rows, numbers=("absolute", "relative"))
        for name, error in step.results.items():
            screen.say(f"{name}: {error}", "not as recorded: ", "red", indent=2)


def _rows(step: ReplayedStep, every: bool) -> list[list[Cell]]:
    """The drifts beyond tolerance, then the largest others."""
    ranked = sorted(step.drifts, key=lambda d: (not d.error, -d.relative))
    rows: list[list[Cell]] = []
    for d in ranked if every else ranked[:_SHOWN]:
        style: Any = "red" if d.error else ""
        texts = (d.op, d.type, d.value, f"{d.absolute:.3g}", f"{d.relative:.3g}", d.line)
        rows.append([styled(text, style) for text in texts])
    return rows
