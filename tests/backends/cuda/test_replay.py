"""Segments replayed from a recording: the same results as without, and why a program has none."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

pytestmark = pytest.mark.usefixtures("gpu")
DEVICE = "/device:CUDA:0"


def rows(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def network():
    x, y = tf.placeholder(tf.float32, [8, 3]), tf.placeholder(tf.float32, [8, 1])
    w, b = tf.Variable(np.ones((3, 1), np.float32)), tf.Variable(np.zeros(1, np.float32))
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
    return x, y, w, loss, tf.train.AdamOptimizer(0.1).minimize(loss)


def train(recorded, monkeypatch):
    with monkeypatch.context() as patch, tf.Graph().as_default(), tf.device(DEVICE):
        if not recorded:
            patch.setenv("OPDOCK_DISABLE_PASSES", "segments")
        x, y, w, loss, step = network()
        halve = w.assign(w * 0.5)
        out = []
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for i in range(9):
                out.append(sess.run([loss, step], {x: rows(i, 8, 3), y: rows(i, 8, 1)})[0])
                if i == 5:  # others read and write the variables in between
                    out += list(sess.run(w).ravel())
                    sess.run(halve)
            out += list(sess.run(w).ravel())
            told = sess.explain([loss, step], {x: rows(0, 8, 3), y: rows(0, 8, 1)})
    return out, told


def test_training_is_recorded_and_gives_the_same(monkeypatch):
    got, told = train(True, monkeypatch)
    want, _ = train(False, monkeypatch)
    assert got == want
    (segment,) = told.segments.values()
    assert segment.endswith("; recorded; 7 runs replayed")
    assert segment in told.summary()
    assert told.to_dict()["segments"] == told.segments


def state(build, feed=None, steps=4):
    """After some steps: what became of the segments, why others are none, the last results."""
    with tf.Graph().as_default(), tf.device(DEVICE):
        fetches, feeds = build()
        config = tf.ConfigProto(allow_soft_placement=True)
        with tf.Session(config=config) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(steps):
                out = sess.run(fetches, feeds)
            told = sess.explain(fetches, feeds)
            states = [text.partition("; ")[2] for text in told.segments.values()]
            return states, [m for row in told.rows for m in row.missed], out


def held(shape=(4, 4), seed=0):
    return tf.placeholder(tf.float32, shape), rows(seed, *shape)


def test_results_of_a_replay_are_the_callers():
    def build():
        x, value = held()
        return [tf.matmul(x, x), tf.nn.softmax(x)], {x: value}

    with tf.Graph().as_default(), tf.device(DEVICE), tf.Session() as sess:
        fetches, feeds = build()
        (x,) = feeds
        first = [sess.run(fetches, {x: rows(i, 4, 4)}) for i in range(6)]
        for i, (product, soft) in enumerate(first):
            np.testing.assert_allclose(product, rows(i, 4, 4) @ rows(i, 4, 4), rtol=1e-5)
            np.testing.assert_allclose(soft.sum(-1), 1, rtol=1e-5)
        (segment,) = sess.explain(fetches, {x: rows(0, 4, 4)}).segments.values()
        assert segment.endswith("recorded; 4 runs replayed")


@pytest.mark.parametrize("recorded", [True, False])
def test_a_variable_that_takes_anothers_value(recorded, monkeypatch):
    if not recorded:
        monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "segments")

    def build():
        a, b = tf.Variable(rows(1, 4)), tf.Variable(rows(2, 4))
        with tf.control_dependencies([b.assign(a)]):
            more = a.assign_add(tf.ones([4]))
        with tf.control_dependencies([more]):
            return [a.read_value(), b.read_value()], {}

    states, _, (a, b) = state(build, steps=6)
    assert states == (["recorded; 4 runs replayed"] if recorded else [])
    np.testing.assert_allclose(a, rows(1, 4) + 6, rtol=1e-6)
    np.testing.assert_allclose(b, rows(1, 4) + 5, rtol=1e-6)


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (lambda: (tf.random_uniform([3]) + tf.ones([3]), {}), "keeps its state on the host"),
        (lambda: (tf.gather(*_gathered()), {}), "the host waits for the verdict"),
        (lambda: _unknown(), "is only known when it runs"),
        (lambda: _branching(), "the host decides"),
    ],
    ids=["random", "checked", "shape", "branch"],
)  # fmt: skip
def test_why_a_program_is_not_recorded(build, why):
    states, missed, _ = state(build)
    assert any(why in text for text in (*states, *missed))


def _gathered():
    return tf.Variable(rows(0, 4, 2)), tf.Variable(np.array([1, 3]))


def _unknown():
    x, value = held()
    return tf.cast(tf.where(x > 0), tf.float32) + 1, {x: value}


def _branching():
    x, value = held()
    return tf.cond(tf.reduce_sum(x) > 0, lambda: x + 1, lambda: x - 1), {x: value}


def test_other_devices_have_no_segments():
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as sess:
        y = tf.constant([1.0]) * tf.placeholder(tf.float32, [1], name="x")
        assert not sess.explain(y, {"x:0": [1.0]}).segments
