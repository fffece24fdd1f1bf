"""`remove_attribute`: takes an attribute off nodes."""

from __future__ import annotations

from typing import Any

from opdock.io import protos
from opdock.transforms.registry import Context


def remove_attribute(
    graph_def: Any, context: Context, *, attribute_name: str, op_name: str = "*"
) -> Any:
    """Deletes an attribute from all nodes, or from those of one op.

    Args:
        graph_def: a `GraphDef`.
        context: its inputs and outputs.
        attribute_name: the attribute's name.
        op_name: the op type; "*" for all.
    """
    out = protos.GraphDef()
    out.CopyFrom(graph_def)
    for node in out.node:
        if op_name in ("*", node.op):
            node.attr.pop(attribute_name, None)
    return out
