"""Programs by shape: bounded for any number of shapes, and quick for those that come back."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

import opdock as tf
from opdock.runtime.cache.variants import generalize


def model():
    x = tf.placeholder(tf.float32, [None, 8])
    return x, tf.reduce_sum(tf.nn.relu(x * 2.0) - 1.0)


def run(session, y, x, n):
    value = np.full((n, 8), 2.0, np.float32)
    got = session.run(y, {x: value})
    assert got == 24.0 * n
    return value


def programs(session):
    return session._cache.entries()


def specialized(session, y):
    return [k[1][0] for k in session._cache.find(y).programs if k[0] != "open"]


@pytest.mark.usefixtures("nothing_beside")
def test_thousands_of_batch_sizes():
    x, y = model()
    with tf.Session() as session:
        compiled = []
        compile_ = session._engine.compile
        session._engine.compile = lambda *args: compiled.append(args) or compile_(*args)
        for n in range(1, 1000):
            run(session, y, x, n)
        # By now all that is kept by shape, here and in kernels, is as large as it gets.
        tracemalloc.start()
        for n in range(1000, 2001):
            session.run(y, {x: np.empty((n, 8), np.float32)})
        gc.collect()
        grown, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(programs(session)) == len(compiled) == 9
        assert grown < 300_000


def test_a_shape_that_keeps_coming_gets_its_program():
    x, y = model()
    with tf.Session() as session:
        for n in range(1, 20):
            run(session, y, x, n)
        assert specialized(session, y) == list(range(1, 9))
        for _ in range(100):
            run(session, y, x, 3)
            run(session, y, x, 64)
        assert 64 in specialized(session, y)
        assert 3 in specialized(session, y)
        assert len(programs(session)) == 9


def test_more_shapes_in_turn_than_programs_settle_down():
    x, y = model()
    with tf.Session() as session:
        compiled = []
        compile_ = session._engine.compile
        session._engine.compile = lambda *args: compiled.append(args) or compile_(*args)
        for turn in range(200):
            for n in range(1, 21):
                run(session, y, x, n)
            if turn == 100:
                halfway = len(compiled)
        assert halfway < 40
        assert len(compiled) - halfway < 10


def test_feeds_of_another_rank_widen_the_open_program():
    x = tf.placeholder(tf.float32)
    y = x * 2.0
    with tf.Session() as session:
        shapes = [(n,) for n in range(1, 14)] + [(2, n) for n in range(1, 5)] + [(), (3, 1, 2)]
        for _ in range(2):
            for shape in shapes:
                value = np.ones(shape, np.float32)
                np.testing.assert_array_equal(session.run(y, {x: value}), value * 2)
        assert len(programs(session)) == 9


def test_generalize():
    assert generalize([[(2, 3)], [(4, 3)]]) == [(None, 3)]
    assert generalize([[(2,), ()], [(2, 1), ()]]) == [None, ()]
    assert generalize([[(None, 3)], [(4, 5)]]) == [(None, None)]
