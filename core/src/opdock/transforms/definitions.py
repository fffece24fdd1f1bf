"""What an op's definition says of a NodeDef: attributes, and the types of inputs and outputs."""

from __future__ import annotations

from typing import Any

from opdock import errors
from opdock.dtypes import DType
from opdock.graph.nodes import registry
from opdock.graph.serial.attr_proto import native_attr
from opdock.graph.serial.graphdef import argument_dtypes

__all__ = ["attribute", "input_types", "output_types"]


def attribute(node: Any, name: str) -> Any:
    """An attribute as a native value: the default if the node has none, None without that.

    Raises:
        InvalidArgumentError: the value is not of the type that the op's definition says.
    """
    spec = registry.find(node.op)
    if name in node.attr:
        kind = None if spec is None else spec.attr_type(name)
        try:
            return native_attr(node.attr[name], kind)
        except (TypeError, ValueError) as e:
            raise errors.InvalidArgumentError(
                None, None, f"Attr '{name}' of node '{node.name}': {e}"
            ) from None
    found = None if spec is None else spec.definition.attrs.get(name)
    return None if found is None else found.default


def input_types(node: Any) -> list[DType]:
    """The types of a node's data inputs.

    Raises:
        InvalidArgumentError: the op, or an attribute that says a type, is unknown.
    """
    return _types(node, outputs=False)


def output_types(node: Any) -> list[DType]:
    """The types of a node's outputs.

    Raises:
        InvalidArgumentError: the op, or an attribute that says a type, is unknown.
    """
    return _types(node, outputs=True)


def _types(node: Any, outputs: bool) -> list[DType]:
    spec = registry.find(node.op)
    if spec is None:
        raise errors.InvalidArgumentError(
            None, None, f"Op type not registered '{node.op}', of node '{node.name}'"
        )
    definition = spec.definition
    attrs = {key: attribute(node, key) for key in definition.attrs}
    missing = [key for key, value in attrs.items() if value is None and key not in node.attr]
    arguments = definition.outputs if outputs else definition.inputs
    for arg in arguments:
        for key in (arg.type_attr, arg.type_list_attr, arg.number_attr):
            if key in missing:
                raise errors.InvalidArgumentError(
                    None, None,
                    f"NodeDef missing attr '{key}' from Op<name={node.op}>; node '{node.name}'",
                )  # fmt: skip
    return argument_dtypes(spec, node.name, arguments, attrs)
