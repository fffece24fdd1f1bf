"""Monitors of `tf.contrib.learn`, driven by a training, and by hand as programs of 2016 do."""

from __future__ import annotations

import re

import numpy as np
import pytest

import opdock as tf

monitors = tf.contrib.learn.monitors


@pytest.fixture
def lines(monkeypatch):
    """What is logged."""
    found: list[str] = []
    monkeypatch.setattr(tf.logging, "info", lambda text, *args: found.append(text % args))
    return found


def train(*watching, steps=5, **settings):
    """Counts a variable up to a number, in steps of 1; the values that were fetched."""
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        weight = tf.Variable(0.0, name="weight")
        total = tf.identity(weight.assign_add(1.0), name="total")
        with tf.control_dependencies([total]):
            ahead = step.assign_add(1)
        tf.summary.scalar("size", total)
        hooks = monitors.replace_monitors_with_hooks([make() for make in watching])
        seen = []
        with tf.train.MonitoredSession(
            tf.train.ChiefSessionCreator(**settings), hooks=hooks
        ) as session:
            while not session.should_stop() and len(seen) < steps:
                seen.append(float(session.run([ahead, total])[1]))
    return seen


@pytest.mark.parametrize("how", [{"num_steps": 3}, {"last_step": 3}])
def test_it_stops_at_a_step(how):
    assert train(lambda: monitors.StopAtStep(**how)) == [1.0, 2.0, 3.0]


def test_it_stops_at_one_step_or_after_so_many():
    assert monitors.StopAtStep(num_steps=1).run_on_all_workers
    with pytest.raises(ValueError, match="One of num_steps or last_step must be specified"):
        monitors.StopAtStep()
    with pytest.raises(ValueError, match="Only one of num_steps or last_step can be specified"):
        monitors.StopAtStep(1, 2)


def test_values_are_logged_by_their_names(lines):
    train(
        lambda: monitors.PrintTensor({"sum": "total"}, every_n=2),
        lambda: monitors.LoggingTrainable("wei", every_n=2),
        lambda: monitors.PrintTensor(["total:0"], every_n=100),
    )
    logged = [line for line in lines if "sum = " in line]
    assert logged == ["Step 1: sum = 1.0", "Step 3: sum = 3.0", "Step 5: sum = 5.0"]
    assert sum(bool(re.match(r"Logging Trainable: Step \d: weight:0 = ", s)) for s in lines) == 3
    assert "Step 1: total:0 = 1.0" in lines


def test_values_are_kept_by_step():
    made = monitors.CaptureVariable("total:0", every_n=1, first_n=2)
    train(lambda: made)
    assert made.values == {1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0, 5: 5.0}


def test_a_loss_that_is_no_number_ends_the_training():
    def loss():
        return tf.log(tf.get_default_graph().get_tensor_by_name("total:0") - 2.5)

    with pytest.raises(monitors.NanLossDuringTrainingError, match="NaN loss during training"):
        train(lambda: monitors.NanLoss(loss(), every_n_steps=1))
    ended = train(lambda: monitors.NanLoss(loss(), every_n_steps=1, fail_on_nan_loss=False))
    assert ended == [1.0]


def test_graphs_are_kept_and_compared():
    dumps = monitors.GraphDump(), monitors.GraphDump(ignore_ops=["Const", "Identity"])
    train(lambda: dumps[0], steps=2)
    assert sorted(dumps[0].data) == [1, 2]
    one, other = monitors.GraphDump(), monitors.GraphDump()
    one.data[3] = {"a:0": np.ones(2), "b:0": np.ones(2), "c:0": 1.0, "d:0": 2.0, "s:0": "text"}
    other.data[3] = {"a:0": np.ones(2), "b:0": np.zeros(2), "c:0": 1.0, "d:0": 3.0}
    matched, apart = one.compare(other, 3)
    assert matched == ["a:0", "c:0"]
    assert apart["b:0"].tolist() == [1.0, 1.0] and apart["d:0"] == (2.0, 3.0)
    with pytest.raises(ValueError, match="a:0 missing at step 3"):
        one.compare(monitors.GraphDump(), 3)
    assert one.compare(other, 4) == ([], {})


def test_what_is_written_while_it_trains(tmp_path):
    folder = str(tmp_path)
    saver = []

    def saves():
        saver.append(tf.train.Saver(max_to_keep=10))
        return monitors.CheckpointSaver(folder, save_steps=2, saver=saver[0])

    train(
        saves,
        lambda: monitors.SummarySaver(tf.summary.merge_all(), save_steps=2, output_dir=folder),
        lambda: monitors.StepCounter(every_n_steps=1, output_dir=folder),
    )
    tf.summary.FileWriterCache.clear()
    found = [p.rsplit("-", 1)[1] for p in saver[0].last_checkpoints]
    assert found == ["1", "3", "5"]
    reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(folder))
    assert reader.get_tensor("weight") == 5.0
    events = [e for path in tmp_path.glob("events*") for e in tf.train.summary_iterator(str(path))]
    sizes = {e.step: v.simple_value for e in events for v in e.summary.value if v.tag == "size"}
    assert sizes == {1: 1.0, 3: 3.0, 5: 5.0}
    rates = [v for e in events for v in e.summary.value if v.tag == "global_step/sec"]
    assert rates and all(v.simple_value > 0 for v in rates)
    assert [e.step for e in events if e.HasField("session_log")] == [1, 3, 5]


def test_a_saver_wants_steps_or_seconds(tmp_path):
    with pytest.raises(ValueError, match="Either save_steps or save_secs should be provided"):
        monitors.CheckpointSaver(str(tmp_path))
    with pytest.raises(ValueError, match="Can not provide both save_steps and save_secs"):
        monitors.CheckpointSaver(str(tmp_path), save_secs=1, save_steps=1)


def test_the_monitors_of_most_trainings(tmp_path, lines):
    def watching(i):
        loss = tf.get_default_graph().get_tensor_by_name("total:0")
        where = {"output_dir": str(tmp_path)}
        return monitors.get_default_monitors(loss, tf.summary.merge_all(), 1, **where)[i]

    train(lambda: watching(0), lambda: watching(1))
    assert "Step 1: loss = 1.0" in lines
    assert list(tmp_path.glob("events*"))
    assert monitors.get_default_monitors() == []


def test_a_validation_without_an_estimator_says_so():
    monitor = monitors.ValidationMonitor(x=np.zeros(2), every_n_steps=0)
    monitor.begin(max_steps=9)
    monitor.step_begin(0)
    with pytest.raises(ValueError, match="Missing call to set_estimator"):
        monitor.step_end(0, {})
    with pytest.raises(ValueError, match="Either x or input_fn should be provided"):
        monitors.ValidationMonitor()
