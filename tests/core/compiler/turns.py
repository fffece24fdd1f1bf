"""Loops as the tests of several passes write them, and bodies that hypothesis draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import opdock as tf

OPS = [
    lambda a, b: a + b, lambda a, b: a * 0.5 - b, lambda a, b: tf.maximum(a, b),
    lambda a, b: tf.tanh(a), lambda a, b: tf.matmul(a, b) * 0.1,
    lambda a, b: tf.stop_gradient(a) - b,
]  # fmt: skip


def counted(turns, body, *start):
    """The results of some turns over variables, without the count."""
    return tf.while_loop(
        lambda i, *_: i < turns, lambda i, *v: (i + 1, *body(*v)), [tf.constant(0), *start]
    )[1:]


def expressions(*more, longest):
    """Lists of steps: `OPS` or `more`, each with which two of the values before it takes."""
    step = st.tuples(st.sampled_from([*OPS, *more]), st.integers(0, 9), st.integers(0, 9))
    return st.lists(step, min_size=1, max_size=longest)


def evaluated(expression, *values):
    """The value of an expression's last step."""
    pool = list(values)
    for op, i, j in expression:
        pool.append(op(pool[-1 - i % len(pool)], pool[-1 - j % len(pool)]))
    return pool[-1]


def check_without(name, fetches, feeds):
    """Checks that results have the same bits with a pass and without it."""
    results = []
    with pytest.MonkeyPatch.context() as patch:
        # What is computed together may be rounded otherwise.
        for off in ("fuse,cluster,turns", f"fuse,cluster,turns,{name}"):
            patch.setenv("OPDOCK_DISABLE_PASSES", off)
            with tf.Session() as session:
                results.append(session.run(fetches, feeds))
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)
