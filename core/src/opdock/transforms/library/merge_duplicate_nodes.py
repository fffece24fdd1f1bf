"""`merge_duplicate_nodes`: nodes that compute the same are one."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes import registry
from opdock.graph.serial.import_arguments import parse_input
from opdock.transforms.editor import Editor, copied, tensor_text
from opdock.transforms.order import in_order
from opdock.transforms.registry import Context


def merge_duplicate_nodes(graph_def: Any, context: Context) -> Any:
    """Merges nodes with the same op, inputs, attributes and device.

    Ops with state or an effect stay apart, and so do those that opdock does not know.
    """
    editor = Editor(graph_def, context.ends)
    seen: dict[bytes, str] = {}
    for name in in_order(editor, strict=False):
        node = editor.nodes[name]
        spec = registry.find(node.op)
        if spec is None or spec.is_stateful or spec.traits.placeholder:
            continue
        first = seen.setdefault(_content(node), name)
        if first == name or name in editor.keep:
            continue
        for user in editor.users(name):
            edges = map(parse_input, list(user.input))
            editor.set_inputs(
                user, [tensor_text(first if n == name else n, index) for n, index in edges]
            )
        editor.remove(name)
    return editor.result()


def _content(node: Any) -> bytes:
    content: bytes = copied(node, "").SerializeToString(deterministic=True)
    return content
