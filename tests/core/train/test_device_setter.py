"""`replica_device_setter`: variables round robin on the parameter servers."""

from __future__ import annotations

import opdock as tf


def test_variables_go_round_and_the_rest_to_the_worker():
    with tf.Graph().as_default():
        cluster = {"ps": ["a:1", "b:1"], "worker": ["c:1"]}
        with tf.device(tf.train.replica_device_setter(cluster=cluster)):
            variables = [tf.Variable(float(i)) for i in range(3)]
            y = variables[0] + variables[1]
    assert [v.device for v in variables] == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"]
    assert y.device == "/job:worker"


def test_a_library_may_put_another_strategy_in_the_place_of_the_usual_one(monkeypatch):
    class Last:
        def __init__(self, tasks):
            self.task = tasks - 1

        def __call__(self, op):
            return self.task

    tf.install_as_tensorflow()
    from tensorflow.python.training import device_setter

    usual = device_setter._RoundRobinStrategy(2)
    assert [usual(None) for _ in range(3)] == [0, 1, 0]
    monkeypatch.setattr(device_setter, "_RoundRobinStrategy", Last)
    with tf.Graph().as_default(), tf.device(device_setter.replica_device_setter(ps_tasks=3)):
        assert tf.Variable(1.0).device == "/job:ps/task:2"


def test_worker_device_and_inner_scopes():
    with tf.Graph().as_default():
        setter = tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:3")
        with tf.device(setter), tf.device("/gpu:1"):
            v = tf.Variable(1.0)
            y = tf.constant(1.0)
    assert v.device == "/job:ps/task:0/device:GPU:1"
    assert y.device == "/job:worker/task:3/device:GPU:1"


def test_without_parameter_servers_there_is_nothing_to_do():
    assert tf.train.replica_device_setter(ps_tasks=0) is None


def test_strategy():
    with tf.Graph().as_default():
        setter = tf.train.replica_device_setter(ps_tasks=4, ps_strategy=lambda op: 2)
        with tf.device(setter):
            assert tf.Variable(1.0).device == "/job:ps/task:2"


def test_a_parameter_device_without_a_job_has_no_task():
    with tf.Graph().as_default():
        setter = tf.train.replica_device_setter(ps_tasks=1, ps_device="/cpu:0")
        with tf.device(setter):
            v = tf.Variable(1.0)
    assert v.device == "/device:CPU:0"
