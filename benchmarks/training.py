"""What hooks and summaries cost a training step, beside TensorFlow.

    python benchmarks/training.py --peer tensorflow=PYTHON --write docs/benchmarks.md

The same program runs in each library, in processes of their own that take turns: a network of one
hidden layer under Adam, bare, with the standard hooks of a `MonitoredTrainingSession` and a guard
against NaN, and with ten scalar summaries that are written at every step. What counts is the time
of all processors that a process has, threads that write its files included, which other work on the
machine does not lengthen as it does the clock's.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

MODULES = {"opdock": "opdock", "tensorflow": "tensorflow.compat.v1"}
KINDS = {
    "bare": "Session.run of the training operation",
    "hooks": "MonitoredTrainingSession with its standard hooks, StopAtStepHook, NanTensorHook",
    "summaries": "bare, and ten scalars merged, fetched and written",
}
WARM, PARTS, ROWS = 300, 100, 32


def network(tf):
    """The training operation, the loss, and what is fed."""
    x, y = tf.placeholder(tf.float32, [ROWS, 64]), tf.placeholder(tf.float32, [ROWS, 1])
    w = tf.get_variable("w", [64, 64])
    v = tf.get_variable("v", [64, 1])
    loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.relu(tf.matmul(x, w)), v) - y))
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer().minimize(loss, global_step=step)
    draw = np.random.default_rng(0)
    feeds = {x: draw.random((ROWS, 64), np.float32), y: draw.random((ROWS, 1), np.float32)}
    return train, loss, feeds


def seconds(step: Callable[[], object], count: int) -> float:
    """Processor time of a step in the best of several parts, after some that do not count."""
    for _ in range(WARM):
        step()
    found = []
    for _ in range(PARTS):
        start = time.process_time()
        for _ in range(count // PARTS):
            step()
        found.append((time.process_time() - start) / (count // PARTS))
    return min(found)


def bare(tf, count: int, folder: str) -> float:
    """A step by itself."""
    train, _, feeds = network(tf)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return seconds(lambda: session.run(train, feeds), count)


def hooks(tf, count: int, folder: str) -> float:
    """A step under hooks."""
    train, loss, feeds = network(tf)
    tf.summary.scalar("loss", loss)
    own = [tf.train.StopAtStepHook(last_step=1 << 30), tf.train.NanTensorHook(loss)]
    with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, hooks=own) as session:
        return seconds(lambda: session.run(train, feeds), count)


def summaries(tf, count: int, folder: str) -> float:
    """A step with ten summaries."""
    train, loss, feeds = network(tf)
    for i in range(10):
        tf.summary.scalar(f"loss{i}", loss + float(i))
    merged, number = tf.summary.merge_all(), 0
    with tf.Session() as session, tf.summary.FileWriter(folder) as writer:
        session.run(tf.global_variables_initializer())

        def step():
            nonlocal number
            number += 1
            found, _ = session.run([merged, train], feeds)
            writer.add_summary(found, number)

        return seconds(step, count)


def work(library: str, count: int) -> None:
    """Measures one library, and prints what it found."""
    tf = importlib.import_module(MODULES[library])
    if library == "tensorflow":
        tf.disable_v2_behavior()
        tf.logging.set_verbosity(tf.logging.ERROR)
    found = {}
    for kind in KINDS:
        with tf.Graph().as_default(), tempfile.TemporaryDirectory() as folder:
            found[kind] = globals()[kind](tf, count, folder)
    print(json.dumps({"version": getattr(tf, "__version__", ""), "seconds": found}))


def measure(library: str, python: str, count: int) -> dict:
    """One turn of a library."""
    command = [python, __file__, "--library", library, "--steps", str(count)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out.splitlines()[-1])


def table(turns: dict[str, list[dict]]) -> str:
    """A Markdown table of the best turns, in microseconds: other work only adds to a step."""
    from report import number, rows_of

    def best(library: str, kind: str) -> float:
        return min(turn["seconds"][kind] for turn in turns[library]) * 1e6

    peers = [library for library in turns if library != "opdock"]
    body = []
    for kind, words in KINDS.items():
        own = best("opdock", kind)
        cells = [f"{kind}: {words}", *(number(best(name, kind)) for name in turns)]
        body.append([*cells, *(f"{best(name, kind) / own:.2f}" for name in peers)])
    return rows_of(["µs a step", *turns, *(f"{name} / opdock" for name in peers)], body)


def main(words: Sequence[str]) -> None:
    """Reads the command line, measures and prints."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--peer", metavar="tensorflow=PYTHON")
    p.add_argument("--steps", type=int, default=3000)
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--write", type=Path, help="the page to put the table into")
    p.add_argument("--library", choices=sorted(MODULES), help=argparse.SUPPRESS)
    args = p.parse_args(words)
    if args.library:
        work(args.library, args.steps)
        return
    from options import peer, quoted
    from report import line, machine, replace

    sides = {"opdock": sys.executable}
    if args.peer:
        side = peer(args.peer)
        sides[side.library] = side.python
    turns: dict[str, list[dict]] = {name: [] for name in sides}
    for _ in range(args.turns):
        for name, python in sides.items():
            turns[name].append(measure(name, python, args.steps))
    about = {
        **machine(), "date": time.strftime("%Y-%m-%d"),
        "command": quoted(words, "training.py"),
    }  # fmt: skip
    text = f"{line(about, {name: found[0] for name, found in turns.items()})}\n\n{table(turns)}"
    print(text)
    if args.write:
        replace(args.write, {"benchmarks: training": text})


if __name__ == "__main__":
    main(sys.argv[1:])
