"""`strip_unused_nodes`: only what leads from the inputs to the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock import dtypes, errors
from opdock.dtypes import DType
from opdock.transforms.editor import Editor, node_name
from opdock.transforms.reach import needed
from opdock.transforms.registry import Context


def strip_unused_nodes(
    graph_def: Any, context: Context, *, type: str = "float", shape: str | None = None,
    name: tuple[str, ...] = (), type_for_name: tuple[str, ...] = (),
    shape_for_name: tuple[str, ...] = (),
) -> Any:  # fmt: skip
    """Removes what the outputs do not need; inputs become placeholders.

    Args:
        graph_def: a `GraphDef`.
        context: its inputs and outputs.
        type: the type of the placeholders, for example int32, float or quint8.
        shape: their shape, dimensions with commas between them, -1 for any; a scalar if not given.
        name: inputs for which types or shapes follow.
        type_for_name: the type of each of these.
        shape_for_name: the shape of each.

    Raises:
        InvalidArgumentError: an input or an output does not exist, an option is malformed, or there
            are not as many types or shapes as names.
    """
    for option, values in (("type_for_name", type_for_name), ("shape_for_name", shape_for_name)):
        if values and len(values) != len(name):
            raise errors.InvalidArgumentError(
                None, None,
                f"You must pass a '{option}' arg for every 'name', e.g. "
                f"strip_unused_nodes(name=foo, {option}=..., name=bar, {option}=...)",
            )  # fmt: skip
    types = dict(zip(name, map(_type, type_for_name), strict=False))
    shapes = dict(zip(name, map(_shape, shape_for_name), strict=False))
    plain = _type(type), () if shape is None else _shape(shape)
    editor = Editor(graph_def, context.ends)
    for text in dict.fromkeys(node_name(text) for text in context.inputs):
        node = editor.nodes.get(text)
        if node is not None and node.op != "Placeholder":
            editor.make(
                "Placeholder", text, dtype=types.get(text, plain[0]),
                shape=shapes.get(text, plain[1]),
            )  # fmt: skip
    kept = needed(editor, context, "strip_unused_nodes")
    for node in editor:
        if node.name not in kept:
            editor.remove(node.name)
    return editor.result()


def _type(text: str) -> DType:
    try:
        return dtypes.as_dtype(text)
    except TypeError:
        raise errors.InvalidArgumentError(
            None, None, f"strip_unused_nodes: Couldn't understand type argument '{text}'"
        ) from None


def _shape(text: str) -> Sequence[int | None]:
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        sizes = [-2]
    if min(sizes) < -1:
        raise errors.InvalidArgumentError(
            None, None, f"strip_unused_nodes: Couldn't parse as shape: '{text}'"
        )
    return tuple(None if size < 0 else size for size in sizes)
