"""What sessions of one server share, and what the end of one means to its steps."""

from __future__ import annotations

import threading

import pytest

import opdock as tf


def test_assigning_looks_at_the_shape_that_the_variable_has(cluster):
    servers = cluster(ps=1, worker=1)
    target = servers["worker"][0].target

    def shared(value, run):
        with tf.Graph().as_default(), tf.device("/job:ps"):
            w = tf.Variable(value, name="w", use_resource=False)
            with tf.Session(target) as sess:
                return run(sess, w)

    shared([1, 2, 3], lambda sess, w: sess.run(w.initializer))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"lhs shape= \[3\] rhs shape= \[\]"):
        shared(86, lambda sess, w: sess.run(w.initializer))
    assert shared([0, 0, 0], lambda sess, w: sess.run(w).tolist()) == [1, 2, 3]
    free = shared(7, lambda sess, w: sess.run(tf.assign(w, [5, 6], validate_shape=False)))
    assert free.tolist() == [5, 6]
    assert shared([8, 9], lambda sess, w: sess.run(w.initializer)) is None
    assert shared([0, 0], lambda sess, w: sess.run(w).tolist()) == [8, 9]


@pytest.mark.parametrize("jobs", [{"worker": 1}, {"worker": 1, "ps": 1}])
def test_what_waits_when_its_session_is_closed_is_told_so(cluster, jobs):
    servers = cluster(**jobs)
    with tf.device(f"/job:{[*jobs][-1]}"):
        queue = tf.FIFOQueue(2, [tf.float32])
        count = tf.get_variable("count", initializer=0, use_resource=True)
        with tf.control_dependencies([count.assign_add(1)]):
            never = queue.dequeue()
    sess, other = (tf.Session(servers["worker"][0].target) for _ in range(2))
    sess.run(count.initializer)
    told = []

    def wait():
        with pytest.raises(tf.errors.CancelledError, match="Session::Close") as found:
            sess.run(never)
        told.append(found)

    thread = threading.Thread(target=wait)
    thread.start()
    while not other.run(count):
        pass
    sess.close()
    thread.join()
    assert told
