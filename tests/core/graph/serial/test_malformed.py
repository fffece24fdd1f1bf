"""GraphDefs that no program wrote: each was found by `make fuzz`, and gets an error with words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opdock as tf
from tests.core.graph.control.v1_graphs import BOOL, FLOAT, Text, branch, count_to


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def first_control_flow() -> Any:
    """A cond and a loop of TF 1's first kind."""
    g = Text()
    for name, value in (("p", True), ("x", 5.0), ("n", 3), ("two", 2.0)):
        g.const(name, value)
    branch(g, "cond", "p", "x", 2.0, 1.0)
    count_to(g, "while", "n", "x", "two")
    return g.graph_def


def functional() -> Any:
    """A cond and a loop with functions."""
    with tf.Graph().as_default() as graph:
        a = tf.placeholder_with_default(np.float32(2.0), [], name="a")
        tf.cond(a > 1, lambda: a * 2, lambda: a - 1, name="cond")
        tf.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * a), [0, a], name="while")
        return graph.as_graph_def()


def node(graph_def: Any, name: str) -> Any:
    """A node by its name, or by its op type."""
    return next(n for n in graph_def.node if name in (n.name, n.op))


def clear(graph_def: Any, name: str) -> None:
    del node(graph_def, name).input[:]


def cycle(graph_def: Any) -> None:
    """The predicate is an identity of itself."""
    node(graph_def, "cond/pred_id").input[0] = "cond/pred_id"


def one_sided(graph_def: Any) -> None:
    merge = node(graph_def, "cond/Merge")
    del merge.input[1:]
    merge.attr["N"].i = 1


def untyped(graph_def: Any) -> None:
    del node(graph_def, "cond/mul").attr["T"]


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (cycle, "in a cycle"),
        (one_sided, "no predicate tells its inputs apart"),
        (lambda g: clear(g, "cond/mul/Switch"), "expected 2 inputs, 0 specified"),
        (lambda g: clear(g, "while/LoopCond"), "expected 1 inputs, 0 specified"),
        (lambda g: clear(g, "while/Next_0"), "expected 1 inputs, 0 specified"),
        (lambda g: node(g, "while/Less").input.append("nothing"), "Unknown input node 'nothing'"),
        (lambda g: g.node.remove(node(g, "while/Merge_0")), "Unknown input node 'while/Merge_0'"),
        (lambda g: node(g, "cond/Merge").attr.pop("T"), "attr 'T'"),
    ],
)  # fmt: skip
def test_first_control_flow(break_it: Callable[[Any], Any], words: str) -> None:
    graph_def = first_control_flow()
    break_it(graph_def)
    with pytest.raises((ValueError, tf.errors.UnimplementedError), match=words):
        tf.import_graph_def(graph_def, name="")
    assert not tf.get_default_graph().get_operations()


def swap_functions(graph_def: Any) -> None:
    attrs = node(graph_def, "StatelessWhile").attr
    attrs["cond"].func.name, attrs["body"].func.name = (
        attrs["body"].func.name, attrs["cond"].func.name,
    )  # fmt: skip


def other_branch(graph_def: Any) -> None:
    body = node(graph_def, "StatelessWhile").attr["body"].func.name
    node(graph_def, "StatelessIf").attr["then_branch"].func.name = body


def of_a_reference(graph_def: Any) -> None:
    name = node(graph_def, "StatelessWhile").attr["body"].func.name
    (body,) = (f for f in graph_def.library.function if f.signature.name == name)
    body.signature.input_arg[1].is_ref = True


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (of_a_reference, "hands the value 'a:0' to function .*, its body, which takes a reference"),
        (swap_functions, "expects one value of function .*, its cond, which gives"),
        (other_branch, "hands .* to function .*, its then_branch, which takes"),
        (lambda g: node(g, "StatelessIf").attr["output_shapes"].list.shape.add(), "2 shapes"),
    ],
)
def test_functions_that_do_not_fit_their_node(
    break_it: Callable[[Any], Any], words: str
) -> None:  # fmt: skip
    graph_def = functional()
    break_it(graph_def)
    with pytest.raises(ValueError, match=words):
        tf.import_graph_def(graph_def, name="")


def test_a_loop_whose_results_are_no_vectors_as_it_says() -> None:
    graph_def = functional()
    node(graph_def, "StatelessWhile").attr["output_shapes"].list.shape[0].dim.add(size=0)
    tf.import_graph_def(graph_def, name="")
    with tf.Session() as session:
        assert session.run(["while:0", "while:1"]) == [5, 64.0]
        # A part of the loop is no operation of the graph, with which the rest could go on.
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"while:0 has shape \[\], but"):
            session.run("while:0")


def test_a_slice_whose_steps_would_be_millions() -> None:
    ends = [tf.placeholder(tf.int32, [size]) for size in (2, 2, 1 << 30)]
    with pytest.raises(ValueError, match="must be equal, but are 2 and 1073741824"):
        tf.strided_slice(tf.placeholder(tf.float32, [None, 4]), *ends)


