"""`run_distribute_coordinator`: functions called for each task of a cluster in this process."""

from __future__ import annotations

import itertools
import json
import os
import threading

import pytest

import opdock as tf
from opdock.distribute import distribute_coordinator as coordinator
from opdock.distribute.distribute_coordinator import (
    CoordinatorMode,
    run_distribute_coordinator,
    run_standard_tensorflow_server,
)
from opdock.distribute.worker_context import get_current_worker_context

_ports = itertools.count(36_000)


def addresses(**jobs):
    return {job: [f"there:{next(_ports)}" for _ in range(n)] for job, n in jobs.items()}


@pytest.fixture
def served():
    """Makes clusters whose servers run."""
    held = []

    def make(**jobs):
        spec = addresses(**jobs)
        held.extend(tf.train.Server(spec, job, i) for job, n in jobs.items() for i in range(n))
        return spec

    return make


def parameter_servers():
    return tf.distribute.experimental.ParameterServerStrategy()


def train(strategy, folder, steps):
    """Adds a quarter to one weight in each step, in the session that the task is given.

    The gradient is the same wherever the weight is: so it does not matter how long ago a worker
    that was late has looked at it.
    """

    def replica():
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        step = tf.train.get_or_create_global_step()
        return tf.train.GradientDescentOptimizer(0.25).minimize(-w, step)

    minimize = strategy.group(strategy.experimental_run_v2(replica))
    hooks = [tf.train.StopAtStepHook(last_step=steps)]
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=folder, hooks=hooks, save_checkpoint_steps=10, save_summaries_steps=None
    ) as session:
        while not session.should_stop():
            session.run(minimize)


def test_a_context_is_that_of_its_thread_inside():
    with coordinator.WorkerContext(None, None, "worker", 0) as context:
        assert get_current_worker_context() is context
        with pytest.raises(ValueError, match="in a `worker_fn`"), context:
            pass
    assert get_current_worker_context() is None


def test_one_program_drives_workers_and_parameter_servers(served, tmp_path):
    seen = {}

    def work(strategy):
        context = get_current_worker_context()
        with strategy.scope():
            train(strategy, str(tmp_path), 30)
        context.wait_for_other_workers()
        seen[context.task_id] = (
            context.is_chief, context.num_workers, context.should_checkpoint,
            list(context.session_config.device_filters),
        )  # fmt: skip

    run_distribute_coordinator(work, parameter_servers(), cluster_spec=served(worker=2, ps=1))
    assert seen == {
        0: (True, 2, True, ["/job:worker/task:0", "/job:ps"]),
        1: (False, 2, False, ["/job:worker/task:1", "/job:ps"]),
    }
    saved = tf.train.latest_checkpoint(str(tmp_path))
    # Each may be in a step while the other one takes the last but one, and then takes one more.
    assert 30 <= tf.train.load_variable(saved, "w") / 0.25 <= 32
    assert 30 <= tf.train.load_variable(saved, "global_step") <= 32
    assert get_current_worker_context() is None


def test_one_graph_spans_the_workers(served):
    spec = served(worker=2)

    def work(strategy):
        context = get_current_worker_context()
        assert (context.task_type, context.is_chief, context.num_workers) == (None, True, 2)
        with tf.Graph().as_default(), strategy.scope():
            w = tf.get_variable("w", initializer=3.0)
            doubled = strategy.experimental_run_v2(lambda: w * 2.0)
            total = strategy.reduce("sum", doubled)
            with tf.Session(context.master_target, config=context.session_config) as session:
                session.run(tf.global_variables_initializer())
                devices = {value.device for value in doubled.values}
                return session.run(total), devices

    tasks = ["/job:worker/task:0", "/job:worker/task:1"]
    reductions = tf.contrib.distribute.MultiWorkerAllReduce(tasks, 0)
    strategy = tf.distribute.MirroredStrategy(cross_device_ops=reductions)
    found, devices = run_distribute_coordinator(work, strategy, cluster_spec=spec)
    assert found == 12.0
    assert {tf.DeviceSpec.from_string(d).task for d in devices} == {0, 1}


