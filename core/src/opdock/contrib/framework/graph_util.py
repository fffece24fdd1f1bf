"""Parts of GraphDefs that become one op, and the placeholders of graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from opdock.graph.nodes.graph import Graph
from opdock.io import protos
from opdock.transforms.editor import node_name

__all__ = ["fuse_op", "get_placeholders"]


def fuse_op(
    graph_def: Any, input_nodes: list[str], output_nodes: list[str], output_dtypes: Any,
    output_quantized: bool, op_name: str, op_type: str,
) -> Any:  # fmt: skip
    """A GraphDef in which one node stands for all between its inputs and its outputs.

    Each output node stays, and takes its result from the new node.

    Args:
        graph_def: the GraphDef.
        input_nodes, output_nodes: lists of names; an output node has one input.
        output_dtypes: the types of the outputs, as numbers.
        output_quantized: whether they are quantized.
        op_name, op_type: of the new node.

    Raises:
        TypeError: an argument is of another type, or a node between them needs one before the
            inputs that is no input.
        AssertionError: a node is missing.
    """
    if not isinstance(graph_def, protos.GraphDef):
        raise TypeError("graph_def must be a graph_pb2.GraphDef proto.")
    for name, given in (("input_nodes", input_nodes), ("output_nodes", output_nodes)):
        if isinstance(given, str):
            raise TypeError(f"{name} must be a list.")
    nodes = {node.name: node for node in graph_def.node}
    for name in [*input_nodes, *output_nodes]:
        assert name in nodes, f"{name} is not in graph"
    sources = {name: [node_name(i) for i in node.input] for name, node in nodes.items()}
    before = _reached(input_nodes, sources)
    needed = _reached(output_nodes, sources)
    borders = set(input_nodes)
    for name in needed - before - set(output_nodes):
        used = _reached([name], sources, borders) & before - borders
        if used:
            raise TypeError(f"Node {name} uses input {min(used)} not in input_nodes.")
    fused = protos.GraphDef(library=graph_def.library, versions=graph_def.versions)
    fused.node.extend(node for node in graph_def.node if node.name in before)
    whole = fused.node.add(name=op_name, op=op_type, input=input_nodes)
    whole.attr["_output_types"].list.type[:] = output_dtypes
    whole.attr["_output_quantized"].b = output_quantized
    for index, name in enumerate(output_nodes):
        assert len(nodes[name].input) == 1, f"{name} has other than one input"
        last = fused.node.add()
        last.CopyFrom(nodes[name])
        last.input[:] = [f"{op_name}:{index}" if index else op_name]
    fused.node.extend(node for node in graph_def.node if node.name not in before | needed)
    return fused


def _reached(
    begin: Iterable[str], sources: Mapping[str, list[str]], ends: Iterable[str] = ()
) -> set[str]:
    """All that these nodes need; what is needed by `ends` alone is not asked for."""
    found: set[str] = set()
    waiting = list(begin)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            if name not in ends:
                waiting += sources[name]
    return found


def get_placeholders(graph: Graph) -> list[Any]:
    """The tensors of a graph that are fed, in the order in which they were made.

    Args:
        graph: the graph.
    """
    kinds = ("Placeholder", "PlaceholderV2")
    return [op.outputs[0] for op in graph.get_operations() if op.type in kinds]
