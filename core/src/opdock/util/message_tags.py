"""Messages in which ops are named by tags, `{{node name}}`, with the lines that made them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation

__all__ = ["interpolate", "parse_message"]

_NAME = r"[A-Za-z0-9_.][A-Za-z0-9_.\-/]*?"
_TAG = re.compile(rf"\{{\{{({_NAME}) ({_NAME})\}}\}}")


class ParseTag(NamedTuple):
    """What a tag says: the kind of thing, and its name."""

    type: str
    name: str


def parse_message(message: str) -> tuple[list[str], list[ParseTag]]:
    """What is between the tags of a message, and the tags: one less than the former.

    "123{{node a}}456" gives (["123", "456"], [("node", "a")]).
    """
    between, tags, end = [], [], 0
    for match in _TAG.finditer(message):
        between.append(message[end : match.start()])
        tags.append(ParseTag(match[1], match[2]))
        end = match.end()
    return [*between, message[end:]], tags


def interpolate(error_message: str, graph: Graph) -> str:
    """The message with the line that made each op that it names, and those of the op's inputs.

    Args:
        error_message: a text with tags: `{{node name}}`, `{{colocation_node name}}`, and
            `{{function_node name}}`, which is left out.
        graph: where the ops are; tags of those that it has not stay as they are.
    """
    between, tags = parse_message(error_message)
    ops = [_operation(graph, tag.name) for tag in tags]
    prefix = _common_folder(about for op in ops if op is not None for about in (op, *_sources(op)))
    text = ""
    sources: list[str] = []
    placed: list[str] = []
    for before, tag, op in zip(between, tags, ops, strict=False):
        text += before
        if tag.type == "function_node":
            continue
        if op is None or tag.type not in ("node", "colocation_node"):
            text += f"{{{{{tag.type} {tag.name}}}}}"
        elif tag.type == "node":
            text += f"node {op.name}{_defined_at(op, prefix)} "
            sources += _source_lines(op, prefix)
        else:
            device = _device_summary(op)
            text += f"node {op.name}{_defined_at(op, prefix)} placed on device {device} "
            placed.append(f"{_colocation_summary(op)}\n{device}")
    text += between[-1]
    if sources:
        text += "\n\nErrors may have originated from an input operation." + "\n".join(sources)
    if placed:
        text += "Additional information about colocations:" + "\n".join(placed)
    return text


def _operation(graph: Graph, name: str) -> Operation | None:
    try:
        return graph.get_operation_by_name(name)
    except KeyError:
        return None


def _sources(op: Operation) -> list[Operation]:
    return list(dict.fromkeys([*(t.op for t in op.inputs), *op.control_inputs]))


def _common_folder(ops: Iterable[Operation]) -> str:
    files = {frame[0] for op in ops for frame in op.traceback}
    folders = [os.path.dirname(file) for file in files if os.path.isabs(file)]
    return os.path.commonpath(folders) if folders else ""


def _defined_at(op: Operation, prefix: str) -> str:
    frames = op.traceback
    if not frames:
        return ""
    file, line = frames[-1][:2]
    return f" (defined at {file.removeprefix(prefix)}:{line})"


def _source_lines(op: Operation, prefix: str) -> list[str]:
    said = {_defined_at(op, prefix)}
    lines = []
    for source in _sources(op):
        where = _defined_at(source, prefix)
        if where not in said:
            said.add(where)
            lines.append(f" {source.name}{where}")
    if not lines:
        return []
    return [f"\nInput Source operations connected to node {op.name}:\n" + "\t\n".join(lines)]


def _device_summary(op: Operation) -> str:
    if not op.device:
        return f"No device assignments were active during op '{op.name}' creation."
    return (
        f"Device assignments active during op '{op.name}' creation:\n"
        f"  with tf.device({op.device}): <{op.user_line}>"
    )


def _colocation_summary(op: Operation) -> str:
    groups: list[Any] = [g for g in op.colocation_groups() if g != f"loc:@{op.name}".encode()]
    if not groups:
        return f"No node-device colocations were active during op '{op.name}' creation."
    lines = [
        f"  with tf.colocate_with({group.decode().removeprefix('loc:@')}): <{op.user_line}>"
        for group in groups
    ]
    return "\n".join([f"Node-device colocations active during op '{op.name}' creation:", *lines])
