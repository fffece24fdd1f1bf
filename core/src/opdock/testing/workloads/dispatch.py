"""Workloads that compute next to nothing: what a graph, a gradient, a run and an op cost."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from .spec import CHECKED, Program, Workload, normal, random

START = np.float32(0.75)


def overhead_program(tf: Any, data: SimpleNamespace) -> Program:
    """One op, fed and fetched."""
    x = tf.placeholder(tf.float32, [])
    return Program(tf.negative(x), [{x: START}])


def chain_program(tf: Any, data: SimpleNamespace) -> Program:
    """Ops of which each needs the one before."""
    x = tf.placeholder(tf.float32, [])
    return Program(chained(tf, x, data.ops), [{x: START}])


def chained(tf: Any, x: Any, ops: int) -> Any:
    """Products and adds in turn, which together go towards 1."""
    rest = 1.0 - x
    t = x
    for i in range(ops):
        t = tf.add(t, rest) if i % 2 else tf.multiply(t, x)
    return t


def chain_answer(data: SimpleNamespace) -> list[Any]:
    """The same with Python's numbers."""
    x = t = float(START)
    for i in range(data.ops):
        t = t + (1 - x) if i % 2 else t * x
    return [[t]] * CHECKED


def wide_data(products: int, side: int) -> SimpleNamespace:
    """A matrix, and what it is multiplied with."""
    rng = random(61)
    others = [normal(rng, side, side, scale=0.2) for _ in range(products)]
    return SimpleNamespace(matrix=normal(rng, side, side), others=others)


def wide_program(tf: Any, data: SimpleNamespace) -> Program:
    """Products that do not need each other, and their sum."""
    x = tf.placeholder(tf.float32, data.matrix.shape)
    return Program(
        tf.add_n([tf.matmul(x, tf.Variable(w)) for w in data.others]), [{x: data.matrix}]
    )


def wide_answer(data: SimpleNamespace) -> list[Any]:
    """A product with the sum is the sum of the products."""
    return [[data.matrix.astype(np.float64) @ np.sum(data.others, axis=0, dtype=float)]] * CHECKED


def waves(tf: Any, layers: int) -> tuple[Any, Any]:
    """A placeholder and two ops a layer on top of it."""
    x = tf.placeholder(tf.float32, [3])
    t = x
    for _ in range(layers):
        t = tf.sin(tf.add(t, x))
    return x, t


WAVE = np.array([0.25, -0.5, 1.0], np.float32)


def build_program(tf: Any, data: SimpleNamespace) -> Program:
    """Only building is timed; the first graph is also run."""
    values: list[Any] = []

    def step(clock: Callable[[], float]) -> tuple[float, Any]:
        gc.collect()
        graph = tf.Graph()
        with graph.as_default():
            start = clock()
            x, y = waves(tf, data.layers)
            seconds = clock() - start
            if not values:
                with tf.Session(graph=graph) as session:
                    values.append(session.run(y, {x: WAVE}))
        return seconds, values[0]

    return Program(step=step)


def build_answer(data: SimpleNamespace) -> list[Any]:
    """The same in NumPy."""
    x = WAVE.astype(np.float64)
    t = x
    for _ in range(data.layers):
        t = np.sin(t + x)
    return [[t]] * CHECKED


def gradients_program(tf: Any, data: SimpleNamespace) -> Program:
    """Only `tf.gradients` is timed; the first gradient is also run."""
    values: list[Any] = []

    def step(clock: Callable[[], float]) -> tuple[float, Any]:
        gc.collect()
        graph = tf.Graph()
        with graph.as_default():
            x, y = waves(tf, data.layers)
            start = clock()
            (slope,) = tf.gradients(y, x)
            seconds = clock() - start
            if not values:
                with tf.Session(graph=graph) as session:
                    values.append(session.run(slope, {x: WAVE}))
        return seconds, values[0]

    return Program(step=step)


def gradients_answer(data: SimpleNamespace) -> list[Any]:
    """The chain rule, forwards."""
    x = WAVE.astype(np.float64)
    t, slope = x, np.ones(3)
    for _ in range(data.layers):
        slope = np.cos(t + x) * (slope + 1)
        t = np.sin(t + x)
    return [[slope]] * CHECKED


def plain(**sizes: int) -> SimpleNamespace:
    """Nothing but the sizes."""
    return SimpleNamespace(**sizes)


WORKLOADS = (
    Workload(
        "run_overhead",
        "Session.run of one scalar op, fed and fetched",
        {},
        {},
        plain,
        overhead_program,
        lambda _: [[-START]] * CHECKED,
    ),
    Workload(
        "dispatch_chain",
        "{ops:,} scalar ops, each after the other",
        {"ops": 1200},
        {"ops": 40},
        plain,
        chain_program,
        chain_answer,
    ),
    Workload(
        "wide_graph",
        "{products} independent products of {side}x{side}, and their sum",
        {"products": 800, "side": 20},
        {"products": 9, "side": 4},
        wide_data,
        wide_program,
        wide_answer,
    ),
    Workload(
        "graph_build",
        "building a graph of {layers:,} layers of two ops",
        {"layers": 8000},
        {"layers": 20},
        plain,
        build_program,
        build_answer,
        host=True,
    ),
    Workload(
        "gradients_build",
        "tf.gradients through {layers:,} layers of two ops",
        {"layers": 1200},
        {"layers": 20},
        plain,
        gradients_program,
        gradients_answer,
        host=True,
    ),
)
