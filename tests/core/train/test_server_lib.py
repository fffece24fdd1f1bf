"""Clusters, and a server of one task: what its sessions share."""

from __future__ import annotations

import gc

import pytest

import opdock as tf
from opdock.io import protos
from opdock.runtime.cluster import master


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


@pytest.fixture
def server():
    return tf.train.Server.create_local_server()


def test_a_cluster_in_all_its_forms():
    cluster = tf.train.ClusterSpec({"ps": ["a:1", "b:2"], "worker": {3: "c:3"}})
    assert cluster
    assert not tf.train.ClusterSpec({})
    assert cluster.as_dict() == {"ps": ["a:1", "b:2"], "worker": {3: "c:3"}}
    assert str(cluster) == "ClusterSpec({'ps': ['a:1', 'b:2'], 'worker': {3: 'c:3'}})"
    assert sorted(cluster.jobs) == ["ps", "worker"]
    assert cluster.num_tasks("ps") == 2
    assert cluster.task_indices("worker") == [3]
    assert cluster.task_address("worker", 3) == "c:3"
    assert cluster.job_tasks("worker") == [None, None, None, "c:3"]
    for other in (cluster, cluster.as_cluster_def(), cluster.as_dict()):
        assert tf.train.ClusterSpec(other) == cluster
    with pytest.raises(ValueError, match="No such job in cluster: 'x'"):
        cluster.num_tasks("x")
    with pytest.raises(ValueError, match="No task with index 0 in job 'worker'"):
        cluster.task_address("worker", 0)


@pytest.mark.parametrize(
    ("cluster", "text"),
    [
        (["a:1"], "must be a dictionary"),
        ({"ps": "a:1"}, "must be a list or a dictionary"),
        ({"ps": [1]}, "Task address 1 must be bytes or unicode"),
        ({1: ["a:1"]}, "Job name 1 must be bytes or unicode"),
    ],
)
def test_what_is_no_cluster(cluster, text):
    with pytest.raises(TypeError, match=text):
        tf.train.ClusterSpec(cluster)


@pytest.mark.parametrize(
    ("job", "index", "text"),
    [
        ("wroker", 0, 'Job "wroker" was not defined in cluster, whose jobs are ps, worker. Check'),
        ("worker", 2, 'Task 2 was not defined in job "worker", whose tasks are 0, 1. Check'),
    ],
)
def test_a_task_that_the_cluster_has_not(job, index, text):
    with pytest.raises(tf.errors.InternalError, match=text):
        tf.train.Server({"ps": ["a:1"], "worker": ["b:1", "b:2"]}, job, index)


