"""What input costs a training step when a core is free for it.

    python benchmarks/fed.py --peer tensorflow=PYTHON --write docs/benchmarks.md

The step computes on one thread, and takes longer than a core needs to make its batch; it is fed by
the pipeline of `input_images`, or its images are there. Both run in turns in one process a library.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MODULES = {"opdock": "opdock", "tensorflow": "tensorflow.compat.v1"}
NAMES = ("input_train_large", "input_none_large")
BLOCK = 4
"""Steps of one program before it is the other's turn."""


def work(library: str, folder: str, blocks: int) -> None:
    """Measures one library, and prints the median step of each program."""
    tf = importlib.import_module(MODULES[library])
    if library == "tensorflow":
        tf.disable_v2_behavior()
        tf.logging.set_verbosity(tf.logging.ERROR)
    steps = [step(tf, name, folder) for name in NAMES]
    found: list[list[float]] = [[] for _ in steps]
    for _ in range(blocks):
        for run, times in zip(steps, found, strict=True):
            run()  # the batch that was made while the other program ran
            for _ in range(BLOCK):
                begin = time.perf_counter()
                run()
                times.append(time.perf_counter() - begin)
    seconds = [statistics.median(times) for times in found]
    print(json.dumps({"version": getattr(tf, "__version__", ""), "seconds": seconds}), flush=True)


def step(tf: Any, name: str, folder: str) -> Any:
    """A function that does a step of a workload."""
    from workloads.pipelines import WORKLOADS

    (workload,) = (w for w in WORKLOADS if w.name == name)
    with tf.Graph().as_default() as graph:
        program = workload.program(tf, workload.data(folder=folder, **workload.sizes))
        session = tf.Session(graph=graph, config=tf.ConfigProto(intra_op_parallelism_threads=1))
        session.run(tf.global_variables_initializer())
    return lambda: session.run(program.fetches)


def written(folder: str) -> None:
    """Writes the images."""
    from workloads.pipelines import WORKLOADS

    workload = next(w for w in WORKLOADS if w.name == NAMES[0])
    workload.files(workload.data(folder=folder, **workload.sizes))


def measure(library: str, python: str, folder: str, blocks: int) -> dict[str, Any]:
    """One turn of a library."""
    command = [python, __file__, "--library", library, "--folder", folder, "--blocks", str(blocks)]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out.splitlines()[-1])  # type: ignore[no-any-return]


def table(turns: dict[str, list[dict[str, Any]]]) -> str:
    """A Markdown table of each turn: the steps in milliseconds, and their quotient."""
    from report import milliseconds, rows_of

    body = []
    for library, made in turns.items():
        for number, turn in enumerate(made, 1):
            fed, there = turn["seconds"]
            cells = [milliseconds(fed), milliseconds(there), f"{fed / there:.3f}"]
            body.append([library, str(number), *cells])
    head = ["library", "run", "fed by files, ms a step", "images are there", "quotient"]
    return rows_of(head, body)


def main(words: Sequence[str]) -> None:
    """Reads the command line, measures and prints."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--peer", metavar="tensorflow=PYTHON")
    p.add_argument("--turns", type=int, default=2)
    p.add_argument("--blocks", type=int, default=12, help="of steps, of each program in a turn")
    p.add_argument("--write", type=Path, help="the page to put the table into")
    p.add_argument("--library", choices=sorted(MODULES), help=argparse.SUPPRESS)
    p.add_argument("--folder", help=argparse.SUPPRESS)
    args = p.parse_args(words)
    if args.library:
        work(args.library, args.folder, args.blocks)
        return
    from options import peer, quoted
    from report import line, machine, replace

    sides = {"opdock": sys.executable}
    if args.peer:
        side = peer(args.peer)
        sides[side.library] = side.python
    turns: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
    with tempfile.TemporaryDirectory() as folder:
        written(folder)
        for _ in range(args.turns):
            for name, python in sides.items():
                turns[name].append(measure(name, python, folder, args.blocks))
    about = {
        **machine(), "date": time.strftime("%Y-%m-%d"), "command": quoted(words, "fed.py"),
    }  # fmt: skip
    text = f"{line(about, {name: found[0] for name, found in turns.items()})}\n\n{table(turns)}"
    print(text)
    if args.write:
        replace(args.write, {"benchmarks: fed": text})


if __name__ == "__main__":
    main(sys.argv[1:])
