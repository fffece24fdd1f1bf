"""`GraphView`: whatever a pass does by its verbs, the order stays executable and values right."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opdock as tf
from opdock import plugin
from opdock.plugin import GraphPass, hookimpl

NAME = "views-for-tests"
FEED = [0.5, -1.0]


def run(change, build, stage="before_place", level=-1):
    """What a program computes when a pass has changed it."""

    @hookimpl
    def opdock_graph_passes():
        yield GraphPass(name="change", stage=stage, run=change, default=False)

    plugin.register(SimpleNamespace(opdock_graph_passes=opdock_graph_passes), NAME)
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.opt_level = level
    options = config.graph_options.rewrite_options.custom_optimizers.add(name="opdock")
    options.parameter_map["enable_passes"].s = b"change"
    try:
        with tf.Graph().as_default(), tf.Session(config=config) as session:
            x = tf.placeholder(tf.float32, [2], name="x")
            return session.run(build(x), {x: FEED})
    finally:
        plugin.unregister(NAME)


def in_order(graph):
    done = set()
    for node in graph:
        assert {v.node for v in node.inputs} | set(node.controls) <= done
        done.add(node)
    assert {v.node for v in graph.fetches} <= done


STEPS = st.lists(
    st.tuples(st.sampled_from(["wrap", "swap", "wait", "twice"]), st.integers(0, 5)), max_size=8
)


@settings(max_examples=25)
@given(steps=STEPS, stage=st.sampled_from(["before_place", "after_place"]))
def test_any_changes_leave_a_program_that_runs(steps, stage):
    """A chain of sums; each node may be doubled, taken from its input, or waited for."""
    names = [f"n{i}" for i in range(6)]
    model = {name: [("add", i)] for i, name in enumerate(names)}  # what happens at each node

    def build(x):
        for i, name in enumerate(names):
            x = tf.add(x, float(i), name=name)
        return x

    def change(graph):
        sums = {name: graph.find(name) for name in names}
        heads = {name: node.outputs[0] for name, node in sums.items()}
        for verb, i in steps:
            name = names[i]
            head, node = heads[name], sums[name]
            if verb == "wait":
                graph.insert("Identity", [graph.feeds[0]], before=head.node)
            elif verb == "swap":  # another node of the same kind in its place
                sums[name] = graph.insert(node.op, list(node.inputs))
                graph.replace(node, sums[name])
                if head.node == node:
                    heads[name] = sums[name].outputs[0]
            else:
                with_itself = verb == "twice"
                made = (
                    graph.insert("AddN", [[head, head]]) if with_itself
                    else graph.insert("Mul", [head, 2.0])
                )  # fmt: skip
                graph.replace(head, made.outputs[0])
                heads[name] = made.outputs[0]
                model[name].append(("mul", 2))
            in_order(graph)

    got = run(change, build, stage)
    want = np.float32(FEED)
    for name in names:
        for verb, amount in model[name]:
            want = want + amount if verb == "add" else want * amount
    np.testing.assert_allclose(got, want, rtol=1e-6)


def named(graph, name):
    return next(n for n in graph if n.name == name)


def test_what_is_not_there_cannot_be_used():
    def change(graph):
        a, b = named(graph, "a"), named(graph, "b")
        graph.replace(b, a)
        with pytest.raises(ValueError, match=r"<node b \(Exp\)> is not in the graph"):
            graph.remove(b)
        with pytest.raises(ValueError, match="is not in the graph"):
            graph.insert("Neg", [b.outputs[0]])
        with pytest.raises(TypeError, match="expected a value of the graph, got 3"):
            graph.replace_input(named(graph, "c"), 0, 3)
        with pytest.raises(ValueError, match="has 1 inputs, none is number 1"):
            graph.replace_input(named(graph, "c"), 1, a.outputs[0])

    def build(x):
        return tf.exp(tf.exp(tf.exp(x, name="a"), name="b"), name="c")

    got = run(change, build)
    np.testing.assert_allclose(got, np.exp(np.exp(np.float32(FEED))), rtol=1e-6)


def test_values_must_fit():
    def change(graph):
        a, total = named(graph, "a"), named(graph, "total")
        with pytest.raises(ValueError, match=r"fetch 0 has shape \[\], .* has \[2\]"):
            graph.replace(total, a)
        with pytest.raises(ValueError, match="comes from outside and cannot be removed"):
            graph.remove(graph.feeds[0].node)
        with pytest.raises(ValueError, match="the caller takes its value"):
            graph.remove(total)
        with pytest.raises(ValueError, match="has 1 values, and 2 are to replace them"):
            graph.replace(total, [a.outputs[0], a.outputs[0]])

    got = run(change, lambda x: tf.reduce_sum(tf.exp(x, name="a"), name="total"))
    np.testing.assert_allclose(got, np.exp(np.float32(FEED)).sum(), rtol=1e-6)


def test_who_waited_for_a_node_that_goes_waits_for_what_it_did():
    def change(graph):
        pause = named(graph, "pause")
        last = named(graph, "last")
        assert last.controls == (pause,)
        graph.remove(pause)
        assert set(last.controls) == {named(graph, "first")}

    def build(x):
        first = tf.exp(x, name="first")
        pause, double = tf.negative(first, name="pause"), x * 2.0
        with tf.control_dependencies([pause]):
            return tf.exp(double, name="last")

    np.testing.assert_allclose(run(change, build), np.exp(2 * np.float32(FEED)), rtol=1e-6)


def test_a_view_is_read_only():
    def change(graph):
        node = named(graph, "a")
        for name in ("name", "op", "inputs", "anything"):
            with pytest.raises(AttributeError):
                setattr(node, name, "b")
        with pytest.raises(TypeError, match="does not support item assignment"):
            node.attrs["T"] = tf.int32
        assert node == graph.find("a") and len({node, graph.find("a")}) == 1
        assert "test_graph.py" in node.line and graph.within == ""

    run(change, lambda x: tf.exp(x, name="a"))


def test_a_node_stands_right_behind_its_inputs():
    """So that it can replace what earlier insertions were made from."""

    def change(graph):
        (add,) = [n for n in graph.nodes if n.op == "Add"]
        first = graph.insert("Add", list(add.inputs))
        graph.replace(add, first)
        double = graph.insert("Mul", [first.outputs[0], 2.0])
        graph.replace(first.outputs[0], double.outputs[0])
        graph.replace(first, graph.insert("Add", list(first.inputs)))
        in_order(graph)

    got = run(change, lambda x: tf.add(x, 1.0), "before_place")
    np.testing.assert_allclose(got, (np.float32(FEED) + 1) * 2)


@pytest.mark.parametrize("stage", ["before_place", "after_place", "after_fuse"])
def test_a_node_stands_for_its_only_value(stage):
    def change(graph):
        first = named(graph, "first")
        third = graph.insert("AddN", [[first, graph.insert("Neg", [first]), first]])
        graph.replace_input(named(graph, "last"), 0, third)
        with pytest.raises(
            TypeError, match="stands for no single value: its values are .*:0 of .*:1 of"
        ):
            graph.insert("Neg", [named(graph, "both")])
        with pytest.raises(TypeError, match="stands for no single value: its values are none"):
            graph.replace_input(named(graph, "last"), 0, named(graph, "nothing"))

    def build(x):
        first = tf.add(x, 1.0, name="first")
        both = tf.unique(x, name="both")
        with tf.control_dependencies([tf.no_op(name="nothing"), both.y]):
            return tf.tanh(tf.sin(first, name="hidden"), name="last")

    got = run(change, build, stage)
    np.testing.assert_allclose(got, np.tanh(np.float32(FEED) + 1), rtol=1e-6)
