"""Steps on a device of opdock's beside those of another library, both in one process.

    python benchmarks/together.py --peer jax --device jax:0 --write docs/benchmarks.md
    python benchmarks/together.py --peer jax --device jax:0 logreg_train 'mlp*' --seconds 5

What counts is the processor's time, on one core, in bursts that take turns: so the ratios can be
had on a machine that is busy with other things. A wrong answer gets no ratio.
"""

from __future__ import annotations

import argparse
import fnmatch
import math
import os
import shlex
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import report
from worker import Library
from workloads.agree import apart
from workloads.table import ALL

BURST = 0.02  # seconds that the peer's steps of one burst take, at least one step
LEAST = 5  # bursts of each
Row = tuple[str, list[float], list[float], float, float]


def measure(name: str, libraries: Sequence[Library], seconds: float) -> Row | None:
    """Seconds a step of opdock and of the peer by burst, and their first steps; None without twin.

    Raises:
        RuntimeError: they do not compute the same.
    """
    workload = ALL[name]
    started = [library.start(name, dict(workload.sizes)) for library in libraries]
    if any("missing" in found for found in started):
        return None
    for ours, theirs in zip(*(found["values"] for found in started)):
        if (gap := apart(ours, theirs)) > 2 * workload.tolerance:
            raise RuntimeError(f"{name}: the answers differ by {gap:.2g} of the largest value")
    ours, theirs = (library.timed for library in libraries)
    count = max(1, round(BURST / max(theirs()[0], 1e-6)))
    mine: list[float] = []
    others: list[float] = []
    while len(mine) < LEAST or sum(mine) + sum(others) < seconds / count:
        turns = [(ours, mine), (theirs, others)]
        for step, kept in turns if len(mine) % 2 else reversed(turns):
            step()
            kept.append(sum(step()[0] for _ in range(count)) / count)
    return name, mine, others, started[0]["first"], started[1]["first"]


def table(rows: Sequence[Row], peer: str) -> str:
    """The rows as Markdown."""
    ratio, firsts = f"{peer} / opdock", f"first step, opdock | first step, {peer}"
    lines = [
        f"| ms of a processor | opdock | {peer} | {ratio} | of the quickest bursts | {firsts} |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    ratios = []
    for name, mine, others, first, their_first in rows:
        own, other = statistics.median(mine), statistics.median(others)
        ratios.append(other / own)
        cells = [
            name, report.number(own * 1e3), report.number(other * 1e3), f"{other / own:.2f}",
            f"{min(others) / min(mine):.2f}", report.number(first * 1e3),
            report.number(their_first * 1e3),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    mean = math.exp(statistics.fmean(math.log(r) for r in ratios))
    return "\n".join([*lines, f"| geometric mean |  |  | {mean:.2f} |  |  |  |"])


def main(words: Sequence[str]) -> None:
    """Measures, prints, and writes the table into a page if that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="*", default=["*"], help="workloads, or patterns")
    parser.add_argument("--peer", choices=("jax", "torch"), required=True)
    parser.add_argument("--device", default="jax:0", help="where opdock computes")
    parser.add_argument("--seconds", type=float, default=2.0, help="of measuring, a workload")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="replace the table in this page")
    given = parser.parse_args(words)
    if hasattr(os, "sched_setaffinity"):
        # One core: threads that wait for each other by turning would count.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    libraries = [Library("opdock", 1, None, processor=True), Library(given.peer, 1, None, True)]
    libraries[0].device = libraries[0].where(given.device)["device"]
    for library in libraries:  # what the first step of a process pays, no workload's does
        library.start("reduce", dict(ALL["reduce"].smoke))
    rows = []
    for name in ALL:
        if any(fnmatch.fnmatch(name, pattern) for pattern in given.name):
            row = measure(name, libraries, given.seconds)
            if row is not None:
                rows.append(row)
                print(table([row], given.peer).splitlines()[2], flush=True)
    about = report.machine()
    command = shlex.join(["python", "benchmarks/together.py", *words])
    head = (
        f"{about['processor']}, one core of {about['cores']} · Python {about['python']}, NumPy "
        f"{about['numpy']}, opdock {about['opdock']}, {given.peer} "
        f"{libraries[1].hello()['version']} · {time.strftime('%Y-%m-%d')} · `{command}`"
    )
    text = f"{head}\n\n{table(rows, given.peer)}"
    print(text)
    if given.write is not None:
        report.replace(given.write, {f"together: {given.peer}": text})


if __name__ == "__main__":
    main(sys.argv[1:])
