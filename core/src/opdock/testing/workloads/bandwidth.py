"""Workloads bound by memory: elementwise chains, softmax over many classes, reductions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from . import reference
from .spec import CHECKED, Program, Workload, normal, random


def elementwise_data(count: int) -> SimpleNamespace:
    """Five vectors."""
    rng = random(41)
    return SimpleNamespace(vectors=[normal(rng, count) for _ in range(5)])


def elementwise_program(tf: Any, data: SimpleNamespace) -> Program:
    """Four steps and a relu over variables."""
    x, gain, bias, factor, shift = (tf.Variable(v) for v in data.vectors)
    return Program([tf.nn.relu(x * gain + bias) * factor - shift])


def elementwise_answer(data: SimpleNamespace) -> list[Any]:
    """The same in NumPy."""
    x, gain, bias, factor, shift = reference.double(data.vectors)
    return [[reference.relu(x * gain + bias) * factor - shift]] * CHECKED


def softmax_data(rows: int, classes: int) -> SimpleNamespace:
    """Logits and labels."""
    rng = random(42)
    logits = normal(rng, rows, classes, scale=2.0)
    return SimpleNamespace(logits=logits, labels=rng.randint(0, classes, rows).astype(np.int32))


def softmax_program(tf: Any, data: SimpleNamespace) -> Program:
    """The loss of logits in a variable, and its gradient."""
    logits = tf.Variable(data.logits)
    labels = tf.placeholder(tf.int32, data.labels.shape)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(loss)
    return Program([loss, tf.gradients(loss, logits)[0]], [{labels: data.labels}])


def softmax_answer(data: SimpleNamespace) -> list[Any]:
    """The same in NumPy."""
    logits = reference.double([data.logits])

    def loss(x: np.ndarray) -> float:
        return reference.cross_entropy(x, data.labels)

    return [[loss(*logits), *reference.gradients(loss, logits)]] * CHECKED


def reduce_data(rows: int, columns: int) -> SimpleNamespace:
    """A matrix whose sums do not cancel."""
    return SimpleNamespace(matrix=normal(random(43), rows, columns) + np.float32(0.25))


def reduce_program(tf: Any, data: SimpleNamespace) -> Program:
    """Three reductions over three choices of axes."""
    x = tf.Variable(data.matrix)
    kinds = (tf.reduce_sum, tf.reduce_mean, tf.reduce_max)
    return Program([kind(x, axis=axis) for kind in kinds for axis in (0, 1, None)])


def reduce_answer(data: SimpleNamespace) -> list[Any]:
    """The same in NumPy."""
    (x,) = reference.double([data.matrix])
    return [[f(x, axis=axis) for f in (np.sum, np.mean, np.max) for axis in (0, 1, None)]] * CHECKED


WORKLOADS = (
    Workload(
        "elementwise_fusion",
        "relu(x * a + b) * c - d of {count:,} floats",
        {"count": 1_500_000},
        {"count": 1001},
        elementwise_data,
        elementwise_program,
        elementwise_answer,
    ),
    Workload(
        "softmax_xent",
        "sparse softmax cross entropy and its gradient, {rows} rows of {classes:,} classes",
        {"rows": 192, "classes": 40_000},
        {"rows": 4, "classes": 11},
        softmax_data,
        softmax_program,
        softmax_answer,
    ),
    Workload(
        "reduce",
        "sum, mean and max of {rows}x{columns} over rows, columns and everything",
        {"rows": 3000, "columns": 5000},
        {"rows": 37, "columns": 21},
        reduce_data,
        reduce_program,
        reduce_answer,
    ),
)
