"""Whole programs beside TensorFlow: from start to exit, and steps when nothing is new to them.

    python benchmarks/whole.py --peer tensorflow=PYTHON --write docs/benchmarks.md
    python benchmarks/whole.py lenet 'gan*' --peer tensorflow=PYTHON

The programs are those of `tests/programs/real`, unchanged: where they import opdock, TensorFlow's
process finds `tensorflow.compat.v1`; and `transformer_4` and `transformer_12` of that many layers.
Each run is a process of its own, in a new folder, in turns. `--busy burn`, `quota` and
`tests` count the clock's time beside two burning processes, with the time of one processor, and
beside `pytest -n 2`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from busy import WAYS, busy

MODULES = {"opdock": "opdock", "tensorflow": "tensorflow.compat.v1"}
PROGRAMS = Path(__file__).resolve().parents[1] / "tests" / "programs" / "real"
USUAL = (
    "autoencoder", "char_rnn", "dqn", "gan", "lenet", "logistic_regression", "matrix_factorization",
    "policy_gradient", "transformer_4", "transformer_12", "vae", "while_rnn", "word2vec",
)  # fmt: skip
"""Of networks, agents and loops some of each."""
CLOCKS = {"processor": time.process_time, "wall": time.perf_counter}


def commands() -> dict[str, list[str]]:
    """Each program by its name, with the words of its command line."""
    found = {path.stem: [str(path)] for path in sorted(PROGRAMS.glob("*.py"))}
    layered = str(Path(__file__).with_name("transformer.py"))
    return {**found, **{f"transformer_{n}": [layered, str(n)] for n in (4, 12)}}


def work(library: str, clock: str, program: Sequence[str]) -> None:
    """Runs a program, and prints how many calls of `Session.run` it made and what they took."""
    now = CLOCKS[clock]
    start = now() if clock == "wall" else 0.0
    tf = importlib.import_module(MODULES[library])
    if library == "tensorflow":
        tf.disable_v2_behavior()
        tf.logging.set_verbosity(tf.logging.ERROR)
    sys.modules["opdock"] = tf
    calls: list[float] = []
    owner = next(kind for kind in tf.Session.__mro__ if "run" in vars(kind))
    plain = owner.run

    def run(self, *args, **words):
        begin = now()
        try:
            return plain(self, *args, **words)
        finally:
            calls.append(now() - begin)

    owner.run = run
    sys.argv = list(program)
    try:
        runpy.run_path(program[0], run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    later = calls[len(calls) // 2 :]
    found = {
        "calls": len(calls), "later": sum(later) / max(1, len(later)),
        "all": now() - start, "version": getattr(tf, "__version__", ""),
    }  # fmt: skip
    print("\n" + json.dumps(found), flush=True)


def measure(library: str, python: str, clock: str, program: list[str]) -> dict:
    """One run of a program."""
    command = [python, __file__, "--library", library, "--clock", clock, *program]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        raise SystemExit(f"{program[0]} failed on {library}: {''.join(last)}")
    return json.loads(done.stdout.splitlines()[-1])


def table(rows: dict[str, dict[str, list[dict]]]) -> str:
    """A Markdown table of the best turns: other work only adds."""
    from report import number, rows_of

    def best(turns: list[dict], what: str) -> float:
        return min(turn[what] for turn in turns)

    names = list(next(iter(rows.values())))
    peers = [name for name in names if name != "opdock"]
    body = []
    for program, found in rows.items():
        cells = [program, str(found["opdock"][0]["calls"])]
        for what, unit in (("later", 1e3), ("all", 1.0)):
            own = best(found["opdock"], what)
            cells += [number(best(found[name], what) * unit) for name in names]
            cells += [f"{best(found[name], what) / own:.2f}" for name in peers]
        body.append(cells)
    if len(rows) > 1 and peers:
        body.append(["geometric mean", "", *means(rows, names, peers, best)])
    ratios = [f"{name} / opdock" for name in peers]
    heads = [*(f"{name}, ms a call" for name in names), *ratios]
    heads += [*(f"{name}, s in all" for name in names), *ratios]
    return rows_of(["program", "calls", *heads], body)


def means(
    rows: dict[str, dict[str, list[dict]]],
    names: Sequence[str],
    peers: Sequence[str],
    best: Callable[[list[dict], str], float],
) -> list[str]:
    """The last line's cells: of ratios the geometric mean, of times nothing."""
    cells = []
    for what in ("later", "all"):
        cells += [""] * len(names)
        for name in peers:
            ratios = [best(f[name], what) / best(f["opdock"], what) for f in rows.values()]
            cells.append(f"{statistics.geometric_mean(ratios):.2f}")
    return cells


def main(words: Sequence[str]) -> None:
    """Reads the command line, measures and prints."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("names", nargs="*", metavar="name", help="programs, or patterns")
    p.add_argument("--peer", metavar="tensorflow=PYTHON")
    p.add_argument("--turns", type=int, default=2)
    p.add_argument("--write", type=Path, help="the page to put the table into")
    p.add_argument("--busy", choices=WAYS, help="by the clock, on a machine that is not alone")
    p.add_argument("--library", choices=sorted(MODULES), help=argparse.SUPPRESS)
    p.add_argument("--clock", choices=sorted(CLOCKS), help=argparse.SUPPRESS)
    args = p.parse_args(words)
    if args.library:
        work(args.library, args.clock, args.names)
        return
    if args.busy and args.write:
        p.error("--busy prints a table, which goes into no page: no two busy machines are alike")
    from options import chosen, peer, quoted
    from report import line, machine, replace

    sides = {"opdock": sys.executable}
    if args.peer:
        side = peer(args.peer)
        sides[side.library] = side.python
    known, clock = commands(), "wall" if args.busy else "processor"
    rows: dict[str, dict[str, list[dict]]] = {}
    for name in chosen(args.names, list(known)) if args.names else USUAL:
        rows[name] = {library: [] for library in sides}
        with busy(args.busy, os.cpu_count() or 1):
            for _ in range(args.turns):
                for library, python in sides.items():
                    rows[name][library].append(measure(library, python, clock, known[name]))
        print(table({name: rows[name]}).splitlines()[-1], file=sys.stderr, flush=True)
    about = {
        **machine(), "date": time.strftime("%Y-%m-%d"),
        "command": quoted(words, "whole.py"),
    }  # fmt: skip
    last = next(reversed(rows.values()))
    text = f"{line(about, {name: turns[0] for name, turns in last.items()})}\n\n{table(rows)}"
    print(text)
    if args.write:
        replace(args.write, {"benchmarks: whole": text})


if __name__ == "__main__":
    main(sys.argv[1:])
