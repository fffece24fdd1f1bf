"""The order of a GraphDef's nodes, and how large the images between them are."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from opdock.contrib.receptive_field.parse_layer_parameters import get_layer_params

__all__ = ["NodeInfo", "get_compute_order", "parse_graph_nodes"]


class NodeInfo(NamedTuple):
    """A node's place in the order, and height and width of the images that go in and come out."""

    order: int
    node: Any
    input_size: Any
    output_size: Any


def parse_graph_nodes(graph_def: Any) -> dict[str, Any]:
    """A GraphDef's nodes by name."""
    return {node.name: node for node in graph_def.node}


def get_compute_order(
    graph_def: Any, input_node_name: str = "", input_node_size: Any = None
) -> tuple[dict[str, NodeInfo], dict[str, Any]]:
    """The order in which a graph computes.

    Args:
        graph_def: a GraphDef.
        input_node_name: the node that gives the image; what is before it is not asked for.
        input_node_size: height and width of the image, if they are known.

    Returns:
        For each name a `NodeInfo`, whose `order` is the length of the longest way to the node; and
        the nodes by name.
    """
    nodes = parse_graph_nodes(graph_def)
    found: dict[str, NodeInfo] = {}
    if input_node_name in nodes:
        found[input_node_name] = NodeInfo(0, nodes[input_node_name], None, input_node_size)
    # A node waits on the stack for those before it: networks are deeper than Python's stack.
    waiting = list(nodes)
    while waiting:
        name = waiting[-1]
        before = [i.partition(":")[0] for i in nodes[name].input if not i.startswith("^")]
        unknown = [other for other in before if other not in found]
        if name not in found and unknown:
            waiting += unknown
            continue
        waiting.pop()
        if name not in found:
            found[name] = _info(nodes, name, [found[other] for other in before])
    return found, nodes


def _info(nodes: dict[str, Any], name: str, before: list[NodeInfo]) -> NodeInfo:
    order = max((info.order + 1 for info in before), default=0)
    # The image is the first thing that a node takes.
    size = before[0].output_size if before else None
    if size is None:
        return NodeInfo(order, nodes[name], None, None)
    made = get_layer_params(nodes[name], nodes, size, force=True)
    size_x, size_y, stride_x, stride_y, _, _, padding_x, padding_y = made
    output = [
        _output(size[0], size_y, stride_y, padding_y), _output(size[1], size_x, stride_x, padding_x)
    ]  # fmt: skip
    return NodeInfo(order, nodes[name], size, output)


def _output(length: Any, size: Any, stride: Any, padding: Any) -> int | None:
    if None in (length, size, stride, padding):
        return None
    found: int = math.ceil((length + padding - size + 1) / stride)
    return found
