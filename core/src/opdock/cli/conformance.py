"""`opdock conformance`: proves a device against the oracle, level by level."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from opdock.cli._command import INTERRUPTED, Command, Wrong, emit_text
from opdock.cli._screen import Screen, counting
from opdock.io.files import write_file
from opdock.io.parsing import parsed_json

if TYPE_CHECKING:
    from opdock.testing.harness.differential import DifferentialReport
    from opdock.testing.harness.watch import Watch
    from opdock.testing.levels.fuzz import FuzzOptions
    from opdock.testing.report.report import Report

_FILE = click.Path(dir_okay=False, path_type=Path)
_FILE_OR_DASH = click.Path(dir_okay=False, allow_dash=True, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)
_STDOUT = Path("-")
_KEYS: Final = {
    "device": "name, backend, package and API of what was proven",
    "partial": "whether the run was stopped",
    "units_left": "how many units did not run",
    "units_taken": "how many had passed before, and did not run again (--take)",
    "score": "passed and claimed pairs of op and type, and total of all",
    "levels": "by level: claimed, passed, failed, skipped, known_bugs, unclaimed, cases, seconds",
    "ways": "how many ops ran natively, portably, decomposed, elsewhere",
    "fusions": "how many the backend declares",
    "units": "the status of each, by name",
    "passed": "the names of those that passed",
    "cases": "those that are not simply passed: id, status, kind, how, reason, widened",
    "seconds": "how long it took",
}


@click.command(
    "conformance", cls=Command, example="opdock conformance --device cpu:0 --op Relu", keys=_KEYS,
    found="a claim fails, or something is worse than in the baseline",
)  # fmt: skip
@click.option("--device", default="cpu:0", show_default=True, help="The device to prove.")
@click.option("--against", help="Compare with this device instead of the oracle.")
@click.option("--level", "levels", multiple=True, help="L0 ... L7 or ops; repeatable.")
@click.option("--op", "ops", multiple=True, help="An op type or test name; repeatable.")
@click.option("--report", "folder", type=_FOLDER, help="Write report, matrix and badges there.")
@click.option(
    "--json", "json_file", type=_FILE_OR_DASH, is_flag=False, flag_value="-",
    help="Write JSON to a file; without one, or as -, print it.",
)  # fmt: skip
@click.option("--markdown", "markdown_file", type=_FILE, help="Write the op x type matrix.")
@click.option("--badge", "badge_file", type=_FILE, help="Write shields.io data, or an .svg.")
@click.option("--baseline", type=_FILE, help="Fail when something was better there.")
@click.option("--take", type=_FILE, help="Do not run again what passed in this baseline.")
@click.option(
    "--write-baseline", type=_FILE,
    help="Write what --baseline compares with; --level and --op renew a part of the file.",
)  # fmt: skip
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
    take: Path | None,
    write_baseline: Path | None,
    unit_timeout: float,
    fuzz: int | None,
    fuzz_seconds: float | None,
    fuzz_seed: int,
    fuzz_save: Path,
    verbose: bool,
) -> None:
    """Prove a device against the oracle, level by level.

    What must pass follows from the device's kernel tables. It is an error when a claim fails, and
    when something is worse than in the baseline: a unit fails that passed, an op falls back that
    had a kernel. After Ctrl-C or SIGTERM what had run is reported.
    """
    from opdock.cli._conformance import print_differential, print_report
    from opdock.testing.harness.watch import Watch
    from opdock.testing.levels.fuzz import FuzzOptions

    _tell_of_crashes()
    _end_when_asked()
    known = _read_baseline("--baseline", baseline) if baseline is not None else None
    taken = _read_baseline("--take", take) if take is not None else None
    earlier = None
    if write_baseline is not None and write_baseline.is_file() and (levels or ops):
        earlier = _read_baseline("--write-baseline", write_baseline)
    screen = Screen(stderr=json_file == _STDOUT)
    watch = Watch(unit_timeout or None, fatal=True)
    dut = _open(device)
    if against is not None:
        if levels or folder or badge_file or known or taken or write_baseline or fuzz:
            raise click.UsageError(
                "--against goes with --device, --op, --unit-timeout, --json and --markdown only"
            )
        found = _differential(dut, _open(against), ops, watch)
        print_differential(found, screen, verbose)
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
        report = _run(dut, levels, ops, options, watch, keep, taken)
    except ValueError as e:
        raise Wrong(str(e)) from None
    if not report.outcomes and not report.left:
        raise Wrong(
            f"nothing ran: {dut.asked} has no unit for {', '.join(ops)} in {', '.join(levels)}"
        )
    print_report(report, screen, verbose)
    if report.left and (badge_file or write_baseline):
        screen.say("neither a badge nor a baseline is written", "partial ", "yellow")
        badge_file = write_baseline = None
    _files(report, folder, json_file, markdown_file, badge_file)
    _write_if(write_baseline, lambda: json.dumps(report.baseline(earlier), indent=1) + "\n")
    lost = _lost(report, known, bool(ops) or bool(report.left))
    for line in lost:
        screen.say(f"{line} in {baseline}", "lost ", "red", indent=2)
    if not report.ok:
        _tell_what_does_not_count(screen)
    _leave(report.left, report.ok and not lost, watch)


def _tell_what_does_not_count(screen: Screen) -> None:
    """An excuse that is left out may be what somebody looks for."""
    from opdock.plugins.manager import get_manager

    for line in get_manager().disputed():
        screen.say(line, "left out ", "yellow", indent=2)


def _tell_of_crashes() -> None:
    """A kernel that crashes the process leaves the lines of Python where it stood."""
    if sys.__stderr__ is not None and not faulthandler.is_enabled():
        faulthandler.enable(sys.__stderr__)


def _end_when_asked() -> None:
    """SIGTERM, as a job's time limit sends it, ends the run as Ctrl-C does."""
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        click.get_current_context().call_on_close(lambda: signal.signal(signal.SIGTERM, before))


