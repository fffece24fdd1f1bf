"""Placement: who asked for what, who follows whom, and what happens when it cannot be."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

SOFT = tf.ConfigProto(allow_soft_placement=True)


def where(explanation):
    return {
        r.node: r.device.rsplit("/device:", 1)[-1] for r in explanation.rows if r.how != "removed"
    }


@pytest.mark.parametrize(
    "name", ["/cpu:0", "/device:CPU:0", "/job:localhost/replica:0/task:0/cpu:0", "/cpu:*", "/CPU:0",
             "/job:localhost", "", "/task:0/device:CPU:0"],
)  # fmt: skip
def test_every_spelling_of_the_cpu(name):
    with tf.device(name):
        y = tf.placeholder(tf.float32, []) + 1
    with tf.Session() as session:
        assert session.run(y, {y.op.inputs[0]: 1.0}) == 2


def test_requests_are_honoured():
    x = tf.placeholder(tf.float32, [2])
    with tf.device("/device:ECHO:1"):
        y = tf.add(x, 1.0, name="y")
        with tf.device("/device:ECHO:0"):
            z = tf.add(y, 1.0, name="z")
    w = tf.add(z, 1.0, name="w")
    with tf.Session() as session:
        found = where(session.explain(w, {x: [0.0, 0.0]}))
        assert (found["y"], found["z"], found["w"]) == ("ECHO:1", "ECHO:0", "CPU:0")
        assert list(session.run(w, {x: [0.0, 1.0]})) == [3, 4]


def test_only_devices_that_are_wanted_are_opened():
    x = tf.placeholder(tf.float32, [2])
    with tf.device("/device:ECHO:1"):
        far = tf.add(x, 1.0)
    with tf.Session() as session:
        devices = {t.name[-6:]: t for t in session._engine.devices.targets}
        assert devices["ECHO:1"] is not devices[":CPU:0"]
        assert devices[":CPU:0"].is_open
        session.run(x * 2.0 + tf.constant([1.0, 2.0]), {x: [0.0, 0.0]})
        assert not devices["ECHO:0"].is_open
        assert not devices["ECHO:1"].is_open
        session.run(far, {x: [0.0, 0.0]})
        assert devices["ECHO:1"].is_open
        assert not devices["ECHO:0"].is_open


def test_an_unknown_device_without_soft_placement():
    with tf.device("/device:GPU:7"):
        y = tf.constant([1.0], name="far")
    for config in (None, tf.ConfigProto(allow_soft_placement=False)):
        with tf.Session(config=config) as session:
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                session.run(y)
        text = str(caught.value)
        for part in ("Cannot assign a device for operation far", "explicitly assigned to",
                     "/device:GPU:7", "available devices are", "CPU:0", __file__):  # fmt: skip
            assert part in text
        assert caught.value.op is y.op


def test_an_unknown_device_with_soft_placement():
    with tf.device("/device:GPU:7"):
        y = tf.identity(tf.placeholder(tf.float32, []), name="far") + 1
    with tf.Session(config=SOFT) as session:
        assert session.run(y, {"far:0": 2.0}) == 3
        why = {r.node: r.why for r in session.explain(y, {"far:0": 2.0}).rows}
        assert "asked for /device:GPU:7" in why["add"]


def test_soft_placement_does_not_rescue_an_unknown_job():
    with tf.device("/job:worker/cpu:0"):
        y = tf.constant(1.0)
    with tf.Session(config=SOFT) as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="/job:worker"):
            session.run(y)


def test_an_op_without_a_kernel_where_it_is_asked_for():
    x = tf.placeholder(tf.string, [])
    with tf.device("/device:ECHO:0"):
        y = tf.substr(x, 0, 1) if hasattr(tf, "substr") else tf.string_join([x, x])
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(y, {x: "ab"})
    assert "Could not satisfy explicit device specification" in str(caught.value)
    assert "was rejected by" in str(caught.value)
    with tf.Session(config=SOFT) as session:
        session.run(y, {x: "ab"})
        row = next(r for r in session.explain(y, {x: "ab"}).rows if r.node == y.op.name)
        assert row.device.endswith("CPU:0")
        assert "moved by soft placement" in row.why
        assert row.rejections


def test_colocated_ops_stay_together():
    x = tf.placeholder(tf.float32, [2])
    with tf.device("/device:ECHO:1"):
        a = tf.add(x, 1.0, name="a")
    with tf.colocate_with(a):
        b = tf.multiply(x, 2.0, name="b")
    with tf.Session() as session:
        found = where(session.explain([b], {x: [1.0, 2.0]}))
        assert found["b"] == "ECHO:1"


def test_ops_follow_their_variable():
    with tf.device("/device:ECHO:0"):
        v = tf.Variable([1.0, 2.0], name="v")
    update = tf.assign_add(v, [1.0, 1.0], name="update")
    with tf.Session() as session:
        session.run(v.initializer)
        places = {d for n, d in where(session.explain(update)).items() if n.startswith("update")}
        assert places == {"ECHO:0"}
        assert list(session.run(update)) == [2, 3]


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize(
    ("home", "away"), [("/device:ECHO:0", "/cpu:0"), ("/cpu:0", "/device:ECHO:0")]
)
def test_updates_asked_for_elsewhere_reach_the_variable(resource, home, away):
    with tf.device(home):
        v = tf.Variable([1.0, 2.0, 3.0], use_resource=resource)
    with tf.device(away):
        x = tf.placeholder(tf.float32, [3])
        steps = [
            (tf.assign(v, x), [5, 6, 7]),
            (tf.assign_add(v, x), [10, 12, 14]),
            (tf.assign_sub(v, tf.nn.relu(x)), [5, 6, 7]),
            (tf.scatter_add(v, [0, 0], [1.0, 2.0]), [8, 6, 7]),
            (tf.scatter_update(v, [1], x[:1]), [8, 5, 7]),
            (v[2:].assign([0.5]), [8, 5, 0.5]),
        ]
        doubled = v * 2.0
        rows = tf.gather(v, [2, 0])
    # Without soft placement what has no kernel beside the variable is refused, as in TF.
    with tf.Session(config=SOFT) as session:
        session.run(v.initializer)
        for step, want in steps:
            session.run(step.op if hasattr(step, "op") else step, {x: [5.0, 6.0, 7.0]})
            assert list(session.run(v)) == want
        assert list(session.run(doubled)) == [16, 10, 1]
        assert list(session.run(rows)) == [0.5, 8]


def test_variables_that_one_program_groups_stay_where_another_has_put_them():
    """Adam's powers are read by the updates of all variables, which were initialized apart."""
    homes = {"a": "ECHO:0", "b": "ECHO:1"}
    variables = []
    for name, device in homes.items():
        with tf.device(f"/device:{device}"):
            variables.append(tf.get_variable(name, [2], initializer=tf.ones_initializer()))
    step = tf.train.AdamOptimizer(0.5).minimize(tf.add_n(variables))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = where(session.explain(step))
        assert {name: found[name] for name in homes} == homes
        session.run(step)
        for value in session.run(variables):
            np.testing.assert_allclose(value, 0.5, rtol=1e-5)


