"""Hooks that watch, end, feed and log a loop, in real monitored sessions."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import opdock as tf
from opdock.train.loops import hooks, timers


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


@pytest.fixture
def told(caplog):
    caplog.set_level(logging.INFO, "tensorflow")
    return lambda: [r.getMessage() for r in caplog.records]


def count_up(by=1):
    return tf.assign_add(tf.train.get_or_create_global_step(), by)


def steps(session, fetch):
    taken = 0
    while not session.should_stop():
        session.run(fetch)
        taken += 1
    return taken


# ---------------------------------------------------------------- timers
def test_a_timer_of_steps():
    timer = tf.train.SecondOrStepTimer(every_steps=3)
    assert timer.last_triggered_step() is None
    assert timer.should_trigger_for_step(1)
    assert timer.update_last_triggered_step(1) == (None, None)
    assert [s for s in range(1, 8) if timer.should_trigger_for_step(s)] == [4, 5, 6, 7]
    assert timer.update_last_triggered_step(5)[1] == 4
    timer.reset()
    assert timer.should_trigger_for_step(5)


def test_a_timer_of_seconds(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(timers.time, "time", lambda: now[0])
    timer = tf.train.SecondOrStepTimer(every_secs=2.0)
    timer.update_last_triggered_step(1)
    now[0] += 1.5
    assert not timer.should_trigger_for_step(2)
    now[0] += 0.5
    assert not timer.should_trigger_for_step(1)  # it has acted at this step
    assert timer.should_trigger_for_step(2)
    assert timer.update_last_triggered_step(4) == (2.0, 3)


@pytest.mark.parametrize("given", [{}, {"every_secs": 1, "every_steps": 1}])
def test_a_timer_wants_one_interval(given):
    with pytest.raises(ValueError, match="every_secs"):
        tf.train.SecondOrStepTimer(**given)


# ---------------------------------------------------------------- the end of a loop
@pytest.mark.parametrize("given", [{"num_steps": 5}, {"last_step": 5}])
def test_stop_at_step(given):
    op = count_up()
    hook = tf.train.StopAtStepHook(**given)
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        assert steps(session, op) == 5
        with pytest.raises(RuntimeError, match="Run called even after should_stop"):
            session.run(op)


def test_num_steps_count_from_where_the_session_starts():
    op = count_up()
    scaffold = tf.train.Scaffold(init_fn=lambda _, sess: tf.train.get_global_step().load(10, sess))
    with tf.train.SingularMonitoredSession([tf.train.StopAtStepHook(4)], scaffold) as session:
        assert steps(session, op) == 4
        assert session.raw_session().run(tf.train.get_global_step()) == 14


def test_steps_of_several_turns():
    turns = hooks.get_or_create_steps_per_run_variable()
    op = tf.assign_add(tf.train.get_or_create_global_step(), tf.cast(turns, tf.int64))
    hook = hooks.MultiStepStopAtStepHook(last_step=10, steps_per_run=4)
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        seen = []
        while not session.should_stop():
            seen.append(int(session.run(op)))
    assert seen == [4, 8, 10]
    assert hooks.get_or_create_steps_per_run_variable() is turns


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: tf.train.StopAtStepHook(), "One of num_steps"),
        (lambda: tf.train.StopAtStepHook(1, 2), "Only one of num_steps"),
        (lambda: hooks.MultiStepStopAtStepHook(1, steps_per_run=0), "greater than 0"),
        (lambda: tf.train.LoggingTensorHook(["t"]), "exactly one of every_n_iter"),
        (lambda: tf.train.LoggingTensorHook(["t"], every_n_iter=0), "invalid every_n_iter=0"),
    ],
)
def test_bad_arguments(make, text):
    with pytest.raises(ValueError, match=text):
        make()


@pytest.mark.parametrize(
    "hook", [tf.train.StopAtStepHook(1), tf.train.GlobalStepWaiterHook(3)], ids=["stop", "wait"]
)
def test_a_graph_without_a_global_step(hook):
    with pytest.raises(RuntimeError, match="Global step should be created to use"):
        tf.train.MonitoredSession(hooks=[hook])


def test_nan_fails_and_says_where(told):
    op = count_up()
    x = tf.placeholder(tf.float32, [])
    sums = [tf.get_variable(f"sum{i}", [2], initializer=tf.zeros_initializer()) for i in range(12)]
    tf.get_variable("count", initializer=3)
    tf.get_variable("untouched", initializer=3.0)
    loss = tf.log(x, name="loss")
    add = [tf.assign_add(s, [loss, 1.0]) for s in sums]
    hook = tf.train.NanTensorHook(loss)
    with (
        pytest.raises(tf.train.NanLossDuringTrainingError) as caught,
        tf.train.MonitoredSession(hooks=[hook]) as session,
    ):
        session.run([op, add], {x: 1.0})
        session.run([op, add], {x: -1.0})
    first, where, step, others, hint = str(caught.value).splitlines()
    assert first == "NaN loss during training."
    assert "loss:0 is NaN: [[node loss (defined at" in where and "test_hooks.py" in where
    assert where.endswith("(op Log), inputs: Placeholder:0 float32()")
    assert step.endswith("global step 2")
    assert others.endswith(": " + ", ".join(f"sum{i}" for i in range(10)) + " and 2 more")
    assert "add_check_numerics_ops" in hint
    assert "Model diverged with loss = NaN." in told()


def test_nan_may_end_quietly(told):
    loss, nothing = tf.constant(np.nan, name="loss"), tf.no_op()
    tf.get_local_variable("no_value", [], collections=["variables"])
    hook = tf.train.NanTensorHook(loss, False)
    ready = tf.constant([], tf.string)
    scaffold = tf.train.Scaffold(
        init_op=tf.no_op(), ready_op=ready, ready_for_local_init_op=ready, local_init_op=tf.no_op()
    )
    creator = tf.train.ChiefSessionCreator(scaffold)
    with tf.train.MonitoredSession(creator, [hook]) as session:
        session.run(nothing)
        assert session.should_stop()
    log = "\n".join(told())
    assert "Model diverged with loss = NaN.\n\t loss:0 is NaN: [[node loss" in log
    assert "by now" not in log


def test_a_nan_of_nobody_says_so():
    """Programs raise it themselves, as TensorFlow's class takes nothing."""
    assert str(tf.train.NanLossDuringTrainingError()) == "NaN loss during training."


