"""What plugins bring for libraries above the runtime, which do not reach the plugin manager."""

from __future__ import annotations

from opdock.plugins.manager import get_manager
from opdock.plugins.records import GraphTransform

__all__ = ["graph_transforms"]


def graph_transforms() -> list[tuple[str, GraphTransform]]:
    """The graph transforms of all plugins, each with its plugin's name."""
    return get_manager().graph_transforms()