@pytest.mark.parametrize("resource", [False, True])
def test_who_reads_a_variable_computes_where_it_was_asked_to(resource):
    """Variables on the CPU, towers on other devices; what is read once is copied once."""
    x = tf.placeholder(tf.float32, [2, 2])
    with tf.device("/cpu:0"), tf.variable_scope("", use_resource=resource):
        w = tf.get_variable("w", [2, 2], initializer=tf.ones_initializer())
    with tf.device("/device:ECHO:0"):
        first = tf.matmul(x, w, name="first")
        second = tf.matmul(w, x, name="second")
    with tf.Session() as session:
        session.run(w.initializer)
        rows = session.explain([first, second], {x: np.ones([2, 2])}).rows
        found = {r.node: r.device[-6:] for r in rows}
        assert (found["first"], found["second"], found["w"]) == ("ECHO:0", "ECHO:0", ":CPU:0")
        brought = [r.node for r in rows if r.how == "copy" and "_to_ECHO0" in r.node]
        assert len(brought) == 2, brought  # of x, and of what both read
        assert session.run(first, {x: np.ones([2, 2])}).tolist() == [[2, 2], [2, 2]]


def test_updates_of_variables_on_several_devices_stay_with_them():
    with tf.device("/device:ECHO:0"):
        a = tf.get_variable("a", [2, 2], initializer=tf.ones_initializer())
        hidden = tf.matmul(tf.ones([2, 2]), a)
    with tf.device("/cpu:0"):
        b = tf.get_variable("b", [2, 2], initializer=tf.ones_initializer())
        out = tf.matmul(hidden, b, name="out")
    step = tf.train.AdamOptimizer(0.5).minimize(tf.reduce_sum(out))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = where(session.explain([step, out]))
        assert found["Adam/update_a/ApplyAdam"] == "ECHO:0"
        assert found["Adam/update_b/ApplyAdam"] == found["out"] == "CPU:0"
        session.run(step)
        for value in session.run([a, b]):
            np.testing.assert_allclose(value, 0.5, rtol=1e-5)


