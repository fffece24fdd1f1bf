"""`opdock conformance`: proves a device against the oracle, level by level."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from opdock.testing.harness.differential import DifferentialReport
    from opdock.testing.harness.watch import Watch
    from opdock.testing.levels.fuzz import FuzzOptions
    from opdock.testing.report.report import Report

_FILE = click.Path(dir_okay=False, path_type=Path)
_FILE_OR_DASH = click.Path(dir_okay=False, allow_dash=True, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)
_SHOWN = 25
_STDOUT = Path("-")
INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it: 128 and the signal's number."""


@click.command("conformance")
@click.option("--device", default="cpu:0", show_default=True, help="The device to prove.")
@click.option("--against", help="Compare with this device instead of the oracle.")
@click.option("--level", "levels", multiple=True, help="L0 ... L7 or ops; repeatable.")
@click.option("--op", "ops", multiple=True, help="An op type or test name; repeatable.")
@click.option("--report", "folder", type=_FOLDER, help="Write report, matrix and badges there.")
@click.option("--json", "json_file", type=_FILE_OR_DASH, help="Write JSON; - is stdout.")
@click.option("--markdown", "markdown_file", type=_FILE, help="Write the op x type matrix.")
@click.option("--badge", "badge_file", type=_FILE, help="Write shields.io data, or an .svg.")
@click.option("--baseline", type=_FILE, help="Fail when something was better there.")
@click.option("--write-baseline", type=_FILE, help="Write what --baseline compares with.")
@click.option(
    "--unit-timeout", type=click.FloatRange(0), default=300.0, show_default=True,
    help="Fail a unit after so many seconds; 0 lets it run on.",
)  # fmt: skip
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
    unit_timeout: float,
    fuzz: int | None,
    fuzz_seconds: float | None,
    fuzz_seed: int,
    fuzz_save: Path,
    verbose: bool,
) -> None:
    """Prove a device against the oracle, level by level.

    What must pass follows from the device's kernel tables. The exit status is 0 only when every
    claim passes and nothing is worse than in the baseline: no unit fails that passed, no op falls
    back that had a kernel. It is 1 when that is not so, 2 for a wrong option, and 130 after Ctrl-C,
    when what had run is reported.
    """
    from opdock.testing.harness.watch import Watch
    from opdock.testing.levels.fuzz import FuzzOptions

    _tell_of_crashes()
    known = _read_baseline(baseline) if baseline is not None else None
    console = _console(json_file)
    bar = _progress(console, json_file)
    watch = Watch(unit_timeout or None, fatal=True)
    dut = _open(device)
    if against is not None:
        if levels or folder or badge_file or known or write_baseline or fuzz:
            raise click.UsageError(
                "--against goes with --device, --op, --unit-timeout, --json and --markdown only"
            )
        found = _differential(dut, _open(against), ops, bar, watch)
        _print_differential(found, console, verbose)
        _write_if(json_file, lambda: json.dumps(found.to_dict(), indent=1) + "\n")
        _write_if(markdown_file, found.markdown)
        _leave(found.left, found.ok, watch)
    options = None
    if fuzz is not None or fuzz_seconds is not None:
        examples = 1_000_000 if fuzz is None else fuzz
        options = FuzzOptions(examples, fuzz_seed, fuzz_save, fuzz_seconds)

    def keep(report: Report) -> None:
        """What is left on disk of a run that is killed, or crashes with a kernel."""
        if json_file not in (None, _STDOUT):
            _write_if(json_file, lambda: _as_json(report))

    try:
        report = _run(dut, levels, ops, bar, options, watch, keep)
    except ValueError as e:
        raise click.ClickException(str(e)) from None
    if not report.outcomes and not report.left:
        raise click.ClickException(
            f"nothing ran: {dut.asked} has no unit for {', '.join(ops)} in {', '.join(levels)}"
        )
    _present(report, console, verbose)
    if report.left and (badge_file or write_baseline):
        console.print("[yellow]partial[/] neither a badge nor a baseline is written")
        badge_file = write_baseline = None
    _files(report, folder, json_file, markdown_file, badge_file, write_baseline)
    lost = _lost(report, known, bool(ops) or bool(report.left))
    for line in lost:
        console.print(f"[red]lost[/] {line} in {baseline}")
    if not report.ok:
        _tell_what_does_not_count(console)
    _leave(report.left, report.ok and not lost, watch)