def test_the_definition_of_a_server():
    config = tf.ConfigProto(allow_soft_placement=True)
    server = tf.train.Server({"local": ["localhost:1"]}, config=config, start=False)
    made = server.server_def
    assert (made.job_name, made.task_index, made.protocol) == ("local", 0, "grpc")
    assert made.default_session_config.allow_soft_placement
    again = tf.train.Server(made, protocol="other", start=False).server_def
    assert again.protocol == "other"
    assert server.target == ""
    two = {"a": ["x:1", "x:2"], "b": ["x:3"]}
    with pytest.raises(ValueError, match="explicit `job_name`"):
        tf.train.Server(two, start=False)
    with pytest.raises(ValueError, match="explicit `task_index`"):
        tf.train.Server(two, job_name="a", start=False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse port"):
        tf.train.Server({"local": ["localhost"]}, start=False)
    with pytest.raises(TypeError, match="Could not convert"):
        tf.train.Server(3)


def test_tasks_of_other_processes_take_an_engine(monkeypatch):
    monkeypatch.setattr(master, "_HERE", 0.0)  # threads of other tests start none
    server = tf.train.Server({"ps": ["x:1"], "worker": ["x:2"]}, job_name="ps")
    with pytest.raises(tf.errors.UnimplementedError, match="x:2, and no cluster engine"):
        tf.Session(server.target)


def test_sessions_of_a_server_share_state(server):
    v = tf.Variable(1)
    queue = tf.FIFOQueue(3, [tf.int32])
    with tf.Session(server.target) as first:
        assert first.sess_str == server.target
        assert first.list_devices()[0].name.startswith("/job:local/replica:0/task:0/device:")
        first.run([v.initializer, queue.enqueue(5)])
    with tf.Session(server.target) as second:
        assert second.run([v, queue.dequeue()]) == [1, 5]
    with tf.Session() as own, pytest.raises(tf.errors.FailedPreconditionError):
        own.run(v)
    config = tf.ConfigProto(isolate_session_state=True)
    with (
        tf.Session(server.target, config=config) as apart,
        pytest.raises(tf.errors.FailedPreconditionError),
    ):
        apart.run(v)


def test_a_reset_ends_sessions_and_forgets_containers(server):
    with tf.container("kept"):
        kept = tf.Variable(1, name="a")
    gone = tf.Variable(2, name="b")
    session = tf.Session(server.target)
    session.run(tf.global_variables_initializer())
    tf.Session.reset(server.target, ["local"])
    with pytest.raises(tf.errors.AbortedError, match="reset"):
        session.run(kept)
    with tf.Session(server.target) as fresh:
        assert fresh.run(kept) == 1
        with pytest.raises(tf.errors.FailedPreconditionError):
            fresh.run(gone)
    tf.Session.reset("")  # sessions of their own share nothing
    with pytest.raises(tf.errors.NotFoundError, match="No session factory registered"):
        tf.Session.reset("grpc://elsewhere:1")


def test_devices_are_the_tasks(server):
    with tf.device("/job:local/task:0"):
        mine = tf.Variable([1.0]) + 1.0
    with tf.device("/job:other"):
        wrong = tf.constant(1) + 2
    config = tf.ConfigProto(graph_options=tf.GraphOptions(place_pruned_graph=True))
    with tf.Session(server.target, config=config) as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(mine) == [2.0]
        with pytest.raises(tf.errors.InvalidArgumentError, match="/job:other"):
            sess.run(wrong)


def test_two_servers_have_two_addresses(server):
    other = tf.train.Server.create_local_server()
    assert other.target != server.target
    address = server.target.removeprefix("grpc://")
    with pytest.raises(tf.errors.UnknownError, match=r"in use.*/job:local/task:0.*same task index"):
        tf.train.Server({"local": [address]})


def test_a_device_setter_takes_any_cluster():
    cluster = tf.train.ClusterSpec({"ps": ["a:1", "b:2"], "worker": ["c:3"]})
    for given in (cluster, cluster.as_cluster_def(), cluster.as_dict()):
        with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(cluster=given)):
            devices = [tf.Variable(0).device for _ in range(3)]
        assert devices == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"]
    assert isinstance(cluster.as_cluster_def(), protos.ClusterDef)


def test_a_server_is_there_for_those_who_know_its_address() -> None:
    def started() -> str:
        return tf.train.Server.create_local_server().target

    targets = [started(), started()]
    gc.collect()
    with tf.Graph().as_default():
        v = tf.Variable(3.0)
        with tf.Session(targets[0]) as session:
            session.run(v.initializer)
        with tf.Session(targets[0]) as session:
            assert session.run(v) == 3.0
        with tf.Session(targets[1]) as session:
            assert session.run(tf.report_uninitialized_variables()).tolist() == [b"Variable"]


def test_servers_of_a_cluster_keep_each_other_and_go_together() -> None:
    tasks = {"ps": ["localhost:41"], "worker": ["localhost:42"]}
    worker = tf.train.Server(tasks, job_name="worker", task_index=0)
    tf.train.Server(tasks, job_name="ps", task_index=0)  # which nobody else holds
    with tf.Graph().as_default(), tf.Session(worker.target) as session:
        with tf.device("/job:ps"):
            v = tf.Variable(3.0)
        session.run(v.initializer)
        assert session.run(v) == 3.0
    with pytest.raises(tf.errors.UnknownError, match="in use"):
        tf.train.Server(tasks, job_name="ps", task_index=0)
    del worker, session
    assert tf.train.Server(tasks, job_name="ps", task_index=0).target == "grpc://localhost:41"