def one_constant() -> Text:
    g = Text()
    g.const("c", 1.0)
    return g


def of_another_type(graph_def: Any) -> None:
    graph_def.node[0].attr["dtype"].type = BOOL


def of_no_tensor(graph_def: Any) -> None:
    graph_def.node[0].attr["value"].list.SetInParent()


def of_a_placeholder(graph_def: Any) -> None:
    graph_def.node[0].attr["dtype"].placeholder = "T"


def of_too_many(graph_def: Any) -> None:
    graph_def.node[0].attr["value"].tensor.tensor_shape.dim.add(size=2**62)


def of_two_that_would_be_many(graph_def: Any) -> None:
    tensor = graph_def.node[0].attr["value"].tensor
    tensor.tensor_shape.dim.add(size=2**34)
    tensor.float_val[:] = [1.0, 2.0]


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (of_another_type, r"Type mismatch between value \(float32\) and dtype \(bool\)"),
        (of_no_tensor, "an empty list, tensor expected"),
        (of_a_placeholder, "a value of type placeholder, type expected"),
        (of_too_many, "shape \\[4611686018427387904\\] has too many dimensions or elements"),
        (of_two_that_would_be_many, "17179869184 elements of type float32 is too large"),
        (lambda g: g.node[0].attr["_class"].list.i.append(1), r"list\(string\) expected"),
        (lambda g: g.node[0].attr["_output_shapes"].list.i.append(1), r"list\(shape\) expected"),
    ],
)
def test_constants(break_it: Callable[[Any], Any], words: str) -> None:
    graph_def = one_constant().graph_def
    break_it(graph_def)
    with pytest.raises(ValueError, match=words):
        tf.import_graph_def(graph_def, name="")


def test_a_call_with_another_type() -> None:
    g = one_constant()
    g.node("call", "f", "c")
    function = g.graph_def.library.function.add()
    function.signature.name = "f"
    function.signature.input_arg.add(name="a", type=BOOL)
    function.signature.output_arg.add(name="b", type=BOOL)
    function.ret["b"] = "a"
    with pytest.raises(ValueError, match="was passed float .* incompatible with expected bool"):
        tf.import_graph_def(g.graph_def, name="")


def test_a_map_of_another_dataset() -> None:
    """A dataset hands its function what that does not take."""
    with tf.Graph().as_default() as graph:
        data = tf.data.Dataset.from_tensors((1.0, 2.0)).map(lambda a, b: a + b)
        tf.data.make_one_shot_iterator(data).get_next(name="next")
        graph_def = graph.as_graph_def()
    factory = next(
        f for f in graph_def.library.function if any(n.op == "MapDataset" for n in f.node_def)
    )
    source = next(n for n in factory.node_def if n.op == "TensorDataset")
    del source.input[1:]
    del source.attr["Toutput_types"].list.type[1:]
    del source.attr["output_shapes"].list.shape[1:]
    tf.import_graph_def(graph_def, name="")
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="takes 2 arguments.* but 1 are given"),
    ):
        session.run("next:0")


@pytest.mark.parametrize("size", [2**33, 2**40])
def test_gigabytes_of_one_value_are_one_value(size: int) -> None:
    """In the graph and in its GraphDef: what runs it may have the memory or not."""
    made = tf.constant(1.0, shape=[size])
    assert made.shape.as_list() == [size]
    graph_def = tf.get_default_graph().as_graph_def()
    assert graph_def.ByteSize() < 200
    assert graph_def.node[0].attr["value"].tensor.dtype == FLOAT
    assert tf.contrib.util.constant_value(tf.fill([size], 2.0)).strides == (0,)
    if size == 2**40:
        with tf.Session() as session, pytest.raises(tf.errors.ResourceExhaustedError):
            session.run(made)


@pytest.mark.parametrize("limit", [float("inf"), float("nan"), 1e30])
def test_ranges_without_end(limit: float) -> None:
    with pytest.raises(ValueError, match="Requires .* <= 9223372036854775807"):
        tf.range(0.0, limit)
    fed = tf.placeholder(tf.float32, [])
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="Requires .* <= 9223372036854775807"),
    ):
        session.run(tf.range(0.0, fed), {fed: limit})


def test_a_class_that_is_no_group() -> None:
    """It says nothing of where a node is to be, whatever its bytes are."""
    graph_def = tf.GraphDef()
    node = graph_def.node.add(name="n", op="NoOp")
    node.attr["_class"].list.s.extend([b"\xff", b"other"])
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        session.run(graph.get_operation_by_name("n"))


def test_a_group_that_is_no_text() -> None:
    """As a hostile file had it: bytes that are no UTF-8, and no list at all."""
    for value, words in ((b"loc:@\xff", "unknown node"), (None, "value of type int")):
        graph_def = tf.GraphDef()
        node = graph_def.node.add(name="n", op="NoOp")
        if value is None:
            node.attr["_class"].i = 5
        else:
            node.attr["_class"].list.s.append(value)
        with tf.Graph().as_default(), pytest.raises(ValueError, match=words):
            tf.import_graph_def(graph_def, name="")
