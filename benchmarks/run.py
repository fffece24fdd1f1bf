"""Runs the benchmark cases, prints a table, and writes it into a page of the documentation.

    python benchmarks/run.py                            # all cases
    python benchmarks/run.py run_add run_chain          # some
    python benchmarks/run.py --write docs/benchmarks.md # and replace the page's table

Figures are medians. A row with a target says whether it is met; the exit status is 0 either way,
because a busy machine is no broken program (`--strict` makes a missed target an error).
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from cases import CASES, Row

BEGIN, END = "<!-- begin: make bench -->", "<!-- end: make bench -->"


def measure(name: str) -> list[Row]:
    """The rows of one case, measured in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--case", name], check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"benchmark {name} failed:\n{done.stderr}")
    return [tuple(row) for row in json.loads(done.stdout.splitlines()[-1])]


def processor() -> str:
    """The CPU's name, as Linux tells it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def number(value: float) -> str:
    """Three significant digits, thousands grouped."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(rows: list[Row]) -> str:
    """A Markdown table of the rows."""
    lines = ["| measured | figure | target | |", "| --- | ---: | ---: | --- |"]
    for name, value, unit, target in rows:
        goal = f"< {number(target)} {unit}" if target else ""
        verdict = "" if not target else "met" if value < target else "missed"
        lines.append(f"| {name} | {number(value)} {unit} | {goal} | {verdict} |")
    return "\n".join(lines)


def report(rows: list[Row], command: str) -> str:
    """The table, under the machine, the versions, the date and the command it came from."""
    today = dt.datetime.now(tz=dt.UTC).date().isoformat()
    about = (
        f"{processor()}, {os.cpu_count()} cores · Python {platform.python_version()}, "
        f"NumPy {version('numpy')}, opdock {version('opdock-core')} · {today} · `{command}`"
    )
    return f"{about}\n\n{table(rows)}"


def replace(page: Path, text: str) -> None:
    """Puts `text` between the page's two markers."""
    old = page.read_text(encoding="utf-8")
    if BEGIN not in old or END not in old:
        raise SystemExit(f"{page} lacks the markers {BEGIN} and {END}")
    head, rest = old.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    page.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}", encoding="utf-8")


def main() -> int:
    """Reads the command line and does what it says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "cases", nargs="*", metavar="case", help=f"of {', '.join(CASES)}; all without one"
    )
    parser.add_argument("--write", type=Path, metavar="PAGE", help="replace the table in this page")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures as JSON")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    parser.add_argument("--case", choices=sorted(CASES), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case:
        print(json.dumps(list(CASES[args.case]())))
        return 0
    if unknown := set(args.cases) - set(CASES):
        parser.error(f"no such case: {', '.join(sorted(unknown))} (there are {', '.join(CASES)})")
    if args.write and args.cases:
        parser.error("--write replaces the whole table, so it runs all cases")

    rows: list[Row] = []
    for name in args.cases or CASES:
        rows += measure(name)
    command = "make bench" if args.write else "python benchmarks/run.py " + " ".join(args.cases)
    text = report(rows, command.strip())
    print(text)
    if args.write:
        replace(args.write, text)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    missed = [name for name, value, _, target in rows if target and value >= target]
    return 1 if args.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())
