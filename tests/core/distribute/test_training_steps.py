"""Losses that are functions, values that stay one, and the steps of `tf.contrib.distribute`."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.contrib.distribute import MirroredStrategy
from opdock.contrib.distribute_steps import Monitor, StandardSingleLossStep
from tests.core.distribute.conftest import TWO


def test_a_loss_in_a_loop_has_the_variables_of_the_program(session):
    v = tf.get_variable("v", initializer=2.0, use_resource=True)
    tf.get_variable("unused", initializer=2.0)
    optimizer = tf.train.GradientDescentOptimizer(0.25)

    def body(i):
        with tf.control_dependencies([optimizer.minimize(lambda: tf.square(v))]):
            return i + 1

    steps = tf.while_loop(lambda i: i < 3, body, [0], parallel_iterations=1, back_prop=False)
    with session() as sess:
        sess.run(v.initializer)
        sess.run(steps)
        assert sess.run(v) == 2.0 / 2**3


@pytest.mark.parametrize(
    ("kind", "where"),
    [(tf.distribute.MirroredStrategy, TWO), (tf.distribute.OneDeviceStrategy, "/cpu:1")],
)
def test_a_monitor_runs_steps_until_the_data_ends(kind, where, session):
    strategy = kind(where)

    def loss(context, x):
        w = tf.get_variable("w", initializer=0.0, use_resource=True)
        return tf.reduce_sum(tf.square(w - x))

    def dataset():
        return tf.data.Dataset.from_tensors(np.float32([6.0])).repeat(12).batch(1)

    share = 0.25 / strategy.num_replicas_in_sync
    optimizer = tf.train.GradientDescentOptimizer(share)
    with strategy.scope():
        step = StandardSingleLossStep(dataset, loss, optimizer, strategy, iterations_per_step=2)
        with session() as sess:
            monitor = Monitor(step, sess)
            monitor.run_steps(1)
            (w,) = tf.trainable_variables()
            assert sess.run(w) == 6.0 - 6.0 / 2**2
            monitor.run_steps()
            assert sess.run(w) > 6.0 - 6.0 / 2**5
        with pytest.raises(ValueError, match="provide a `session` in Graph mode"):
            Monitor(step)


def test_values_that_replicas_were_given_alike_are_handed_on_as_one(session):
    strategy = tf.distribute.MirroredStrategy(TWO)

    def add(strategy, variable, value):
        return strategy.extended.update(variable, lambda v, x: v.assign_add(x), args=(value,))

    def replica(change):
        context = tf.distribute.get_replica_context()
        own = tf.cast(context.replica_id_in_sync_group, tf.float32) + 1.0
        total = context.merge_call(
            lambda s, x: s.extended.batch_reduce_to("sum", [(x, v)])[0], args=(own,)
        )
        return context.merge_call(add, args=(v, change(total)))

    with strategy.scope():
        v = tf.get_variable("v", initializer=0.0)
        done = strategy.experimental_run_v2(replica, args=(lambda total: total,))
        with pytest.raises(TypeError, match="mirrored across replicas"):
            strategy.experimental_run_v2(replica, args=(tf.negative,))
        with session() as sess:
            sess.run(v.initializer)
            sess.run(strategy.experimental_local_results(done))
            assert sess.run(v.values) == (3.0, 3.0)


@pytest.mark.parametrize("in_replicas", [False, True])
def test_copies_start_with_the_values_of_a_checkpoint(in_replicas, session, tmp_path):
    kept = tf.get_variable("kept", initializer=[1.0, 2.0])
    with session() as sess:
        sess.run(kept.initializer)
        path = tf.train.Saver().save(sess, str(tmp_path / "kept"))

    def make():
        v = tf.get_variable("v", initializer=[0.0, 0.0])
        tf.train.init_from_checkpoint(path, {"kept": "v"})
        return v

    with tf.Graph().as_default(), tf.distribute.MirroredStrategy(TWO).scope():
        strategy = tf.distribute.get_strategy()
        v = strategy.experimental_run_v2(make) if in_replicas else make()
        with session() as sess:
            sess.run(tf.global_variables_initializer())
            assert [copy.tolist() for copy in sess.run(v.values)] == [[1.0, 2.0]] * 2


def test_replicas_of_contrib_have_whole_batches(session):
    dataset = tf.data.Dataset.range(8).batch(2)
    for kind, expected in (
        (MirroredStrategy, [0, 1, 2, 3]),
        (tf.distribute.MirroredStrategy, [0, 1]),
    ):
        strategy = kind(devices=TWO)
        with strategy.scope(), session() as sess:
            data = strategy.experimental_distribute_dataset(dataset)
            iterator = tf.data.make_initializable_iterator(data)
            parts = strategy.experimental_local_results(iterator.get_next())
            sess.run(iterator.initializer)
            assert np.concatenate(sess.run(parts)).tolist() == expected


def test_outputs_that_are_not_reduced_stay_those_of_replicas(session):
    strategy = tf.distribute.MirroredStrategy(TWO)
    with strategy.scope(), session() as sess:
        iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(8).batch(2))

        def step(context, batch):
            totals = strategy.experimental_run_v2(tf.reduce_sum, args=(batch,))
            context.set_last_step_output("totals", totals)

        start = np.int64(0)
        context = strategy.extended.experimental_run_steps_on_iterator(
            step, iterator, iterations=3, initial_loop_values={"totals": (start, start)}
        )
        found = strategy.experimental_local_results(context.last_step_outputs["totals"])
        sess.run(iterator.initialize())
        assert sess.run(found) == (4, 5)


def test_one_loss_scale_for_all_replicas(session):
    strategy = tf.distribute.MirroredStrategy(TWO)
    with strategy.scope():
        numbers = tf.data.Dataset.from_tensor_slices(
            np.array([1, 1, 1, np.inf, 1, 1, 1, 1], np.float32)
        )
        batches = strategy.make_dataset_iterator(numbers.batch(2))
        w = tf.get_variable("w", initializer=0.0)
        scale = tf.train.experimental.DynamicLossScale(4.0, increment_period=2)
        optimizer = tf.train.experimental.MixedPrecisionLossScaleOptimizer(
            tf.train.MomentumOptimizer(1.0, 0.0), scale
        )
        train = strategy.group(
            strategy.experimental_run(
                lambda x: optimizer.minimize(lambda: tf.reduce_sum(w * x), var_list=[w]), batches
            )
        )
        seen = []
        with session() as sess:
            sess.run([batches.initialize(), tf.global_variables_initializer()])
            for _ in range(4):
                sess.run(train)
                copies = sess.run([*w.values, *scale._current_loss_scale.values])
                assert copies[0] == copies[1]
                seen.append((float(copies[0]), *map(float, copies[2:])))
    # The second step has an infinite gradient in one replica: none is applied in either.
    assert seen == [(-2.0, 4.0, 4.0), (-2.0, 2.0, 2.0), (-4.0, 2.0, 2.0), (-6.0, 4.0, 4.0)]
