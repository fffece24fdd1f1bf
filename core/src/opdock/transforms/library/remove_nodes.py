"""`remove_nodes`: who takes a node's result takes its input."""

from __future__ import annotations

from typing import Any

from opdock.graph.serial.import_arguments import parse_input
from opdock.transforms.editor import Editor
from opdock.transforms.registry import Context


def remove_nodes(
    graph_def: Any, context: Context, *, op: tuple[str, ...], max_inputs: int = 1
) -> Any:
    """Removes nodes of some ops, as is right for those that hand on their first input.

    Inputs and outputs of the graph stay. Results change if the op did more, and conditions and
    loops that are made of switches need their Identity ops.

    Args:
        graph_def: a `GraphDef`.
        context: its inputs and outputs.
        op: op types.
        max_inputs: the most data inputs that a node may have.
    """
    editor = Editor(graph_def, context.ends)
    for node in editor:
        data = [text for text in node.input if not text.startswith("^")]
        if node.op not in op or node.name in editor.keep or not 1 <= len(data) <= max_inputs:
            continue
        # What waited for the node waits for its first input, and for what it waited for itself.
        waited = dict.fromkeys([parse_input(data[0])[0], *(t[1:] for t in node.input[len(data) :])])
        for user in editor.users(node.name):
            inputs: list[str] = []
            for text in user.input:
                name, index = parse_input(text)
                if name != node.name:
                    inputs.append(text)
                elif index >= 0:
                    inputs.append(data[0])
                else:
                    inputs += [f"^{source}" for source in waited]
            inputs += [text for text in node.input[len(data) :] if text not in inputs]
            editor.set_inputs(user, _unique_controls(inputs))
        editor.remove(node.name)
    return editor.result()


def _unique_controls(inputs: list[str]) -> list[str]:
    data = [text for text in inputs if not text.startswith("^")]
    return [*data, *dict.fromkeys(text for text in inputs if text.startswith("^"))]
