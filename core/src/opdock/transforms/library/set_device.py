"""`set_device`: the device that nodes ask for."""

from __future__ import annotations

from typing import Any

from opdock.io import protos
from opdock.transforms.registry import Context


def set_device(
    graph_def: Any, context: Context, *, device: str = "", if_default: bool = False
) -> Any:
    """Gives nodes a device.

    Args:
        graph_def: a `GraphDef`.
        context: its inputs and outputs.
        device: the device's name; empty for none.
        if_default: only to nodes that ask for none.
    """
    out = protos.GraphDef()
    out.CopyFrom(graph_def)
    for node in out.node:
        if not (if_default and node.device):
            node.device = device
    return out
