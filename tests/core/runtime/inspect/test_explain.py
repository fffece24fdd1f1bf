"""What `Session.explain` says of how a node computes, and what it took in a traced step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
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


def test_rows_say_who_takes_what() -> None:
    x = tf.placeholder(tf.float32, [4, None], name="x")
    parts = tf.split(tf.exp(x, name="e"), 2, name="parts")
    with tf.control_dependencies([parts[0]]):
        total = tf.multiply(parts[1], 2.0, name="total")
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.opt_level = -1
    with tf.Session(config=config) as session:
        rows = {r.node: r for r in session.explain(total, {x: np.ones((4, 3))}).rows}
    assert rows["parts"].inputs[-1] == "e"
    assert rows["parts"].outputs == ("float32 [2,3]", "float32 [2,3]")
    assert (rows["total"].inputs[0], rows["total"].control) == ("parts:1", ("parts",))


def test_lives_cover_what_is_in_use_and_do_not_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "cluster")  # so that ops write over their inputs
    x = tf.placeholder(tf.float32, [64, 64], name="x")
    w = tf.get_variable("w", [64, 64])
    y = x
    for i in range(6):
        y = tf.exp(tf.sin(tf.matmul(y, w, name=f"m{i}")))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        told = session.explain(y, {x: np.ones((64, 64))})
    by_kind: dict[str, list[Any]] = {}
    for life in told.lives:
        by_kind.setdefault(life.kind, []).append(life)
        assert 0 <= life.begin <= life.end < told.steps
    assert [(f.node, f.nbytes) for f in by_kind["held"]] == [("w", 64 * 64 * 4)]
    planned = [f for f in by_kind["planned"] if f.offset is not None]
    assert len(planned) >= 6
    assert max(f.offset + f.nbytes for f in planned) <= told.memory.planned_bytes
    for a in planned:
        for b in planned:
            apart = a.end < b.begin or b.end < a.begin
            beside = a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset
            assert a is b or apart or beside, (a, b)


def test_a_page_beside_another(tmp_path: Path) -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.Session() as session:
        told = session.explain(tf.exp(x, name="grown"), {x: [1, 2]})
    told.page(tmp_path / "one.html")
    told.page(tmp_path / "two.html", title="a", beside=told)
    assert '"grown"' in (tmp_path / "one.html").read_text()
    assert "<title>a | a (2)</title>" in (tmp_path / "two.html").read_text()
