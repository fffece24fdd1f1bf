"""Measures opdock, alone or beside its peers; prints tables, writes them into the documentation.

    python benchmarks/run.py                             # everything, shortly, without peers
    python benchmarks/run.py 'mlp*' run_add              # some of it
    python benchmarks/run.py --smoke                     # right answers only, at tiny sizes
    python benchmarks/run.py --device opencl:0           # the workloads on another device
    python benchmarks/run.py --full --peer tensorflow=PYTHON --peer torch=PYTHON --peer jax=PYTHON
    python benchmarks/run.py --busy burn --peer tensorflow=PYTHON  # ratios beside other processes
    python benchmarks/run.py --write docs/benchmarks.md  # what `make bench` does

Libraries take turns, each in a process of its own. A wrong answer gets no ratio. A short run is too
noisy for the page's tables of the CPU's workloads and curves: only --full replaces those.

The exit status is 1 when opdock fails or gives a wrong answer; a missed target counts as an error
only with --strict, because a busy machine is no broken program.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import compare
import curves
import options
import plots
import report
from busy import busy
from cases import CASES, Row
from compare import Setting, Side
from workloads.table import ALL


def say(text: str) -> None:
    """What is going on; the tables alone go to standard output."""
    print(text, file=sys.stderr, flush=True)


def measure_case(name: str) -> list[Row]:
    """The rows of one case, measured in a process of its own."""
    say(name)
    done = subprocess.run(
        [sys.executable, __file__, "--case", name], check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"benchmark {name} failed:\n{done.stderr}")
    return [tuple(row) for row in json.loads(done.stdout.splitlines()[-1])]


def setting_of(args: argparse.Namespace) -> Setting:
    """What the command line says about all measurements."""
    effort = compare.FULL if args.full else compare.SHORT
    sides = (Side("opdock"), *args.peer)
    setting = Setting(sides, args.threads, None, args.peer_gpu, effort, args.processor)
    if args.device is None:
        return setting
    return dataclasses.replace(setting, device=compare.placed(args.device, setting))


def measure(args: argparse.Namespace, words: Sequence[str]) -> dict[str, Any]:
    """All figures, as --json keeps them."""
    setting = setting_of(args)
    about = {
        **report.machine(),
        "threads": setting.threads,
        "device": setting.device,
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "command": options.quoted(words),
        "full": args.full,
    }
    data: dict[str, Any] = {"about": about}
    if setting.device is None:  # the basics are about no device
        names = options.chosen(args.names, list(CASES))
        data["basics"] = [row for name in names for row in measure_case(name)]
    names = options.chosen(args.names, [n for n in ALL if not (setting.device and ALL[n].host)])
    wanted = options.chosen(args.names, options.CURVES)
    if names or wanted:
        data["imports"] = compare.imports(setting, 5 if args.full else 1)
    found = {name: one(setting, name) for name in names}
    for section in report.TABLES:
        data[section] = [found[n] for n in names if ALL[n].section == section]
    data["curves"] = {}
    if "graph_curve" in wanted:
        say("graph_curve")
        sizes = curves.GRAPH_SIZES if args.full else curves.SHORT_GRAPH_SIZES
        data["curves"]["graph"] = curves.graph_curve(setting, sizes)
    if "batch_curve" in wanted:
        say("batch_curve")
        batches = curves.BATCHES if args.full else curves.SHORT_BATCHES
        data["curves"]["batch"] = curves.batch_curve(setting, batches)
    return data


def one(setting: Setting, name: str) -> dict[str, Any]:
    """A workload in all libraries, told as it comes."""
    found = compare.measure(setting, ALL[name], {})
    times = [
        f"{library} {figures.get('wrong') or report.milliseconds(figures['step']) + ' ms'}"
        for library, figures in found["libraries"].items()
    ]
    say(f"{name}: {', '.join(times)}")
    return found


def beside(args: argparse.Namespace) -> int:
    """Prints the workloads' ratios on a busy machine; 1 if an answer of opdock's is wrong."""
    setting = setting_of(args)
    names = options.chosen(args.names, list(ALL))
    with busy(args.busy, setting.threads):
        found = [one(setting, name) for name in names]
    print(report.ratios(found))
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return int(any("wrong" in f["libraries"]["opdock"] for f in found))


def smoke(args: argparse.Namespace) -> int:
    """Prints each workload's verdict; 1 if any is wrong."""
    setting = setting_of(args)
    names = options.chosen(args.names, list(ALL))
    found = compare.smoke(setting, [ALL[n] for n in names])
    for name, libraries in found.items():
        print(f"{name}: {', '.join(f'{lib} {text}' for lib, text in libraries.items())}")
    return int(any(text != "right" for libs in found.values() for text in libs.values()))


def publish(args: argparse.Namespace, data: dict[str, Any]) -> None:
    """Tables to standard output, and plots and tables to where the options say."""
    page = args.write or args.markdown
    if args.plot:
        folder = page.with_suffix("")
        shown = data if args.markdown or data["about"]["full"] else {"about": data["about"]}
        drawn = plots.drawn(shown, folder)
        data["plots"] = {key: f"{folder.name}/{file.name}" for key, file in drawn.items()}
    found = report.sections(data)
    print("\n\n".join(found.values()))
    if args.markdown:
        args.markdown.write_text(report.whole(found), encoding="utf-8")
    if args.write:
        if not data["about"]["full"]:
            found = {n: text for n, text in found.items() if n == "make bench" or " on " in n}
            say(f"{args.write} keeps the CPU's workloads and curves: --full replaces them")
        report.replace(args.write, found)


def main(words: Sequence[str]) -> int:
    """Does what the words of the command line say."""
    parser = options.parser(__doc__)
    args = parser.parse_args(words)
    if args.case:
        print(json.dumps(list(CASES[args.case]())))
        return 0
    options.check(parser, args)
    if args.list:
        for name, what in {**CASES, **ALL, **dict.fromkeys(options.CURVES, curves)}.items():
            print(f"{name}: {what.text() if name in ALL else what.__doc__.splitlines()[0]}")
        return 0
    if args.smoke:
        return smoke(args)
    if args.busy:
        return beside(args)
    data = json.loads(args.data.read_text(encoding="utf-8")) if args.data else measure(args, words)
    if args.json:
        args.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    publish(args, data)
    missed = [name for name, value, _, goal in data.get("basics", ()) if goal and value >= goal]
    failed = [text for text in report.all_wrongs(data) if ", opdock: " in text]
    return int(bool(failed) or (args.strict and bool(missed)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
