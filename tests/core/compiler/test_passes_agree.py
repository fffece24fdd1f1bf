"""Whatever optional passes run, the results have the same bits."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opdock as tf
from opdock.compiler.pipeline import OPTIONAL

OFF = st.sets(st.sampled_from(sorted(OPTIONAL)), min_size=1).map(lambda s: ",".join(sorted(s)))
"""Some of the passes, which do not run: of 22 there are four million such sets."""
SPECIAL = np.array([[0.0, -0.0, 1.0], [np.nan, np.inf, -np.inf]], np.float32)

UNARY = [
    tf.identity, tf.negative, tf.abs, tf.nn.relu, tf.sign, tf.square, tf.stop_gradient, tf.floor,
    lambda x: tf.reshape(x, [2, 3]), lambda x: tf.transpose(x, [0, 1]),
    lambda x: tf.transpose(tf.transpose(x)), lambda x: tf.cast(x, tf.float32),
    lambda x: x * 1.0, lambda x: 1.0 * x, lambda x: x / 1.0, lambda x: x - 0.0,
    lambda x: x - (-0.0), lambda x: x + 0.0, lambda x: x + (-0.0), lambda x: 0.0 - x,
    lambda x: tf.reduce_sum(x, []), lambda x: tf.reduce_mean(x, []),
    lambda x: tf.reshape(x, tf.shape(x)), lambda x: tf.cast(tf.cast(x, tf.float64), tf.float32),
    lambda x: x * tf.cast(tf.size(x), tf.float32), lambda x: x + tf.reduce_sum(x, 0),
    lambda x: tf.real(tf.complex(x, x) * 1), lambda x: tf.imag(tf.complex(x, x) / 1),
    lambda x: tf.real(tf.complex(x, -x) - tf.complex(-0.0, -0.0)),
    lambda x: tf.cast(tf.cast(x, tf.bfloat16) * 1, tf.float32), lambda x: tf.zeros_like(x) + x,
    lambda x: tf.tile(x[:, :1], [1, 3]) + x, lambda x: tf.concat([x[:1], x[1:]], 0),
    lambda x: tf.stack(tf.unstack(x)),
]  # fmt: skip
BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, tf.maximum, tf.minimum,
    tf.squared_difference, lambda a, b: tf.where(a > b, a, b), lambda a, b: a + tf.transpose(
        tf.reshape(b, [3, 2])),
    lambda a, b: tf.matmul(a, b, transpose_b=True)[:, :1] + a,
]  # fmt: skip
CONSTANTS = [
    SPECIAL, -SPECIAL, np.zeros((2, 3), np.float32), np.full((2, 3), -0.0, np.float32),
    np.ones((2, 3), np.float32), np.arange(6, dtype=np.float32).reshape(2, 3),
]  # fmt: skip
steps = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6)),
    min_size=1, max_size=14,
)  # fmt: skip


def build(program):
    """A graph that a list of numbers describes; returns its placeholder and all its tensors."""
    x = tf.placeholder(tf.float32, [2, 3] if program[0][0] % 2 else None)
    tensors = [x] + [tf.constant(c) for c in CONSTANTS[: 2 + program[0][1] % 4]]
    if x.shape.ndims is None:
        tensors[0] = tf.reshape(x, [2, 3])
    for op, a, b in program:
        left, right = tensors[-1 - a % len(tensors)], tensors[-1 - b % len(tensors)]
        if op % 3:
            tensors.append(UNARY[(op // 3) % len(UNARY)](left))
        else:
            tensors.append(BINARY[(op // 3) % len(BINARY)](left, right))
    return x, tensors


def bits(values):
    return [(np.asarray(v).dtype, np.shape(v), canonical(v)) for v in values]


def canonical(value):
    # Which NaN comes out is the hardware's choice, by operand order; that it is one is ours.
    array = np.array(value)
    array[np.isnan(array)] = np.nan
    return array.tobytes()


@settings(max_examples=60, deadline=None)
@given(steps, OFF, st.integers(1, 4))
def test_random_graphs(program, disabled, n_fetches):
    with tf.Graph().as_default(), pytest.MonkeyPatch.context() as patch:
        x, tensors = build(program)
        fetches = tensors[-n_fetches:]
        results = []
        for off in ("", disabled):
            patch.setenv("OPDOCK_DISABLE_PASSES", off)
            with tf.Session() as session:
                for _ in range(2):
                    results.append(bits(session.run(fetches, {x: SPECIAL})))
        assert all(r == results[0] for r in results)


@pytest.mark.parametrize("index", range(len(UNARY)))
def test_every_rule_on_special_values(index, monkeypatch):
    """Each one alone, so that a rule that changes a bit is named."""
    x = None
    results = []
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 3])
        y = UNARY[index](x)
        for off in ("", ",".join(OPTIONAL)):
            monkeypatch.setenv("OPDOCK_DISABLE_PASSES", off)
            with tf.Session() as session:
                results.append(bits([session.run(y, {x: v}) for v in CONSTANTS]))
    assert results[0] == results[1]


def test_opt_level_minus_one_switches_all_off():
    off = tf.ConfigProto(
        graph_options=tf.GraphOptions(optimizer_options=tf.OptimizerOptions(opt_level=-1))
    )
    with tf.Graph().as_default():
        y = tf.constant([1.0]) * 1.0 + tf.constant([2.0])
        with tf.Session(config=off) as session:
            rows = session.explain(y).rows
            assert session.run(y) == 3
        assert not [r for r in rows if r.how == "removed"]
        with tf.Session() as session:
            assert [r for r in session.explain(y).rows if r.how == "removed"]
            assert session.run(y) == 3
