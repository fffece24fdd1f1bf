"""Views of recorded runs and of graphs as they are written."""

from __future__ import annotations

import opdock as tf
from opdock.io import protos
from opdock.view.trace import spans_of, times_of, view_of_graph, view_of_run

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"


def run() -> protos.RunMetadata:
    found = protos.RunMetadata()
    cpu = found.step_stats.dev_stats.add(device=CPU)
    gpu = found.step_stats.dev_stats.add(device=GPU)
    for device, label, start, took, size in [
        (cpu, "b = Mul(a, a)", 115, 30, 80),
        (cpu, "a = Const()", 100, 10, 40),
        (gpu, "b/copy = MEMCPYHtoD(b) 80 bytes, host to GPU:0", 150, 5, 80),
        (gpu, "c = Add(b/copy, ^a)", 160, 7, 0),
    ]:
        record = device.node_stats.add(
            node_name=label.split(" ")[0], timeline_label=label, all_start_micros=start,
            all_end_rel_micros=took,
        )  # fmt: skip
        if size:
            allocation = record.output.add().tensor_description.allocation_description
            allocation.requested_bytes = size
    found.step_stats.dev_stats.add(device=f"{GPU}/stream:all").node_stats.add(
        node_name="c", timeline_label="c:Add#kernel#", all_start_micros=161, all_end_rel_micros=3
    )
    return found


def test_calls_in_their_order() -> None:
    spans = spans_of(run().step_stats)
    assert [(s.node, s.op, s.start, s.us) for s in spans] == [
        ("a", "Const", 0, 10), ("b", "Mul", 15, 30), ("b/copy", "MEMCPYHtoD", 50, 5),
        ("c", "Add", 60, 7), ("c", "c", 61, 3),
    ]  # fmt: skip
    assert spans[2].details == "80 bytes, host to GPU:0"
    # What the device says of its kernel is a part of what the node took.
    assert times_of(spans) == {"a": 10, "b": 30, "b/copy": 5, "c": 7}


def test_a_run_whose_labels_tell_who_takes_what() -> None:
    view = view_of_run(run(), "run")
    rows = {row.node: row for row in view.rows}
    assert set(rows) == {"a", "b", "b/copy", "c"}
    assert (rows["b/copy"].how, rows["b/copy"].device) == ("copy", GPU)
    assert (rows["c"].inputs, rows["c"].control, rows["c"].us) == (("b/copy",), ("a",), 7)
    assert [(f.node, f.nbytes, f.begin, f.end) for f in view.lives] == [
        ("a", 40, 0, 3), ("b", 80, 1, 2), ("b/copy", 80, 2, 3),
    ]  # fmt: skip


def test_a_run_of_a_session() -> None:
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    product = tf.matmul(x, x, name="product")
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
        session.run(product, {x: [[1, 2], [3, 4]]}, options=options, run_metadata=metadata)
    rows = {row.node: row for row in view_of_run(metadata, "run").rows}
    assert rows["product"].op == "MatMul"
    assert rows["product"].us is not None
    assert rows["product"].inputs == ("x:0", "x:0")


def test_a_graph_as_it_is_written() -> None:
    with tf.Graph().as_default() as graph:
        with tf.device("/gpu:1"):
            a = tf.constant(1.0, name="a")
        with tf.control_dependencies([a]):
            tf.no_op(name="b")
    rows = {row.node: row for row in view_of_graph(graph.as_graph_def(), "graph").rows}
    assert (rows["a"].requested, rows["a"].device, rows["a"].how) == ("/device:GPU:1", "", "")
    assert rows["b"].control == ("a",)
