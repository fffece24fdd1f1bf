"""What a TensorBoard plugin wants beside the events of a graph: files of its own."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

from opdock.graph.nodes.graph import Graph, get_default_graph

__all__ = ["PluginAsset", "get_all_plugin_assets", "get_plugin_asset"]

_PREFIX = "__tensorboard_plugin_asset__"


class PluginAsset(abc.ABC):
    """The files of one plugin for one graph; a `FileWriter` that adds the graph writes them.

    Attributes:
        plugin_name: the plugin's name, and that of the folder in `plugins/`.
    """

    plugin_name: ClassVar[str | None] = None

    @abc.abstractmethod
    def assets(self) -> dict[str, Any]:
        """The content of each file by its name."""


def get_plugin_asset(plugin_asset_cls: type[PluginAsset], graph: Graph | None = None) -> Any:
    """The one instance of a class of assets that a graph has, made when it is first asked for.

    Args:
        plugin_asset_cls: a `PluginAsset`.
        graph: the graph, the default graph when None.

    Raises:
        ValueError: the class has no plugin's name, or another class has it.
    """
    graph = get_default_graph() if graph is None else graph
    plugin = plugin_asset_cls.plugin_name
    if not plugin:
        raise ValueError(f"Class {plugin_asset_cls.__name__} has no plugin_name")
    found = graph.get_collection(_PREFIX + plugin)
    if not found:
        made = plugin_asset_cls()
        graph.add_to_collection(_PREFIX + plugin, made)
        graph.add_to_collection(_PREFIX, plugin)
        return made
    made = _only(found, plugin)
    if not isinstance(made, plugin_asset_cls):
        raise ValueError(
            f"Plugin name collision between classes {plugin_asset_cls.__name__} and"
            f" {type(made).__name__}"
        )
    return made


def get_all_plugin_assets(graph: Graph | None = None) -> list[Any]:
    """The instances that `get_plugin_asset` has made for a graph, the default graph when None.

    Raises:
        ValueError: somebody else has put more into the collection of a plugin.
    """
    graph = get_default_graph() if graph is None else graph
    plugins = graph.get_collection(_PREFIX)
    return [_only(graph.get_collection(_PREFIX + plugin), plugin) for plugin in plugins]


def _only(found: list[Any], plugin: str) -> Any:
    if len(found) != 1:
        raise ValueError(f"Collection for {_PREFIX}{plugin} had {len(found)} items, expected 1")
    return found[0]
