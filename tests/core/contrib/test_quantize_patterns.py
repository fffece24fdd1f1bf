"""Patterns of ops, and who takes what: TensorFlow's modules beside its rewrites for 8 bits."""

from __future__ import annotations

from typing import Any

import pytest

import opdock as tf
from opdock.contrib.quantize.graph_matcher import (
    GraphMatcher,
    MatchResult,
    OneofPattern,
    OpTypePattern,
)
from opdock.mapping import resolve


@pytest.fixture
def graph() -> Any:
    """relu(split(y)[1] - x), and x + relu."""
    with tf.Graph().as_default() as made:
        x = tf.placeholder(tf.float32, [1], name="x")
        y = tf.placeholder(tf.float32, [2], name="y")
        relu = tf.nn.relu(tf.subtract(tf.split(y, 2, name="split")[1], x, name="sub"), name="relu")
        tf.add(x, relu, name="add")
        yield made


def names(pattern: Any, graph: tf.Graph) -> list[str]:
    found = [result.get_op(pattern) for result in GraphMatcher(pattern).match_graph(graph)]
    return [op.name for op in found if op is not None]


def test_a_match_has_ops_and_the_results_between_them(graph: tf.Graph) -> None:
    split = OpTypePattern("*", name="split")
    relu = OpTypePattern("Relu|Relu6", inputs=[OpTypePattern("Sub", inputs=[split, "Placeholder"])])
    (found,) = GraphMatcher(relu).match_graph(graph)
    assert (
        found.get_tensor(split) is found.get_tensor("split") is graph.get_tensor_by_name("split:1")
    )
    assert found.get_op("split") is graph.get_operation_by_name("split")
    assert found.get_tensor(relu) is None
    assert (found.get_op("other"), found.get_tensor(OpTypePattern("*"))) == (None, None)
    with pytest.raises(ValueError, match="is a int, not a Pattern"):
        found.get_op(7)  # type: ignore[arg-type]


def test_the_order_of_inputs(graph: tf.Graph) -> None:
    def add(**options: Any) -> OpTypePattern:
        return OpTypePattern("Add|AddV2", inputs=["Relu", "Placeholder"], **options)

    assert names(add(), graph) == []
    assert names(add(ordered_inputs=False), graph) == ["add"]
    assert names(OpTypePattern("Add|AddV2", inputs=["*"]), graph) == []
    with pytest.raises(ValueError, match="9 inputs: only 8"):
        OpTypePattern("*", inputs=["*"] * 9, ordered_inputs=False)
    assert names(OpTypePattern("AddN", inputs=["*"] * 9), graph) == []


def test_an_order_that_fails_leaves_nothing(graph: tf.Graph) -> None:
    """The first input matches `either` before the second fails."""
    either = OneofPattern([OpTypePattern("Placeholder", name="seen"), OpTypePattern("Relu")])
    add = OpTypePattern(
        "Add|AddV2", inputs=[either, OpTypePattern("Placeholder")], ordered_inputs=False
    )
    (found,) = GraphMatcher(add).match_graph(graph)
    assert found.get_op("seen") is None


def test_one_of_several(graph: tf.Graph) -> None:
    first, second = OpTypePattern("Sub", name="op"), OpTypePattern("*", name="op")
    matcher = GraphMatcher(OneofPattern([first, second]))
    found = {result.get_op("op"): result for result in matcher.match_graph(graph)}
    assert len(found) == len(graph.get_operations())
    sub = graph.get_operation_by_name("sub")
    assert [op for op, result in found.items() if result.get_op(first)] == [sub]
    result = MatchResult()
    result.add(first, sub, None)
    with pytest.raises(ValueError, match="Name op is already bound"):
        result.add(second, sub, None)


def test_who_takes_what(graph: tf.Graph) -> None:
    x = graph.get_tensor_by_name("x:0")
    tf.gradients(graph.get_tensor_by_name("add:0"), x)
    users = resolve.lookup("contrib.quantize.python.input_to_ops", "InputToOps")(graph)
    expected = {graph.get_operation_by_name(name) for name in ("sub", "add")}
    taken = {op for op in users.ConsumerOperations(x.op) if not op.name.startswith("gradients/")}
    assert taken == users.ConsumerOperations(x.op) == expected
    assert users.mapping[x] == expected
    assert users.ConsumerOperations(graph.get_operation_by_name("add")) == set()
