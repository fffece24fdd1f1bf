"""`MultiWorkerMirroredStrategy`: two workers in one process, each with a graph of its own."""

from __future__ import annotations

import itertools
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import opdock as tf
from opdock.distribute.collective_keys import CollectiveKeys

Strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy
_ports = itertools.count(30_000)


@pytest.fixture
def cluster():
    """A cluster, and its two workers' servers."""
    spec = {"worker": [f"here:{next(_ports)}", f"here:{next(_ports)}"]}
    return spec, [tf.train.Server(spec, job_name="worker", task_index=i) for i in range(2)]


def trained(strategy, rows, session, number=0, steps=4):
    """The losses of some steps, and the weights before and after them."""
    with strategy.scope():
        data = tf.data.Dataset.from_tensor_slices(rows).repeat().batch(8)
        iterator = strategy.make_dataset_iterator(data)
        step = tf.train.get_or_create_global_step()

        def replica(batch):
            x, t = batch
            seed = 1 + number  # the chief's values are everybody's
            begin = tf.random_uniform_initializer(seed=seed)
            w = tf.get_variable("w", [x.shape[1], 1], initializer=begin)
            e = tf.get_variable("e", [3, 1], initializer=tf.zeros_initializer())
            y = tf.matmul(x, w) + tf.nn.embedding_lookup(e, [0, 1])[0]
            loss = tf.reduce_mean(tf.square(y - t)) / strategy.num_replicas_in_sync
            optimizer = tf.train.AdamOptimizer(0.1)
            with tf.control_dependencies([optimizer.minimize(loss, step)]):
                return tf.identity(loss)

        loss = strategy.reduce("sum", strategy.experimental_run(replica, iterator))
        with session() as sess:
            sess.run(iterator.initialize())
            sess.run(tf.global_variables_initializer())
            weights = [sess.run(tf.trainable_variables()[0])]
            losses = [sess.run(loss) for _ in range(steps)]
            assert sess.run(step) == steps
            return losses, [*weights, *sess.run(list(tf.trainable_variables()))]


def test_two_workers_train_as_one_does(cluster, rows):
    spec, servers = cluster

    def work(i):
        with tf.Graph().as_default():
            strategy, config = Strategy(), tf.ConfigProto()
            strategy.configure(config, spec, "worker", i)
            assert strategy.num_replicas_in_sync == 2
            assert strategy.extended.should_checkpoint == (i == 0)
            return trained(strategy, rows, lambda: tf.Session(servers[i].target, config=config), i)

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(work, range(2))
    assert first[0] == second[0]
    for a, b in zip(first[1], second[1], strict=True):
        np.testing.assert_array_equal(a, b)
    alone = trained(Strategy(), rows, tf.Session)
    np.testing.assert_allclose(first[0], alone[0], rtol=1e-4)
    for a, b in zip(first[1], alone[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)


def test_one_worker_with_two_devices(rows, session):
    two = Strategy()
    two.extended._use(("/cpu:0", "/cpu:1"))
    found = trained(two, rows, session)
    with tf.Graph().as_default():
        alone = trained(tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]), rows, session)
    np.testing.assert_allclose(found[0], alone[0], rtol=1e-5)


def test_what_a_session_is_told(monkeypatch):
    spec = {"chief": ["c:1"], "worker": ["w:1", "w:2"], "evaluator": ["e:1"]}
    for job, index, leader in (("worker", 1, "chief"), ("evaluator", 0, None)):
        task = {"type": job, "index": index}
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": spec, "task": task}))
        extended = Strategy(tf.distribute.experimental.CollectiveCommunication.RING).extended
        config = extended._update_config_proto(tf.ConfigProto())
        expected = f"/job:{leader}/replica:0/task:0" if leader else ""
        assert config.experimental.collective_group_leader == expected
        assert list(config.device_filters) == [f"/job:{job}/task:{index}"]
        assert extended._num_workers == (3 if leader else 1)
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": spec}))
    with pytest.raises(ValueError, match="must also specify `task_type`"):
        Strategy()


def test_workers_that_build_alike_count_alike():
    keys = CollectiveKeys()
    found = [keys.get_op_instance_key(), keys.get_group_key(["/job:a/task:1/cpu:0"])]
    with tf.Graph().as_default():
        other = CollectiveKeys()
        assert [other.get_op_instance_key(), other.get_group_key(["/cpu:0"])] == found
        assert other.get_group_key(["/cpu:0", "/cpu:1"]) == found[1] + 1
    assert keys.get_op_instance_key() == found[0] + 1
