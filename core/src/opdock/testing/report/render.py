"""The report for people: Markdown matrix and badge, and what the tables of the terminal show."""

from __future__ import annotations

import functools
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from opdock.graph.nodes import registry
from opdock.testing.harness.claims import possible_dtypes
from opdock.testing.harness.watch import stopped
from opdock.testing.report.report import Report, UnitOutcome

__all__ = [
    "DTYPES", "SHORT", "badge", "badge_svg", "families", "markdown", "percent", "stayed", "widened",
]  # fmt: skip

DTYPES: Final = (
    "float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8",
    "uint16", "uint32", "uint64", "complex64", "complex128", "bool", "string", "qint8", "qint16",
    "qint32", "quint8", "quint16",
)  # fmt: skip
SHORT: Final = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "i8",
    "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "complex64": "c64", "complex128": "c128", "bool": "bool",
    "string": "str", "qint8": "q8", "qint16": "q16", "qint32": "q32", "quint8": "qu8",
    "quint16": "qu16",
}  # fmt: skip
_CELL: Final = {"passed": "✓", "failed": "✗", "skipped": "s", "known-bug": "b"}
_LEGEND: Final = (
    "✓ passes · ✗ fails · b known bug · s skipped for a typed reason · – not claimed · "
    "empty: the op does not have the type"
)


_DEFINITION: Final = re.compile(r'^\w+ = \w+\(\s*"(\w+)"|define_op\(\s*"(\w+)"', re.MULTILINE)


def percent(part: int, whole: int) -> str:
    """Such as "98.5 %"; a dash of nothing."""
    return f"{100.0 * part / whole:.1f} %" if whole else "–"


def badge(report: Report) -> dict[str, Any]:
    """The score as data for a shields.io endpoint badge."""
    passed, claimed = report.score()
    made, total = report.coverage()
    color = "brightgreen" if report.proven and claimed else "red"
    if report.proven and any(s.known_bugs for s in report.levels()):
        color = "yellow"
    return {
        "schemaVersion": 1,
        "label": "opdock conformance",
        "message": f"{passed}/{claimed} claims, {percent(made, total)} of all",
        "color": color,
    }


_HEX: Final = {"brightgreen": "#4c1", "yellow": "#dfb317", "red": "#e05d44"}
_LETTER: Final = 6.2  # the mean width of a letter of Verdana at 11 pixels


def badge_svg(report: Report) -> str:
    """The badge as an image of its own, for where no badge service can reach."""
    from xml.sax.saxutils import escape

    data = badge(report)
    label, message = escape(data["label"]), escape(data["message"])
    left, right = (round(len(data[k]) * _LETTER) + 10 for k in ("label", "message"))
    text = 'fill="#fff" text-anchor="middle" font-family="Verdana,sans-serif" font-size="11"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{label}: {message}">\n'
        f'<rect width="{left}" height="20" fill="#555"/>\n'
        f'<rect x="{left}" width="{right}" height="20" fill="{_HEX[data["color"]]}"/>\n'
        f'<text x="{left / 2}" y="14" {text}>{label}</text>\n'
        f'<text x="{left + right / 2}" y="14" {text}>{message}</text>\n'
        "</svg>\n"
    )


