"""Functions of a GraphDef that no program wrote: chains, cycles, and numbers without end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import opdock as tf
from opdock.graph.serial.function_def import FunctionLibraryReader
from opdock.io import protos


def node(name: str, op: str, *inputs: str, **attrs: Any) -> Any:
    made = protos.NodeDef(name=name, op=op, input=inputs)
    for key, value in attrs.items():
        if isinstance(value, str):
            made.attr[key].func.name = value
        elif isinstance(value, list):
            made.attr[key].list.type.extend(value)
        else:
            made.attr[key].type = value
    return made


def function(name: str, nodes: Sequence[Any], result: str) -> Any:
    """A function of a number."""
    made = protos.FunctionDef(node_def=nodes, ret={"y": result})
    made.signature.name = name
    made.signature.input_arg.add(name="x", type=1)
    made.signature.output_arg.add(name="y", type=1)
    return made


def called(last: str, *functions: Any) -> Any:
    """A graph that calls one of the functions, and nothing else."""
    graph = protos.GraphDef()
    graph.versions.producer = tf.GRAPH_DEF_VERSION
    graph.library.function.extend(functions)
    one = graph.node.add(name="one", op="Const")
    one.attr["dtype"].type = 1
    one.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(1.0))
    graph.node.append(node("r", last, "one"))
    return graph


def run(graph_def: Any) -> Any:
    with tf.Graph().as_default():
        (result,) = tf.import_graph_def(graph_def, return_elements=["r:0"], name="")
        with tf.Session() as session:
            return session.run(result)


def chain(length: int, calls: int = 1) -> Any:
    """Functions each of which calls the one before, the first of which negates."""
    made = [function("F0", [node("a", "Neg", "x", T=1)], "a:y:0")]
    for i in range(1, length):
        values = ["x", *(f"n{k}:y:0" for k in range(calls))]
        nodes = [node(f"n{k}", f"F{i - 1}", values[k]) for k in range(calls)]
        made.append(function(f"F{i}", nodes, values[-1]))
    return called(f"F{length - 1}", *made)


def test_a_chain_of_calls_is_not_built_within_itself(monkeypatch):
    deepest = 0
    build = FunctionLibraryReader._build

    def watched(self: Any, *arguments: Any) -> Any:
        nonlocal deepest
        deepest = max(deepest, len(self._open))
        return build(self, *arguments)

    monkeypatch.setattr(FunctionLibraryReader, "_build", watched)
    assert run(chain(1000)) == -1.0
    assert deepest == 2


def test_calls_that_come_to_a_billion_nodes_are_refused():
    """Thirty functions; without a look ahead, memory and time without end."""
    with pytest.raises(tf.errors.ResourceExhaustedError, match="comes to 2684354557 nodes"):
        run(chain(30, calls=2))


def test_calls_that_come_to_a_thousand_nodes_are_not():
    assert run(chain(10, calls=2)) == 1.0


@pytest.mark.parametrize(
    "functions",
    [
        [function("F", [node("a", "F", "x")], "a:y:0")],
        [function("F", [node("a", "G", "x")], "a:y:0"),
         function("G", [node("a", "F", "x")], "a:y:0")],
        [function("F", [node("a", "G", "x")], "a:y:0"),
         function("G", [node("a", "H", "x")], "a:y:0"),
         function("H", [node("a", "G", "x")], "a:y:0")],
        [function("F", [node("a", "PartitionedCall", "x", Tin=[1], Tout=[1], f="F")],
                  "a:output:0")],
        [function("F", [node("a", "If", "x", "x", Tcond=1, Tin=[1], Tout=[1], then_branch="F",
                             else_branch="F")], "a:output:0")],
    ],
    ids=["itself", "each other", "beyond the first", "by attribute", "in a branch"],
)  # fmt: skip
def test_functions_that_call_themselves(functions):
    with pytest.raises(tf.errors.UnimplementedError, match="'[FGH]' calls itself"):
        run(called("F", *functions))


def test_the_gradient_of_a_function_takes_what_flows_back():
    """The misfit was looked for in the graph as written, where a call has no kernel."""
    graph_def = called("F", function("F", [node("a", "Exp", "x", T=1)], "a:y:0"))
    graph_def.library.gradient.add(function_name="F", gradient_func="F")
    with tf.Graph().as_default():
        names = ["r:0", "one:0"]
        y, x = tf.import_graph_def(graph_def, return_elements=names, name="")
        gradient = tf.gradients(y, x)
        with tf.Session() as session:
            with pytest.raises(tf.errors.InvalidArgumentError, match="calls 'F' with 2 arguments"):
                session.run(gradient)
