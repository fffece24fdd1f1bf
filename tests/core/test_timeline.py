"""The Chrome trace of a run, by function and by command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import opdock as tf
from opdock.cli.timeline import command
from opdock.io import protos
from opdock.python.client import timeline as tf_place
from opdock.timeline import Timeline


def stats() -> protos.StepStats:
    found = protos.StepStats()
    cpu = found.dev_stats.add(device="/job:localhost/replica:0/task:0/device:CPU:0")
    for name, label, start, length, size in [
        ("a", "a = Const()", 100, 10, 40),
        ("b", "b = Mul(a, a)", 115, 30, 80),
        ("c", "c = Add(a, b:0)", 120, 5, 0),
    ]:
        node = cpu.node_stats.add(
            node_name=name, timeline_label=label, all_start_micros=start, all_end_rel_micros=length
        )
        allocation = node.output.add().tensor_description.allocation_description
        allocation.requested_bytes, allocation.allocator_name = size, "host"
    found.dev_stats.add(device="/device:GPU:0").node_stats.add(
        node_name="odd", timeline_label="no label", all_start_micros=130
    )
    return found


def events(**options: bool) -> list[dict]:
    return json.loads(Timeline(stats()).generate_chrome_trace_format(**options))["traceEvents"]


def test_ops() -> None:
    ops = [e for e in events() if e["ph"] == "X"]
    assert [(e["name"], e["ts"], e["dur"]) for e in ops[:3]] == [
        ("Const", 0, 10), ("Mul", 15, 30), ("Add", 20, 5),
    ]  # fmt: skip
    assert ops[2]["args"] == {"name": "c", "op": "Add", "input0": "a", "input1": "b:0"}
    assert ops[1]["tid"] != ops[2]["tid"]  # they overlap
    assert ops[3]["pid"] != ops[0]["pid"]
    names = [e["args"]["name"] for e in events() if e["ph"] == "M"]
    assert names[0].endswith("CPU:0 Compute")


def test_dataflow_and_memory() -> None:
    assert {e["name"] for e in events() if e["ph"] in "st"} == {"a", "b"}
    assert not [e for e in events(show_dataflow=False) if e["ph"] in "st"]
    counters = [e["args"]["host"] for e in events(show_memory=True) if e["ph"] == "C"]
    assert max(counters) == 120
    assert counters[-1] == 0
    assert Timeline(stats()).analyze_step_stats().allocator_maximums == {"host": 120}


def test_tfs_place_and_no_ops() -> None:
    assert tf_place.Timeline is Timeline
    assert json.loads(Timeline(protos.StepStats()).generate_chrome_trace_format()) == {
        "traceEvents": []
    }


def test_a_real_run(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        y = tf.add(tf.placeholder(tf.float32, name="x"), 1.0, name="y")
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        with tf.Session() as sess:
            sess.run(y, {"x:0": 1.0}, options=options, run_metadata=metadata)
    trace = json.loads(Timeline(metadata.step_stats).generate_chrome_trace_format())
    assert "y" in [e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "X"]


@pytest.mark.parametrize("message", ["metadata", "stats", "events"])
def test_the_command(tmp_path: Path, message: str) -> None:
    metadata = tf.RunMetadata(step_stats=stats())
    path = tmp_path / "in"
    if message == "events":
        with tf.summary.FileWriter(str(tmp_path / "log")) as writer:
            writer.add_run_metadata(metadata, "first", 0)
        (path,) = (tmp_path / "log").iterdir()
    else:
        path.write_bytes((metadata if message == "metadata" else stats()).SerializeToString())
    out = tmp_path / "out.json"
    result = CliRunner().invoke(command, [str(path), "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert "4 ops on 2 devices" in result.output
    assert len(json.loads(out.read_text())["traceEvents"]) == len(events())
    result = CliRunner().invoke(command, [str(path), "--tag", "second"])
    if message == "events":
        assert result.exit_code == 2
        assert "it has: first" in result.output


def test_the_command_on_nonsense(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"\xff\xff\xff nonsense")
    result = CliRunner().invoke(command, [str(tmp_path / "in")])
    assert result.exit_code == 2
    assert "neither" in result.output
