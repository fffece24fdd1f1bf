"""`opdock conformance`: proves a device against the oracle, level by level."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from opdock.testing.harness.differential import DifferentialReport
    from opdock.testing.levels.fuzz import FuzzOptions
    from opdock.testing.report.report import Report

_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)
_SHOWN = 25


@click.command("conformance")
@click.option("--device", default="cpu:0", show_default=True, help="The device to prove.")
@click.option("--against", help="Compare with this device instead of the oracle.")
@click.option("--level", "levels", multiple=True, help="L0 ... L7 or ops; repeatable.")
@click.option("--op", "ops", multiple=True, help="An op type or test name; repeatable.")
@click.option("--report", "folder", type=_FOLDER, help="Write report, matrix and badges there.")
@click.option("--json", "json_file", type=_FILE, help="Write the report as JSON.")
@click.option("--markdown", "markdown_file", type=_FILE, help="Write the op x type matrix.")
@click.option("--badge", "badge_file", type=_FILE, help="Write shields.io data, or an .svg.")
@click.option("--baseline", type=_FILE, help="Fail when something was better there.")
@click.option("--write-baseline", type=_FILE, help="Write what --baseline compares with.")
@click.option("--fuzz", type=click.IntRange(1), help="Add level L7 with so many examples.")
@click.option("--fuzz-seconds", type=float, help="Stop fuzzing after so long.")
@click.option("--fuzz-seed", type=int, default=0, show_default=True, help="Other examples.")
@click.option("--fuzz-save", type=_FOLDER, default="opdock-fuzz", help="For failing examples.")
@click.option("--verbose", "-v", is_flag=True, help="Print every failure and wider tolerance.")
def command(
    device: str,
    against: str | None,
    levels: tuple[str, ...],
    ops: tuple[str, ...],
    folder: Path | None,
    json_file: Path | None,
    markdown_file: Path | None,
    badge_file: Path | None,
    baseline: Path | None,
    write_baseline: Path | None,
    fuzz: int | None,
    fuzz_seconds: float | None,
    fuzz_seed: int,
    fuzz_save: Path,
    verbose: bool,
) -> None:
    """Prove a device against the oracle, level by level.

    What must pass follows from the device's kernel tables. The exit status is 0 only when every
    claim passes and nothing is worse than in the baseline: no unit fails that passed, no op falls
    back that had a kernel.
    """
    from opdock.testing.levels.fuzz import FuzzOptions

    known = _read_baseline(baseline) if baseline is not None else None
    console = _console()
    dut = _open(device)
    if against is not None:
        if levels or folder or badge_file or known or write_baseline or fuzz:
            raise click.UsageError("--against goes with --device, --op, --json and --markdown only")
        found = _differential(dut, _open(against), ops, console)
        _print_differential(found, console, verbose)
        _write_if(json_file, lambda: json.dumps(found.to_dict(), indent=1) + "\n")
        _write_if(markdown_file, found.markdown)
        raise SystemExit(0 if found.ok else 1)
    options = None
    if fuzz is not None or fuzz_seconds is not None:
        examples = 1_000_000 if fuzz is None else fuzz
        options = FuzzOptions(examples, fuzz_seed, fuzz_save, fuzz_seconds)
    try:
        report = _run(dut, levels, ops, console, options)
    except ValueError as e:
        raise click.ClickException(str(e)) from None
    _present(report, console, verbose)
    _files(report, folder, json_file, markdown_file, badge_file, write_baseline)
    lost = _lost(report, known, bool(ops))
    for line in lost:
        console.print(f"[red]lost[/] {line} in {baseline}")
    if lost or not report.ok:
        raise SystemExit(1)


def _present(report: Report, console: Any, verbose: bool) -> None:
    from opdock.testing.report.render import print_report

    print_report(report, console, verbose)


def _files(
    report: Report,
    folder: Path | None,
    json_file: Path | None,
    markdown_file: Path | None,
    badge_file: Path | None,
    write_baseline: Path | None,
) -> None:
    """Writes what was asked for."""
    from opdock.testing.report.render import badge, badge_svg, markdown

    def data() -> str:
        return json.dumps(report.to_dict(), indent=1) + "\n"

    def shield() -> str:
        return json.dumps(badge(report)) + "\n"

    def image() -> str:
        return badge_svg(report)

    _write_if(json_file, data)
    _write_if(markdown_file, lambda: markdown(report))
    is_image = badge_file is not None and badge_file.suffix == ".svg"
    _write_if(badge_file, image if is_image else shield)
    _write_if(write_baseline, lambda: json.dumps(report.baseline(), indent=1) + "\n")
    if folder is not None:
        _write_if(folder / "report.json", data)
        _write_if(folder / "matrix.md", lambda: markdown(report))
        _write_if(folder / "badge.json", shield)
        _write_if(folder / "badge.svg", image)


def _open(device: str) -> Any:
    from opdock.testing.levels.device import open_device

    try:
        return open_device(device)
    except (ValueError, LookupError) as e:
        raise click.ClickException(str(e)) from None


def _console() -> Any:
    from rich.console import Console

    console = Console()
    # A pipe has no width; the matrix needs some.
    return console if console.is_terminal else Console(width=140)


def _progress(console: Any) -> Any:
    """A progress bar, which a pipe does not get."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    return Progress(*columns, console=console, transient=True)


