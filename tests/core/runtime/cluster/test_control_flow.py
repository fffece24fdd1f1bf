"""Branches and loops whose bodies are in several tasks: each runs its part, and they tell each
other what the others need."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import opdock as tf
from tests.core.runtime.cluster.threads import Fault

PS, WORKER = "/job:ps", "/job:worker"


@pytest.fixture
def target(cluster):
    servers = cluster(ps=2, worker=1)
    yield servers["worker"][0].target


def variables(use_resource=False):
    """One on each parameter server."""
    found = []
    for task, name in enumerate(("one", "two")):
        with tf.device(f"{PS}/task:{task}"):
            found.append(
                tf.get_variable(name, initializer=float(task + 1), use_resource=use_resource)
            )
    return found


@pytest.mark.parametrize("use_resource", [False, True])
def test_branches_that_update_variables_of_several_tasks(target, use_resource):
    one, two = variables(use_resource)
    choice = tf.placeholder(tf.bool, [])
    with tf.device(WORKER):
        either = tf.cond(choice, lambda: one.assign_add(10.0), lambda: two.assign_add(20.0))
        both = tf.cond(
            choice,
            lambda: tf.group(one.assign_add(1.0), two.assign_add(1.0)),
            lambda: tf.no_op(),
        )
    with tf.Session(target) as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(either, {choice: True}) == 11.0
        assert sess.run(either, {choice: False}) == 22.0
        assert sess.run([one, two]) == [11.0, 22.0]
        sess.run(both, {choice: True})
        sess.run(both, {choice: False})
        assert sess.run([one, two]) == [12.0, 23.0]


def test_moving_averages_of_a_model_in_training(target):
    """What `tf.layers.batch_normalization` does under a placeholder, on two servers."""
    training = tf.placeholder(tf.bool, [])
    x = tf.constant(np.arange(6, dtype=np.float32).reshape(3, 2))
    with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        y = tf.layers.batch_normalization(x, momentum=0.5, training=training)
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        mean, variance = (v for v in tf.global_variables() if "moving" in v.name)
    assert len({v.device for v in tf.global_variables()}) == 2
    with tf.Session(target) as sess:
        sess.run(tf.global_variables_initializer())
        found, *_ = sess.run([y, updates], {training: True})
        np.testing.assert_allclose(found.mean(0), [0, 0], atol=1e-6)
        np.testing.assert_allclose(sess.run(mean), [1.0, 1.5])
        np.testing.assert_allclose(sess.run(variance), [0.5 + 4 / 3, 0.5 + 4 / 3], rtol=1e-5)
        sess.run([y, updates], {training: False})
        np.testing.assert_allclose(sess.run(mean), [1.0, 1.5])


def test_a_loop_that_goes_to_and_fro(target):
    one, two = variables()

    def turn(i, total):
        with tf.device(f"{PS}/task:0"):
            total = total * 2.0 + one
        with tf.device(f"{PS}/task:1"):
            total = total + two
        with tf.device(WORKER):
            return i + 1, total - 1.0

    count = tf.placeholder(tf.int32, [])
    _, result = tf.while_loop(lambda i, _: i < count, turn, [tf.constant(0), tf.constant(1.0)])
    with tf.Session(target) as sess:
        sess.run(tf.global_variables_initializer())
        assert [sess.run(result, {count: n}) for n in (0, 1, 4, 0)] == [1.0, 4.0, 46.0, 1.0]


def test_many_turns(target):
    """More than after which loops are compiled into code for many turns."""
    one, two = variables()

    def turn(i):
        with tf.control_dependencies([one.assign_add(1.0), two.assign_add(2.0)]):
            return i + 1

    count = tf.while_loop(lambda i: i < 300, turn, [0])
    with tf.Session(target) as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(count) == 300
        assert sess.run([one, two]) == [301.0, 602.0]


def test_a_condition_that_asks_a_variable_of_another_task(target):
    one, two = variables()

    def less(_):
        with tf.device(f"{PS}/task:0"):
            return one.read_value() < 5.0

    def turn(n):
        with tf.control_dependencies([one.assign_add(1.0), two.assign_sub(1.0)]):
            return n + 1

    with tf.device(WORKER):
        turns = tf.while_loop(less, turn, [0])
    with tf.Session(target) as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(turns) == 4
        assert sess.run([one, two]) == [5.0, -2.0]
        assert sess.run(turns) == 0


def test_loops_in_branches_in_loops(target):
    one, two = variables()

    def inner(total, n):
        def turn(j, total):
            with tf.device(f"{PS}/task:1"):
                total = total + two
            with tf.device(WORKER):
                return j + 1, total * 1.0

        return tf.while_loop(lambda j, _: j < n, turn, [tf.constant(0), total])[1]

    def turn(i, total):
        even = tf.equal(i % 2, 0)
        with tf.device(f"{PS}/task:0"):
            total = total + one
        total = tf.cond(even, lambda: inner(total, i), lambda: total * 2.0)
        return i + 1, total

    _, result = tf.while_loop(lambda i, _: i < 5, turn, [tf.constant(0), tf.constant(0.0)])
    expected = 0.0
    for i in range(5):
        expected += 1.0
        expected = expected * 2.0 if i % 2 else expected + 2.0 * i
    with tf.Session(target) as sess:
        sess.run(tf.global_variables_initializer())
        assert [sess.run(result) for _ in range(3)] == [expected] * 3


def test_gradients_of_loops_and_branches(target):
    one, two = variables()
    choice = tf.placeholder(tf.bool, [])

    def turn(i, a):
        with tf.device(f"{PS}/task:0"):
            a = a * one
        with tf.device(f"{PS}/task:1"):
            a = a + two
        return i + 1, a

    _, a = tf.while_loop(lambda i, _: i < 3, turn, [tf.constant(0), tf.constant(1.5)])
    y = tf.cond(choice, lambda: a * a * two, lambda: a - one)
    slopes = tf.gradients(y, [one, two])
    with tf.Session(target) as sess:
        sess.run(tf.global_variables_initializer())
        # a = 1.5 o^3 + t (o^2 + o + 1)
        value, by_one, by_two = 7.5, 4.5 + 2.0 * 3.0, 3.0
        found = sess.run([y, *slopes], {choice: True})
        expected = [value**2 * 2, 4 * value * by_one, value**2 + 4 * value * by_two]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        found = sess.run([y, *slopes], {choice: False})
        np.testing.assert_allclose(found, [value - 1, by_one - 1, by_two], rtol=1e-6)


def test_two_branches_whose_tasks_meet_in_one_order(target):
    """Each needs what only one of its tasks has to wait for."""
    first, second = tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, [])
    one, two = variables()

    def both(x):
        with tf.device(f"{PS}/task:0"):
            x = x + one
        with tf.device(f"{PS}/task:1"):
            return x + two

    with tf.device(f"{PS}/task:1"):
        late = tf.identity(tf.reduce_sum(tf.random_uniform([3]))) * 0.0
    with tf.device(f"{PS}/task:0"):
        a = tf.cond(first, lambda: both(late), lambda: 0.0)
    with tf.device(f"{PS}/task:1"):
        b = tf.cond(second, lambda: both(1.0), lambda: 0.0)
        c = tf.cond(second, lambda: both(a), lambda: a)
    with tf.Session(target) as sess:
        sess.run(tf.global_variables_initializer())
        for p, q in ((True, True), (False, True), (True, False), (False, False)):
            found = sess.run([a, b, c], {first: p, second: q})
            assert found == [3.0 * p, 4.0 * q, 3.0 * p + 3.0 * q]


def test_an_error_in_one_task_ends_the_loop_in_all(target):
    one, two = variables()
    table = tf.constant([0, 1, 2])

    def turn(i, total):
        with tf.device(f"{PS}/task:1"):
            found = tf.gather(table, i, name="found")
        with tf.device(f"{PS}/task:0"):
            return i + 1, total + tf.cast(found, tf.float32) * one

    with tf.device(WORKER):
        _, result = tf.while_loop(lambda i, _: i < 5, turn, [tf.constant(0), two * 0.0])
    with tf.Session(target) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match="From /job:ps.*task:1"):
                sess.run(result)


def test_sessions_end_loops_that_do_not(target):
    one, two = variables()

    def forever(counted):
        def turn(n):
            with tf.control_dependencies([counted.assign_add(1.0)]), tf.device(f"{PS}/task:1"):
                return n + 1

        with tf.device(WORKER):
            return tf.while_loop(lambda n: n >= 0, turn, [0])

    late, closed = forever(one), forever(two)
    sess = tf.Session(target)
    sess.run(tf.global_variables_initializer())
    with pytest.raises(tf.errors.DeadlineExceededError):
        sess.run(late, options=tf.RunOptions(timeout_in_ms=200))
    told = []

    def run():
        try:
            sess.run(closed)
        except tf.errors.CancelledError as e:
            told.append(e)

    before = sess.run(two)  # a turn of the first loop may still come, but it counts in the other
    thread = threading.Thread(target=run)
    thread.start()
    while sess.run(two) <= before:
        pass
    sess.close()
    thread.join()
    assert told


def test_turns_over_an_engine(threads, far, patient):
    """What a loop's tasks tell each other crosses as bytes, and comes twice or late."""
    with tf.device(PS):
        v = tf.Variable(1.0)
    words = tf.placeholder(tf.string, [])

    def turn(i, text):
        with tf.device(PS):
            longer = text + "!"
            with tf.control_dependencies([v.assign_add(1.0)]):
                longer = tf.identity(longer)
        with tf.device(WORKER):
            return i + 1, longer + "?"

    with tf.device(WORKER):
        _, result = tf.while_loop(lambda i, _: i < 3, turn, [tf.constant(0), words])
    with tf.Session("grpc://far:1") as sess:
        sess.run(v.initializer)
        assert sess.run(result, {words: "a"}) == b"a!?!?!?"
        threads.fault = lambda where, what: Fault.TWICE if what == "deliver" else Fault.NONE
        assert sess.run(result, {words: "b"}) == b"b!?!?!?"
        assert sess.run(v) == 7.0
        left = [Fault.LOST]
        threads.fault = lambda where, what: left.pop() if what == "deliver" and left else Fault.NONE
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(result, {words: "c"}, options=tf.RunOptions(timeout_in_ms=300))
        threads.fault = lambda where, what: Fault.NONE
        assert sess.run(result, {words: "d"}) == b"d!?!?!?"


def test_what_is_told_of_the_messages_of_a_loop(target):
    one, two = variables()

    def turn(i, total):
        with tf.device(f"{PS}/task:0"):
            return i + 1, total + one

    with tf.device(WORKER):
        _, result = tf.while_loop(lambda i, _: i < 2, turn, [tf.constant(0), two + 0.0])
    with tf.Session(target) as sess:
        sess.run(tf.global_variables_initializer())
        told = str(sess.explain(result))
    assert "/job:ps/replica:0/task:0 to /job:worker/replica:0/task:0" in told