# ---------------------------------------------------------------- Markdown
def markdown(report: Report) -> str:
    """The report as Markdown: scores, how ops ran, the matrix, what is not as it should be.

    It holds nothing that changes from machine to machine or from day to day, so that a committed
    one changes only with what it says.
    """
    device = report.device
    passed, claimed = report.score()
    made, total = report.coverage()
    score = (
        f"**{passed}/{claimed}** claims pass ({percent(passed, claimed)}); "
        f"**{made}/{total}** of all pairs of op and type are claimed ({percent(made, total)})."
    )
    lines = [
        f"# Conformance of {device['backend']} ({device['name'].rsplit('device:', 1)[-1]})",
        "",
        f"{device['distribution'] or device['backend']}, plugin API {device['api']}",
        "",
        *stopped(report.left),
        score,
        "",
        "| level | claimed | passed | failed | known bugs | skipped | unclaimed | cases |",
        "| --- | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for s in report.levels():
        if s.level == "L7":
            continue
        lines.append(
            f"| {s.level} | {s.claimed} | {s.passed} | {s.failed} | {s.known_bugs} | {s.skipped} "
            f"| {s.unclaimed} | {s.cases} |"
        )
    if report.taken:
        told = "did not run again; their cases and wider tolerances are not listed"
        lines += ["", f"{report.taken} units that had passed before, by the baseline, {told}."]
    ways = report.ways()
    if ways:
        told = ", ".join(f"{n} {way}" for way, n in ways.items())
        lines += ["", f"All ops in a session that prefers the device: {told}.", stayed(report)]
    if report.claims():
        lines += ["", "## Ops and types", "", _LEGEND, "", *_matrix(report)]
    lines += _section("Failures", [f"- `{r.id}`: {r.reason}" for r in report.failures()])
    lines += _section("Not supported, or not yet", _skipped(report))
    wider = [f"- {reason}: {', '.join(who)}" for reason, who in widened(report).items()]
    lines += _section("Wider tolerances", wider)
    return "\n".join(lines) + "\n"


def stayed(report: Report) -> str:
    """How many of the ops that could stay on the device do, in a sentence."""
    stayed, total = report.stayed()
    return (
        f"Of {total} ops that compute on arrays of the device's types {stayed} stay on it "
        f"({percent(stayed, total)}); strings, and what else it cannot hold, do not count."
    )


def _section(title: str, lines: list[str]) -> list[str]:
    return ["", f"## {title}", "", *lines] if lines else []


def _skipped(report: Report) -> list[str]:
    """What the backend says that it does without, by reason."""
    found: dict[str, list[str]] = defaultdict(list)
    for outcome in report.claims():
        for result in outcome.results:
            if result.kind in ("unsupported", "planned"):
                found[f"{result.kind}: {result.reason}"].append(f"{outcome.op} {outcome.dtype}")
    return [f"- {reason}: {', '.join(who)}" for reason, who in found.items()]


def _matrix(report: Report) -> list[str]:
    claims: dict[str, dict[str, UnitOutcome]] = defaultdict(dict)
    for outcome in report.claims():
        claims[outcome.op][outcome.dtype] = outcome
    gradients: dict[str, list[UnitOutcome]] = defaultdict(list)
    for outcome in report.outcomes:
        if outcome.level == "L3":
            gradients[outcome.op].append(outcome)
    head = ["op", *(SHORT[d] for d in DTYPES), "gradient"]
    rows = ["| " + " | ".join(head) + " |", "| --- |" + " :-: |" * (len(head) - 1)]
    for op in sorted(claims):
        spec = registry.find(op)
        possible = {d.name for d in possible_dtypes(spec)} if spec else set()
        cells = [_cell(claims[op].get(d), d in possible) for d in DTYPES]
        rows.append("| " + " | ".join([op, *cells, _gradient(gradients[op])]) + " |")
    return rows


def _cell(outcome: UnitOutcome | None, possible: bool) -> str:
    if outcome is None:
        return "–" if possible else ""
    return _CELL[outcome.status]


def _gradient(outcomes: list[UnitOutcome]) -> str:
    statuses = {o.status for o in outcomes}
    return next((_CELL[s] for s in ("failed", "known-bug", "passed") if s in statuses), "")


def widened(report: Report) -> dict[str, list[str]]:
    """Tolerance and reason -> the claims that use it."""
    found: dict[str, list[str]] = defaultdict(list)
    for result in report.widened():
        found[result.widened].append(f"{result.op} {result.dtype}")
    return found


@functools.cache
def families() -> dict[str, str]:
    """Op type -> the file under `opdock.ops` that defines it."""
    found: dict[str, str] = {}
    for name, module in sorted(sys.modules.items()):
        if not name.startswith("opdock.ops.") or not module.__file__:
            continue
        source = Path(module.__file__).read_text(encoding="utf-8")
        for assigned, defined in _DEFINITION.findall(source):
            found[assigned or defined] = name.removeprefix("opdock.ops.")
    for spec in registry.all_ops():  # made in a loop: their shape function tells
        home = str(getattr(spec.shape_fn, "__module__", "")).removeprefix("opdock.ops.")
        if spec.name not in found and home and not home.startswith("support."):
            found[spec.name] = home
    for spec in registry.all_ops():
        twin = found.get(spec.name.removeprefix("Resource"))
        if spec.name not in found and twin:
            found[spec.name] = twin
    return found
