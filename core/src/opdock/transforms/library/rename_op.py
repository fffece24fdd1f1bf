"""`rename_op`: an op under another name."""

from __future__ import annotations

from typing import Any

from opdock.io import protos
from opdock.transforms.registry import Context


def rename_op(graph_def: Any, context: Context, *, old_op_name: str, new_op_name: str) -> Any:
    """Changes the op type of all nodes that have one.

    Args:
        graph_def: a `GraphDef`.
        context: its inputs and outputs.
        old_op_name: the op type.
        new_op_name: the one that takes its place.
    """
    out = protos.GraphDef()
    out.CopyFrom(graph_def)
    for node in out.node:
        if node.op == old_op_name:
            node.op = new_op_name
    return out
