"""Hooks that write: what is in the directory afterwards."""

from __future__ import annotations

import json
import os
import unittest

import pytest

import opdock as tf
from opdock.contrib import testing
from opdock.train.loops import timers


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g
    tf.summary.FileWriterCache.clear()


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(timers.time, "time", lambda: now[0])
    return now


def count_up():
    return tf.assign_add(tf.train.get_or_create_global_step(), 1)


def checkpoints(path):
    return sorted(int(p[11:-6]) for p in os.listdir(path) if p.endswith(".index"))


class Listener(tf.train.CheckpointSaverListener):
    def __init__(self, stop_at=None):
        self.calls = []
        self.stop_at = stop_at

    def begin(self):
        self.calls.append("begin")

    def before_save(self, session, global_step_value):
        self.calls.append(("before", int(global_step_value)))

    def after_save(self, session, global_step_value):
        self.calls.append(("after", int(global_step_value)))
        return global_step_value == self.stop_at

    def end(self, session, global_step_value):
        self.calls.append(("end", int(global_step_value)))


def test_checkpoints_by_steps(tmp_path):
    op, listener = count_up(), Listener()
    path = str(tmp_path)
    hook = tf.train.CheckpointSaverHook(
        path, save_steps=2, saver=tf.train.Saver(max_to_keep=None), listeners=[listener]
    )
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(5):
            session.run(op)
    assert checkpoints(path) == [0, 2, 4, 5]
    both = [call for n in (0, 2, 4, 5) for call in (("before", n), ("after", n))]
    assert listener.calls == ["begin", *both, ("end", 5)]
    assert os.path.exists(os.path.join(path, "graph.pbtxt"))
    tf.summary.FileWriterCache.clear()  # waits until all is written
    kinds = [e.WhichOneof("what") for e in testing.latest_events(path)]
    assert kinds.count("meta_graph_def") >= 1
    assert kinds.count("session_log") == 4


def test_checkpoints_by_seconds(tmp_path, clock):
    op = count_up()
    scaffold = tf.train.Scaffold()
    hook = tf.train.CheckpointSaverHook(str(tmp_path), save_secs=10, scaffold=scaffold)
    creator = tf.train.ChiefSessionCreator(scaffold)
    with tf.train.MonitoredSession(creator, [hook]) as session:
        for _ in range(6):
            clock[0] += 4
            session.run(op)
    assert checkpoints(tmp_path) == [0, 3, 6]


def test_a_listener_may_end_the_loop(tmp_path):
    op = count_up()
    hook = tf.train.CheckpointSaverHook(
        str(tmp_path), save_steps=1, scaffold=(scaffold := tf.train.Scaffold()),
        listeners=[Listener(stop_at=2)],
    )  # fmt: skip
    with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(scaffold), [hook]) as session:
        taken = 0
        while not session.should_stop():
            session.run(op)
            taken += 1
    assert taken == 2


def test_which_saver(tmp_path):
    with pytest.raises(ValueError, match="both saver and scaffold"):
        tf.train.CheckpointSaverHook("", 1, saver=object(), scaffold=object())
    hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=1)
    with pytest.raises(RuntimeError, match="No items in collection savers"):
        hook._get_saver()
    for name in ("one", "two"):
        tf.add_to_collection(tf.GraphKeys.SAVERS, name)
    with pytest.raises(RuntimeError, match="More than one item in collection savers"):
        hook._get_saver()


def test_the_speed(clock):
    op, writer = count_up(), testing.FakeSummaryWriter("nowhere")
    hook = tf.train.StepCounterHook(every_n_steps=2, summary_writer=writer)
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(5):
            clock[0] += 0.25
            session.run(op)
    found = {
        int(step): [v.simple_value for s in summaries for v in s.value]
        for step, summaries in writer.summaries.items()
    }
    assert found == {3: [4.0], 5: [4.0]}


def test_summaries(tmp_path):
    op = count_up()
    with tf.control_dependencies([op]):
        tf.summary.scalar("twice", tf.train.get_global_step().read_value() * 2)
    writer = testing.FakeSummaryWriter("nowhere")
    hook = tf.train.SummarySaverHook(3, summary_writer=writer, summary_op=tf.summary.merge_all())
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(7):
            session.run(op)
    writer.assert_summaries(
        unittest.TestCase(), expected_summaries={1: {"twice": 2.0}, 4: {"twice": 8.0}}
    )
    assert sorted(writer.summaries) == [1, 4, 7]


def test_summaries_want_one_source():
    for given in ({}, {"scaffold": tf.train.Scaffold(), "summary_op": tf.constant("")}):
        with pytest.raises(ValueError, match="Exactly one of scaffold or summary_op"):
            tf.train.SummarySaverHook(1, **given)


def test_profiles(tmp_path):
    op = count_up()
    hook = tf.train.ProfilerHook(save_steps=2, output_dir=str(tmp_path))
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(5):
            session.run(op)
    traces = sorted(p for p in os.listdir(tmp_path) if p.startswith("timeline"))
    assert traces == ["timeline-2.json", "timeline-4.json"]
    events = json.loads((tmp_path / traces[0]).read_text())["traceEvents"]
    assert any("AssignAdd" in str(e.get("name")) for e in events)