def _tell_what_does_not_count(console: Any) -> None:
    """An excuse that is left out may be what somebody looks for."""
    from rich.markup import escape

    from opdock.plugins.manager import get_manager

    for line in get_manager().disputed():
        console.print(f"[yellow]left out[/] {escape(line)}", soft_wrap=True)


def _tell_of_crashes() -> None:
    """A kernel that crashes the process leaves the lines of Python where it stood."""
    if sys.__stderr__ is not None and not faulthandler.is_enabled():
        faulthandler.enable(sys.__stderr__)


def _leave(left: int, ok: bool, watch: Watch) -> NoReturn:
    """Ends the command, with the status for what was left and what came of the rest."""
    status = INTERRUPTED if left else 0 if ok else 1
    if watch.left_behind:
        # A thread that is stuck in a driver would keep the process when the device closes.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    raise SystemExit(status)


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
        return _as_json(report)

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
    if folder is not None and not report.left:
        _write_if(folder / "badge.json", shield)
        _write_if(folder / "badge.svg", image)


def _as_json(report: Report) -> str:
    return json.dumps(report.to_dict(), indent=1) + "\n"


def _open(device: str) -> Any:
    from opdock.testing.levels.device import open_device

    try:
        return open_device(device)
    except (ValueError, LookupError) as e:
        raise click.ClickException(str(e)) from None


def _console(json_file: Path | None) -> Any:
    """Where people read: stdout, or stderr where a program reads the JSON on stdout."""
    from rich.console import Console

    stderr = json_file == _STDOUT
    console = Console(stderr=stderr)
    # A pipe has no width; the matrix needs some.
    return console if console.is_terminal else Console(stderr=stderr, width=140)


def _progress(console: Any, json_file: Path | None) -> Any:
    """A progress bar, which neither a pipe gets nor a program that asks for JSON."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    silent = json_file is not None or not console.is_terminal
    return Progress(*columns, console=console, transient=True, disable=silent)


def _run(
    dut: Any,
    levels: tuple[str, ...],
    ops: tuple[str, ...],
    bar: Any,
    fuzz: FuzzOptions | None,
    watch: Watch,
    keep: Callable[[Report], None],
) -> Report:
    from opdock.testing.harness.suite import run

    with bar:
        task = bar.add_task("")

        def progress(number: int, total: int, unit: Any) -> None:
            bar.update(task, completed=number, total=total, description=unit.id)

        return run(dut, levels, ops, progress, fuzz, watch, keep)


# ---------------------------------------------------------------- two devices
def _differential(
    dut: Any, against: Any, ops: tuple[str, ...], bar: Any, watch: Watch
) -> DifferentialReport:
    from opdock.testing.harness.differential import compare_devices

    with bar:
        task = bar.add_task("")

        def progress(number: int, total: int, name: str) -> None:
            bar.update(task, completed=number, total=total, description=name)

        try:
            found = compare_devices(dut, against, ops, progress, watch)
        except ValueError as e:
            raise click.ClickException(str(e)) from None
    if not (found.pairs or found.skipped or found.left):
        raise click.ClickException(f"nothing ran: {dut.asked} claims none of {', '.join(ops)}")
    return found


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
    if report.left:
        console.print(f"[yellow]partial[/] the run was stopped: {report.left} claims were left out")


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
    """Writes a whole file, or leaves the one that was there."""
    if path == _STDOUT:
        click.echo(text(), nl=False)
    elif path is not None and path.exists() and not path.is_file():
        path.write_text(text(), encoding="utf-8")  # a pipe or a terminal
    elif path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        scratch.write_text(text(), encoding="utf-8")
        scratch.replace(path)