def test_each_worker_runs_its_own_part(tmp_path):
    spec = addresses(chief=1, worker=1, ps=1)
    done = []

    def work(strategy):
        with strategy.scope():
            train(strategy, str(tmp_path), 20)
        done.append(get_current_worker_context().task_type)

    def evaluate(strategy):
        done.append((strategy, get_current_worker_context().master_target))

    def program(job):
        run_distribute_coordinator(
            work, parameter_servers(), evaluate, mode=CoordinatorMode.INDEPENDENT_WORKER,
            cluster_spec=spec, task_type=job, task_id=0,
        )  # fmt: skip

    threading.Thread(target=program, args=("ps",), daemon=True).start()  # it serves for ever
    workers = [threading.Thread(target=program, args=(job,)) for job in ("chief", "worker")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    program("evaluator")  # which is none of the cluster's
    assert sorted(done[:2]) == ["chief", "worker"]
    assert done[2] == (None, "")
    assert tf.train.latest_checkpoint(str(tmp_path)) is not None


def test_without_a_cluster_functions_are_called_here():
    called = []

    def work(strategy):
        context = get_current_worker_context()
        called.append((context.master_target, context.is_chief, context.distributed_mode))
        total = tf.constant(3) + 4
        with tf.train.MonitoredSession() as session:
            return session.run(total)

    found = run_distribute_coordinator(
        work, tf.distribute.MirroredStrategy(["/cpu:0"]), called.append
    )
    assert found == 7
    assert called == [("", True, False), None]


def test_a_worker_that_fails_ends_the_others(served):
    def work(strategy):
        if get_current_worker_context().task_id == 1:
            raise ZeroDivisionError("the second worker")
        get_current_worker_context().wait_for_other_workers()

    with pytest.raises(ZeroDivisionError, match="the second worker"):
        run_distribute_coordinator(work, parameter_servers(), cluster_spec=served(worker=3, ps=1))


def test_a_barrier_serves_many_rounds():
    barrier, seen, lock = coordinator.WorkerBarrier(3), [], threading.Lock()

    def work():
        for turn in range(50):
            with lock:
                seen.append(turn)
            barrier.wait()
        barrier.leave()

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert seen == [turn for turn in range(50) for _ in range(3)]
    with pytest.raises(tf.errors.AbortedError, match="3 workers are to wait for each other here"):
        barrier.wait()


def test_no_coordinator_within_a_worker():
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])

    def nested(own):
        run_distribute_coordinator(nested, own)

    with pytest.raises(ValueError, match="You cannot run distribute coordinator in a `worker_fn`"):
        run_distribute_coordinator(nested, strategy)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mode": "both"}, "Unexpected coordinator mode: 'both'"),
        ({"task_type": "cook"}, "Unexpected task_type: 'cook'"),
        ({"cluster_spec": ["there:1"]}, "should be dict or a `tf.train.ClusterSpec`"),
    ],
)  # fmt: skip
def test_what_is_no_cluster_is_a_value_error(given, words):
    given = {"cluster_spec": addresses(worker=1), **given}
    with pytest.raises(ValueError, match=words):
        run_distribute_coordinator(lambda strategy: None, parameter_servers(), **given)


def test_workers_that_save_together_write_where_nobody_reads(tmp_path):
    spec = addresses(worker=2)
    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
    for index, folders in ((0, ("at", "of")), (1, ("at/tmp_worker_1", "of/tmp_worker_1"))):
        strategy.configure(tf.ConfigProto(), spec, "worker", index)
        context = coordinator.WorkerContext(strategy, spec, "worker", index)
        assert context.saves_together
        assert context.own_folders("at", "of") == tuple(f.replace("/", os.sep) for f in folders)
        assert context.own_folders(None, "") == (None, "")
    other = parameter_servers()
    other.configure(tf.ConfigProto(), {**spec, "ps": ["there:1"]}, "worker", 1)
    context = coordinator.WorkerContext(other, {**spec, "ps": ["there:1"]}, "worker", 1)
    assert not context.saves_together
    assert context.own_folders("at", "of") == (None, None)


def test_a_server_by_what_the_surroundings_say(monkeypatch):
    spec = addresses(worker=2, evaluator=1)
    monkeypatch.setenv(
        "TF_CONFIG", json.dumps({"cluster": spec, "task": {"type": "worker", "index": 1}})
    )
    server = run_standard_tensorflow_server()
    assert server.target == f"grpc://{spec['worker'][1]}"
    assert run_standard_tensorflow_server() is server  # a program may ask again
    told = server.server_def
    assert [job.name for job in told.cluster.job] == ["worker"]  # an evaluator is by itself
    leader = told.default_session_config.experimental.collective_group_leader
    assert leader == "/job:worker/replica:0/task:0"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"task": {"type": "worker"}}, '"cluster" is not found'),
        ({"cluster": {"worker": ["there:1"]}}, '"task" is not found'),
        ({"cluster": {"worker": ["there:1"]}, "task": {"index": 0}}, '"task_type" is not found'),
        ({"cluster": {"ps": ["there:1"]}, "task": {"type": "ps"}}, "must have `chief` or `worker`"),
        ({"cluster": {"worker": ["there:1"]}, "task": {"type": "ps"}}, "not found in cluster_spec"),
    ],
)  # fmt: skip
def test_a_server_needs_a_task(monkeypatch, told, words):
    monkeypatch.setenv("TF_CONFIG", json.dumps(told))
    with pytest.raises(ValueError, match=words):
        run_standard_tensorflow_server()


def test_the_modules_that_programs_import():
    from opdock.python.distribute import distribute_coordinator as internal
    from opdock.python.distribute import distribute_coordinator_context as where

    assert internal.run_distribute_coordinator is run_distribute_coordinator
    assert internal._TaskType.PS == "ps"
    assert where.get_current_worker_context is get_current_worker_context
    assert tf.contrib.distribute.run_standard_tensorflow_server is run_standard_tensorflow_server
    assert internal.CoordinatorMode.STANDALONE_CLIENT == "standalone_client"
