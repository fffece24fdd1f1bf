"""`obfuscate_names`: short names that say nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, Final

from opdock.graph.serial.import_arguments import parse_input
from opdock.io import protos
from opdock.transforms.editor import node_name, tensor_text
from opdock.transforms.registry import Context

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def obfuscate_names(graph_def: Any, context: Context) -> Any:
    """Gives all nodes but inputs and outputs short names: "0", "1", ... "Z", "10", ..."""
    kept = {node_name(text) for text in context.ends}
    fresh = _fresh(kept)
    names = {n.name: n.name if n.name in kept else next(fresh) for n in graph_def.node}
    out = protos.GraphDef()
    out.CopyFrom(graph_def)
    for node in out.node:
        node.name = names[node.name]
        edges = map(parse_input, list(node.input))
        node.input[:] = [tensor_text(names[name], index) for name, index in edges]
        # A group is named after one of its nodes.
        groups = node.attr["_class"].list.s if "_class" in node.attr else []
        groups[:] = [_group(group, names) for group in groups]
    return out


def _group(text: bytes, names: dict[str, str]) -> bytes:
    name = text.decode().removeprefix("loc:@")
    return f"loc:@{names.get(name, name)}".encode()


def _fresh(taken: set[str]) -> Iterator[str]:
    for number in count():
        text, rest = _DIGITS[number % 62], number // 62
        while rest:
            text, rest = _DIGITS[rest % 62] + text, rest // 62
        if text not in taken:
            yield text
