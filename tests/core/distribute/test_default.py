"""The default strategy: what programs and libraries find where no strategy is in scope."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import opdock as tf


def test_a_program_begins_in_the_only_replica_of_the_default_strategy():
    strategy, context = tf.distribute.get_strategy(), tf.distribute.get_replica_context()
    assert context.strategy is strategy and strategy.num_replicas_in_sync == 1
    assert context.replica_id_in_sync_group == 0 and context.num_replicas_in_sync == 1
    assert not tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context()
    assert strategy.experimental_local_results(3) == (3,)
    with pytest.raises(RuntimeError, match="only deepcopy"):
        copy.copy(strategy)
    with pytest.raises(RuntimeError, match="single instance"):
        copy.deepcopy(strategy)


def test_a_merge_call_is_across_replicas():
    context = tf.distribute.get_replica_context()

    def merge(strategy, x, *, y):
        assert strategy is tf.distribute.get_strategy()
        assert tf.distribute.get_replica_context() is None
        assert tf.distribute.in_cross_replica_context() and not tf.distribute.has_strategy()
        with pytest.raises(RuntimeError, match="inside `call_for_each_replica"):
            context.merge_call(merge)
        return x + y

    assert context.merge_call(merge, args=(1,), kwargs={"y": 2}) == 3
    assert tf.distribute.get_replica_context() is context


def test_rows_stay_rows_where_there_is_one_replica():
    context = tf.distribute.get_replica_context()
    with tf.Graph().as_default(), tf.Session() as sess:
        rows = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([3]), tf.constant([9, 2]))
        found = context.all_reduce("sum", {"rows": rows, "dense": tf.constant(4.0)})
        assert isinstance(found["rows"], tf.IndexedSlices)
        assert sess.run([found["rows"].indices, found["dense"]])[0].tolist() == [3]
        assert {op.type for op in tf.get_default_graph().get_operations()} == {"Const"}


def test_a_function_runs_once_in_a_replica_of_its_own():
    def step(x):
        context = tf.distribute.get_replica_context()
        assert tf.distribute.get_strategy() is context.strategy
        return context.all_reduce(tf.distribute.ReduceOp.MEAN, {"a": x, "b": x * 2.0})

    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.constant([1.0, 3.0])
        strategy = tf.distribute.get_strategy()
        found = strategy.experimental_run_v2(step, args=(x,))
        slope = tf.gradients(found["b"], x)[0]
        mean = strategy.reduce("mean", found["b"], axis=0)
        total = strategy.reduce(tf.distribute.ReduceOp.SUM, found["b"], axis=-1)
        assert [v.tolist() for v in sess.run([found["a"], slope, mean, total])] == [
            [1.0, 3.0], [2.0, 2.0], 4.0, 8.0,
        ]  # fmt: skip
        unknown = tf.placeholder_with_default(x, None)
        assert sess.run(strategy.reduce("MEAN", unknown, axis=-1)) == 2.0
        with pytest.raises(TypeError, match="Expected `axis` to be an integer"):
            strategy.reduce(tf.distribute.ReduceOp.MEAN, x, axis=(0,))


def test_variables_are_made_as_they_always_are():
    with tf.Graph().as_default():
        strategy = tf.distribute.get_strategy()
        with strategy.scope() as entered:
            v = tf.Variable(1.0)
        assert entered is strategy and strategy.extended.variable_created_in_scope(v)
        assert v.dtype == tf.float32._as_ref
        assert strategy.extended.non_slot_devices([v]) is v
        with pytest.raises(RuntimeError, match="unsupported by default"):
            _ = strategy.extended.worker_devices


def test_data_is_read_as_it_is():
    with tf.Graph().as_default(), tf.Session() as sess:
        strategy = tf.distribute.get_strategy()
        dataset = tf.data.Dataset.range(3)
        assert strategy.experimental_distribute_dataset(dataset) is dataset
        rows = strategy.experimental_make_numpy_dataset(
            (np.arange(4.0), np.arange(4)), session=sess
        )
        iterator = strategy.make_dataset_iterator(rows.batch(4))
        following = iterator.get_next()
        sess.run(iterator.initialize())
        values, labels = sess.run(following)
        assert values.tolist() == [0.0, 1.0, 2.0, 3.0] and labels.tolist() == [0, 1, 2, 3]


def test_an_input_context_shares_a_batch_out():
    context = tf.distribute.InputContext(num_replicas_in_sync=4)
    assert context.get_per_replica_batch_size(8) == 2
    with pytest.raises(ValueError, match="The `global_batch_size` 9 is not divisible"):
        context.get_per_replica_batch_size(9)


def test_a_replica_of_a_function_has_its_control_flow_rewritten():
    def step(x):
        return x if x > 0 else -x

    strategy = tf.distribute.get_strategy()
    with tf.Graph().as_default(), tf.Session() as sess:
        run = tf.function(lambda x: strategy.experimental_run_v2(step, args=(x,)))
        assert sess.run(run(tf.constant(-2))) == 2
        with pytest.raises(TypeError, match="bool"):
            strategy.experimental_run_v2(step, args=(tf.constant(-2),))
