"""Nodes from NodeDefs: how a layer that stands for an op makes that op again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation
from opdock.graph.nodes.scopes import control_dependencies

__all__ = ["create_c_op", "record_gradient"]


def create_c_op(
    graph: Graph, node_def: Any, inputs: Sequence[Any], control_inputs: Sequence[Operation],
    op_def: Any = None,
) -> Operation:  # fmt: skip
    """Adds a node to a graph.

    Args:
        graph: the graph.
        node_def: the `NodeDef`; its name is the node's, whatever scope is open, and its inputs
            do not count.
        inputs: the tensors that the node takes; lists of them count as their items.
        control_inputs: what has to run before.
        op_def: not used: op types are known by their names.

    Returns:
        The operation.

    Raises:
        NotFoundError: there is no such op type.
        ValueError: the inputs do not fit it.
    """
    flat = [t for item in inputs for t in (item if isinstance(item, list | tuple) else [item])]
    attrs = {key: value for key, value in node_def.attr.items() if not key.startswith("_")}
    with graph.as_default(), control_dependencies(list(control_inputs)):
        return graph.create_op(node_def.op, flat, name=f"{node_def.name}/", attrs=attrs)


def record_gradient(op_name: str, inputs: Any, attrs: Any, outputs: Any) -> None:
    """Records nothing: the graph itself is what gradients are made of, and there is no tape."""
