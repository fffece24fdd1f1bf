"""Hoist: what every turn of a loop computes alike is computed once, before its first turn.

It becomes a program of its own, and its results further arguments of the body. It runs only when a
turn follows, so what fails there would have failed in that turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from opdock import shapes
from opdock.compiler.ir.block import Block, Node, Value
from opdock.compiler.ir.copies import copied, fed
from opdock.compiler.ir.state import has_effect
from opdock.graph.nodes.traits import Cost

__all__ = ["hoist"]


def hoist(block: Block, on_host: bool) -> Block | None:
    """Moves what no turn changes out of the body of a loop.

    Args:
        block: the body, changed in place; its feeds with the attribute "stays" are the same in all
            turns. What is moved out comes in as further feeds.
        on_host: whether the body's values live in host memory. Elsewhere, integers are mostly
            shapes, which kernels want on the host.

    Returns:
        The block to run first: it takes the feeds that the body had, and its fetches are the
        further ones. None if there is nothing to move.
    """
    block.looked_at("hoist", len(block.nodes))
    fixed = _fixed(block, on_host)
    moved = {n for n in fixed if not n.is_alias}
    results = _used_in_turns(block, moved)
    if not results:
        return None
    before = _before(block, fixed, results)
    first = block.feeds[0].node
    given = {v: fed(v, len(block.feeds) + i, first) for i, v in enumerate(results)}
    for value, feed in given.items():
        feed.node.attrs["stays"] = True
        why = "hoist: every turn computes the same"
        block.folded.append((value.node.name, value.node.op, why))
    block.feeds += given.values()
    block.nodes = [v.node for v in given.values()] + [n for n in block.nodes if n not in moved]
    block.replace(given, {n: [] for n in moved})
    block.sweep()
    return before


def _fixed(block: Block, on_host: bool) -> list[Node]:
    """The nodes whose results are the same in every turn."""
    values = {v for v in block.feeds if v.node.attrs.get("stays")}
    found = []
    for node in block.nodes:
        known = [v in values for v in node.inputs]
        if not any(known) or not _movable(node, on_host):
            continue
        if all(k or v.node.is_const for k, v in zip(known, node.inputs, strict=True)):
            found.append(node)
            values.update(node.values())
    return found


def _movable(node: Node, on_host: bool) -> bool:
    if node.spec is None or node.stateful or node.control or has_effect(node):
        return False
    if any(d.name in ("resource", "variant") for d in node.out_dtypes):
        return False
    if not on_host and any(d.is_integer for d in node.out_dtypes):
        return False
    # A product may be larger than its factors, but takes longer to make than to read.
    return node.is_alias or node.traits.cost is Cost.PRODUCT or not _grows(node)


def _grows(node: Node) -> bool:
    """Whether results take more memory than what they are made of, such as a broadcast's."""
    made, given = _size(node.values()), _size(node.inputs)
    return made is not None and given is not None and made > given


def _size(values: Sequence[Value]) -> int | None:
    total = 0
    for value in values:
        count = shapes.num_elements(value.shape)
        if count is None:
            return None
        total += count * value.dtype.size
    return total


def _used_in_turns(block: Block, moved: set[Node]) -> list[Value]:
    """The results of moved nodes that those left behind need."""
    found: dict[Value, None] = {}
    seen: set[Node] = set(moved)
    stack = list(block.targets)
    values: Sequence[Value] = list(block.fetches)
    while values or stack:
        found.update((v, None) for v in values if v.node in moved)
        stack += [v.node for v in values]
        node = stack.pop()
        values = []
        if node not in seen:
            seen.add(node)
            values = node.inputs
            stack += node.control
    return list(found)


def _before(block: Block, fixed: list[Node], results: list[Value]) -> Block:
    """A block of the nodes that the results need, over the feeds of another."""
    before = Block(fetches=results, within=block.within)
    mapping: dict[Value, Value] = {}
    for i, value in enumerate(block.feeds):
        mapping[value] = fed(value, i, value.node)
        before.feeds.append(mapping[value])
        before.nodes.append(mapping[value].node)
    for node in fixed:
        for value in node.inputs:
            if value.node.is_const and value not in mapping:  # the turns may use it too
                mapping[value] = Value(copied(value.node), 0)
                before.nodes.append(mapping[value].node)
        inputs = [mapping.get(v, v) for v in node.inputs]
        if node.is_alias:
            mapping[Value(node, 0)] = inputs[0]
        else:
            node.inputs = inputs
            before.nodes.append(node)
    before.sweep()
    return before
