"""Pieces: results that are made one at a time, each where it is first used.

A restore reads a whole model by one op, and its results would all be in memory until the last is
assigned. Ops that declare `pieces` can do the same in two steps: one that finds out whether all
results can be had, and one a result that makes it.
"""

from __future__ import annotations

from collections import defaultdict

from opdock import dtypes
from opdock.compiler.ir.block import Block, Node, Value
from opdock.graph.nodes import registry


def pieces(block: Block) -> None:
    """Puts, in place, a node for each result in the place of nodes with several.

    Who waits for such a node without using a result waits for all that it does, so such a node
    stays as it is.
    """
    waited_for = {c for node in block.nodes for c in node.control}.union(block.targets)
    several = [n for n in block.nodes if _divisible(n) and n not in waited_for]
    if not several:
        return
    mapping: dict[Value, Value] = {}
    firsts = {node: _first(node) for node in several}
    for node, first in firsts.items():
        mapping.update((value, _piece(value, first)) for value in node.values())
        block.folded.append((node.name, node.op, "pieces: each result is made where it is used"))
    ahead = _first_used(block, mapping)
    nodes: list[Node] = []
    for node in block.nodes:
        nodes += ahead[node]
        nodes.append(firsts.get(node, node))
    block.nodes = nodes + ahead[None]
    block.replace(mapping, {})


def _divisible(node: Node) -> bool:
    return (
        node.traits.pieces is not None and len(node.out_dtypes) > 1 and "_kernel" not in node.attrs
    )


def _first_used(block: Block, made: dict[Value, Value]) -> dict[Node | None, list[Node]]:
    """The pieces to make before each node; before None, those that are only fetched."""
    ahead: dict[Node | None, list[Node]] = defaultdict(list)
    seen: set[Value] = set()
    users = [(node, node.inputs) for node in block.nodes]
    for user, values in [*users, (None, block.fetches)]:
        for value in values:
            if value in made and value not in seen:
                seen.add(value)
                ahead[user].append(made[value].node)
    return ahead


def _first(node: Node) -> Node:
    """What stands for the node as a whole."""
    assert node.traits.pieces is not None
    return _derived(
        node, node.traits.pieces[0], node.name, dict(node.attrs), list(node.inputs), dtypes.variant
    )


def _piece(value: Value, first: Node) -> Value:
    """What makes one result."""
    node, index = value
    assert node.traits.pieces is not None
    kept = {k: v for k, v in node.attrs.items() if k == "_class"}
    made = _derived(
        node, node.traits.pieces[1], f"{node.name}/{index}",
        {**kept, "dtype": value.dtype, "index": index}, [Value(first, 0)], value.dtype,
    )  # fmt: skip
    made.out_shapes = [value.shape]
    return Value(made, 0)


def _derived(
    node: Node, op: str, name: str, attrs: dict[str, object], inputs: list[Value],
    dtype: dtypes.DType,
) -> Node:  # fmt: skip
    made = Node(
        op, name, spec=registry.get(op), attrs=attrs, inputs=inputs, out_dtypes=[dtype],
        out_shapes=[()], origin=node.origin, requested=node.requested, order=node.id,
    )  # fmt: skip
    made.control = list(node.control)
    return made
