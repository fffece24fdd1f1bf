"""Steps on several threads keep the order of everything that has one."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import opdock as tf
from opdock.compiler.emit.overlap import dependencies
from tests.threads import WAIT

FOUR = tf.ConfigProto(inter_op_parallelism_threads=4)


def test_independent_ops_overlap():
    barrier = threading.Barrier(2, timeout=WAIT)

    def meet(x):
        barrier.wait()
        return x

    # Stateless: stateful ones keep their order.
    x = tf.placeholder(tf.float32, [])
    a = tf.py_func(meet, [x + 1.0], tf.float32, stateful=False)
    b = tf.py_func(meet, [x + 2.0], tf.float32, stateful=False)
    with tf.Session(config=FOUR) as session:
        assert session.run([a, b], {x: 0.0}) == [1, 2]


def test_ops_of_a_branch_and_of_a_turn_overlap():
    barrier = threading.Barrier(2, timeout=WAIT)

    def meet(x):
        barrier.wait()
        return x

    def both(x):
        pair = [tf.py_func(meet, [x + i], tf.float32, stateful=False) for i in (1.0, 2.0)]
        for t in pair:
            t.set_shape([])
        return pair[0] + pair[1]

    x = tf.placeholder(tf.float32, [])
    branch = tf.cond(x < 1.0, lambda: both(x), lambda: x)
    turns = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, both(v)), [0, x])[1]
    with tf.Session(config=FOUR) as session:
        assert session.run(branch, {x: 0.5}) == 4.0
        assert session.run(turns, {x: 0.0}) == 21.0


def test_effects_keep_the_order_of_the_straight_line():
    seen, alone = [], threading.Lock()

    def note(k):
        assert alone.acquire(blocking=False), "two effects at once"
        for _ in range(1000 * (5 - int(k))):
            os.sched_yield()  # whoever may run, runs
        seen.append(int(k))
        alone.release()
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
        steps = session._program(y, {x: [1.0, 2.0, 3.0]}).schedule.steps
    waits = dependencies(steps)
    assert all(b < i for i, before in enumerate(waits) for b in before)
    made = {s: i for i, step in enumerate(steps) for s in step.outputs}
    for i, step in enumerate(steps):
        assert all(made[s] in waits[i] for s in step.inputs if s in made)


def overlap_of(session, fetches, feed_dict):
    return session._program(fetches, feed_dict).overlap


def products(x, n, k=1):
    """`n` independent chains of `k` products."""
    chains = []
    for i in range(n):
        y = x + float(i)
        for _ in range(k):
            y = tf.matmul(y, x)
        chains.append(y)
    return chains


def test_only_what_gains_leaves_the_straight_line():
    small, large = np.ones((8, 8), np.float32), np.ones((600, 600), np.float32)
    x = tf.placeholder(tf.float32, [None, None])
    one_core = tf.ConfigProto(inter_op_parallelism_threads=4, intra_op_parallelism_threads=1)
    serial = tf.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
    wide, deep = products(x, 3), products(x, 1, 3)
    with tf.Session(config=one_core) as session:
        assert overlap_of(session, wide, {x: large}) is not None
        assert overlap_of(session, wide, {x: small}) is None
        assert overlap_of(session, deep, {x: large}) is None
    with tf.Session(config=serial) as session:
        assert overlap_of(session, wide, {x: large}) is None
    with tf.Session(config=FOUR) as session:
        # Each product has all cores already.
        assert overlap_of(session, wide, {x: large}) is None


def test_host_work_overlaps_with_compute():
    arrived = threading.Event()

    def slow(value):
        assert arrived.wait(WAIT)
        return value

    def tell(value):
        arrived.set()
        return value

    x = tf.placeholder(tf.float32, [64, 64])
    # The one that waits comes first in the straight line.
    waits = tf.py_func(slow, [x], tf.float32, stateful=False)
    tells = tf.py_func(tell, [tf.matmul(x, x)], tf.float32, stateful=False)
    with tf.Session(config=FOUR) as session:
        a, b = session.run([waits, tells], {x: np.ones((64, 64))})
    assert a[0, 0] == 1
    assert b[0, 0] == 64


def training(threads, steps=6):
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        x = tf.placeholder(tf.float32, [64, 64])
        v = tf.get_variable("v", [64, 64], initializer=tf.ones_initializer())
        count = tf.get_variable("c", [], tf.int32, initializer=tf.zeros_initializer())
        noise = [tf.random_uniform([64, 64], seed=i) + x for i in range(4)]
        host = [tf.py_func(np.sort, [n], tf.float32, stateful=False) for n in noise]
        shuffled = tf.random_shuffle(x)
        loss = tf.add_n([tf.reduce_mean(tf.square(tf.matmul(h, v) - shuffled)) for h in host])
        with tf.control_dependencies([loss]):
            bump = count.assign_add(1)
        train = tf.train.MomentumOptimizer(1e-4, 0.9).minimize(loss)
        config = tf.ConfigProto(inter_op_parallelism_threads=threads)
        with tf.Session(config=config) as session:
            session.run(tf.global_variables_initializer())
            value = np.arange(4096, dtype=np.float32).reshape(64, 64) / 4096
            out = [session.run([loss, train, bump], {x: value})[::2] for _ in range(steps)]
            overlaps = overlap_of(session, [loss, train, bump], {x: value}) is not None
            return [*out, session.run(v).tobytes()], overlaps


def test_results_do_not_depend_on_the_number_of_threads():
    found = {n: training(n) for n in (0, 1, 2, 4)}
    assert found[4][1]
    assert not found[1][1]
    assert all(results == found[1][0] for results, _ in found.values())


def test_concurrent_steps_on_variables_lose_no_update():
    v = tf.get_variable("v", [50, 50], initializer=tf.zeros_initializer())
    r = tf.get_variable("r", [50, 50], initializer=tf.zeros_initializer(), use_resource=True)
    s = tf.get_variable("s", [50, 50], initializer=tf.zeros_initializer())
    ones = tf.placeholder(tf.float32, [50, 50])
    hosts = [tf.py_func(np.copy, [ones * float(i)], tf.float32, stateful=False) for i in (1, 2)]
    rate = tf.train.GradientDescentOptimizer(1.0)
    updates = [v.assign_add(hosts[0]).op, r.assign_sub(hosts[1]),
               tf.scatter_add(s, [3], tf.ones([1, 50])).op,
               rate.apply_gradients([(hosts[0], v), (hosts[1], r)])]  # fmt: skip
    value, errors = np.ones((50, 50), np.float32), []

    def work():
        try:
            for _ in range(50):
                session.run(updates, {ones: value})
                # One value of a variable is of one moment, however many write it.
                assert all(len(np.unique(a)) == 1 for a in session.run([v, r]))
        except BaseException as e:
            errors.append(e)

    with tf.Session(config=FOUR) as session:
        session.run(tf.global_variables_initializer())
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not errors
        assert overlap_of(session, updates, {ones: value}) is not None
        got = session.run([v, r, s])
    assert (got[0] == 0).all()
    assert (got[1] == -800).all()
    assert (got[2][3] == 200).all()


def test_an_error_is_raised_once_and_the_session_goes_on():
    started = []

    def fail(value):
        started.append(1)
        raise ValueError("no more")

    x = tf.placeholder(tf.float32, [4])
    bad = [tf.py_func(fail, [x + float(i)], tf.float32, stateful=False) for i in range(6)]
    good = [tf.py_func(np.copy, [x + float(i)], tf.float32, stateful=False) for i in range(6)]
    with tf.Session(config=FOUR) as session:
        for _ in range(20):
            with pytest.raises(tf.errors.OpError, match="no more"):
                session.run(bad, {x: np.ones(4)})
            assert session.run(good, {x: np.ones(4)})[5][0] == 6
    assert len(started) <= 20 * 4


def test_steps_inside_steps_do_not_wait_for_helpers_forever():
    inner = tf.placeholder(tf.float32, [])
    parts = [
        tf.py_func(lambda v: v * 2, [inner + i], tf.float32, stateful=False) for i in (0.0, 1.0)
    ]
    total = parts[0] + parts[1]

    def nested(value):
        return session.run(total, {inner: value})

    x = tf.placeholder(tf.float32, [])
    outer = [tf.py_func(nested, [x + float(i)], tf.float32, stateful=False) for i in range(8)]
    with tf.Session(config=tf.ConfigProto(inter_op_parallelism_threads=2)) as session:
        for _ in range(5):
            got = session.run(outer, {x: 1.0})
            assert got == [4 * (1 + i) + 2 for i in range(8)]
