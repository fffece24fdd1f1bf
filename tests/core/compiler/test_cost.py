"""What compiling costs an op, in calls of Python functions, which no other work changes.

The bounds are a tenth above what is needed today: a pass that walks once more, or asks each node
what it could know, shows here. `benchmarks/first_steps.py` tells the time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.compiler.clean.prune import prune
from opdock.runtime.engine import Engine

SIZES = (20, 60)
Made = tuple[Any, dict[Any, Any]]


def perceptron(layers: int) -> Made:
    x = h = tf.placeholder(tf.float32, [8, 8])
    for i in range(layers):
        w = tf.get_variable(f"w{i}", [8, 8])
        b = tf.get_variable(f"b{i}", [8], initializer=tf.zeros_initializer())
        h = tf.nn.relu(tf.matmul(h, w) + b)
    loss = tf.reduce_mean(tf.square(h))
    return tf.train.AdamOptimizer().minimize(loss), {x: np.ones([8, 8])}


def chain(layers: int) -> Made:
    x = y = tf.placeholder(tf.float32, [4])
    for _ in range(2 * layers):
        y = tf.sin(y) + 0.25
    return tf.gradients(y, x)[0], {x: np.ones([4])}


def cells(layers: int) -> Made:
    x = tf.placeholder(tf.float32, [layers, 4, 8])
    w = tf.get_variable("w", [16, 32])
    c = h = tf.zeros([4, 8])
    for t in tf.unstack(x):
        i, j, f, o = tf.split(tf.matmul(tf.concat([t, h], 1), w), 4, 1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.square(h)))
    return train, {x: np.ones([layers, 4, 8])}


def calls_and_ops(make: Callable[[int], Made], layers: int, monkeypatch: Any) -> tuple[int, int]:
    """The calls that compiling a step takes, and the ops of its graph."""
    calls = 0

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event == "call"

    compiled = Engine.compile

    def counted(*args: Any) -> Any:
        sys.setprofile(count)
        try:
            return compiled(*args)
        finally:
            sys.setprofile(None)

    with tf.Graph().as_default(), tf.Session() as session:
        fetched, fed = make(layers)
        session.run(tf.global_variables_initializer())
        with monkeypatch.context() as patch:
            patch.setattr(Engine, "compile", counted)
            session.run(fetched, fed)
        feeds = [(t, t.dtype, tuple(t.shape.as_list())) for t in fed]
        wanted = [[fetched], []] if isinstance(fetched, tf.Tensor) else [[], [fetched]]
        return calls, len(prune(*wanted, feeds).nodes)


@pytest.mark.parametrize(("make", "bound"), [(perceptron, 117), (chain, 124), (cells, 107)])
def test_an_op_takes_few_calls(
    make: Callable[[int], Made], bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    calls_and_ops(make, 3, monkeypatch)  # op definitions are parsed, and kernels loaded
    few, many = (calls_and_ops(make, n, monkeypatch) for n in SIZES)
    each = (many[0] - few[0]) / (many[1] - few[1])
    assert each < bound
