"""Which nodes of a graph its outputs need."""

from __future__ import annotations

from opdock import errors
from opdock.graph.serial.import_arguments import parse_input
from opdock.transforms.editor import Editor
from opdock.transforms.registry import Context

__all__ = ["needed"]


def needed(editor: Editor, context: Context, transform: str) -> set[str]:
    """The nodes that outputs need when inputs are fed, the inputs among them.

    Args:
        editor: the graph.
        context: its inputs and outputs.
        transform: who asks, for messages.

    Raises:
        InvalidArgumentError: an input or an output does not exist.
    """
    for what, texts in (("input", context.inputs), ("output", context.outputs)):
        for text in texts:
            if parse_input(text)[0] not in editor.nodes:
                raise errors.InvalidArgumentError(
                    None, None, f"{transform}: the graph has no node '{text}', which is an {what}"
                )
    fed = {parse_input(text) for text in context.inputs}
    found = {name for name, _ in fed}
    waiting = [parse_input(text)[0] for text in context.outputs]
    while waiting:
        name = waiting.pop()
        # Of a node that is fed nothing else runs, unless another output is asked for.
        if name in found:
            continue
        found.add(name)
        edges = [parse_input(text) for text in editor.nodes[name].input]
        waiting += [source for source, index in edges if (source, index) not in fed]
    return found
