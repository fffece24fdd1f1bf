"""`add_default_attributes`: attributes that nodes leave to their ops' definitions."""

from __future__ import annotations

from typing import Any

from opdock.graph.serial.import_compat import fill_in_defaults
from opdock.io import protos
from opdock.transforms.registry import Context


def add_default_attributes(graph_def: Any, context: Context) -> Any:
    """Writes the default of each attribute that a node does not have.

    Nodes of ops that nobody defines, and of functions, stay as they are.
    """
    out = protos.GraphDef()
    out.CopyFrom(graph_def)
    fill_in_defaults(out)
    return out
