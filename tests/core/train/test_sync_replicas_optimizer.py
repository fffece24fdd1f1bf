"""Replicas that wait for each other: one that works at two batches an update, and two."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def session(*hooks):
    # The chief's thread waits for gradients when all is done: closing is not to wait for it.
    return tf.train.MonitoredTrainingSession(hooks=hooks, stop_grace_period_secs=0)


@pytest.mark.parametrize("resource", [False, True])
def test_one_replica_updates_with_the_mean_of_two_batches(resource):
    with tf.variable_scope("", use_resource=resource):
        dense = tf.get_variable("dense", initializer=[1.0, 2.0])
        sparse = tf.get_variable("sparse", initializer=[[3.0], [4.0]])
        unused = tf.get_variable("unused", initializer=5.0)
        step = tf.train.get_or_create_global_step()
    given = tf.placeholder(tf.float32, [2])
    row = tf.placeholder(tf.int32, [1])
    slices = tf.IndexedSlices(given[:1, None], row, tf.constant([2, 1]))
    inside = tf.train.MomentumOptimizer(1.0, 0.0)
    averages = tf.train.ExponentialMovingAverage(0.5)
    opt = tf.train.SyncReplicasOptimizer(
        inside, replicas_to_aggregate=2, total_num_replicas=1,
        variable_averages=averages, variables_to_average=[dense],
    )  # fmt: skip
    train = opt.apply_gradients([(given, dense), (slices, sparse), (None, unused)], step)
    assert opt.get_slot_names() == ["momentum"] and opt.variables() == inside.variables()
    assert opt.get_slot(dense, "momentum") is inside.get_slot(dense, "momentum") is not None
    assert [v.op.name for v in tf.local_variables()] == ["sync_rep_local_step"]
    with session(opt.make_session_run_hook(True, num_tokens=1)) as sess:
        steps = [
            sess.run(train, {given: [value, 2 * value], row: [at]})
            for value, at in ((1.0, 0), (3.0, 0), (5.0, 0), (7.0, 1))
        ]
        # One token was there; each update gives two, so the second batch of each waits for it.
        assert steps == [0, 1, 1, 2]
        assert sess.run(step) == 2
        np.testing.assert_allclose(sess.run(dense), [1 - 2 - 6, 2 - 4 - 12])
        np.testing.assert_allclose(sess.run(sparse), [[3 - 2 - 5], [4 - 7]])
        assert sess.run(unused) == 5


def test_replicas_wait_for_each_other():
    w = tf.get_variable("w", initializer=0.0)
    step = tf.train.get_or_create_global_step()
    given = tf.placeholder(tf.float32, [])
    opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 2)
    train = opt.minimize(given * w, step)
    with session(opt.make_session_run_hook(True, num_tokens=0)) as sess:
        raw = sess._tf_sess()
        for turn in (1, 2):
            others = [
                threading.Thread(target=raw.run, args=(train, {given: value}))
                for value in (1.0, 4.0)
            ]
            for thread in others:
                thread.start()
            for thread in others:
                thread.join()
            assert raw.run([step, w]) == [turn, -2.5 * turn]


def test_what_is_too_early_or_too_little():
    opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 4, 1)
    with pytest.raises(ValueError, match=r"Should be called after apply_gradients\(\)"):
        opt.get_chief_queue_runner()
    with pytest.raises(ValueError, match=r"should be called after apply_gradients\(\)"):
        opt.get_init_tokens_op()
    with pytest.raises(ValueError, match="apply_gradient should be called before using the hook"):
        opt.make_session_run_hook(True).begin()
    with pytest.raises(ValueError, match="Must supply at least one variable"):
        opt.apply_gradients([])
    w = tf.get_variable("w", initializer=0.0)
    with pytest.raises(ValueError, match="Global step is required to check staleness"):
        opt.apply_gradients([(tf.constant(1.0), w)])
    step = tf.train.get_or_create_global_step()
    with pytest.raises(ValueError, match="Unknown grad type!"):
        opt.apply_gradients([(1.0, w)], step)
    opt.apply_gradients([(tf.constant(1.0), w)], step)
    with pytest.raises(ValueError, match=r"first step: 2 \(given\) vs 3 \(needed\)"):
        opt.get_init_tokens_op(2)
    hook = opt.make_session_run_hook(True)
    hook.begin()
    with (
        tf.Session() as sess,
        pytest.raises(RuntimeError, match="SyncReplicasOptimizer local_init.*not init.*w"),
    ):
        hook.after_create_session(sess, tf.train.Coordinator())
