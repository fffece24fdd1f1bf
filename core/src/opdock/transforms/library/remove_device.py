"""`remove_device`: nodes ask for no device."""

from __future__ import annotations

from typing import Any

from opdock.transforms.library.set_device import set_device
from opdock.transforms.registry import Context


def remove_device(graph_def: Any, context: Context) -> Any:
    """Takes the device off all nodes."""
    return set_device(graph_def, context, device="")
