"""Placement by cost on mixed devices: what a step takes on each device alone, and placed.

    python benchmarks/placement.py [--devices CPU:0 OPENCL:0] [--steps 60] [--write PAGE]

Prints a table: milliseconds of a step (the median of some), the placed step's time by that of the
better device alone, what the model expected, and how many nodes it put where. All sessions take
turns, so that other work on the machine hits each alike, and must have the same results. Needs
opdock-placer and at least two devices.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np
import report

import opdock as tf
from opdock_placer import measure, pinned_to, placed_by
from opdock_placer.placement import short_name

Program = tuple[Any, dict[Any, Any]]

SECTION: Final = "benchmarks: placement"
"""The name of its place on the page of figures."""
_SLACK: Final = 1e-3  # relative; sums of half a million terms are added in different orders


def products() -> Program:
    """Training a perceptron: large products, small sums."""
    x = tf.placeholder(tf.float32, [256, 512])
    hidden = tf.layers.dense(x, 512, activation=tf.nn.tanh)
    loss = tf.reduce_mean(tf.square(tf.layers.dense(hidden, 16)))
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    return [train, loss], {x: np.random.RandomState(0).rand(256, 512).astype(np.float32)}


def functions() -> Program:
    """A likelihood: special functions and running sums of a large array, no product."""
    x = tf.placeholder(tf.float32, [512, 1024])
    shape = tf.abs(x) + 0.5
    likelihood = tf.cumsum(tf.lgamma(shape), axis=1) - tf.cumsum(tf.digamma(shape), axis=1)
    return tf.reduce_sum(likelihood), {x: np.random.RandomState(0).randn(512, 1024)}


def both() -> Program:
    """Special functions of what a product gives, and a product of them."""
    x = tf.placeholder(tf.float32, [512, 512])
    weights = tf.get_variable("weights", [512, 512], initializer=tf.ones_initializer())
    rates = tf.nn.softplus(tf.matmul(x, weights)) + 0.5
    likelihood = tf.cumsum(tf.lgamma(rates), axis=1) + tf.lgamma(rates * 0.5)
    for _ in range(3):
        likelihood = tf.matmul(likelihood, weights) * 1e-3
    return tf.reduce_sum(likelihood), {x: np.random.RandomState(0).rand(512, 512)}


class Side:
    """A session whose program is placed in one way."""

    def __init__(self, program: Program, placing: AbstractContextManager[Any]) -> None:
        self.fetches, self.feeds = program
        self.seconds: list[float] = []
        self.session = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))
        with placing as self.placed:  # what is compiled in here stays where it is
            rows = self.session.explain(self.fetches, self.feeds).rows
            self.session.run(tf.global_variables_initializer())
            self.result = self.session.run(self.fetches, self.feeds)
        places = (short_name(r.device) for r in rows if r.how != "feed")
        self.where = Counter(filter(None, places))

    def step(self) -> None:
        """One step, timed."""
        start = time.perf_counter()
        self.session.run(self.fetches, self.feeds)
        self.seconds.append(time.perf_counter() - start)

    @property
    def milliseconds(self) -> float:
        """The median of the steps."""
        return statistics.median(self.seconds) * 1e3


def row(make: Callable[[], Program], devices: Sequence[str], steps: int) -> str:
    """A line of the table."""
    with ExitStack() as stack:
        stack.enter_context(tf.Graph().as_default())
        tf.set_random_seed(0)  # all sessions begin with the same variables
        program = make()
        sides = [Side(program, pinned_to(device)) for device in devices]
        model = measure(*program, setup=tf.global_variables_initializer(), devices=devices)
        placed = Side(program, placed_by(model))
        for side in (*sides, placed):
            stack.callback(side.session.close)
            for want, got in zip(tf.nest.flatten(sides[0].result), tf.nest.flatten(side.result)):
                if want is not None:
                    np.testing.assert_allclose(got, want, rtol=_SLACK)
        for _ in range(steps):
            for side in (*sides, placed):
                side.step()
    alone = [side.milliseconds for side in sides]
    places = ", ".join(f"{n} on {d}" for d, n in sorted(placed.where.items()))
    expected = placed.placed.expected[0] * 1e3
    cells = [make.__name__, *(f"{ms:.1f}" for ms in alone), f"{placed.milliseconds:.1f}"]
    cells += [f"{placed.milliseconds / min(alone):.2f}", f"{expected:.1f}", places]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", nargs="+", default=["CPU:0", "OPENCL:0"])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--write", type=Path, help="The page whose figures are replaced.")
    options = parser.parse_args()
    names = " | ".join(f"all on {d}" for d in options.devices)
    lines = [f"| ms a step | {names} | placed | by the better device | expected | nodes |"]
    lines.append(f"| --- |{' ---: |' * (len(options.devices) + 3)} --- |")
    for make in (products, functions, both):
        lines.append(row(make, options.devices, options.steps))
    table = "\n".join(lines)
    print(table)
    if options.write is not None:
        command = " ".join(["python benchmarks/placement.py", *sys.argv[1:]])
        about = {**report.machine(), "date": time.strftime("%Y-%m-%d"), "command": command}
        report.replace(options.write, {SECTION: f"{report.line(about, {})}\n\n{table}"})


if __name__ == "__main__":
    main()
