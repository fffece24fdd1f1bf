"""Training while the system's clock is set back, set forward, or stands still."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

import opdock as tf

HOUR = 3600.0
YEAR = 365 * 24 * HOUR


class Clock:
    """What `time.time` says: the time that it was when the test began, and what is added."""

    def __init__(self) -> None:
        self._begin = time.time()
        self.ahead = 0.0

    def __call__(self) -> float:
        return self._begin + self.ahead


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(time, "time", found)
    return found


def test_training_goes_on_and_saves_whatever_the_clock_says(clock, tmp_path):
    step = tf.train.get_or_create_global_step()
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    tf.summary.scalar("seen", v)
    train = tf.group(v.assign_add(2.0), step.assign_add(1))
    saver = tf.train.Saver(max_to_keep=2, keep_checkpoint_every_n_hours=1)
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path), scaffold=tf.train.Scaffold(saver=saver),
        save_checkpoint_secs=60, save_summaries_secs=60, save_summaries_steps=None,
        log_step_count_steps=1,
    ) as session:  # fmt: skip
        jumps = itertools.cycle([0.0, -HOUR, 2 * HOUR, -YEAR, YEAR, YEAR, -5.0])
        for _ in range(14):
            clock.ahead = next(jumps)
            session.run(train)
    found = tf.train.load_checkpoint(str(tmp_path))
    assert (found.get_tensor("v"), found.get_tensor("global_step")) == (28.0, 14)
    events = next(tmp_path.glob("events.*"))
    tags = [v.tag for e in tf.train.summary_iterator(str(events)) for v in e.summary.value]
    assert {"seen", "global_step/sec"} <= set(tags)


def test_a_clock_that_is_set_back_keeps_nothing_from_being_done(clock):
    timer = tf.train.SecondOrStepTimer(every_secs=60)
    timer.update_last_triggered_step(1)
    assert not timer.should_trigger_for_step(2)
    clock.ahead = -YEAR
    assert timer.should_trigger_for_step(2)
    timer.update_last_triggered_step(2)
    assert not timer.should_trigger_for_step(3)
    clock.ahead += 61
    assert timer.should_trigger_for_step(3)


def test_threads_take_their_turns_while_the_clock_is_set_back(clock):
    coordinator, turns = tf.train.Coordinator(), itertools.count(1)
    enough = threading.Event()

    def turn() -> None:
        clock.ahead -= YEAR
        if next(turns) == 3:
            enough.set()

    thread = tf.train.LooperThread.loop(coordinator, 0.001, turn)
    enough.wait()
    coordinator.request_stop()
    coordinator.join([thread])


def test_how_long_is_waited_for_a_checkpoint(clock, tmp_path, monkeypatch):
    def sleep(seconds: float) -> None:
        clock.ahead -= HOUR  # and no time goes by but what really does

    monkeypatch.setattr(time, "sleep", sleep)
    found = tf.train.checkpoints_iterator(str(tmp_path), timeout=0.01)
    assert list(found) == []
