"""Nodes that a plugin's pass asks for: built as the user's are, and placed beside their neighbour.

The op's definition checks types, fills in attributes and infers shapes, as in any graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opdock.compiler.ir.block import Node, Value
from opdock.compiler.place.ladder import body_nodes, trace_apart
from opdock.compiler.place.target import Target, parsed
from opdock.compiler.views.node import ValueView
from opdock.graph.control.func_graph import arg_op
from opdock.graph.nodes import registry
from opdock.graph.nodes.operation import Tensor

if TYPE_CHECKING:
    from opdock.compiler.place.placer import Placer

__all__ = ["make_nodes"]


def make_nodes(
    op: str, inputs: Sequence[Any], attrs: dict[str, Any], name: str, device: str,
    near: Node | None, maker: str, placer: Placer | None,
) -> list[Node]:  # fmt: skip
    """The nodes for one op: constants among its inputs, then the op itself.

    Args:
        op: the op type.
        inputs: by argument; values are `ValueView`, anything else becomes a constant.
        attrs: by name.
        name: of the node; after `near` and the op if empty.
        device: the device to ask for, or on which to run; as `near` if empty.
        near: the neighbour whose line errors name.
        maker: the pass, in words.
        placer: places the nodes; None leaves that to the compiler.

    Raises:
        ValueError, TypeError: they cannot be made, or placed.
    """
    spec = registry.find(op)
    if spec is None:
        raise ValueError(f"there is no op type {op!r}")
    values: list[Value] = []

    def collect(item: Any) -> Any:
        if isinstance(item, (list, tuple)):
            return [collect(i) for i in item]
        if not isinstance(item, ValueView):
            return item
        values.append(item._value)
        return _Place(len(values) - 1)

    arguments = [collect(item) for item in inputs]

    def build(*tensors: Tensor) -> Any:
        return spec(*(_filled(a, tensors) for a in arguments), **attrs)

    body, _ = trace_apart(op, build, [(v.dtype, v.shape) for v in values])
    holder = Node(
        "", "", spec=None, attrs={}, inputs=values, out_dtypes=[], out_shapes=[],
        origin=None if near is None else near.origin, order=0 if near is None else near.id,
        requested=device or ("" if near is None else near.requested),
    )  # fmt: skip
    made = [n for o, n in body_nodes(body, holder).items() if o.spec is not arg_op]
    base = name or (f"{near.name}/{op}" if near is not None else op)
    for node in made:
        node.name = base if node is made[-1] else f"{base}{node.name}"
        node.attrs = {k: v for k, v in node.attrs.items() if k != "_class" or k in attrs}
        node.made_by = maker
        if placer is not None:
            _place(node, _target(device, near, placer, op), placer)
    return made


class _Place(int):
    """Stands for the value of that number while the arguments have no tensors yet."""


def _filled(argument: Any, tensors: Sequence[Tensor]) -> Any:
    if isinstance(argument, list):
        return [_filled(a, tensors) for a in argument]
    return tensors[argument] if isinstance(argument, _Place) else argument


def _target(device: str, near: Node | None, placer: Placer, op: str) -> Target:
    if device:
        wanted = parsed(device)
        found = next((t for t in placer.targets if t.matches(wanted)), None)
        if found is None:
            raise ValueError(f"there is no device {device!r} for a node {op}")
        return found
    if near is None or near.target is None:
        raise ValueError(f"a placed node {op} without inputs needs a device")
    return near.target


def _place(node: Node, target: Target, placer: Placer) -> None:
    choice, node.rejections = placer.climb(node, target)
    if choice is None or choice.kind == "decomposed":
        why = "; ".join(str(r) for r in node.rejections) or "it would have to decompose it"
        raise ValueError(f"{target.name} has no kernel for {node.op}: {why}")
    node.target, node.kernel, node.how = target, choice.kernel, choice.kind
    node.why = "beside its neighbour"
