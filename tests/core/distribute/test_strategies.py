"""Strategies over two CPUs: training, values of replicas, variables, checkpoints, input."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.distribute.values import DistributedValues, PerReplica
from tests.core.distribute.conftest import TWO

experimental = tf.distribute.experimental
KINDS = {
    "mirrored": lambda: tf.distribute.MirroredStrategy(TWO),
    "one copy": lambda: tf.distribute.MirroredStrategy(["/cpu:1"]),
    "central": lambda: experimental.CentralStorageStrategy(TWO),
    "one device": lambda: tf.distribute.OneDeviceStrategy("/cpu:1"),
    "servers": experimental.ParameterServerStrategy,
    "none": tf.distribute.get_strategy,
}
OPTIMIZERS = {
    "descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "Adam": lambda: tf.train.AdamOptimizer(0.1),
}


def trained(strategy, optimizer, session, rows, steps=5):
    """The losses of some steps, and the weights after them."""
    with strategy.scope():
        batches = tf.data.Dataset.from_tensor_slices(rows).repeat().batch(8)
        iterator = strategy.make_dataset_iterator(batches)
        step = tf.train.get_or_create_global_step()

        def replica(batch):
            x, t = batch
            y = tf.layers.dense(x, 1, kernel_initializer=tf.ones_initializer(), name="d")
            y += tf.nn.embedding_lookup(tf.get_variable("e", [3, 1], initializer=zeros), [0, 1])[0]
            loss = tf.reduce_mean(tf.square(y - 2 * t)) / strategy.num_replicas_in_sync
            with tf.control_dependencies([optimizer.minimize(loss, step)]):
                return tf.identity(loss)

        zeros = tf.zeros_initializer()
        loss = strategy.reduce("sum", strategy.experimental_run(replica, iterator))
        with session() as sess:
            sess.run([iterator.initialize(), tf.global_variables_initializer()])
            losses = [sess.run(loss) for _ in range(steps)]
            assert sess.run(step) == steps
            return losses, {v.op.name: sess.run(v) for v in tf.trainable_variables()}


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "none"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_strategy_trains_as_none_does(kind, name, session, rows):
    found = trained(KINDS[kind](), OPTIMIZERS[name](), session, rows)
    with tf.Graph().as_default():
        expected = trained(KINDS["none"](), OPTIMIZERS[name](), session, rows)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4)
    assert found[1].keys() == expected[1].keys()
    for variable, value in expected[1].items():
        np.testing.assert_allclose(found[1][variable], value, rtol=1e-4, atol=1e-5)


def test_copies_of_a_variable_are_kept_alike(session):
    strategy = tf.distribute.MirroredStrategy(TWO)
    with strategy.scope():
        v = tf.get_variable(
            "v", initializer=1.0, aggregation=tf.VariableAggregation.SUM, use_resource=False
        )
        assert tf.global_variables() == [v] and tf.trainable_variables() == [v]
        assert [c.name for c in v.values] == ["v:0", "v/replica_1:0"]
        assert [c.op.device[-6:] for c in v.values] == [":CPU:0", ":CPU:1"]
        across = v.assign(5.0)

        def replica():
            context = tf.distribute.get_replica_context()
            assert context.devices == (v.devices[0 if v.get() is v.values[0] else 1],)
            return v.assign_add(tf.cast(context.replica_id_in_sync_group, tf.float32) + 1.0)

        added = strategy.experimental_run_v2(replica)
        with session() as sess:
            sess.run(v.initializer)
            sess.run(across)
            assert sess.run(v.values) == (5.0, 5.0) and sess.run(v) == 5.0
            assert sess.run(added.values) == (8.0, 8.0)
            assert sess.run(v + 1.0) == 9.0
    fixed = strategy.extended.colocate_vars_with
    with pytest.raises(RuntimeError, match='Need to be inside "with strategy.scope'):
        with fixed(v):
            pass
    with strategy.scope(), pytest.raises(ValueError, match="must only be passed a variable"):
        with fixed(tf.constant(1)):
            pass


def test_a_replica_has_to_say_what_becomes_of_several_values():
    strategy = tf.distribute.MirroredStrategy(TWO)
    with strategy.scope():
        v = tf.Variable(1.0)
        with pytest.raises(ValueError, match="You must specify an aggregation method"):
            strategy.experimental_run_v2(lambda: v.assign(2.0))
        with pytest.raises(ValueError, match="`NONE` variable synchronization mode"):
            tf.Variable(1.0, synchronization=tf.VariableSynchronization.NONE, name="n")


@pytest.mark.parametrize("aggregation", ["SUM", "MEAN", "ONLY_FIRST_REPLICA"])
def test_copies_that_differ_are_one_value_across_replicas(aggregation, session, tmp_path):
    strategy = tf.distribute.MirroredStrategy(TWO)
    with strategy.scope():
        v = tf.get_variable(
            "v", initializer=0.0, synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation[aggregation],
        )  # fmt: skip
        assert not v.trainable

        def replica():
            number = tf.distribute.get_replica_context().replica_id_in_sync_group
            return v.assign_add(tf.cast(number, tf.float32) + 1.0)

        add = strategy.group(strategy.experimental_run_v2(replica))
        total = tf.identity(strategy.extended.read_var(v))
        saver = tf.train.Saver()
        with session() as sess:
            sess.run(v.initializer)
            sess.run(add)
            expected = {"SUM": 3.0, "MEAN": 1.5, "ONLY_FIRST_REPLICA": 1.0}[aggregation]
            assert sess.run(v.values) == (1.0, 2.0) and sess.run(total) == expected
            path = saver.save(sess, str(tmp_path / "v"))
            assert tf.train.load_variable(path, "v") == expected
            saver.restore(sess, path)
            assert sess.run(total) == expected


def test_a_checkpoint_has_one_copy_and_restores_all(session, tmp_path):
    def make(value):
        v = tf.get_variable("v", [2], initializer=tf.constant_initializer(value))
        return v, tf.train.Saver()

    strategy = tf.distribute.MirroredStrategy(TWO)
    with strategy.scope():
        v, saver = make(3.0)
        with session() as sess:
            sess.run(v.initializer)
            path = saver.save(sess, str(tmp_path / "v"))
    assert tf.train.list_variables(path) == [("v", [2])]
    with tf.Graph().as_default(), session() as sess:
        _, saver = make(0.0)
        saver.restore(sess, path)
    with tf.Graph().as_default(), session() as sess:
        with strategy.scope():
            v, _ = make(0.0)
        tf.train.Saver().restore(sess, path)  # outside of the scope as well
        assert [c.tolist() for c in sess.run(v.values)] == [[3.0, 3.0]] * 2


def test_rows_of_replicas_stay_rows(session):
    strategy = tf.distribute.MirroredStrategy(TWO)

    def replica(x):
        context = tf.distribute.get_replica_context()
        rows = tf.IndexedSlices(x, tf.reshape(context.replica_id_in_sync_group, [1]), [7, 2])
        total = context.all_reduce("sum", [rows])[0]
        assert isinstance(total, tf.IndexedSlices)
        return tf.convert_to_tensor(total)

    with strategy.scope():
        found = strategy.experimental_run_v2(replica, args=(tf.constant([[1.0, 2.0]]),))
        with session() as sess:
            values = sess.run(strategy.unwrap(found))
    assert [v[:3].tolist() for v in values] == [[[1, 2], [1, 2], [0, 0]]] * 2


def test_replicas_meet_and_differ(session):
    strategy = tf.distribute.MirroredStrategy(TWO)

    def replica(x):
        context = tf.distribute.get_replica_context()
        mine = x * tf.cast(context.replica_id_in_sync_group + 1, tf.float32)
        total = context.all_reduce("sum", {"a": mine})["a"]
        return {"mine": mine, "total": total, "slope": tf.gradients(total, mine)[0]}

    with strategy.scope():
        found = strategy.experimental_run_v2(replica, args=(tf.constant([1.0, 2.0]),))
        assert isinstance(found["mine"], PerReplica)
        mean = strategy.reduce("mean", found["mine"], axis=0)
        with session() as sess:
            values = sess.run({k: strategy.unwrap(v) for k, v in found.items()})
            assert [v.tolist() for v in values["mine"]] == [[1, 2], [2, 4]]
            assert [v.tolist() for v in values["total"]] == [[3, 6], [3, 6]]
            assert sess.run(mean) == 2.25

        def uneven():
            context = tf.distribute.get_replica_context()
            if tf.get_static_value(context.replica_id_in_sync_group) == 0:
                context.merge_call(lambda strategy: None)

        with pytest.raises(RuntimeError, match="different number of replica_context"):
            strategy.experimental_run_v2(uneven)

        def failing():
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            strategy.experimental_run_v2(failing)
        with pytest.raises(RuntimeError, match="Mixing different"):
            with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
                pass


def test_summaries_are_of_the_first_replica():
    strategy = tf.distribute.MirroredStrategy(TWO)
    with strategy.scope():
        strategy.experimental_run_v2(lambda: tf.summary.scalar("loss", 1.0))
    summaries = tf.get_collection(tf.GraphKeys.SUMMARIES)
    assert [s.op.type for s in summaries] == ["ScalarSummary"]


def test_metrics_count_what_all_replicas_see(session):
    strategy = tf.distribute.MirroredStrategy(TWO)
    with strategy.scope():
        dataset = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, 6.0]).batch(2)
        iterator = strategy.make_dataset_iterator(dataset)
        value, update = strategy.experimental_run(tf.metrics.mean, iterator)
        assert not isinstance(value, DistributedValues)
        update = strategy.group(update)
        with session() as sess:
            sess.run([iterator.initialize(), tf.local_variables_initializer()])
            sess.run(update)
            assert sess.run(value) == 1.5
            sess.run(update)
            assert sess.run(value) == 3.0


@pytest.mark.parametrize("batch, parts", [(4, [2, 2, 2, 2, 2]), (3, [2, 1, 2, 1, 2, 1, 1])])
def test_a_batch_is_shared_out(batch, parts, session):
    strategy = tf.distribute.MirroredStrategy(TWO)
    with strategy.scope():
        dataset = tf.data.Dataset.range(10).map(lambda i: {"i": i}).batch(batch)
        iterator = strategy.experimental_distribute_dataset(dataset).make_initializable_iterator()
        found = strategy.unwrap(iterator.get_next()["i"])
        with session() as sess:
            sess.run(iterator.initializer)
            seen = []
            for _ in range(len(parts) // 2):
                seen += sess.run(found)
        assert [len(v) for v in seen] == parts[: len(seen)]
        assert np.concatenate(seen).tolist() == list(range(sum(map(len, seen))))
        with pytest.raises(ValueError, match="Call the `batch` method"):
            strategy.experimental_distribute_dataset(tf.data.Dataset.range(3))
        with pytest.raises(ValueError, match="Cannot create a one shot iterator"):
            strategy.experimental_distribute_dataset(dataset).make_one_shot_iterator()


def test_input_functions_are_told_who_reads(session):
    strategy = tf.distribute.MirroredStrategy(TWO)

    def read(context):
        assert (context.num_replicas_in_sync, context.num_input_pipelines) == (2, 1)
        return tf.data.Dataset.range(4).batch(context.get_per_replica_batch_size(4))

    iterator = strategy.make_input_fn_iterator(read)
    calls = strategy.make_input_fn_iterator(lambda context: lambda: tf.constant(7))
    with strategy.scope(), session() as sess:
        found = iterator.get_next(), calls.get_next()
        sess.run([iterator.initialize(), calls.initialize()])
        first, second = sess.run([strategy.unwrap(v) for v in found])
        assert [v.tolist() for v in first] == [[0, 1], [2, 3]] and second == (7, 7)
        kept = strategy.experimental_make_numpy_dataset(np.arange(4.0), session=sess)
        again = strategy.make_dataset_iterator(kept.batch(4))
        following = strategy.unwrap(again.get_next())
        sess.run(again.initialize())
        assert [v.tolist() for v in sess.run(following)] == [[0.0, 1.0], [2.0, 3.0]]


def test_devices_are_checked():
    with pytest.raises(AssertionError, match="No duplicates allowed"):
        tf.distribute.MirroredStrategy(["/cpu:0", "/device:CPU:0"])
    with pytest.raises(ValueError, match="multi-worker training"):
        tf.distribute.MirroredStrategy(["/job:worker/task:0", "/job:worker/task:1"])
    with pytest.raises(ValueError, match="must have job specified"):
        tf.distribute.MirroredStrategy(["/cpu:0", "/job:worker/task:1"])


@pytest.mark.parametrize("kind", ["mirrored", "one device"])
def test_several_steps_are_one_operation(kind, session):
    strategy = KINDS[kind]()
    with strategy.scope():
        v = tf.get_variable("v", initializer=0.0, aggregation=tf.VariableAggregation.SUM)
        dataset = tf.data.Dataset.range(100).map(lambda i: tf.cast(i, tf.float32)).batch(2)
        iterator = strategy.make_dataset_iterator(dataset)

        def step(context, batch):
            def replica(x):
                total = tf.reduce_sum(x)
                context.set_last_step_output("total", total, tf.distribute.ReduceOp.SUM)
                context.set_non_tensor_output("shape", x.shape.as_list())
                return v.assign_add(total)

            return strategy.group(strategy.experimental_run_v2(replica, args=(batch,)))

        context = strategy.extended.experimental_run_steps_on_iterator(
            step, iterator, iterations=3, initial_loop_values={"total": 0.0}
        )
        with session() as sess:
            sess.run([iterator.initialize(), v.initializer])
            sess.run(context.run_op)
            assert sess.run(v) == 15.0
            assert sess.run(context.last_step_outputs["total"]) == 10.0 + 11.0
            assert sess.run(v) == 66.0  # of six steps


def test_creators_make_the_variables_of_branches_too():
    made = []

    def create(next_creator, **kwargs):
        made.append(kwargs["name"])
        return next_creator(**kwargs)

    with tf.variable_creator_scope(create):
        tf.cond(tf.constant(True), lambda: tf.get_variable("v", []) + 0, lambda: 0.0)
    assert made == ["v"]


def test_a_mirrored_strategy_over_a_reduction_with_all_that_tf_may_be_told():
    ops = tf.contrib.distribute.AllReduceCrossDeviceOps("hierarchical_copy", 0, 1024, 4)
    strategy = tf.distribute.MirroredStrategy(TWO, cross_device_ops=ops)
    with strategy.scope():
        each = strategy.experimental_run_v2(lambda: tf.constant(2.0))
        total = strategy.reduce(tf.distribute.ReduceOp.SUM, each, axis=None)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as sess:
        assert sess.run(total) == 4.0
    with pytest.raises(ValueError, match="num_packs must be >= 0"):
        tf.contrib.distribute.AllReduceCrossDeviceOps("nccl", -1)
