"""Steps on a device of opdock's beside those of another library, by the processor's time.

Or beside those of opdock itself with a variable of the environment.

    python benchmarks/together.py --peer jax --device jax:0 --write docs/benchmarks.md
    python benchmarks/together.py --peer jax --device jax:0 logreg_train 'mlp*' --seconds 5
    python benchmarks/together.py --variable OPDOCK_TORCH_COMPILE=1 --device torch:0

Each is in a process of its own, several times, with the library's own settings, on one core.
Bursts of steps take turns, and the processor's time counts: so the ratios can be had on a machine
that is busy with other things. A wrong answer gets no ratio.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import compare
import report
from compare import Worker
from workloads.agree import apart
from workloads.table import ALL

BURST = 0.05  # seconds of one burst's steps, at least one step
LEAST = 5  # bursts of each
LOOKS = 3  # at the clock that a worker takes a step
Row = tuple[str, list[float], list[float], float, float]


def measure(name: str, sides: Sequence[Worker], seconds: float) -> Row | None:
    """Seconds a step of opdock and of the peer by burst, and their first steps; None without twin.

    Raises:
        RuntimeError: they do not compute the same, or one fails.
    """
    workload = ALL[name]

    def ask(side: Worker, do: str, **words: Any) -> dict[str, Any]:
        heard = side.ask(do, **words)
        if "error" in heard:
            raise RuntimeError(f"{name}: {heard['error']}")
        return heard

    started = [ask(side, "start", workload=name, sizes=dict(workload.sizes)) for side in sides]
    if any("missing" in found for found in started):
        return None
    for ours, theirs in zip(*(found["values"] for found in started), strict=True):
        if (gap := apart(ours, theirs)) > 2 * workload.tolerance:
            raise RuntimeError(f"{name}: the answers differ by {gap:.2g} of the largest value")
    mine: list[float] = []
    others: list[float] = []
    bursts = max(LEAST, math.ceil(seconds / BURST / 2))
    # A look at the processor's time costs as much as a tenth of a small step.
    looks = [LOOKS * ask(side, "looking")["seconds"] for side in sides]
    for turn in range(-1, bursts):  # the first burst warms up
        turns = list(zip(sides, looks, (mine, others), strict=True))
        for side, look, kept in turns if turn % 2 else reversed(turns):
            (took,) = ask(side, "run", seconds=BURST, least=1)["times"]
            if turn >= 0:
                kept.append(took - look)
    return name, mine, others, started[0]["first"], started[1]["first"]


def anew(name: str, setting: compare.Setting, seconds: float, turns: int) -> Row | None:
    """The bursts of so many pairs of new processes: where arrays lie is luck, anew in each."""
    found: list[Row] = []
    for _ in range(turns):
        sides = [Worker(side, setting) for side in setting.sides]
        try:
            for side in sides:  # what the first step of a process pays, no workload's does
                side.ask("start", workload="reduce", sizes=dict(ALL["reduce"].smoke))
            row = measure(name, sides, seconds / turns)
        finally:
            for side in sides:
                side.close()
        if row is None:
            return None
        found.append(row)
    mine, others = ([t for row in found for t in row[i]] for i in (1, 2))
    first, theirs = (statistics.median(row[i] for row in found) for i in (3, 4))
    return name, mine, others, first, theirs


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


def assignment(text: str) -> str:
    """NAME=VALUE."""
    name, equals, _ = text.partition("=")
    if not name.isidentifier() or not equals:
        raise argparse.ArgumentTypeError(f"{text!r}: write NAME=VALUE")
    return text


def main(words: Sequence[str]) -> None:
    """Measures, prints, and writes the table into a page if that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="*", default=["*"], help="workloads, or patterns")
    beside = parser.add_mutually_exclusive_group(required=True)
    beside.add_argument("--peer", choices=("jax", "torch"))
    beside.add_argument(
        "--variable", type=assignment, metavar="NAME=VALUE", help="opdock itself with this one set"
    )
    parser.add_argument("--device", default="jax:0", help="where opdock computes")
    parser.add_argument("--seconds", type=float, default=2.0, help="of measuring, a workload")
    parser.add_argument("--turns", type=int, default=3, help="new processes, a workload")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="replace the table in this page")
    given = parser.parse_args(words)
    other = compare.Side(
        given.peer or "opdock", variables=(given.variable,) if given.variable else ()
    )
    peer = given.peer or given.variable
    # One thread and one core: threads that wait for each other by turning would count.
    setting = compare.Setting(
        (compare.Side("opdock"), other), threads=1, processor=True, settled=True
    )
    setting = dataclasses.replace(setting, device=compare.placed(given.device, setting))
    rows = []
    for name, workload in ALL.items():
        # What runs on the host is no device's.
        if not workload.host and any(fnmatch.fnmatch(name, pattern) for pattern in given.name):
            row = anew(name, setting, given.seconds, given.turns)
            if row is not None:
                rows.append(row)
                print(table([row], peer).splitlines()[2], flush=True)
    head = report.of_one_core("together.py", words, given.peer or given.device.partition(":")[0])
    text = f"{head}\n\n{table(rows, peer)}"
    print(text)
    if given.write is not None:
        report.replace(given.write, {f"together: {peer.partition('=')[0]}": text})


if __name__ == "__main__":
    main(sys.argv[1:])
