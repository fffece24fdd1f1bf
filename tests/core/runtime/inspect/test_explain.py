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


def nested() -> tuple[Any, Any]:
    """A loop around a loop, and a branch that is not taken."""
    x = tf.placeholder(tf.float32, [4], name="x")
    weight = tf.constant(np.full(4, 0.5, np.float32), name="weight")

    def inner(y: Any) -> Any:
        return tf.while_loop(
            lambda j, y: j < 2, lambda j, y: (j + 1, tf.sin(y, name="wave") * weight), [0, y],
            name="inner",
        )[1]  # fmt: skip

    outer = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, inner(y)), [0, x], name="outer")
    total = tf.reduce_sum(outer[1], name="total")
    chosen = tf.cond(
        total > 1e9, lambda: tf.exp(total, name="never"), lambda: tf.tan(total), name="choice"
    )
    return x, chosen


def test_nodes_of_loops_and_branches_are_told() -> None:
    x, chosen = nested()
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    feeds = {x: np.ones(4)}
    with tf.Session() as session:
        session.run(chosen, feeds, options=options, run_metadata=metadata)
        told = session.explain(chosen, feeds, metadata)
    rows = {row.node: row for row in told.rows if row.how not in ("fused", "removed")}
    assert len(rows) == sum(row.how not in ("fused", "removed") for row in told.rows)
    wave = next(row for row in told.rows if row.node == "outer/body/inner/body/wave")
    assert wave.within == "outer/body/inner/body" and wave.line.partition(":")[0] == __file__
    assert wave.device.endswith("CPU:0") and wave.kernel
    assert rows["choice/then_branch/never"].us is None
    assert rows["choice/else_branch/Tan"].us > 0
    by_scope = [row.within for row in told.rows]
    assert by_scope.index("outer/body") > max(i for i, w in enumerate(by_scope) if not w)
    known = set(rows) | {row.node for row in told.rows}
    for row in told.rows:
        for source in row.inputs:
            assert source in known or source.rpartition(":")[0] in known, (row.node, source)
    # An argument of a function is what its node takes.
    (argument,) = [
        row for row in told.rows
        if row.how == "feed" and row.within == "outer/body" and row.inputs == ("x:0",)
    ]  # fmt: skip
    assert argument.outputs == ("float32 [4]",)
    traced = {span.node for span in told.spans}
    assert any(name.startswith("outer/body/inner/body/") for name in traced)
    outer = rows["outer"].us
    inside = [row.us for row in told.rows if row.within == "outer/body" and row.us is not None]
    assert sum(inside) <= outer


def test_a_branch_that_cannot_be_compiled_is_told_and_hurts_nobody() -> None:
    yes = tf.placeholder(tf.bool, [])
    x = tf.placeholder(tf.float32, [2])
    y = tf.placeholder(tf.float32, [None])
    chosen = tf.cond(yes, lambda: tf.add(x, y, name="unfit"), lambda: x)
    feeds = {yes: False, x: [1, 2], y: np.ones(3)}
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(chosen, feeds), [1, 2])
        told = session.explain(chosen, feeds)
    assert any("then_branch cannot be compiled" in text for text in told.missing)
    assert "then_branch cannot be compiled" in told.summary()


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
