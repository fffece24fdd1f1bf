"""What a process costs before its program computes, beside TensorFlow.

    python benchmarks/start.py --peer tensorflow=PYTHON --write docs/benchmarks.md

Two programs, a sum and a hundred training steps of a small network, each run in a process of its
own, in turns: the processor's time of each part, and that of the whole process with its wall time.
Modules are compiled to bytecode beforehand, as an installation leaves them. opdock runs without
code on disk, as on the first day, and with what the run before has left there.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

MODULES = {"opdock": "opdock", "tensorflow": "tensorflow.compat.v1"}
PARTS = ("import", "build", "session", "first run", "second run", "the rest")
PROGRAMS = {"sum": "two numbers are added", "network": "100 training steps of an MLP"}
COLD = "opdock, no code kept"


def total(tf: Any) -> tuple[Any, Any, int]:
    """Adds two numbers: what a session runs first, what it fetches, and how often."""
    return tf.no_op(), tf.constant(1.0) + tf.constant(2.0), 2


def network(tf: Any) -> tuple[Any, Any, int]:
    """Trains a network of two hidden layers on random rows."""
    x = tf.random_uniform([32, 64], seed=1)
    hidden = x
    for i in range(2):
        w = tf.get_variable(f"w{i}", [64, 64])
        b = tf.get_variable(f"b{i}", [64], initializer=tf.zeros_initializer())
        hidden = tf.nn.relu(tf.matmul(hidden, w) + b)
    loss = tf.reduce_mean(tf.square(tf.reduce_sum(hidden, 1) - tf.reduce_sum(x, 1)))
    train = tf.train.AdamOptimizer().minimize(loss)
    return tf.global_variables_initializer(), train, 100


def work(library: str, program: str) -> None:
    """Runs a program, and prints what its parts took of the processor."""
    clock = time.process_time
    marks = [clock()]
    tf = importlib.import_module(MODULES[library])
    if library == "tensorflow":
        tf.disable_v2_behavior()
        tf.logging.set_verbosity(tf.logging.ERROR)
    marks.append(clock())
    make: Callable[[Any], tuple[Any, Any, int]] = {"sum": total, "network": network}[program]
    before, fetched, count = make(tf)
    marks.append(clock())
    with tf.Session() as session:
        marks.append(clock())
        session.run(before)
        session.run(fetched)
        marks.append(clock())
        session.run(fetched)
        marks.append(clock())
        for _ in range(count - 2):
            session.run(fetched)
        marks.append(clock())
    parts = [end - begin for begin, end in itertools.pairwise(marks)]
    own = sum(name.partition(".")[0].startswith("opdock") for name in sys.modules)
    found = {
        "parts": dict(zip(PARTS, parts, strict=True)), "modules": len(sys.modules), "own": own,
        "version": getattr(tf, "__version__", ""),
    }  # fmt: skip
    print(json.dumps(found), flush=True)


def measure(library: str, python: str, program: str, folder: Path, keep: bool) -> dict[str, Any]:
    """One run of a program, with what the process took as a whole."""
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    with tempfile.TemporaryDirectory() as fresh:
        environ["OPDOCK_CACHE"] = str(folder / "code") if keep else fresh
        begin = time.perf_counter()
        process = subprocess.Popen(
            [python, __file__, "--library", library, program],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environ,
        )  # fmt: skip
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
    if status:
        raise SystemExit(f"{program} failed on {library}: {os.waitstatus_to_exitcode(status)}")
    return {**json.loads(said), "processor": used.ru_utime + used.ru_stime, "wall": wall}


def table(rows: dict[str, dict[str, list[dict[str, Any]]]]) -> str:
    """A Markdown table of the best turns, in milliseconds: other work only adds."""
    from report import rows_of

    def best(turns: list[dict[str, Any]], what: Callable[[dict[str, Any]], float]) -> str:
        return f"{min(map(what, turns)) * 1e3:.1f}"

    body = []
    for program, sides in rows.items():
        for side, turns in sides.items():
            cells = [f"{program}: {PROGRAMS[program]}", side]
            cells += [best(turns, lambda turn, part=part: turn["parts"][part]) for part in PARTS]
            cells += [best(turns, lambda turn: turn["processor"])]
            cells += [best(turns, lambda turn: turn["wall"])]
            last = turns[-1]
            body.append([*cells, f"{last['modules']:,} ({last['own']})"])
    heads = [*PARTS, "whole process", "wall time", "modules (opdock's)"]
    return rows_of(["ms of the processor", "", *heads], body, words=2)


def main(words: Sequence[str]) -> None:
    """Reads the command line, measures and prints."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("program", nargs="?", choices=sorted(PROGRAMS), help=argparse.SUPPRESS)
    p.add_argument("--peer", metavar="tensorflow=PYTHON")
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--write", type=Path, help="the page to put the table into")
    p.add_argument("--library", choices=sorted(MODULES), help=argparse.SUPPRESS)
    args = p.parse_args(words)
    if args.library:
        work(args.library, args.program)
        return
    from options import peer, quoted
    from report import line, machine, replace

    sides = {"opdock": ("opdock", sys.executable), COLD: ("opdock", sys.executable)}
    if args.peer:
        side = peer(args.peer)
        sides[side.library] = (side.library, side.python)
    rows: dict[str, dict[str, list[dict[str, Any]]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for program in PROGRAMS:
            rows[program] = {name: [] for name in sides}
            for turn in range(args.turns + 1):
                for name, (library, python) in sides.items():
                    found = measure(library, python, program, Path(folder), keep=name != COLD)
                    if turn:  # the first leaves bytecode, and code
                        rows[program][name].append(found)
    about = {
        **machine(), "date": time.strftime("%Y-%m-%d"), "command": quoted(words, "start.py"),
    }  # fmt: skip
    imports = {name: found[0] for name, found in rows["sum"].items() if name != COLD}
    text = f"{line(about, imports)}\n\n{table(rows)}"
    print(text)
    if args.write:
        replace(args.write, {"benchmarks: start": text})


if __name__ == "__main__":
    main(sys.argv[1:])
