"""Names of TF's internal tree that ask what an operation, a tensor or a name is."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.support import control_mode
from opdock.shapes import dimension_value

__all__ = [
    "has_second_control", "is_constant", "is_loop_constant_enter", "is_loop_enter", "is_loop_exit",
    "is_merge", "is_switch", "name_from_scope_name", "shape_tensor", "tensor_id",
]  # fmt: skip


def is_switch(op: Operation) -> bool:
    """Whether a node is a Switch."""
    return op.type in ("Switch", "RefSwitch")


def is_merge(op: Operation) -> bool:
    """Whether a node is a Merge."""
    return op.type in ("Merge", "RefMerge")


def is_loop_enter(op: Operation) -> bool:
    """Whether a node is an Enter."""
    return op.type in ("Enter", "RefEnter")


def is_loop_exit(op: Operation) -> bool:
    """Whether a node is an Exit."""
    return op.type in ("Exit", "RefExit")


def is_loop_constant_enter(op: Operation) -> bool:
    """Whether a node takes into a loop what no turn changes."""
    return is_loop_enter(op) and bool(op.get_attr("is_constant"))


def has_second_control(graph: Graph) -> bool:
    """Whether control flow that is built in a graph follows the rules of version 2."""
    return control_mode.second_version()


def is_constant(tensor_or_op: Any) -> bool:
    """Whether a tensor comes of a constant, or an operation is one."""
    op = tensor_or_op.op if isinstance(tensor_or_op, Tensor) else tensor_or_op
    kind: str = op.type
    return kind == "Const"


def shape_tensor(shape: Any) -> Tensor:
    """A shape, of numbers or dimensions, as a tensor of int32, or int64 if it is one."""
    if not isinstance(shape, (tuple, list)):
        return convert_to_tensor(shape, name="shape")
    sizes = tuple(dimension_value(size) for size in shape)
    return convert_to_tensor(sizes, None if sizes else dtypes.int32, name="shape")


def tensor_id(tensor: Any) -> int:
    """A number that no other tensor has while this one lives."""
    return id(tensor)


def name_from_scope_name(name: str) -> str:
    """The name of the operation that has a scope's name: without the slash at its end."""
    return name.removesuffix("/")
