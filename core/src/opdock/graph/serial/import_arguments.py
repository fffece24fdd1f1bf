"""The arguments of `import_graph_def`, checked, and how a NodeDef names its inputs."""

from __future__ import annotations

import re
from typing import Any, Final

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.io import protos

__all__ = [
    "NODE_NAME",
    "checked_graph_def",
    "checked_input_map",
    "checked_return_elements",
    "converted",
    "parse_input",
]

NODE_NAME: Final = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")


def checked_graph_def(graph_def: Any) -> Any:
    """A GraphDef, whoever's class it is of; TypeError if it is none."""
    if isinstance(graph_def, protos.GraphDef):
        return graph_def
    # A GraphDef of TensorFlow's own generated module has the same wire format.
    descriptor = getattr(graph_def, "DESCRIPTOR", None)
    if descriptor is not None and descriptor.name == "GraphDef":
        return protos.GraphDef.FromString(graph_def.SerializeToString())
    raise TypeError("graph_def must be a GraphDef proto.")


def checked_input_map(input_map: Any) -> dict[str, Any]:
    """The map with text as its keys; TypeError if it is no such map."""
    if input_map is None:
        return {}
    if not (isinstance(input_map, dict) and all(isinstance(k, (str, bytes)) for k in input_map)):
        raise TypeError("input_map must be a dictionary mapping strings to Tensor objects.")
    return {k.decode() if isinstance(k, bytes) else k: v for k, v in input_map.items()}


def checked_return_elements(elements: Any) -> list[str] | None:
    """The names as text; TypeError if they are no such list."""
    if elements is None:
        return None
    if isinstance(elements, str) or not all(isinstance(e, (str, bytes)) for e in elements):
        raise TypeError("return_elements must be a list of strings.")
    return [e.decode() if isinstance(e, bytes) else e for e in elements]


def converted(input_map: dict[str, Any], name: str | None) -> dict[str, Any]:
    """The values as tensors, or operations for control inputs ("^name")."""
    if all(isinstance(v, (Tensor, Operation)) for v in input_map.values()):
        return input_map
    if name == "":
        raise ValueError(
            "tf.import_graph_def() requires a non-empty `name` if `input_map` contains non-Tensor"
            " values. Try calling tf.convert_to_tensor() on `input_map` values before calling"
            " tf.import_graph_def()."
        )
    with name_scope("_inputs"):
        return {
            k: v if isinstance(v, (Tensor, Operation)) else convert_to_tensor(v)
            for k, v in input_map.items()
        }


def parse_input(text: str) -> tuple[str, int]:
    """("node", index) of a NodeDef input; index -1 for a control input.

    Raises:
        ValueError: the text names no input.
    """
    if text.startswith("^"):
        name, index = text[1:], -1
    else:
        name, colon, number = text.partition(":")
        if colon and not (number.isdecimal() and len(number) < 10):
            raise ValueError(f"Cannot convert {text!r} to a tensor name.")
        index = int(number) if colon else 0
    # An exported scope names what it needs from outside with a "$", for an input_map to give.
    if not NODE_NAME.match(name.removeprefix("$")):
        raise ValueError(f"Cannot convert {text!r} to a tensor name.")
    return name, index
