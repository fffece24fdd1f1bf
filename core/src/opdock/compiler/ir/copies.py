"""Nodes that are made after others, for blocks of their own."""

from __future__ import annotations

from collections.abc import Sequence

from opdock.compiler.ir.block import FEED, Node, Value
from opdock.shapes import Shape

__all__ = ["copied", "fed"]


def fed(value: Value, index: int, like: Node) -> Value:
    """A feed for a value, where another feed's values are.

    Args:
        value: what is fed.
        index: its place among the feeds.
        like: another feed.
    """
    node = Node(
        FEED, value.node.name, spec=None, attrs={**like.attrs, "index": index}, inputs=[],
        out_dtypes=[value.dtype], out_shapes=[value.shape], origin=value.node.origin,
        requested=like.requested, order=value.node.id,
    )  # fmt: skip
    node.target = like.target
    return Value(node, 0)


def copied(node: Node, inputs: Sequence[Value] = ()) -> Node:
    """A node that is not placed, of the same op as another one, with other inputs."""
    out_shapes: list[Shape] = list(node.out_shapes)
    return Node(
        node.op, node.name, spec=node.spec, attrs=node.attrs, inputs=list(inputs),
        out_dtypes=node.out_dtypes, out_shapes=out_shapes, origin=node.origin,
        requested=node.requested, order=node.id,
    )  # fmt: skip
