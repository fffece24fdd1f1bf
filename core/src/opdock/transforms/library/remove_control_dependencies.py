"""`remove_control_dependencies`: nodes wait for their data alone."""

from __future__ import annotations

from typing import Any

from opdock.io import protos
from opdock.transforms.registry import Context


def remove_control_dependencies(graph_def: Any, context: Context) -> Any:
    """Removes all control inputs."""
    out = protos.GraphDef()
    out.CopyFrom(graph_def)
    for node in out.node:
        node.input[:] = [text for text in node.input if not text.startswith("^")]
    return out
