"""What sessions over the tasks of a cluster refuse, and what they say then."""

from __future__ import annotations

import threading

import pytest

import opdock as tf
from opdock.runtime.cluster import master, peers

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"


def test_an_error_names_task_operation_and_line(cluster):
    servers = cluster(ps=1, worker=1)
    with tf.device("/job:ps"):
        x = tf.placeholder(tf.int32, [])
        bad = tf.gather([1, 2, 3], x, name="bad")
    with tf.device("/job:worker"):
        result = bad + 1
    with tf.Session(servers["worker"][0].target) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError) as raised:
            sess.run(result, {x: 9})
        assert raised.value.op is bad.op
        assert raised.value.message.startswith(f"From {PS}:\n")
        assert __file__ in raised.value.message
        assert sess.run(result, {x: 2}) == 4  # the next step is a new one


def test_a_variable_of_another_task_is_not_initialized(cluster):
    servers = cluster(ps=1, worker=1)
    with tf.device("/job:ps"):
        v = tf.Variable(1.0, name="missing")
    with tf.device("/job:worker"):
        result = v + 1.0
    with (
        tf.Session(servers["worker"][0].target) as sess,
        pytest.raises(tf.errors.FailedPreconditionError, match=f"From {PS}:\n.*missing"),
    ):
        sess.run(result)


def test_devices_that_no_task_has(cluster):
    servers = cluster(ps=1, worker=1)
    with tf.device("/job:other/task:3"):
        wrong = tf.constant(1) + 2
    with tf.Session(servers["worker"][0].target) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="/job:other/task:3 but available"):
            sess.run(wrong)
    soft = tf.ConfigProto(allow_soft_placement=True)
    with tf.Graph().as_default():
        with tf.device("/job:ps/device:TPU:7"):
            there = tf.Variable(3.0)
        with tf.Session(servers["worker"][0].target, config=soft) as sess:
            sess.run(there.initializer)
            assert sess.run(there) == 3.0
            assert servers["ps"][0]._server.store.items  # in its task, on another device


def test_handles_stay_in_their_task(cluster):
    servers = cluster(ps=2, worker=1)
    with tf.device("/job:ps/task:0"):
        one = tf.get_variable("one", initializer=1.0, use_resource=True)
    with tf.device("/job:ps/task:1"):
        two = tf.get_variable("two", initializer=2.0, use_resource=True)
    choice = tf.placeholder(tf.bool, [])
    with tf.device("/job:worker"):
        either = tf.cond(choice, lambda: one.handle, lambda: two.handle)
        read = tf.raw_ops.ReadVariableOp(resource=either, dtype=tf.float32)
    with tf.Session(servers["worker"][0].target) as sess:
        sess.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.UnimplementedError, match=r"of another task, a resource"):
            sess.run(read, {choice: True})


def test_a_failure_ends_the_waiting_of_all_tasks(cluster):
    servers = cluster(ps=2, worker=1)
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(2, [tf.float32])
        never = queue.dequeue()
    with tf.device("/job:ps/task:1"):
        x = tf.placeholder(tf.int32, [])
        bad = tf.cast(tf.gather([1, 2], x), tf.float32)
    with tf.device("/job:worker"):
        result = never + bad
    with tf.Session(servers["worker"][0].target) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="From /job:ps/replica:0/task:1"):
            sess.run(result, {x: 5})


def test_a_step_that_takes_too_long(cluster):
    servers = cluster(ps=1, worker=1)
    with tf.device("/job:ps"):
        never = tf.FIFOQueue(2, [tf.float32]).dequeue()
    with tf.device("/job:worker"):
        result = never * 2.0
    with tf.Session(servers["worker"][0].target) as sess:
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(result, options=tf.RunOptions(timeout_in_ms=50))


def test_a_session_that_is_closed_waits_no_longer(cluster):
    servers = cluster(ps=1, worker=1)
    with tf.device("/job:ps"):
        queue = tf.FIFOQueue(2, [tf.float32])
        started = tf.Variable(0.0)
        with tf.control_dependencies([started.assign_add(1.0)]):
            never = queue.dequeue()
    with tf.device("/job:worker"):
        result = never * 2.0
    sess = tf.Session(servers["worker"][0].target)
    sess.run(started.initializer)
    told: list[BaseException] = []

    def wait() -> None:
        try:
            sess.run(result)
        except tf.errors.OpError as e:
            told.append(e)

    thread = threading.Thread(target=wait)
    thread.start()
    with tf.Session(servers["ps"][0].target) as watcher:
        while not watcher.run(started):
            pass
    sess.close()
    thread.join()
    assert isinstance(told[0], tf.errors.CancelledError)
    with pytest.raises(RuntimeError, match="closed"):
        sess.run(result)


def test_a_task_that_another_thread_starts_is_waited_for(monkeypatch):
    tasks = {"ps": ["later:1"], "worker": ["later:2"]}
    worker, looks = tf.train.Server(tasks, job_name="worker"), []
    asked, connect = threading.Event(), peers.connect

    def look(address):
        try:
            return connect(address)
        except tf.errors.UnimplementedError:
            looks.append(address)
            asked.set()
            raise

    monkeypatch.setattr(peers, "connect", look)

    def start():
        asked.wait()
        tf.train.Server(tasks, job_name="ps").join()

    threading.Thread(target=start, daemon=True).start()
    with tf.device("/job:ps"):
        v = tf.Variable(1.0)
    with tf.Session(worker.target) as session:
        session.run(v.initializer)
        assert session.run(v) == 1.0
    assert set(looks) == {"later:1"}


def test_a_task_that_nobody_serves(monkeypatch):
    monkeypatch.setattr(master, "_HERE", 0.0)  # threads of other tests start none
    lonely = {"ps": ["nowhere:1"], "worker": ["nowhere:2"]}
    worker = tf.train.Server(lonely, job_name="worker")
    with pytest.raises(tf.errors.UnimplementedError, match=r"nowhere:1.*no cluster engine"):
        tf.Session(worker.target)
    with pytest.raises(
        tf.errors.DeadlineExceededError, match=r"/job:ps/replica:0/task:0 at nowhere:1 has not"
    ):
        tf.Session(worker.target, config=tf.ConfigProto(operation_timeout_in_ms=20))
    with pytest.raises(tf.errors.UnimplementedError, match="No cluster engine is called 'carrier'"):
        tf.train.Server(lonely, job_name="ps", protocol="carrier")


def test_a_reset_reaches_all_tasks(cluster):
    servers = cluster(ps=1, worker=1)
    with tf.device("/job:ps"):
        v = tf.Variable(1.0)
    with tf.device("/job:worker"):
        result = v + 1.0
    sess = tf.Session(servers["worker"][0].target)
    sess.run(v.initializer)
    assert sess.run(result) == 2.0
    tf.Session.reset(servers["worker"][0].target)
    with pytest.raises(tf.errors.AbortedError, match="reset"):
        sess.run(result)
    with tf.Session(servers["worker"][0].target) as fresh:
        with pytest.raises(tf.errors.FailedPreconditionError):
            fresh.run(result)