def _run(
    dut: Any,
    levels: tuple[str, ...],
    ops: tuple[str, ...],
    console: Any,
    fuzz: FuzzOptions | None,
) -> Report:
    from opdock.testing.harness.suite import run

    with _progress(console) as bar:
        task = bar.add_task("")

        def progress(number: int, total: int, unit: Any) -> None:
            bar.update(task, completed=number, total=total, description=unit.id)

        return run(dut, levels, ops, progress, fuzz)


# ---------------------------------------------------------------- two devices
def _differential(
    dut: Any, against: Any, ops: tuple[str, ...], console: Any
) -> DifferentialReport:
    from opdock.testing.harness.differential import compare_devices

    with _progress(console) as bar:
        task = bar.add_task("")

        def progress(number: int, total: int, name: str) -> None:
            bar.update(task, completed=number, total=total, description=name)

        return compare_devices(dut, against, ops, progress)


def _print_differential(report: DifferentialReport, console: Any, verbose: bool) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"{report.device} against {report.against}", title_justify="left")
    for name in ("op", "type"):
        table.add_column(name)
    for name in ("samples", "ulp", "relative"):
        table.add_column(name, justify="right")
    table.add_column("ran there")
    for p in report.pairs if verbose else report.pairs[:_SHOWN]:
        style = "red" if p.problem else None
        table.add_row(
            p.op, p.dtype, str(p.cases), str(p.ulp), f"{p.relative:.2g}", p.elsewhere, style=style
        )
    console.print(table)
    bad = [p for p in report.pairs if p.problem]
    for p in bad:
        console.print(f"[red]differs[/] {p.op}/{p.dtype}: {escape(p.problem)}", soft_wrap=True)
    console.print(
        f"{len(report.pairs)} pairs of op and type compared, {len(bad)} disagree, "
        f"{len(report.skipped)} skipped"
    )


# ---------------------------------------------------------------- baselines and files
def _lost(report: Report, known: dict[str, Any] | None, filtered: bool) -> list[str]:
    """What was better when the baseline was made, a line each."""
    if known is None:
        return []
    lost = [f"{name} passed" for name in report.regressions(known["passed"], filtered)]
    return lost + report.demotions(known["ways"])


def _read_baseline(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        passed = [str(name) for name in data["passed"]]
        return {"passed": passed, "ways": {str(k): str(v) for k, v in data.get("ways", {}).items()}}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise click.ClickException(f"--baseline {path}: {type(e).__name__}: {e}") from None


def _write_if(path: Path | None, text: Callable[[], str]) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(), encoding="utf-8")
