"""`fold_constants`: parts of a graph that are the same in every step become constants."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock import errors
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.serial.importer import import_graph_def, parse_input
from opdock.runtime.inspect.constants import constant_tensors
from opdock.transforms.editor import Editor, node_name, tensor_text
from opdock.transforms.reach import needed
from opdock.transforms.registry import Context


def fold_constants(
    graph_def: Any, context: Context, *, clear_output_shapes: bool = True,
    exclude_op: tuple[str, ...] = (), exclude_node: tuple[str, ...] = (),
    max_constant_size_in_bytes: int = 10 << 20,
) -> Any:  # fmt: skip
    """Replaces what needs no input by its value, as the compiler does before a step.

    Nodes that the outputs do not need go. Inputs become placeholders.

    Args:
        graph_def: a `GraphDef`.
        context: the inputs, which may have any value, and the outputs.
        clear_output_shapes: drops the attributes "_output_shapes", which may be out of date.
        exclude_op: op types to leave.
        exclude_node: nodes to leave.
        max_constant_size_in_bytes: values that take more are left as they are.

    Raises:
        InvalidArgumentError: an input or an output does not exist, an input is no placeholder, or
            the graph cannot be imported.
    """
    editor = Editor(graph_def, context.ends)
    if clear_output_shapes:
        for node in editor:
            node.attr.pop("_output_shapes", None)
    kept = needed(editor, context, "fold_constants")
    excluded = {n.name for n in editor if n.op in exclude_op or n.name in exclude_node}
    for tensor, value in _values(editor.result(), context, kept, excluded).items():
        if value.nbytes <= max_constant_size_in_bytes:
            _put_constant(editor, tensor, value)
    kept = needed(editor, context, "fold_constants")
    for node in editor:
        if node.name not in kept:
            editor.remove(node.name)
    _make_placeholders(editor, context)
    return editor.result()


def _values(
    graph_def: Any, context: Context, kept: set[str], excluded: set[str]
) -> dict[Tensor, np.ndarray[Any, Any]]:
    with Graph().as_default() as graph:
        try:
            import_graph_def(graph_def, name="")
        except ValueError as e:
            raise errors.InvalidArgumentError(None, None, f"fold_constants: {e}") from None
    operations = {op.name: op for op in graph.get_operations()}
    fed = [t for name in excluded & operations.keys() for t in operations[name].outputs]
    for text in context.inputs:
        name, index = parse_input(text)
        fed += operations[name].outputs[index : index + 1] if name in operations else []
    asked = [op for name, op in operations.items() if name in kept and op.type != "Const"]
    return constant_tensors(asked, dict.fromkeys(fed))


def _put_constant(editor: Editor, tensor: Tensor, value: np.ndarray[Any, Any]) -> None:
    op = tensor.op
    node = editor.nodes.get(op.name)
    if node is None or node.op != op.type:
        return  # loops and conditions that were read have nodes of their own
    if len(op.outputs) == 1:
        device = node.device
        editor.constant(op.name, value, tensor.dtype)
        editor.nodes[op.name].device = device
        return
    index = tensor.value_index
    name = editor.unique(f"{op.name}/folded_{index}")
    editor.redirect(tensor_text(op.name, index), editor.constant(name, value, tensor.dtype))


def _make_placeholders(editor: Editor, context: Context) -> None:
    names: Iterable[str] = dict.fromkeys(node_name(text) for text in context.inputs)
    for name in names:
        node = editor.nodes[name]
        if node.op == "PlaceholderWithDefault":
            editor.set_inputs(node, ())
            node.op = "Placeholder"
        elif node.op != "Placeholder":
            raise errors.InvalidArgumentError(
                None, None,
                f"Input '{name}' was expected to be a Placeholder or PlaceholderWithDefault op, "
                f"but was {node.op}",
            )  # fmt: skip