# ---------------------------------------------------------------- waiting, feeding, the last values
def test_a_worker_waits_for_the_global_step(monkeypatch):
    step = tf.train.get_or_create_global_step()
    slept = []
    with tf.train.SingularMonitoredSession([tf.train.GlobalStepWaiterHook(3)]) as session:
        raw = session.raw_session()

        def another_worker(seconds):
            slept.append(seconds)
            step.load(len(slept), raw)

        monkeypatch.setattr(hooks.time, "sleep", another_worker)
        assert session.run(step) == 3
        session.run(step)
    assert len(slept) == 3


def test_final_ops_and_feeds():
    x = tf.placeholder(tf.int32, [])
    total = tf.get_local_variable("total", [], tf.int32, tf.zeros_initializer())
    add = tf.assign_add(total, x)
    numbers = iter(range(1, 5))
    feed = tf.train.FeedFnHook(lambda: {x: next(numbers)})
    final = tf.train.FinalOpsHook({"sum": total.read_value(), "x": x}, {x: 9})
    with tf.train.MonitoredSession(hooks=[feed, final]) as session:
        for _ in range(3):
            session.run(add)
    assert final.final_ops_values == {"sum": 6, "x": 9}


def test_two_must_not_feed_the_same():
    x = tf.placeholder(tf.int32, [])
    feed = tf.train.FeedFnHook(lambda: {x: 1})
    with tf.train.MonitoredSession(hooks=[feed]) as session:
        assert session.run(x) == 1
        with pytest.raises(RuntimeError, match="fed by a SessionRunHook and user"):
            session.run(x, {x: 2})
    with (
        tf.train.MonitoredSession(hooks=[feed, tf.train.FeedFnHook(lambda: {x: 2})]) as session,
        pytest.raises(RuntimeError, match="fed by two hooks"),
    ):
        session.run(x)


# ---------------------------------------------------------------- logs
def test_logging_every_other_step(told):
    op = count_up()
    tf.identity(op, name="seen")
    tf.constant([1e-7, 1.0], name="small")
    hook = tf.train.LoggingTensorHook({"step": "seen:0", "a": "small"}, every_n_iter=2)
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(4):
            session.run(op)
    lines = [line for line in told() if line.startswith("a = ")]
    assert [line.split(" (")[0] for line in lines] == [
        "a = [0.0000001 1.       ], step = 1", "a = [0.0000001 1.       ], step = 3",
    ]  # fmt: skip
    assert lines[1].endswith(" sec)")


def test_logging_at_the_end_in_own_words(told):
    op = count_up()
    hook = tf.train.LoggingTensorHook(
        {"step": tf.train.get_global_step()}, at_end=True, formatter=lambda v: f"done: {v['step']}"
    )
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(3):
            session.run(op)
    assert [line for line in told() if line.startswith("done")] == ["done: 3"]


def test_names_must_mean_one_tensor(graph):
    tf.split(tf.zeros([4]), 2, name="halves")
    with pytest.raises(ValueError, match="halves is ambiguous"):
        hooks.graph_element("halves")
    assert hooks.graph_element("halves:1").name == "halves:1"
    with tf.Graph().as_default():
        other = tf.constant(1)
    with pytest.raises(ValueError, match="equal to current graph"):
        hooks.graph_element(other)
