"""Views as the messages that programs get: GraphNodeProto and MultiGraphNodeProto."""

from __future__ import annotations

from typing import Any

from opdock.profiler.figures import Figures
from opdock.profiler.items import Item
from opdock.profiler.model import Model, ProfiledNode
from opdock.profiler.printing import input_shapes
from opdock.profiler.settings import Settings

__all__ = ["as_message"]


def as_message(root: Item, model: Model, settings: Settings) -> Any:
    """A view as a message: MultiGraphNodeProto where items stand for several nodes."""
    from opdock.io import protos

    made = protos.MultiGraphNodeProto() if root.groups else protos.GraphNodeProto()
    waiting = [(root, made)]
    while waiting:
        item, message = waiting.pop()
        message.name = item.name
        _set(message, item.own, "")
        _set(message, item.total, "total_")
        if item.groups:
            for node in item.counted:
                _describe(message.graph_nodes.add(), node, model, settings, alone=True)
        elif item.nodes:
            _describe(message, item.nodes[0], model, settings)
        waiting.extend((child, message.children.add()) for child in item.children)
    return made


def _set(message: Any, figures: Figures, prefix: str) -> None:
    for name, value in zip(Figures._fields, figures, strict=True):
        if prefix + name in message.DESCRIPTOR.fields_by_name:
            setattr(message, prefix + name, value)


def _describe(
    message: Any, node: ProfiledNode, model: Model, settings: Settings, alone: bool = False
) -> None:
    """Says what a node is; of one that stands for itself `alone`, its figures too."""
    if node.device:
        message.devices.append(node.device)
    for index, sizes in input_shapes(node, model).items():
        shape = message.input_shapes[index]
        shape.unknown_rank = not sizes
        for size in sizes:
            shape.dim.add(size=size)
    if alone:
        message.name = node.name
        figures = node.figures(settings.step)
        _set(message, figures, "")
        _set(message, figures, "total_")
