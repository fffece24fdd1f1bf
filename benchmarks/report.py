"""Figures as text: Markdown tables, and their places between the markers of a page."""

from __future__ import annotations

import os
import platform
import shlex
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cases import Row
from compare import PEERS
from curves import PHASES

LIBRARIES = ("opdock", *PEERS)
TABLES = ("workloads", "pipelines")
"""The sections of workloads."""


def processor() -> str:
    """The CPU's name, as Linux tells it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    """What the figures depend on and the code does not."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "opdock": version("opdock-core"),
    }


def of_one_core(script: str, words: Sequence[str], peer: str) -> str:
    """What stands above a table of one core: the machine, the versions, the day, the command."""
    about = machine()
    return (
        f"{about['processor']}, one core of {about['cores']} · Python {about['python']}, NumPy "
        f"{about['numpy']}, opdock {about['opdock']}, {peer} {version(peer)} · "
        f"{time.strftime('%Y-%m-%d')} · `{shlex.join(['python', f'benchmarks/{script}', *words])}`"
    )


def number(value: float) -> str:
    """Three significant digits, thousands grouped."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def milliseconds(seconds: float) -> str:
    """A time in the unit of the tables."""
    return number(seconds * 1e3)


def megabytes(count: float | None) -> str:
    """A size in the unit of the tables."""
    return "" if count is None else number(round(count / 1e6, 2))


def rows_of(head: Sequence[str], body: Iterable[Sequence[str]], words: int = 1) -> str:
    """A Markdown table; all columns but the first `words` hold numbers."""
    rule = ["---" if i < words else "---:" for i in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *body))


def basics(rows: Sequence[Row]) -> str:
    """What every program pays, and the targets."""
    body = []
    for name, value, unit, target in rows:
        goal = f"< {number(target)} {unit}" if target else ""
        verdict = "" if not target else "met" if value < target else "missed"
        body.append((name, f"{number(value)} {unit}", goal, verdict))
    return rows_of(("measured", "figure", "target", ""), body)


def present(figures: Iterable[Mapping[str, Any]]) -> list[str]:
    """The libraries of some results, in the tables' order."""
    names = {name for one in figures for name in one["libraries"]}
    return [name for name in LIBRARIES if name in names]


def steps(workloads: Sequence[Mapping[str, Any]]) -> str:
    """Milliseconds of a step, and how many times opdock's each peer takes."""
    names = present(workloads)
    peers = [n for n in names if n != "opdock"]
    body = []
    for one in workloads:
        cells = [one["name"]]
        for name in names:
            figures = one["libraries"].get(name)
            cells.append(
                "" if not figures else "wrong" if "wrong" in figures else ms_of(figures, "step")
            )
        for peer in peers:
            ratio = one["ratios"].get(peer)
            cells.append(ratio_text(ratio) if ratio else "")
        body.append(cells)
    if any(one["ratios"] for one in workloads):
        means = [mean(workloads, peer) for peer in peers]
        body.append(["geometric mean", *[""] * len(names), *means])
    return rows_of(["ms a step", *names, *(f"{p} / opdock" for p in peers)], body)


def ratios(workloads: Sequence[Mapping[str, Any]]) -> str:
    """How many times opdock's each peer takes, and no times."""
    peers = [n for n in present(workloads) if n != "opdock"]
    body = [
        [one["name"], *(ratio_text(one["ratios"][p]) if p in one["ratios"] else "" for p in peers)]
        for one in workloads
    ]
    body.append(["geometric mean", *(mean(workloads, peer) for peer in peers)])
    return rows_of(["", *(f"{p} / opdock" for p in peers)], body)


def ms_of(figures: Mapping[str, Any], key: str) -> str:
    """One time, if it was taken."""
    return milliseconds(figures[key]) if key in figures else ""


def ratio_text(ratio: Mapping[str, float]) -> str:
    """The median of the rounds, and in small where they lay."""
    return f"{ratio['median']:.2f} ({ratio['low']:.2f}–{ratio['high']:.2f})"


def mean(workloads: Sequence[Mapping[str, Any]], peer: str) -> str:
    """Over all workloads with a ratio to that peer."""
    found = [w["ratios"][peer]["median"] for w in workloads if peer in w["ratios"]]
    return f"{statistics.geometric_mean(found):.2f}" if found else ""


def costs(workloads: Sequence[Mapping[str, Any]]) -> str:
    """First step and peak memory of each library, and the memory that opdock planned."""
    names = present(workloads)
    elsewhere = any("elsewhere" in w["libraries"].get("opdock", {}) for w in workloads)
    head = ["", *(f"first, {n}" for n in names), *(f"peak, {n}" for n in names), "planned, opdock"]
    if elsewhere:
        head += ["device's peak", "ops elsewhere"]
    body = []
    for one in workloads:
        found = [one["libraries"].get(name, {}) for name in names]
        ours = one["libraries"].get("opdock", {})
        cells = [one["name"], *(ms_of(f, "first") for f in found)]
        cells += [megabytes(f.get("peak")) for f in found]
        cells.append(megabytes(ours.get("planned")))
        if elsewhere:
            cells += [megabytes(ours.get("device_peak")), ours.get("elsewhere", "")]
        body.append(cells)
    return rows_of(head, body)


