"""Instead: one node in the place of several, in an order that the effects allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opdock.compiler.ir.block import Block, Node, Value
from opdock.compiler.ir.order import Before, sort
from opdock.compiler.place.placer import Placer
from opdock.late import record


@record(frozen=True, slots=True)
class Instead:
    """A node, and what it takes the place of.

    Attributes:
        node: the node.
        members: the nodes that it computes, in executable order.
        gone: those of them that are gone when it is there.
        outputs: for each of its results the values that are the same.
    """

    node: Node
    members: Sequence[Node]
    gone: Sequence[Node]
    outputs: Sequence[Sequence[Value]] = ()


def declined(node: Node, placer: Placer) -> str:
    """Gives a node the kernel that takes it; the reason if none does."""
    assert node.target is not None
    choice, lost = placer.climb(node, node.target)
    if choice is None:
        return "; ".join(str(r) for r in lost if r.kernel != "decomposition")
    node.kernel, node.how = choice.kernel, choice.kind
    return ""


def put(
    block: Block, place: Mapping[Node, int], ordered: Before, made: Sequence[Instead]
) -> Before:
    """Puts nodes into the block that they are made from.

    Args:
        block: changed in place; it stays in executable order. Nodes of which `made` has copies may
            be left that nothing needs.
        place: where its nodes stand as it is.
        ordered: what the order of effects adds to what they wait for.
        made: no two of them take the place of the same node, or wait for each other.

    Returns:
        What the order of effects adds now.
    """
    place = dict(place)
    values: dict[Value, Value] = {}
    into: dict[Node, Node] = {}
    for one in made:
        into.update(dict.fromkeys(one.gone, one.node))
        place[one.node] = max(place[m] for m in one.members)
        for i, same in enumerate(one.outputs):
            values.update(dict.fromkeys(same, Value(one.node, i)))
    # A copy waits for what the copied node waits for.
    waits = [(n, into.get(n, n)) for n in ordered]
    waits += [(m, one.node) for one in made for m in one.members]
    before: Before = {}
    for node, new in waits:
        found = (into.get(n, n) for n in ordered.get(node, ()))
        before.setdefault(new, []).extend(n for n in found if n is not new)
    block.nodes = [n for n in block.nodes if n not in into] + [one.node for one in made]
    block.replace(values, {old: [new] for old, new in into.items()})
    sort(block, before, place)
    return before
