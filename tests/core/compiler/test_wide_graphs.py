"""Ops of very many outputs and inputs, and many feeds: the work is linear."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest

import opdock as tf


def split(n):
    x = tf.placeholder(tf.float32, [n, 2])
    parts = tf.split(x, n)
    return parts, x, parts, {x: np.ones([n, 2])}


def unstack(n):
    x = tf.placeholder(tf.float32, [n, 2])
    parts = [tf.matmul(x, x, transpose_a=True) * part for part in tf.unstack(x)]
    y = tf.stack(parts)
    return y, x, y, {x: np.ones([n, 2])}


def add_n(n):
    x = tf.placeholder(tf.float32, [2])
    y = tf.add_n([x * float(i) for i in range(n)])
    return y, x, y, {x: [1.0, 2.0]}


def concat(n):
    x = tf.placeholder(tf.float32, [1])
    y = tf.concat([tf.sin(x + float(i)) for i in range(n)], 0)
    return y, x, y, {x: [1.0]}


def branch(n):
    x = tf.placeholder(tf.float32, [])
    y = tf.cond(
        x > 0, lambda: [x * float(i) for i in range(n)], lambda: [x - float(i) for i in range(n)]
    )
    return y, x, y, {x: 1.0}


def feeds(n):
    xs = [tf.placeholder(tf.float32, []) for _ in range(n)]
    y = [tf.exp(x) for x in xs]
    return y, xs, y, dict.fromkeys(xs, 1.0)


def calls_of(make, n):
    """How many Python functions, and turns of generators, a graph's whole life takes."""
    made = 0

    def count(frame, event, arg):
        nonlocal made
        made += event == "call"

    gc.collect()  # what others have left would be counted when it goes
    with tf.Graph().as_default(), tf.Session() as session:
        gc.disable()
        sys.setprofile(count)
        try:
            ys, xs, fetched, fed = make(n)
            fetched = [fetched, tf.gradients(ys, xs)]
            session.run(fetched, fed)
            session.run(fetched, fed)
            session.explain(fetched, fed)
        finally:
            sys.setprofile(None)
            gc.enable()
    return made


@pytest.mark.parametrize("make", [split, unstack, add_n, concat, branch, feeds])
def test_calls_are_linear(make):
    calls_of(make, 4)  # modules are imported, op definitions read
    few, many = calls_of(make, 30), calls_of(make, 120)
    # Of a whole life, so that what other tests have left known, of one size, counts for little.
    assert many <= 4.6 * few, (few, many)
