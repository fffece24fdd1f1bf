"""The hook for cluster engines, proved with one whose processes are threads."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.plugin import ClusterEngineSpec, Packet
from opdock.runtime import servers
from opdock.runtime.cluster import task


def test_a_step_through_an_engine(threads, far):
    with tf.device("/job:ps"):
        v = tf.Variable(np.arange(3, dtype=np.float32))
        names = tf.constant([b"x", b"y"])
    with tf.device("/job:worker"):
        x = tf.placeholder(tf.float32, [3])
        result, longer = v * x, tf.string_join([names, "!"])
    with tf.device("/job:ps"):
        update = v.assign_add(result)
    with tf.Session("grpc://far:1") as sess:
        assert len({d.name.rpartition("/device:")[0] for d in sess.list_devices()}) == 2
        sess.run(v.initializer)
        assert sess.run([update, longer], {x: [0, 0, 0]})[0].tolist() == [0, 1, 2]
        threads.asked.clear()
        found = sess.run([update, longer], {x: [1, 2, 3]})
        assert found[0].tolist() == [0, 3, 8]
        found[0][0] = 7  # the caller's own
        assert found[1].tolist() == [b"x!", b"y!"]
        # One call a task, and one for what each sends to the other.
        assert sorted(threads.asked) == ["far:0"] * 2 + ["far:1"] * 2
        told = sess.explain([update, longer], {x: [1, 2, 3]})
        device = {r.op: r.device for r in told.rows}
        assert device["AssignAdd"] == "/job:ps/replica:0/task:0/device:CPU:0"
        assert device["Mul"] == "/job:worker/replica:0/task:0/device:CPU:0"
        assert len(told.crossings) == 2
        assert told.to_dict()["planned_bytes"] == told.memory.planned_bytes


def test_an_error_through_an_engine(threads, far):
    with tf.device("/job:ps"):
        x = tf.placeholder(tf.int32, [])
        bad = tf.gather([1, 2], x, name="bad")
    with tf.device("/job:worker"):
        result = bad + 1
    with tf.Session("grpc://far:1") as sess:
        with pytest.raises(tf.errors.InvalidArgumentError) as told:
            sess.run(result, {x: 3})
        assert told.value.op is bad.op
        assert "From /job:ps/replica:0/task:0:\n" in told.value.message


def test_a_task_that_dies_and_comes_back(threads, far):
    with tf.device("/job:ps"):
        x = tf.placeholder(tf.float32, [])
        there = x * 2.0
    with tf.device("/job:worker"):
        result = there + 1.0
    with tf.Session("grpc://far:1") as sess:
        assert sess.run(result, {x: 1.0}) == 3.0
        handle = threads.open.pop("far:0")
        with pytest.raises(tf.errors.UnavailableError, match="died"):
            sess.run(result, {x: 1.0})
        anew = servers.start(f"near:{id(handle)}", far[0].definition)
        threads.open["far:0"] = task.Task(anew).handle
        with pytest.raises(tf.errors.AbortedError, match="Possibly the task has been started"):
            sess.run(result, {x: 1.0})
    with tf.Session("grpc://far:1") as sess:
        assert sess.run(result, {x: 1.0}) == 3.0


def test_a_server_whose_address_another_process_has_is_in_nobody_s_way(threads, monkeypatch):
    tasks = {"ps": ["far:7"], "worker": ["far:8"]}
    worker = tf.train.Server(tasks, "worker")

    def taken(address, handle):
        raise tf.errors.UnknownError(None, None, f"another process has {address}")

    monkeypatch.setattr(threads, "serve", taken)
    with pytest.raises(tf.errors.UnknownError, match=r"has far:7\. It is that of /job:ps/task:0"):
        tf.train.Server(tasks, "ps")
    assert servers.at("far:7") is None  # whoever asks it asks the other process
    assert servers.at("far:8") is worker._server
    assert not worker._server._others


def test_what_nobody_answers(threads):
    config = tf.ConfigProto(operation_timeout_in_ms=20)
    with pytest.raises(tf.errors.DeadlineExceededError, match=r"far:9 has not.*nobody is at"):
        tf.Session("grpc://far:9", config=config)
    with pytest.raises(tf.errors.DeadlineExceededError):
        tf.Session.reset("grpc://far:9", config=config)


def test_an_answer_to_what_is_no_request(threads, far):
    handle = threads.open["far:0"]
    for packet in (Packet(b"", ()), Packet(b'{"kind": "x"}', ())):
        assert b'"error"' in handle(packet).header


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"name": "Big", "engine": "a:b"}, ValueError),
        ({"name": "a", "engine": "a"}, ValueError),
        ({"name": 1, "engine": "a:b"}, TypeError),
        ({"name": "a", "engine": "a:b", "priority": "high"}, TypeError),
    ],
)
def test_what_is_no_engine(fields, error):
    with pytest.raises(error):
        ClusterEngineSpec(**fields)
