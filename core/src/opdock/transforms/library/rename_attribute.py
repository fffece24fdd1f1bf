"""`rename_attribute`: an attribute under another name."""

from __future__ import annotations

from typing import Any

from opdock.io import protos
from opdock.transforms.registry import Context


def rename_attribute(
    graph_def: Any, context: Context, *, old_attribute_name: str, new_attribute_name: str,
    op_name: str = "*",
) -> Any:  # fmt: skip
    """Renames an attribute of all nodes that have it, or of those of one op.

    Args:
        graph_def: a `GraphDef`.
        context: its inputs and outputs.
        old_attribute_name: its name.
        new_attribute_name: the name that it gets.
        op_name: the op type; "*" for all.
    """
    out = protos.GraphDef()
    out.CopyFrom(graph_def)
    for node in out.node:
        if op_name in ("*", node.op) and old_attribute_name in node.attr:
            value = protos.AttrValue()
            value.CopyFrom(node.attr[old_attribute_name])
            del node.attr[old_attribute_name]
            node.attr[new_attribute_name].CopyFrom(value)
    return out
