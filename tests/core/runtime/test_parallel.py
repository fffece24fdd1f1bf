"""Steps on several threads keep the order of everything that has one."""

from __future__ import annotations

import threading
import time

import numpy as np

import opdock as tf
from opdock.runtime.parallel import dependencies

FOUR = tf.ConfigProto(inter_op_parallelism_threads=4)


def test_independent_ops_overlap():
    barrier = threading.Barrier(2, timeout=20)

    def meet(x):
        barrier.wait()
        return x

    # Stateless: stateful ones keep their order.
    x = tf.placeholder(tf.float32, [])
    a = tf.py_func(meet, [x + 1.0], tf.float32, stateful=False)
    b = tf.py_func(meet, [x + 2.0], tf.float32, stateful=False)
    with tf.Session(config=FOUR) as session:
        assert session.run([a, b], {x: 0.0}) == [1, 2]


def test_effects_keep_the_order_of_the_straight_line():
    seen = []

    def note(k):
        time.sleep(0.001 * (5 - k))
        seen.append(int(k))
        return k

    ops = [tf.py_func(note, [tf.constant(k)], tf.int32) for k in range(5)]
    with tf.Session(config=FOUR) as session:
        session.run(ops)
    assert seen == list(range(5))


def test_the_first_error_ends_the_step():
    x = tf.placeholder(tf.int32, [])
    y = [tf.gather([1, 2], x + k) for k in range(6)]
    with tf.Session(config=FOUR) as session:
        for _ in range(5):
            try:
                session.run(y, {x: 5})
            except tf.errors.InvalidArgumentError as e:
                assert "GatherV2" in str(e)
            else:
                raise AssertionError
        assert session.run(y[0], {x: 1}) == 2


def test_dependencies_agree_with_the_schedule(graph):
    v = tf.Variable(np.zeros(3, np.float32))
    x = tf.placeholder(tf.float32, [3])
    y = v.assign_add(x) * 2.0 + tf.exp(x)
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(y, {x: [1.0, 2.0, 3.0]})
        (entry,) = session._plan(y).programs.values()
    steps = entry.program.schedule.steps
    waiting, followers = dependencies(steps)
    assert sum(waiting) == sum(map(len, followers))
    assert all(f > i for i, after in enumerate(followers) for f in after)
    made = {s: i for i, step in enumerate(steps) for s in step.outputs}
    for i, step in enumerate(steps):
        assert all(i in followers[made[s]] for s in step.inputs if s in made)
