"""`tensorflow.python.framework.op_def_library`: nodes by the name of their op."""

from __future__ import annotations

from typing import Any, Final

from opdock.graph.nodes.operation import Operation
from opdock.graph.nodes.registry import find

__all__ = ["LIBRARY", "OpDefLibrary"]

_TYPES: Final = {"type_attr": "type", "number_attr": "int", "type_list_attr": "list(type)"}


class OpDefLibrary:
    """What old generated code made nodes with. It has all ops, whatever was added to it."""

    def add_op(self, op_def: Any) -> None:
        """Checks a definition.

        Raises:
            TypeError: its arguments and attributes do not go together.
            RuntimeError: opdock has no such op.
        """
        attrs = {attr.name: attr.type for attr in op_def.attr}
        for arg in (*op_def.input_arg, *op_def.output_arg):
            _check_argument(op_def.name, arg, attrs)
        if find(op_def.name) is None:
            raise RuntimeError(f"Unrecognized Op name {op_def.name}")

    def add_op_list(self, op_list: Any) -> None:
        """Checks the definitions of an OpList, as `add_op` does."""
        for op_def in op_list.op:
            self.add_op(op_def)

    def apply_op(self, op_type_name: str, name: str | None = None, **keywords: Any) -> Any:
        """Adds a node.

        Args:
            op_type_name: the op.
            name: a name for the operation.
            **keywords: its arguments and attributes.

        Raises:
            RuntimeError: there is no such op.
            TypeError: an argument or attribute is missing, unknown, or of another type.
            ValueError: a value is not allowed.
        """
        spec = find(op_type_name)
        if spec is None:
            raise RuntimeError(f"Unrecognized Op name {op_type_name}")
        definition = spec.definition
        for attr in definition.inferred:
            if attr in keywords:
                raise TypeError(f"Should not specify value for inferred attr '{attr}'.")
        inputs = {arg.name for arg in definition.inputs}
        attrs = {a: d for a, d in definition.attrs.items() if a not in definition.inferred}
        # Names that Python keeps for itself have an underscore at their end.
        given = {
            key if key in inputs or key in attrs else key.removesuffix("_"): value
            for key, value in keywords.items()
        }
        for arg in definition.inputs:
            if arg.name not in given:
                raise TypeError(f"No argument for input {arg.name}")
        for attr, wanted in attrs.items():
            if attr not in given and not wanted.has_default:
                raise TypeError(f"No argument for attr {attr}")
        extra = [key for key in given if key not in inputs and key not in attrs]
        if extra:
            raise TypeError(f"apply_op() got unexpected keyword arguments: {', '.join(extra)}")
        values = [given.pop(arg.name) for arg in definition.inputs]
        made = spec(*values, name=name, **given)
        # An op of one list, which is empty: elsewhere, whoever adds the node is given the node.
        is_list = len(definition.outputs) == 1 and definition.outputs[0].is_list
        return [] if is_list and isinstance(made, Operation) and not spec.stateful else made


def _check_argument(op: str, arg: Any, attrs: dict[str, str]) -> None:
    count = bool(arg.type) + bool(arg.type_attr) + bool(arg.type_list_attr)
    if count != 1:
        raise TypeError(f"Arg '{arg.name}' of '{op}' must have one type field not {count}")
    for role, wanted in _TYPES.items():
        attr = getattr(arg, role)
        if not attr:
            continue
        if attr not in attrs:
            raise TypeError(f"Inconsistent OpDef for '{op}', missing attr '{attr}'")
        if attrs[attr] != wanted:
            raise TypeError(f"Attr '{attr}' of '{op}' used as a {role} but has type {attrs[attr]}")


LIBRARY: Final = OpDefLibrary()
