"""Nodes that are alike: a device's kernels are asked about them once a program."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.compiler.place import alike


@pytest.fixture
def asked(monkeypatch):
    """The nodes about which the ladder of a device was asked, by op type."""
    found: dict[str, list[str]] = {}
    climb = alike.climb

    def noted(node, *args):
        found.setdefault(node.op, []).append(node.name)
        return climb(node, *args)

    monkeypatch.setattr(alike, "climb", noted)
    return found


def run(fetched, fed):
    with tf.Session() as session:
        return session.run(fetched, fed)


def test_layers_of_one_form_are_asked_about_once(asked):
    x = h = tf.placeholder(tf.float32, [2, 3])
    weights = tf.placeholder(tf.float32, [5, 3, 3])
    for w in tf.unstack(weights):
        h = tf.nn.relu(tf.matmul(h, w))
    fed = {x: np.ones([2, 3]), weights: np.ones([5, 3, 3])}
    assert run(h, fed)[0, 0] == 3**5
    assert [len(asked[op]) for op in ("MatMul", "Relu")] == [1, 1]


@pytest.mark.parametrize(
    "other",
    [
        lambda a: tf.matmul(a, a, transpose_a=True),
        lambda a: tf.matmul(tf.cast(a, tf.float64), tf.cast(a, tf.float64)),
        lambda a: tf.matmul(a[:2], a),
        lambda a: tf.matmul(tf.constant(np.eye(3, dtype=np.float32)), a),
    ],
    ids=["attribute", "type", "shape", "constant"],
)
def test_others_are_asked_about_too(other, asked):
    a = tf.placeholder(tf.float32, [3, 3])
    run([tf.matmul(a, a), other(a)], {a: np.ones([3, 3])})
    assert len(asked["MatMul"]) == 2


def test_constants_of_other_values_are_others(asked):
    a = tf.placeholder(tf.float32, [3, 3])
    fetched = [tf.reduce_sum(a, [0]), tf.reduce_sum(a, [1]), tf.reduce_sum(a * a, [1])]
    with tf.Session() as session:
        values = session.run(fetched, {a: np.arange(9).reshape(3, 3)})
    assert [v.tolist() for v in values] == [[9, 12, 15], [3, 12, 21], [5, 50, 149]]
    assert len(asked["Sum"]) == 2


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (1, True, False), (1, 1.0, False), (0.0, -0.0, False), (float("nan"), float("nan"), True),
        ([1, 2], [1, 2], True), ([1, 0], [1, False], False), ([1, [2]], [1, [2]], True),
        (tf.float32, 1, False), ("x", b"x", False), (None, None, True),
        (np.zeros(1), np.zeros(1), False), ([], None, False),
    ],
)  # fmt: skip
def test_values_of_attributes(one, two, same):
    assert (alike._told(one) == alike._told(two)) is same
    assert hash(alike._told(one)) is not None
