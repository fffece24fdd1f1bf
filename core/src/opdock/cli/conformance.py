"""`opdock conformance`: proves a device against the oracle, level by level."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from opdock.testing.report import Report

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("conformance")
@click.option("--device", default="cpu:0", show_default=True, help="The device to prove.")
@click.option("--level", "levels", multiple=True, help="L0 ... L6 or ops; repeatable; else all.")
@click.option("--op", "ops", multiple=True, help="An op type or test name; repeatable.")
@click.option("--json", "json_file", type=_FILE, help="Write the report as JSON.")
@click.option("--markdown", "markdown_file", type=_FILE, help="Write the op x type matrix.")
@click.option("--badge", "badge_file", type=_FILE, help="Write shields.io endpoint data.")
@click.option("--baseline", type=_FILE, help="Fail when a unit that passed there fails now.")
@click.option("--write-baseline", type=_FILE, help="Write the units that pass, for --baseline.")
@click.option("--verbose", "-v", is_flag=True, help="Print every failure and wider tolerance.")
def command(
    device: str,
    levels: tuple[str, ...],
    ops: tuple[str, ...],
    json_file: Path | None,
    markdown_file: Path | None,
    badge_file: Path | None,
    baseline: Path | None,
    write_baseline: Path | None,
    verbose: bool,
) -> None:
    """Prove a device against the oracle, level by level.

    What must pass follows from the device's kernel tables. The exit status is 0 only when every
    claim passes and nothing that passed in the baseline is lost.
    """
    from rich.console import Console

    from opdock.testing.device import open_device
    from opdock.testing.render import badge, markdown, print_report

    known = _read_baseline(baseline) if baseline is not None else None
    try:
        dut = open_device(device)
    except (ValueError, LookupError) as e:
        raise click.ClickException(str(e)) from None
    console = Console()
    if not console.is_terminal:
        console = Console(width=140)  # a pipe has no width; the matrix needs some
    try:
        report = _run(dut, levels, ops, console)
    except ValueError as e:
        raise click.ClickException(str(e)) from None
    print_report(report, console, verbose)
    if json_file is not None:
        _write(json_file, json.dumps(report.to_dict(), indent=1) + "\n")
    if markdown_file is not None:
        _write(markdown_file, markdown(report))
    if badge_file is not None:
        _write(badge_file, json.dumps(badge(report)) + "\n")
    if write_baseline is not None:
        data = {"device": report.device["backend"], "passed": report.passed_ids()}
        _write(write_baseline, json.dumps(data, indent=1) + "\n")
    lost = report.regressions(known, bool(ops)) if known is not None else []
    for name in lost:
        console.print(f"[red]lost[/] {name} passed in {baseline}")
    if lost or not report.ok:
        raise SystemExit(1)


def _run(dut: Any, levels: tuple[str, ...], ops: tuple[str, ...], console: Any) -> Report:
    """The suite with a progress bar, which a pipe does not get."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from opdock.testing.suite import run

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("")

        def progress(number: int, total: int, unit: Any) -> None:
            bar.update(task, completed=number, total=total, description=unit.id)

        return run(dut, levels, ops, progress)


def _read_baseline(path: Path) -> list[str]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return [str(name) for name in data["passed"]]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise click.ClickException(f"--baseline {path}: {type(e).__name__}: {e}") from None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
