"""Monitors that are no hooks, in the training of estimators."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

learn = tf.contrib.learn
monitors = learn.monitors


def model(folder, **kwargs):
    def model_fn(features, labels, mode):
        bias = tf.get_variable("bias", [], initializer=tf.zeros_initializer())
        loss = tf.identity(tf.reduce_mean((features[:, 0] + bias - labels) ** 2), name="my_loss")
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return learn.ModelFnOps(mode, features, loss, train)

    return learn.Estimator(model_fn, str(folder), **kwargs)


def data():
    return tf.constant(np.ones([4, 1], np.float32)), tf.constant(np.full([4], 3.0, np.float32))


class Noting(monitors.EveryN):
    def __init__(self, stop_at=None, **kwargs):
        super().__init__(**kwargs)
        self.seen, self.posted, self.stop_at = [], [], stop_at

    def every_n_step_begin(self, step):
        return ["my_loss", "my_loss:0"]

    def every_n_step_end(self, step, outputs):
        assert outputs["my_loss"] == outputs["my_loss:0"]
        self.seen.append((step, float(outputs["my_loss"])))
        return step == self.stop_at

    def every_n_post_step(self, step, session):
        self.posted.append(step)


def test_a_monitor_sees_every_few_steps_and_the_last(tmp_path):
    monitor = Noting(every_n_steps=4, first_n_steps=2)
    trained = model(tmp_path)
    trained.fit(input_fn=data, steps=11, monitors=[monitor])
    assert [step for step, _ in monitor.seen] == [1, 2, 6, 10]
    assert monitor.posted == [1, 2, 6, 10, 11]
    losses = [loss for _, loss in monitor.seen]
    np.testing.assert_allclose(losses, [4 * 0.64 ** (s - 1) for s in (1, 2, 6, 10)], rtol=1e-4)
    # A second fit goes on with the count of the first.
    trained.fit(input_fn=data, steps=4, monitors=[monitor])
    assert monitor.posted[5:] == [14, 15]


def test_a_monitor_ends_the_training(tmp_path):
    trained = model(tmp_path)
    trained.fit(input_fn=data, steps=50, monitors=[Noting(stop_at=3, every_n_steps=1)])
    assert trained.get_variable_value("global_step") == 3


def test_hooks_stay_and_monitors_get_one_hook_around_them(tmp_path):
    class OnAll(monitors.BaseMonitor):
        run_on_all_workers = True

    hook, watched = tf.train.StopAtStepHook(num_steps=3), OnAll()
    estimator = model(tmp_path)
    mixed = monitors.replace_monitors_with_hooks([watched, hook, monitors.BaseMonitor()], estimator)
    assert mixed[0] is hook and len(mixed) == 2
    assert isinstance(mixed[1], monitors.RunHookAdapterForMonitors)
    assert watched._estimator is estimator
    assert monitors.replace_monitors_with_hooks(None, estimator) == []
    assert monitors.replace_monitors_with_hooks([hook], estimator) == [hook]


def test_workers_run_what_runs_on_all():
    class Worker:
        class config:
            is_chief = False

    class OnAll(monitors.BaseMonitor):
        run_on_all_workers = True

    alone = monitors.BaseMonitor()
    assert monitors.replace_monitors_with_hooks([alone], Worker()) == []
    assert len(monitors.replace_monitors_with_hooks([alone, OnAll()], Worker())) == 1
    assert alone._estimator is None


def test_what_monitors_ask_for_must_be_one_tensor(tmp_path):
    class Asking(monitors.BaseMonitor):
        def __init__(self, asked):
            super().__init__()
            self.asked = asked

        def step_begin(self, step):
            super().step_begin(step)
            return self.asked

    for place, (asked, message) in enumerate({
        "global_step": "should return a list",
        ("pair",): "ambiguous",
    }.items()):  # fmt: skip

        def several():
            tf.split(tf.zeros([2]), 2, name="pair")
            return data()

        given = list(asked) if isinstance(asked, tuple) else asked
        with pytest.raises(ValueError, match=message):
            model(tmp_path / str(place)).fit(input_fn=several, steps=1, monitors=[Asking(given)])


def test_monitors_are_told_things_in_order():
    monitor = monitors.BaseMonitor()
    with pytest.raises(ValueError, match="end called without begin"):
        monitor.end()
    monitor.begin(max_steps=3)
    with pytest.raises(ValueError, match="begin called twice"):
        monitor.begin()
    with pytest.raises(ValueError, match="Invalid step 4"):
        monitor.step_begin(4)
    assert monitor.step_begin(2) == []
    with pytest.raises(ValueError, match="step_end expected 2 but got 1"):
        monitor.step_end(1, {})
    assert monitor.step_end(2, {}) is False
    monitor.epoch_begin(1)
    with pytest.raises(ValueError, match="epoch_begin called twice"):
        monitor.epoch_begin(2)
    with pytest.raises(ValueError, match="epoch_end expected 1 but got 2"):
        monitor.epoch_end(2)
    monitor.epoch_end(1)
    monitor.end()
    with pytest.raises(ValueError, match="Missing estimator"):
        monitor.set_estimator(None)
