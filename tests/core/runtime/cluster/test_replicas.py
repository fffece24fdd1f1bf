"""Workers that train one model: those that come late, those that come later, and those that go."""

from __future__ import annotations

import threading

import pytest

import opdock as tf


class Replica:
    """A worker with its graph: it moves `w` by what it is given, two of three at a time."""

    def __init__(self, server, task):
        self.graph = tf.Graph()
        with self.graph.as_default():
            place = tf.train.replica_device_setter(1, worker_device=f"/job:worker/task:{task}")
            with tf.device(place):
                self.step = tf.train.get_or_create_global_step()
                self.w = tf.get_variable("w", initializer=0.0)
                self.given = tf.placeholder(tf.float32, [])
                opt = tf.train.SyncReplicasOptimizer(
                    tf.train.GradientDescentOptimizer(1.0), 2, total_num_replicas=3
                )
                self.train = opt.minimize(self.given * self.w, self.step)
                self.begin = tf.global_variables_initializer()
            self.local = opt.chief_init_op if task == 0 else opt.local_step_init_op
            self.tokens, self.runner = opt.get_init_tokens_op(0), opt.get_chief_queue_runner()
            self.session = tf.Session(server.target)

    def move(self, value):
        """Trains with a gradient, in a thread that waits until an update has been made."""
        thread = threading.Thread(
            target=self.session.run, args=(self.train, {self.given: value}), daemon=True
        )
        thread.start()
        return thread


def test_what_a_backup_worker_brings_too_late_is_dropped(cluster):
    servers = cluster(ps=1, worker=3)
    one, two, late = (Replica(s, task) for task, s in enumerate(servers["worker"]))
    one.session.run(one.begin)
    for replica in (one, two, late):
        replica.session.run(replica.local)
    one.session.run(one.tokens)
    coordinator = tf.train.Coordinator()
    threads = one.runner.create_threads(one.session, coordinator, daemon=True, start=True)
    for step in (one.move(1.0), two.move(3.0)):
        step.join()
    assert late.session.run([late.step, late.w]) == [1, -2.0]
    late.move(100.0).join()  # for an update that has been made
    assert late.session.run([late.step, late.w]) == [1, -2.0]
    for step in (one.move(2.0), late.move(4.0)):
        step.join()
    assert two.session.run([two.step, two.w]) == [2, -5.0]
    coordinator.request_stop()
    for replica in (one, two, late):
        replica.session.close()
    coordinator.join(threads, ignore_live_threads=True)


def counting(task, target, addresses):
    """A session of a worker that sees the parameter server and itself, and what counts there."""
    config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{task}"])
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(cluster=tf.train.ClusterSpec(addresses))):
            count = tf.get_variable("count", initializer=0)
            add = tf.assign_add(count, 1)
        session = tf.Session(target, config=config)
        if task == 0:
            session.run(count.initializer)
        return session, add


def test_workers_join_and_leave():
    addresses = {"ps": ["here:9000"], "worker": ["here:9001", "here:9002"]}
    tf.train.Server(addresses, job_name="ps", task_index=0)
    first = tf.train.Server(addresses, job_name="worker", task_index=0)
    session, add = counting(0, first.target, addresses)
    assert [session.run(add) for _ in range(3)] == [1, 2, 3]  # nobody is at the other's address
    second = tf.train.Server(addresses, job_name="worker", task_index=1)
    joined, more = counting(1, second.target, addresses)
    assert [joined.run(more), session.run(add)] == [4, 5]
    session.close()
    assert [joined.run(more) for _ in range(2)] == [6, 7]


@pytest.mark.parametrize("shares", [False, True])
def test_a_cluster_that_a_session_brings_shares_state_if_asked(shares):
    addresses = {"ps": ["here:9003"], "worker": ["here:9004"]}
    target = [tf.train.Server(addresses, job_name=job).target for job in addresses][1]
    config = tf.ConfigProto(cluster_def=tf.train.ClusterSpec(addresses).as_cluster_def())
    config.experimental.share_session_state_in_clusterspec_propagation = shares
    with tf.device("/job:ps"):
        count = tf.get_variable("count", initializer=5)
    one, two = (tf.Session(target, config=config) for _ in range(2))
    one.run(count.initializer)
    assert bool(two.run(tf.is_variable_initialized(count))) == shares
