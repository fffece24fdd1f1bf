"""What a step of one small op on JAX is made of, layer by layer, beside a jitted function.

    python benchmarks/layers.py --write docs/benchmarks.md

Each line is one layer more; bursts of all lines take turns in one process, on one core, and the
processor's time counts.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import report

import opdock as tf

BURST = 200
Layers = list[tuple[str, Callable[[], Any]]]


def layers() -> Layers:
    """What each is called, and a step of it."""
    number = np.float32(0.5)
    array = np.asarray(number)
    jitted = jax.jit(lambda x: x + x)
    x = tf.placeholder(tf.float32, [])
    with tf.device("/device:JAX:0"):
        y = tf.add(x, x)
    session, feed = tf.Session(), {x: number}
    session.run(y, feed)
    (entry,) = session._cache.find(y).programs.values()
    program = entry.program
    (segment,) = (s.node for s in program.schedule.steps if s.kind == "segment")
    executable = segment.attrs["executable"]
    places = np.zeros((0, 6), np.uint32)
    compiled = executable.run
    programs, types = {y: {(x, ()): compiled}}, {x: array.dtype}

    def least(fetch: Any, feeds: Any) -> Any:
        """The least that a function can do that takes any fetch and a dictionary of feeds."""
        values, key = [], []
        for tensor, value in feeds.items():
            if type(value) is not types[tensor].type:
                raise TypeError(tensor)
            value = np.asarray(value)
            values.append(value)
            key += (tensor, value.shape)
        (out,) = programs[fetch][tuple(key)](*values)
        return np.array(out)[()]

    def execute(inputs: Any, state: Any, places: Any) -> Any:
        return compiled(*inputs), ()

    def surrender(buffer: Any) -> Any:
        return np.array(buffer)

    def crossing() -> Any:
        """What a device is asked: to run a program, and for a result."""
        (result,), () = execute((array,), (), places)
        return surrender(result)[()]

    return [
        ("a jitted function of a NumPy scalar", lambda: jitted(number)),
        ("its result as a NumPy array: JAX's step", lambda: np.asarray(jitted(number))),
        ("the program that opdock compiled, called with an array", lambda: compiled(array)),
        ("its result in memory of the caller's own", lambda: np.array(compiled(array)[0])),
        ("the same by two functions, a compiler's and a device's", crossing),
        ("without them, by the least for a fetch and a dictionary", lambda: least(y, feed)),
        ("the executable: variables, checks, errors", lambda: executable((array,), (), places)),
        ("the line of steps, with the download", lambda: program.line.function(array)),
        (
            "the program: its lock, its counts",
            lambda: program.run([array]),
        ),
        ("`Session.run`", lambda: session.run(y, feed)),
    ]


def measure(steps: Layers, rounds: int) -> list[float]:
    """Microseconds of each: the least of the bursts."""
    found = [float("inf")] * len(steps)
    for _ in range(rounds):
        for i, (_, step) in enumerate(steps):
            step()
            begin = time.process_time_ns()
            for _ in range(BURST):
                step()
            found[i] = min(found[i], (time.process_time_ns() - begin) / BURST / 1e3)
    return found


def main(words: Sequence[str]) -> None:
    """Measures, prints, and writes the table into a page if that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=200, help="bursts of each layer")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="replace the table in this page")
    given = parser.parse_args(words)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    steps = layers()
    lines = ["| layer | µs |", "| --- | ---: |"]
    for (name, _), took in zip(steps, measure(steps, given.rounds), strict=True):
        lines.append(f"| {name} | {took:.2f} |")
    head = report.of_one_core("layers.py", words, "jax")
    text = "\n".join([head, "", *lines])
    print(text)
    if given.write is not None:
        report.replace(given.write, {"layers: jax": text})


if __name__ == "__main__":
    main(sys.argv[1:])
