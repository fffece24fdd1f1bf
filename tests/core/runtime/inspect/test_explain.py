"""What `Session.explain` says of how a node computes, and what it took in a traced step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from click.testing import CliRunner

import opdock as tf
from opdock.cli.explain import command
from opdock.kernels.select.notes import Noting, heard, note


def test_a_traced_step_says_what_each_node_took() -> None:
    x = tf.placeholder(tf.float32, [4, 4], name="x")
    product = tf.matmul(x, x, name="product")
    total = tf.reduce_sum(tf.nn.relu(product + 1.0), name="total")
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    feeds = {x: np.ones((4, 4))}
    with tf.Session() as session:
        untimed = session.explain(total, feeds)
        assert session.run(total, feeds, options=options, run_metadata=metadata) == 80
        told = session.explain(total, feeds, metadata)
    assert not untimed.traced and "us" not in untimed.table().split()
    by_node = {row.node: row for row in told.rows if row.how != "fused"}
    took = {s.node_name: s.all_end_rel_nanos for d in metadata.step_stats.dev_stats
            for s in d.node_stats}  # fmt: skip
    assert by_node["product"].us == took["product"] / 1e3 > 0
    assert by_node["x:0"].us is None
    assert told.traced and "us" in told.table().split()
    (row,) = [r for r in told.to_dict()["rows"] if r["node"] == "product"]
    assert row["us"] == by_node["product"].us


def test_calls_of_one_node_are_added_up() -> None:
    count = tf.while_loop(lambda i: i < 5, lambda i: tf.abs(i, name="turned") + 1, [tf.constant(0)])
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session() as session:
        session.run(count, options=options, run_metadata=metadata)
        rows = session.explain(count, None, metadata).rows
    assert [row.us for row in rows if row.how == "control"] != [None]


def test_nanoseconds_are_those_of_microseconds() -> None:
    x = tf.placeholder(tf.float32, [2])
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(tf.exp(x), {x: [1, 2]}, options=options, run_metadata=metadata)
    for device in metadata.step_stats.dev_stats:
        for record in device.node_stats:
            assert record.all_end_rel_nanos // 1000 == record.all_end_rel_micros
            assert abs(record.all_start_nanos // 1000 - record.all_start_micros) <= 1


def test_notes_of_binders_and_of_what_they_make_later() -> None:
    note("nobody hears this")
    said: list[str] = []

    def first(size: int) -> int:
        note(f"for {size}")
        return size

    with Noting(said):
        note("a library")
        note("a library")
        later = heard(first)
    assert said == ["a library"]
    assert (later(3), later(4), later(3)) == (3, 4, 3)
    assert said == ["a library", "for 3", "for 4"]
    assert heard(first) is first


def test_the_command_times_a_graph(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 2], name="x")
        tf.matmul(x, x, name="product")
    path = f"{tmp_path}/graph.pb"
    tf.io.write_graph(graph, str(tmp_path), "graph.pb", as_text=False)
    plain = CliRunner().invoke(command, [path])
    timed = CliRunner().invoke(command, [path, "--time"])
    assert plain.exit_code == timed.exit_code == 0, timed.output
    assert " us " not in plain.output.splitlines()[0]
    assert " us " in timed.output.splitlines()[0]
