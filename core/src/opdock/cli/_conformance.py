"""What `opdock conformance` prints for people."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from opdock.cli._screen import Cell, Screen, styled
from opdock.testing.harness.suite import LEVELS
from opdock.testing.report import render

if TYPE_CHECKING:
    from opdock.testing.harness.differential import DifferentialReport
    from opdock.testing.report.report import Report

_FAILURES: Final = 20
_PAIRS: Final = 25


# ---------------------------------------------------------------- a device and the oracle
def print_report(report: Report, screen: Screen, verbose: bool = False) -> None:
    """Prints scores, the matrix of op families and types, and what went wrong."""
    _print_levels(report, screen)
    if report.claims():
        _print_families(report, screen)
    ways = report.ways()
    if ways:
        told = ", ".join(f"{n} {way}" for way, n in ways.items())
        ran = sum(n for way, n in ways.items() if way not in ("failed", "exempt"))
        whole = ran + ways.get("failed", 0)
        screen.say(f"all ops: {ran}/{whole} run ({render.percent(ran, whole)}): {told}")
        screen.say(render.stayed(report))
    lines = _failure_lines(report, verbose)
    for line in lines if verbose else lines[:_FAILURES]:
        screen.say(line, "failed ", "red", indent=2)
    if len(lines) > _FAILURES and not verbose:
        screen.say(f"... and {len(lines) - _FAILURES} more units (--verbose, --json)")
    for reason, who in render.widened(report).items() if verbose else ():
        screen.say(f"{reason}: {', '.join(who)}", "wider ", "yellow", indent=2)
    passed, claimed = report.score()
    made, total = report.coverage()
    if report.taken:
        screen.say(f"units that had passed before and did not run again: {report.taken}")
    if report.left:
        screen.say(f"the run was stopped: {report.left} units did not run", "partial ", "yellow")
    if claimed:
        # Levels of other things than claims, and calls that must fail, are units too.
        others = sum(o.status == "failed" for o in report.outcomes) - (claimed - passed)
        screen.say(
            f"claims passed: {passed}/{claimed} ({render.percent(passed, claimed)}); "
            f"{f'other units failed: {others}; ' if others else ''}"
            f"claimed of all: {made}/{total} ({render.percent(made, total)})"
        )


def _failure_lines(report: Report, verbose: bool) -> list[str]:
    """One line per failed unit; with `verbose` one per case."""
    lines = []
    for outcome in report.outcomes:
        bad = [r for r in outcome.results if r.status == "failed"]
        if verbose:
            lines += [f"{r.id}: {r.reason}" for r in bad]
        elif bad:
            more = f" (and {len(bad) - 1} more cases)" if len(bad) > 1 else ""
            lines.append(f"{bad[0].id}: {bad[0].reason}{more}")
    return lines


def _print_levels(report: Report, screen: Screen) -> None:
    numbers = (
        "claimed", "passed", "failed", "known bugs", "skipped", "unclaimed", "cases", "s",
    )  # fmt: skip
    rows: list[list[Cell]] = []
    for s in report.levels():
        counts = (s.claimed, s.passed, s.failed, s.known_bugs, s.skipped, s.unclaimed, s.cases)
        cells = [f"{s.level} {LEVELS[s.level][0]}", *(str(n) if n else "" for n in counts)]
        style = "red" if s.failed else "green"
        rows.append([styled(cell, style) for cell in (*cells, f"{s.seconds:.1f}")])
    screen.table(("level", *numbers), rows, f"conformance of {report.device['name']}", numbers)
    if any(s.level == "L5" for s in report.levels()) or not report.fusions:
        screen.say(f"{report.fusions} fusions declared")
    screen.blank()


def _print_families(report: Report, screen: Screen) -> None:
    families = render.families()
    counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for outcome in report.claims():
        counts[families.get(outcome.op, "other")][outcome.dtype][outcome.status] += 1
    used = [d for d in render.DTYPES if any(d in row for row in counts.values())]
    names = [render.SHORT[d] for d in used]
    rows: list[list[Cell]] = [
        [family, *(_family_cell(counts[family][d]) for d in used)] for family in sorted(counts)
    ]
    screen.table(("family", *names), rows, "claims passed by family and type", names)
    screen.blank()


def _family_cell(count: Counter[str]) -> Cell:
    made = count["passed"] + count["failed"] + count["known-bug"]
    if not made:
        return styled("s", "dim") if count["skipped"] else ""
    if count["passed"] == made:
        return styled(str(made), "green")
    return styled(f"{count['passed']}/{made}", "red")


# ---------------------------------------------------------------- two devices
def print_differential(report: DifferentialReport, screen: Screen, verbose: bool) -> None:
    """Prints how far two devices are apart, op by op."""
    columns = ("op", "type", "samples", "ulp", "relative", "ran there")
    rows: list[list[Cell]] = [
        [
            styled(text, "red" if p.problem else "")
            for text in (p.op, p.dtype, str(p.cases), str(p.ulp), f"{p.relative:.2g}", p.elsewhere)
        ]
        for p in (report.pairs if verbose else report.pairs[:_PAIRS])
    ]
    title = f"{report.device} against {report.against}"
    screen.table(columns, rows, title, ("samples", "ulp", "relative"))
    bad = [p for p in report.pairs if p.problem]
    for p in bad:
        screen.say(f"{p.op}/{p.dtype}: {p.problem}", "differs ", "red", indent=2)
    screen.say(
        f"{len(report.pairs)} pairs of op and type compared, {len(bad)} disagree, "
        f"{len(report.skipped)} skipped"
    )
    if report.left:
        screen.say(f"the run was stopped: {report.left} claims were left out", "partial ", "yellow")
