"""`insert_logging`: nodes whose values are printed as they are computed."""

from __future__ import annotations

from typing import Any

from opdock import errors
from opdock.graph.serial.import_arguments import parse_input
from opdock.transforms.definitions import output_types
from opdock.transforms.editor import Editor, tensor_text
from opdock.transforms.registry import Context


def insert_logging(
    graph_def: Any, context: Context, *, op: tuple[str, ...] = (), prefix: tuple[str, ...] = (),
    show_op: bool = False, show_name: bool = False, message: str = "", first_n: int = -1,
    summarize: int = 1024,
) -> Any:  # fmt: skip
    """Adds a Print after nodes, of all their outputs that somebody takes.

    Args:
        graph_def: a `GraphDef`.
        context: its inputs and outputs.
        op: op types after which to print; all when there is none.
        prefix: how the names of the nodes begin; all when there is none.
        show_op: whether the op type comes before the values.
        show_name: whether the node's name comes before the values.
        message: comes before the values.
        first_n: how often to print; -1 for always.
        summarize: how many values of an output.

    Raises:
        InvalidArgumentError: a node's op, or one of its attributes, is unknown.
    """
    editor = Editor(graph_def, context.ends)
    for node in editor:
        if (op and node.op not in op) or (prefix and not node.name.startswith(prefix)):
            continue
        taken = sorted(
            {
                index
                for user in editor.users(node.name)
                for name, index in map(parse_input, user.input)
                if name == node.name and index >= 0
            }
        )
        if not taken:
            continue
        name = editor.unique(f"{node.name}__print__")
        told = f";{node.op};" * show_op + f";{name};" * show_name + message
        types = output_types(node)
        if taken[-1] >= len(types):
            raise errors.InvalidArgumentError(
                None, None, f"insert_logging: '{node.name}' has no output {taken[-1]}"
            )
        # Everybody takes the first output through the Print, so that it runs.
        editor.redirect(node.name, name)
        editor.make(
            "Print", name, [tensor_text(node.name, i) for i in (0, *taken)], T=types[0],
            U=[types[i] for i in taken], message=told, first_n=first_n, summarize=summarize,
        )  # fmt: skip
    return editor.result()