def _leave(left: int, ok: bool, watch: Watch) -> NoReturn:
    """Ends the command, with the status for what was left and what came of the rest."""
    status = INTERRUPTED if left else 0 if ok else 1
    if watch.left_behind:
        # A thread that is stuck in a driver would keep the process when the device closes.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    raise SystemExit(status)


def _files(
    report: Report,
    folder: Path | None,
    json_file: Path | None,
    markdown_file: Path | None,
    badge_file: Path | None,
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
        raise Wrong(str(e)) from None


def _run(
    dut: Any,
    levels: tuple[str, ...],
    ops: tuple[str, ...],
    fuzz: FuzzOptions | None,
    watch: Watch,
    keep: Callable[[Report], None],
    taken: dict[str, Any] | None,
) -> Report:
    from opdock.testing.harness.suite import run

    with counting("units") as count:

        def progress(number: int, total: int, unit: Any) -> None:
            count(unit.id, number, total)

        return run(dut, levels, ops, progress, fuzz, watch, keep, taken)


# ---------------------------------------------------------------- two devices
def _differential(dut: Any, against: Any, ops: tuple[str, ...], watch: Watch) -> DifferentialReport:
    from opdock.testing.harness.differential import compare_devices

    with counting("pairs") as count:

        def progress(number: int, total: int, name: str) -> None:
            count(name, number, total)

        try:
            found = compare_devices(dut, against, ops, progress, watch)
        except ValueError as e:
            raise Wrong(str(e)) from None
    if not (found.pairs or found.skipped or found.left):
        raise Wrong(f"nothing ran: {dut.asked} claims none of {', '.join(ops)}")
    return found


# ---------------------------------------------------------------- baselines and files
def _lost(report: Report, known: dict[str, Any] | None, filtered: bool) -> list[str]:
    """What was better when the baseline was made, a line each."""
    if known is None:
        return []
    lost = [f"{name} passed" for name in report.regressions(known["passed"], filtered)]
    return lost + report.demotions(known["ways"])


def _read_baseline(option: str, path: Path) -> dict[str, Any]:
    try:
        data = parsed_json(path.read_bytes(), "it")
        passed = dict.fromkeys(str(name) for name in data["passed"])
        return {"passed": passed, "ways": {str(k): str(v) for k, v in data.get("ways", {}).items()}}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise Wrong(f"{option} {path}: {type(e).__name__}: {e}") from None


def _write_if(path: Path | None, text: Callable[[], str]) -> None:
    """Writes a whole file, or leaves the one that was there."""
    if path == _STDOUT:
        emit_text(text())
    elif path is not None and path.exists() and not path.is_file():
        path.write_text(text(), encoding="utf-8")  # a pipe or a terminal
    elif path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(str(path), text().encode())
