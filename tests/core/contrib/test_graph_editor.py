"""`tf.contrib.graph_editor`: what is found, copied, cut and connected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import opdock as tf
from opdock.contrib import graph_editor as ge


@pytest.fixture
def graph() -> Iterator[tf.Graph]:
    """x -> first -> deep/second -> last, which waits for `before`; `second` takes `first` twice."""
    with tf.Graph().as_default() as made:
        x = tf.constant([1.0, 2.0], name="x")
        before = tf.constant(0.0, name="before")
        first = tf.square(x, name="first")
        with tf.name_scope("deep"):
            second = tf.add(first, first, name="second")
        with tf.control_dependencies([before.op]):
            tf.negative(second, name="last")
        yield made


def names(items: Any) -> list[str]:
    return [item.name for item in items]


def value(graph: tf.Graph, name: str) -> list[float]:
    with tf.Session(graph=graph) as session:
        found: list[float] = session.run(name).tolist()
    return found


# ---------------------------------------------------------------- select
def test_by_name(graph: tf.Graph) -> None:
    assert names(ge.select_ops("^deep/", "^x$", graph=graph)) == ["deep/second", "x"]
    assert names(ge.select_ts("st", graph=graph)) == ["first:0", "last:0"]
    ops, ts = ge.select_ops_and_ts("st", "(?#ts)^x", graph=graph)
    assert (names(ops), names(ts)) == (["first", "last"], ["x:0"])
    assert names(ge.get_name_scope_ops(graph, "deep/")) == ["deep/second"]
    with pytest.raises(ValueError, match="Use the keyword argument 'graph'"):
        ge.select_ops("x")
    with pytest.raises(TypeError, match="Expected a type in"):
        ge.make_list_of_op([graph.get_tensor_by_name("x:0")])


def test_walks(graph: tf.Graph) -> None:
    op = graph.get_operation_by_name
    assert names(ge.get_forward_walk_ops(op("first"))) == ["first", "deep/second", "last"]
    assert names(ge.get_forward_walk_ops(op("first").outputs)) == ["deep/second", "last"]
    assert names(ge.get_backward_walk_ops(op("last"), inclusive=False)) == [
        "deep/second", "first", "x",
    ]  # fmt: skip
    stops = op("first").outputs
    assert names(ge.get_backward_walk_ops(op("last"), stop_at_ts=stops)) == ["last", "deep/second"]
    both = ge.ControlOutputs(graph)
    assert names(ge.get_walks_intersection_ops(op("before"), op("last"), control_ios=both)) == [
        "before", "last",
    ]  # fmt: skip
    assert ge.get_walks_intersection_ops(op("before"), op("last")) == []
    assert names(ge.get_ops_ios(op("last"), control_ios=both)) == ["deep/second", "before"]
    near = ge.get_within_boundary_ops(graph, op("first"), op("last"), inclusive=False)
    assert names(near) == ["x", "first", "deep/second"]
    assert names(ge.get_within_boundary_ops(graph, op("first"), op("last")))[-1] == "last"


def test_boundaries_of_views(graph: tf.Graph) -> None:
    view = ge.sgv_scope("deep", graph)
    assert (names(view.inputs), names(view.outputs)) == (["first:0"], ["deep/second:0"])
    middle = ge.sgv("first", "second", graph=graph)
    assert (names(middle.inputs), names(middle.outputs)) == (["x:0"], ["deep/second:0"])
    wide = ge.SubGraphView(ge.select_ops("first", graph=graph), graph.get_tensor_by_name("x:0"))
    assert wide.is_passthrough(graph.get_tensor_by_name("x:0")) is False
    assert "** ops[2]:\n  first\n  deep/second\n" in str(middle)
    assert middle.remap_outputs([0, 0]).remap_outputs_make_unique().outputs[:] == [
        graph.get_tensor_by_name("deep/second:0")
    ]
    with pytest.raises(ValueError, match="Out of"):
        middle.remap_inputs([1])
    with pytest.raises(ValueError, match="Found repetition"):
        middle.remap_inputs([0, 0])


# ---------------------------------------------------------------- reroute and edit
def test_every_edge_moves_once(graph: tf.Graph) -> None:
    with graph.as_default():
        other = tf.constant([3.0, 4.0], name="other")
        use = tf.subtract(graph.get_tensor_by_name("first:0"), other, name="use")
    first = graph.get_tensor_by_name("first:0")
    assert ge.swap_ts(first, other) == 4
    assert names(use.op.inputs) == ["other:0", "first:0"]
    assert value(graph, "use:0") == [2, 0]
    assert value(graph, "deep/second:0") == [6, 8]
    assert ge.reroute_ts([first], [other], can_modify=use.op) == 1
    assert value(graph, "use:0") == [0, 0]
    with pytest.raises(ValueError, match="Shapes"):
        ge.swap_ts(first, graph.get_tensor_by_name("before:0"))


def test_cut_and_connect(graph: tf.Graph) -> None:
    view, inputs, outputs = ge.detach(ge.sgv_scope("deep", graph))
    assert names(inputs) == ["geph__first_0:0"]
    assert names(outputs) == ["deep/geph__second_0:0"]
    assert names(view.inputs) == names(inputs)
    with tf.Session(graph=graph) as session:
        assert session.run("last:0", {outputs[0]: [5.0, 6.0]}).tolist() == [-5, -6]
        assert session.run("deep/second:0", {inputs[0]: [5.0, 6.0]}).tolist() == [10, 12]
    ge.connect(ge.sgv("^first$", graph=graph), view)
    ge.reroute_ts(view.outputs, outputs)
    assert value(graph, "last:0") == [-2, -8]
    ge.bypass(view)
    assert value(graph, "last:0") == [-1, -4]


def test_control_inputs(graph: tf.Graph) -> None:
    before, last = map(graph.get_operation_by_name, ("before", "last"))
    with pytest.raises(ValueError, match="before is already a control_input of last"):
        ge.add_control_inputs(last, before)
    ge.remove_control_inputs(last, before)
    assert last.control_inputs == []
    with pytest.raises(ValueError, match="last is not a control_input of before"):
        ge.remove_control_inputs(last, before)


# ---------------------------------------------------------------- transform
class Two(NamedTuple):
    """Two tensors."""

    a: Any
    b: Any


def test_replaced_within_structures(graph: tf.Graph) -> None:
    first, x, before = map(graph.get_tensor_by_name, ("first:0", "x:0", "before:0"))
    last = graph.get_tensor_by_name("last:0")
    with graph.as_default():
        new = tf.constant([10.0, 20.0])
    found = ge.graph_replace({"two": Two(last, before), "all": [x]}, {first: new}, dst_scope="new")
    assert found["two"].b is before and found["all"] == [x]
    assert found["two"].a.name == "new/last:0"
    assert found["two"].a.op.control_inputs == [before.op]
    assert value(graph, "new/last:0") == [-20, -40]
    with pytest.raises(ValueError, match="not connected"):
        ge.graph_replace(x, {last: new})


def test_a_copy_in_another_graph_runs_with_all_it_had() -> None:
    with tf.Graph().as_default() as source:
        n = tf.placeholder(tf.int32, [], name="n")
        with tf.device("/cpu:0"):
            v = tf.Variable(2.0, name="v", use_resource=True)
        total = tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s * v), [0, 1.0])[1]
        chosen = tf.cond(n > 3, lambda: total, lambda: -total)
        slope = tf.gradients(chosen, v)[0]
        tf.add_to_collection("results", chosen)
    target = tf.Graph()
    _, info = ge.copy(source, target, dst_scope="copy")
    assert target.get_collection("copy/results") == [info.transformed(chosen)]
    copied = target.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)
    assert names(copied) == []  # a variable is neither an operation nor a tensor
    handle = target.get_operation_by_name("copy/v")
    assert handle.device == "/device:CPU:0"
    assert info.original(handle).graph is source
    with tf.Session(graph=target) as session:
        session.run("copy/v/Assign")
        fetches = info.transformed([chosen, slope])
        for steps, wanted in ((4, [16, 32]), (3, [-8, -12])):
            assert session.run(fetches, {"copy/n:0": steps}) == wanted


def test_colocation_follows_the_copy() -> None:
    with tf.Graph().as_default() as source:
        a = tf.constant(1.0, name="a")
        with tf.colocate_with(a):
            tf.identity(a, name="b")
    _, info = ge.copy(source, dst_scope="here")
    copied = info.transformed(source.get_operation_by_name("b"))
    assert copied.colocation_groups() == [b"loc:@here/a"]
    target = tf.Graph()
    ge.copy(ge.sgv("^b$", graph=source), target)
    assert target.get_operation_by_name("b").colocation_groups() == [b"loc:@b"]
    assert names(target.get_operations()) == ["geph__a_0", "b"]


def test_what_a_handler_changes(graph: tf.Graph) -> None:
    def renamed(node_def: Any) -> Any:
        if node_def.op == "Square":
            node_def.op = "Sqrt"
        node_def.attr["_by"].s = b"me"
        return node_def

    transformer = ge.Transformer()
    transformer.transform_op_handler = lambda info, op, inputs: ge.copy_op_handler(
        info, op, inputs, nodedef_fn=renamed
    )
    target = tf.Graph()
    transformer(graph, target, "")
    assert target.get_operation_by_name("last").get_attr("_by") == b"me"
    assert np.allclose(value(target, "last:0"), -2 * np.sqrt([1, 2]))
    transformer.transform_op_handler = lambda info, op, inputs: (op, op.outputs)
    with pytest.raises(ValueError, match="In-place transformation not allowed"):
        transformer(graph, graph, "again")


def test_gradients_from_what_is_computed_again() -> None:
    """As programs save memory: the backward pass takes copies of what is cheap to compute."""
    with tf.Graph().as_default() as made:
        x = tf.constant([0.5, -0.25])
        h1 = tf.tanh(x * 3, name="h1")
        h2 = tf.sigmoid(h1 * 2, name="kept")
        loss = tf.reduce_sum(tf.sin(h2) * h2)
        plain = tf.gradients(loss, x)[0]
        forward = [op for op in ge.get_backward_walk_ops(loss.op) if op not in (x.op, h2.op)]
        again, info = ge.copy_with_input_replacements(ge.sgv(forward), {}, dst_scope="again")
        slopes = tf.gradients(loss, x)[0]
        backward = [op for op in ge.get_backward_walk_ops(slopes.op) if "gradients_1" in op.name]
        moved = ge.reroute_ts(
            [info.transformed(t) for op in forward for t in op.outputs],
            [t for op in forward for t in op.outputs],
            can_modify=backward,
        )
        assert moved > 3
        assert any(t.name.startswith("again/") for op in backward for t in op.inputs)
        assert again.graph is made
        with tf.Session() as session:
            one, other = session.run([plain, slopes])
        np.testing.assert_allclose(other, one, rtol=1e-6)