def test_the_reason_is_the_nodes_own_where_its_group_is_elsewhere():
    with tf.device("/device:ECHO:0"):
        far = tf.get_variable("far", [])
    with tf.device("/device:CPU:0"):
        near = tf.get_variable("near", [])
    with tf.colocate_with(far.op):
        added = tf.assign_add(near, 1.0, name="added")
    with tf.Session() as session:
        session.run(far.initializer)
        session.run(near.initializer)
        rows = {r.node: r for r in session.explain([added, far]).rows}
    assert rows["far"].why == "asked for /device:ECHO:0"
    assert rows["near"].why == "asked for /device:CPU:0"
    assert rows["added"].device.endswith("ECHO:0")
    assert rows["added"].why == ("asked for /device:CPU:0; placed with its group on /device:ECHO:0")


def test_training_with_variables_on_one_device_and_the_step_on_another():
    with tf.device("/device:ECHO:0"):
        w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
    x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 1])
    with tf.device("/cpu:0"):
        loss = tf.reduce_mean(tf.squared_difference(tf.matmul(x, w), y))
        steps = {o: o.minimize(loss) for o in (tf.train.GradientDescentOptimizer(0.3),
                                               tf.train.AdamOptimizer(0.1))}  # fmt: skip
    data = np.random.default_rng(0).normal(size=(16, 3)).astype(np.float32)
    target = data @ np.array([[1.0], [2.0], [3.0]], np.float32)
    for step in steps.values():
        with tf.Session(config=SOFT) as session:
            session.run(tf.global_variables_initializer())
            first = session.run(loss, {x: data, y: target})
            for _ in range(100):
                session.run(step, {x: data, y: target})
            assert session.run(loss, {x: data, y: target}) < first / 20


def test_several_cpus():
    config = tf.ConfigProto(device_count={"CPU": 2})
    with tf.device("/cpu:1"):
        y = tf.placeholder(tf.float32, []) + 1.0
    z = y * 2.0
    with tf.Session(config=config) as session:
        assert [d.name[-5:] for d in session.list_devices() if d.device_type == "CPU"] == [
            "CPU:0", "CPU:1",
        ]  # fmt: skip
        assert session.run(z, {y.op.inputs[0]: 1.0}) == 4
        assert where(session.explain(z, {y.op.inputs[0]: 1.0}))["add"] == "CPU:1"
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="cpu:1|CPU:1"):
            session.run(z, {y.op.inputs[0]: 1.0})


def test_log_device_placement(capsys):
    a = tf.constant([[1.0, 2.0]], name="a")
    b = tf.matmul(a, a, transpose_b=True, name="b")
    with tf.Session(config=tf.ConfigProto(log_device_placement=True)) as session:
        session.run(b)
        first = capsys.readouterr().out
        session.run(b)
        assert capsys.readouterr().out == ""
    cpu = "/job:localhost/replica:0/task:0/device:CPU:0"
    assert first.splitlines()[-2:] == [f"b: (MatMul): {cpu}", f"a: (Const): {cpu}"]
