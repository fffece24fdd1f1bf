"""Operations as TF's NodeDef."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import OpSpec
from opdock.graph.serial.attr_proto import encode_attr
from opdock.io import protos

__all__ = ["fill_node_def", "input_name", "keep_group", "node_attr", "to_node_def"]


def to_node_def(op: Operation) -> Any:
    """An operation as a NodeDef."""
    node = protos.NodeDef()
    fill_node_def(op, node, None)
    return node


def fill_node_def(op: Operation, node: Any, functions: Callable[[Any], str] | None) -> None:
    """Writes an operation into an empty NodeDef."""
    node.name = op.name
    node.op = op.type
    node.device = op.device
    node.input.extend(input_name(t) for t in op.inputs)
    node.input.extend(f"^{c.name}" for c in op.control_inputs)
    for name, value in op.attrs.items():
        node.attr[name].CopyFrom(encode_attr(value, op.spec.attr_type(name), functions))


def keep_group(node: Any, here: Container[str]) -> None:
    """Leaves out of a NodeDef's colocation group whoever is not written beside it.

    Args:
        node: changed in place.
        here: the names of those that are.
    """
    if "_class" not in node.attr:
        return
    groups = node.attr["_class"].list.s
    kept = [g for g in groups if g.decode(errors="replace").removeprefix("loc:@") in here]
    del node.attr["_class"]
    if kept:
        node.attr["_class"].list.s.extend(kept)


def node_attr(spec: OpSpec, name: str, value: Any) -> Any:
    """The AttrValue of an attribute of an op, declared or not."""
    return encode_attr(value, spec.attr_type(name))


def input_name(tensor: Tensor) -> str:
    """A tensor as NodeDef names it: the first output has no index."""
    index = tensor.value_index
    return tensor.op.name if index == 0 else f"{tensor.op.name}:{index}"
