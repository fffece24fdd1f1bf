"""`add_default_attributes`: attributes that nodes leave to their ops' definitions."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes import registry
from opdock.graph.serial.attr_proto import encode_attr
from opdock.io import protos
from opdock.transforms.registry import Context


def add_default_attributes(graph_def: Any, context: Context) -> Any:
    """Writes the default of each attribute that a node does not have.

    Nodes of ops that nobody defines, and of functions, stay as they are.
    """
    out = protos.GraphDef()
    out.CopyFrom(graph_def)
    for node in out.node:
        spec = registry.find(node.op)
        for attr in () if spec is None else spec.definition.attrs.values():
            if attr.has_default and attr.name not in node.attr:
                node.attr[attr.name].CopyFrom(encode_attr(attr.default, attr.type))
    return out