def wrongs(results: Iterable[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """A line for everything that gave no figure, or a wrong answer."""
    return [
        f"{what}, {name}: {figures['wrong']}"
        for what, libraries in results
        for name, figures in libraries.items()
        if "wrong" in figures
    ]


def all_wrongs(data: Mapping[str, Any]) -> list[str]:
    """Of all results."""
    found = [(w["name"], w["libraries"]) for key in TABLES for w in data.get(key, ())]
    for curve, points in data.get("curves", {}).items():
        found += [(f"{curve} {p['size']}", p["libraries"]) for p in points]
    return wrongs(found)


def import_table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """What a process pays before its first result, with all that a library loads only then."""
    body = [
        (
            name,
            str(one["version"]),
            milliseconds(one["seconds"]),
            milliseconds(one["ready"]),
            megabytes(one["resident"]),
        )
        for name, one in found.items()
    ]
    head = ("library", "version", "import, ms", "first result, ms", "resident after it, MB")
    return rows_of(head, body, words=2)


def graph_table(points: Sequence[Mapping[str, Any]]) -> str:
    """Microseconds an op of each phase."""
    names = present(points)
    body = []
    for point in points:
        cells = [f"{point['size']:,}"]
        for name in names:
            figures = point["libraries"].get(name, {})
            each = [figures.get(phase) for phase in PHASES]
            cells += ["" if s is None else number(s / point["size"] * 1e6) for s in each]
        body.append(cells)
    head = ["ops, µs an op", *(f"{phase}, {name}" for name in names for phase in PHASES)]
    return rows_of(head, body)


def batch_table(points: Sequence[Mapping[str, Any]]) -> str:
    """Milliseconds of a step."""
    names = present(points)
    body = [
        [f"{p['size']:,}", *(ms_of(p["libraries"].get(name, {}), "step") for name in names)]
        for p in points
    ]
    return rows_of(["batch, ms a step", *names], body)


def workload_section(data: Mapping[str, Any], key: str) -> str:
    """Both tables, what the workloads are, and what went wrong."""
    found = data[key]
    parts = [steps(found)]
    parts.append(
        "First step in ms, with all that is compiled for it; peak of the process and planned "
        f"buffers in MB:\n\n{costs(found)}"
    )
    if data.get("imports"):
        parts.append(import_table(data["imports"]))
    parts.append(
        "What they compute:\n\n" + "\n".join(f"- {w['name']}: {w['about']}" for w in found)
    )
    return "\n\n".join(parts)


def curve_section(data: Mapping[str, Any], key: str) -> str:
    """The tables of the curves that were measured."""
    tables = {"graph": graph_table, "batch": batch_table}
    return "\n\n".join(tables[name](points) for name, points in data[key].items())


def sections(data: Mapping[str, Any]) -> dict[str, str]:
    """Marker -> text, for what was measured; each under the machine, the date and the command."""
    about, device = data["about"], data["about"].get("device")
    on = f" on {device}" if device else ""
    found = {}
    if data.get("basics"):
        found["make bench"] = f"{line(about, {})}\n\n{basics(data['basics'])}"
    for key, text in (*((k, workload_section) for k in TABLES), ("curves", curve_section)):
        if data.get(key):
            parts = [line(about, data.get("imports", {})), *images(data, key), text(data, key)]
            failed = list(all_wrongs({key: data[key]}))
            if failed:
                parts.append("Without a figure:\n\n" + "\n".join(f"- {w}" for w in failed))
            found[f"make bench: {key}{on}"] = "\n\n".join(parts)
    return found


def images(data: Mapping[str, Any], key: str) -> list[str]:
    """The plot of a section, where one was drawn."""
    link = data.get("plots", {}).get(key)
    return [f"![{key}]({link})"] if link else []


def line(about: Mapping[str, Any], imports: Mapping[str, Mapping[str, Any]]) -> str:
    """Machine, versions, date, command."""
    versions = [f"{name} {one['version']}" for name, one in imports.items() if name != "opdock"]
    libraries = ", ".join([f"NumPy {about['numpy']}", f"opdock {about['opdock']}", *versions])
    return (
        f"{about['processor']}, {about['cores']} cores · Python {about['python']}, {libraries} · "
        f"{about['date']} · `{about['command']}`"
    )


def replace(page: Path, found: Mapping[str, str]) -> None:
    """Puts each text between its markers; a device's section that is missing goes to the end."""
    text = page.read_text(encoding="utf-8")
    for name, content in found.items():
        begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
        if begin not in text and " on " in name:
            title = name.removeprefix("make bench: ").capitalize()
            text = f"{text.rstrip()}\n\n## {title}\n\n{begin}\n{end}\n"
        head, found_begin, rest = text.partition(begin)
        _, found_end, tail = rest.partition(end)
        if not (found_begin and found_end):
            raise SystemExit(f"{page} lacks the markers {begin} and {end}")
        text = f"{head}{begin}\n{content}\n{end}{tail}"
    page.write_text(text, encoding="utf-8")


def whole(found: Mapping[str, str]) -> str:
    """A page of its own."""
    return "# Benchmarks\n\n" + "\n\n".join(found.values()) + "\n"
