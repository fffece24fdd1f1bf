"""Placement by cost on mixed devices: what a step takes on each device alone, and placed.

    python benchmarks/placement.py [--devices CPU:0 OPENCL:0] [--steps 30]

Prints a table: milliseconds of a step (the fastest of some), what the model expected, and how many
nodes it put where. Needs opdock-placer and at least two devices.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import opdock as tf
from opdock_placer import measure, pinned_to, placed_by
from opdock_placer.placement import short_name

Program = tuple[Any, dict[Any, Any]]


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


def milliseconds(program: Program, steps: int) -> tuple[float, Counter[str]]:
    """The fastest step in a new session, and where its nodes are."""
    fetches, feeds = program
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        rows = session.explain(fetches, feeds).rows
        session.run(tf.global_variables_initializer())
        times = []
        for _ in range(steps):
            start = time.perf_counter()
            session.run(fetches, feeds)
            times.append(time.perf_counter() - start)
    where = Counter(short_name(r.device) for r in rows if r.device and r.how != "feed")
    return min(times) * 1e3, where


def row(make: Callable[[], Program], devices: Sequence[str], steps: int) -> str:
    """A line of the table."""
    with tf.Graph().as_default():
        program = make()
        cells = []
        for device in devices:
            with pinned_to(device):
                cells.append(f"{milliseconds(program, steps)[0]:.1f}")
        setup = tf.global_variables_initializer()
        with placed_by(measure(*program, setup=setup, devices=devices)) as placement:
            took, where = milliseconds(program, steps)
            expected = placement.expected[0]
        places = ", ".join(f"{n} on {d}" for d, n in sorted(where.items()))
    return (
        f"| {make.__name__} | {' | '.join(cells)} | {took:.1f} | {expected * 1e3:.1f} | {places} |"
    )


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", nargs="+", default=["CPU:0", "OPENCL:0"])
    parser.add_argument("--steps", type=int, default=30)
    options = parser.parse_args()
    names = " | ".join(f"all on {d}" for d in options.devices)
    print(f"| ms a step | {names} | placed | expected | nodes |")
    print(f"| --- |{' ---: |' * (len(options.devices) + 2)} --- |")
    for make in (products, functions, both):
        print(row(make, options.devices, options.steps), flush=True)


if __name__ == "__main__":
    main()
