"""Partition: copies are nodes, made once for each place and value, and results come home."""

from __future__ import annotations

import numpy as np

import opdock as tf
from opdock.compiler.emit import partition as partition_pass
from opdock.compiler.ir.block import COPY


def copies(program):
    return [(n.inputs[0].node.name, n.attrs["from"][-6:], n.attrs["to"][-6:])
            for n in program.block.nodes if n.op == COPY]  # fmt: skip


def test_a_copy_between_every_two_places(compiled):
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.device("/device:ECHO:0"):
        y = tf.add(x, 1.0, name="y")
    with tf.device("/device:ECHO:1"):
        z = tf.multiply(y, y, name="z")
    with tf.Session() as session:
        feed = {x: [1.0, 2.0]}
        assert copies(compiled(session, z, feed)) == [
            ("x:0", "host", "ECHO:0"), ("y", "ECHO:0", "host"),
            ("y/copy_to_host", "host", "ECHO:1"), ("z", "ECHO:1", "host"),
        ]  # fmt: skip
        np.testing.assert_array_equal(session.run(z, feed), [4, 9])
        assert type(session.run(z, feed)) is np.ndarray


def test_one_copy_serves_all_who_need_it(compiled):
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.device("/device:ECHO:0"):
        total = x + 1.0
        for _ in range(3):
            total = total * x
    with tf.Session() as session:
        feed = {x: [1.0, 2.0]}
        assert len(copies(compiled(session, total, feed))) == 2


def test_constants_are_uploaded_when_the_program_is_made(compiled):
    with tf.device("/device:ECHO:0"):
        x = tf.placeholder(tf.float32, [2], name="x")
        y = x + tf.constant([1.0, 2.0])
    with tf.Session() as session:
        feed = {x: [1.0, 2.0]}
        assert [c[0] for c in copies(compiled(session, y, feed))] == ["x:0", "add"]


def test_a_variable_read_far_away_is_copied_anew_each_time():
    with tf.device("/device:ECHO:0"):
        v = tf.Variable([1.0, 2.0])
    with tf.device("/cpu:0"):
        before = tf.identity(v.value() + 0.0)
        with tf.control_dependencies([before]):
            write = tf.assign_add(v, [1.0, 1.0])
        with tf.control_dependencies([write]):
            after = tf.identity(v.read_value() + 0.0)
    with tf.Session() as session:
        session.run(v.initializer)
        one, two = session.run([before, after])
        assert (list(one), list(two)) == ([1, 2], [2, 3])


def test_traces_show_copies():
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.device("/device:ECHO:0"):
        y = tf.add(x, 1.0, name="y")
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    with tf.Session() as session:
        session.run(y, {x: [1.0, 2.0]}, options=options, run_metadata=metadata)
    labels = [n.timeline_label for d in metadata.step_stats.dev_stats for n in d.node_stats]
    assert any("MEMCPYHtoD" in t for t in labels)
    assert any("MEMCPYDtoH" in t for t in labels)
    assert {n.op for g in metadata.partition_graphs for n in g.node} >= {"_HostRecv", "_HostSend"}
    devices = {n.device[-6:] for g in metadata.partition_graphs for n in g.node if n.name == "y"}
    assert devices == {"ECHO:0"}


def test_control_dependencies_hold_across_devices():
    with tf.device("/cpu:0"):
        v = tf.Variable(0)
        bump = tf.assign_add(v, 1)
    with tf.device("/device:ECHO:0"), tf.control_dependencies([bump]):
        y = tf.placeholder(tf.float32, [2]) + 1.0
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(y, {y.op.inputs[0]: [1.0, 2.0]})
        assert session.run(v) == 1


def test_inter_op_threads_give_the_same_across_devices():
    x = tf.placeholder(tf.float32, [8, 8])
    parts = []
    for i in range(6):
        with tf.device(f"/device:ECHO:{i % 2}" if i % 3 else "/cpu:0"):
            parts.append(tf.matmul(x, x * float(i)))
    y = tf.add_n(parts)
    value = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)
    results = []
    for threads in (1, 4):
        config = tf.ConfigProto(inter_op_parallelism_threads=threads)
        with tf.Session(config=config) as session:
            results += [session.run(y, {x: value}).tobytes() for _ in range(5)]
    assert len(set(results)) == 1


def test_a_node_of_many_inputs_costs_no_more_than_many_nodes(monkeypatch):
    asked = []
    found = partition_pass.cell_inputs
    monkeypatch.setattr(partition_pass, "cell_inputs", lambda n: asked.append(n) or found(n))
    x = tf.placeholder(tf.float32, [2])
    y = tf.add_n([tf.reverse(x + float(i), [0]) for i in range(200)])
    with tf.Session() as session:
        session.run(y, {x: [1.0, 2.0]})
    assert len(asked) < 3 * len(y.graph.get_operations())
