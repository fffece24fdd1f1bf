"""`sort_by_execution_order`: nodes stand after their inputs."""

from __future__ import annotations

from typing import Any

from opdock.transforms.editor import Editor
from opdock.transforms.order import in_order
from opdock.transforms.registry import Context


def sort_by_execution_order(graph_def: Any, context: Context) -> Any:
    """Sorts the nodes so that they can run one after the other.

    Raises:
        InvalidArgumentError: there is a cycle that is no loop.
    """
    editor = Editor(graph_def, context.ends)
    editor.nodes = {name: editor.nodes[name] for name in in_order(editor)}
    return editor.result()
