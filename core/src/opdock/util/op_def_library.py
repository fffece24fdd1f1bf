"""`tensorflow.python.framework.op_def_library`: nodes by the name of their op."""

from __future__ import annotations

from typing import Any, Final

from opdock.api import raw_ops
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
        if find(op_type_name) is None:
            raise RuntimeError(f"Unrecognized Op name {op_type_name}")
        return raw_ops.generated(op_type_name)(name=name, **keywords)


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
