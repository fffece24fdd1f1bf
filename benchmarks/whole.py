"""Whole programs beside TensorFlow: from start to exit, and steps when nothing is new to them.

    python benchmarks/whole.py --peer tensorflow=PYTHON --write docs/benchmarks.md
    python benchmarks/whole.py lenet 'gan*' --peer tensorflow=PYTHON

The programs are those of `tests/programs/real`, unchanged: where they import opdock, TensorFlow's
process finds `tensorflow.compat.v1`. Each run is a process of its own, in a new folder, in turns.
"""

from __future__ import annotations

import argparse
import importlib
import json
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

MODULES = {"opdock": "opdock", "tensorflow": "tensorflow.compat.v1"}
PROGRAMS = Path(__file__).resolve().parents[1] / "tests" / "programs" / "real"
USUAL = (
    "autoencoder", "char_rnn", "dqn", "gan", "lenet", "logistic_regression", "matrix_factorization",
    "vae", "while_rnn", "word2vec",
)  # fmt: skip
"""Of networks, agents and loops some of each."""


def work(library: str, program: Path) -> None:
    """Runs a program, and prints how many calls of `Session.run` it made and what they took."""
    tf = importlib.import_module(MODULES[library])
    if library == "tensorflow":
        tf.disable_v2_behavior()
        tf.logging.set_verbosity(tf.logging.ERROR)
    sys.modules["opdock"] = tf
    calls: list[float] = []
    owner = next(kind for kind in tf.Session.__mro__ if "run" in vars(kind))
    plain = owner.run

    def run(self, *args, **words):
        begin = time.process_time()
        try:
            return plain(self, *args, **words)
        finally:
            calls.append(time.process_time() - begin)

    owner.run = run
    sys.argv = [str(program)]
    try:
        runpy.run_path(str(program), run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    later = calls[len(calls) // 2 :]
    found = {
        "calls": len(calls), "later": sum(later) / max(1, len(later)),
        "all": time.process_time(), "version": getattr(tf, "__version__", ""),
    }  # fmt: skip
    print("\n" + json.dumps(found), flush=True)


def measure(library: str, python: str, program: Path) -> dict:
    """One run of a program."""
    command = [python, __file__, "--library", library, str(program)]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        raise SystemExit(f"{program.stem} failed on {library}: {''.join(last)}")
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
    ratios = [f"{name} / opdock" for name in peers]
    heads = [*(f"{name}, ms a call" for name in names), *ratios]
    heads += [*(f"{name}, s in all" for name in names), *ratios]
    return rows_of(["program", "calls", *heads], body)


def main(words: Sequence[str]) -> None:
    """Reads the command line, measures and prints."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("names", nargs="*", metavar="name", help="programs, or patterns")
    p.add_argument("--peer", metavar="tensorflow=PYTHON")
    p.add_argument("--turns", type=int, default=2)
    p.add_argument("--write", type=Path, help="the page to put the table into")
    p.add_argument("--library", choices=sorted(MODULES), help=argparse.SUPPRESS)
    args = p.parse_args(words)
    if args.library:
        work(args.library, Path(args.names[0]))
        return
    from options import chosen, peer, quoted
    from report import line, machine, replace

    sides = {"opdock": sys.executable}
    if args.peer:
        side = peer(args.peer)
        sides[side.library] = side.python
    known = sorted(path.stem for path in PROGRAMS.glob("*.py"))
    rows: dict[str, dict[str, list[dict]]] = {}
    for name in chosen(args.names, known) if args.names else USUAL:
        rows[name] = {library: [] for library in sides}
        for _ in range(args.turns):
            for library, python in sides.items():
                rows[name][library].append(measure(library, python, PROGRAMS / f"{name}.py"))
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
