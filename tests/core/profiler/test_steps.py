"""Traced steps in profiles: times, memory, shapes, and files of what is known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.io import protos

BUILDER = tf.profiler.ProfileOptionBuilder
HOST = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"


@pytest.fixture
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 20], name="x")
        weights = tf.get_variable("w", [20, 30])
        tf.tanh(tf.matmul(x, weights, name="product"), name="out")
        yield graph


def step(*records: tuple[str, str, int, int], size: int = 0) -> Any:
    """A RunMetadata: device, node, start and length of each record, with memory for some."""
    made = tf.RunMetadata()
    for device, name, start, length in records:
        stats = made.step_stats.dev_stats.add(device=device).node_stats.add(
            node_name=name, all_start_micros=start, op_end_rel_micros=length
        )
        stats.memory.add(total_bytes=size, peak_bytes=size // 2, live_bytes=size // 4)
        output = stats.output.add(slot=0).tensor_description
        output.allocation_description.requested_bytes = 3 * size
    return made


def quiet(**changed: Any) -> dict[str, Any]:
    return BUILDER().with_empty_output().build() | changed


def found(root: Any, name: str) -> Any:
    """A node of a tree by its name."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.name == name:
            return node
        waiting.extend(node.children)
    raise AssertionError(f"{name} is not shown")


def test_times_and_memory_of_steps_and_their_average(graph: tf.Graph) -> None:
    profiler = tf.profiler.Profiler(graph)
    profiler.add_step(3, step((HOST, "product", 10, 40), (HOST, "out", 60, 0), size=80))
    profiler.add_step(5, step((HOST, "product", 10, 20), size=40))
    first = found(profiler.profile_name_scope(quiet(step=3)), "product")
    assert (first.exec_micros, first.cpu_exec_micros, first.run_count) == (40, 40, 1)
    assert (first.requested_bytes, first.peak_bytes) == (80, 40)
    assert (first.residual_bytes, first.output_bytes) == (20, 240)
    assert list(first.devices) == [HOST.lower()]
    mean = found(profiler.profile_name_scope(quiet()), "product")
    assert (mean.exec_micros, mean.requested_bytes) == (30, 60)
    # What took less than a microsecond took some time nevertheless.
    assert found(profiler.profile_graph(quiet(step=3)), "out").exec_micros == 1
    assert profiler.profile_operations(quiet(step=3)).total_exec_micros == 41
    assert profiler.profile_python(quiet(step=3)).total_exec_micros == 41


def test_an_accelerator_has_its_own_times_beside_the_hosts(graph: tf.Graph) -> None:
    run = step((GPU, "product", 10, 5), (f"{GPU}/stream:all", "product", 12, 30),
               (HOST, "product", 20, 7))  # fmt: skip
    node = found(tf.profiler.profile(graph, run, options=quiet()), "product")
    # The first device is the node's; a record on another does not count.
    assert (node.cpu_exec_micros, node.accelerator_exec_micros, node.exec_micros) == (5, 30, 35)


def test_runs_in_a_loop_add_up(graph: tf.Graph) -> None:
    run = step(*((HOST, "product", 10 * turn, 4) for turn in range(1, 4)))
    node = found(tf.profiler.profile(graph, run, options=quiet()), "product")
    assert (node.run_count, node.exec_micros) == (3, 12)


def test_what_is_no_node_of_the_graph_is_one_of_the_profile(graph: tf.Graph) -> None:
    root = tf.profiler.profile(graph, step((HOST, "elsewhere", 10, 4)), options=quiet())
    assert found(root, "elsewhere").exec_micros == 4


def test_least_figures_choose_what_is_shown(graph: tf.Graph) -> None:
    run = step((HOST, "product", 10, 40), (HOST, "out", 60, 9), size=80)
    options = BUILDER(BUILDER.time_and_memory(min_micros=10)).with_empty_output().build()
    root = tf.profiler.profile(graph, run, options=options)
    assert [node.name for node in root.children] == ["product"]


def test_timelines_of_steps(graph: tf.Graph, tmp_path: Path) -> None:
    profiler = tf.profiler.Profiler(graph)
    profiler.add_step(3, step((HOST, "product", 10, 40), (HOST, "out", 60, 9)))
    profiler.add_step(5, step((HOST, "product", 10, 20)))
    options = BUILDER(BUILDER.time_and_memory(1, 0)).with_timeline_output(str(tmp_path / "line"))
    profiler.profile_graph(options.build())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["line_3", "line_5"]
    events = json.loads((tmp_path / "line_3").read_text())["traceEvents"]
    runs = {e["args"]["name"]: (e["ts"], e["dur"]) for e in events if e["ph"] == "X"}
    assert runs == {"product": (0, 40), "out": (50, 9)}
    profiler.profile_graph(options.with_step(5).with_timeline_output(str(tmp_path / "one")).build())
    assert (tmp_path / "one_5").exists()
    assert not (tmp_path / "one_3").exists()


def traced(graph: tf.Graph) -> Any:
    run = tf.RunMetadata()
    with tf.Session(graph=graph) as session:
        session.run(tf.global_variables_initializer())
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run("out:0", {"x:0": np.ones([8, 20])}, options=options, run_metadata=run)
    return run


def test_a_step_has_the_shapes_that_the_graph_lacks_and_leaves_it_alone(graph: tf.Graph) -> None:
    options = BUILDER(BUILDER.float_operation()).with_empty_output().build()
    root = tf.profiler.profile(graph, traced(graph), cmd="scope", options=options)
    assert found(root, "product").float_ops == 2 * 8 * 20 * 30
    assert graph.get_tensor_by_name("product:0").shape.as_list() == [None, 30]


def test_a_profile_can_be_kept(graph: tf.Graph, tmp_path: Path) -> None:
    profiler = tf.profiler.Profiler(graph)
    profiler.add_step(2, traced(graph))
    kept = protos.ProfileProto.FromString(profiler.serialize_to_string())
    nodes = {node.name: node for node in kept.nodes.values()}
    assert list(kept.steps) == [2]
    assert kept.has_trace
    assert nodes["out"].op == "Tanh"
    assert nodes["out"].execs[2].run_count == 1
    assert kept.nodes[nodes["out"].inputs[0]].name == "product"
    assert list(nodes["w"].shape) == [20, 30]
    traces = nodes["out"].trace.traces
    assert kept.id_to_string[traces[-1].file_id].endswith("test_steps.py")


def test_a_step_that_was_not_traced_is_told(
    graph: tf.Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    profiler = tf.profiler.Profiler(graph)
    profiler.add_step(4, tf.RunMetadata())
    assert "step 4" in capsys.readouterr().err


def test_op_logs_are_written(graph: tf.Graph, tmp_path: Path) -> None:
    mine = tf.profiler.OpLogProto()
    mine.log_entries.add(name="out", types=["mine"])
    tf.profiler.write_op_log(graph, str(tmp_path), mine)
    log = tf.profiler.OpLogProto.FromString((tmp_path / "tfprof_log").read_bytes())
    entries = {entry.name: entry for entry in log.log_entries}
    assert list(entries["w"].types) == ["_trainable_variables"]
    assert list(entries["out"].types) == ["mine"]
    line = log.id_to_string[entries["out"].code_def.traces[-1].line_id]
    assert line.startswith("tf.tanh(")
    with pytest.raises(tf.errors.NotFoundError):
        tf.profiler.write_op_log(graph, str(tmp_path / "absent"))
