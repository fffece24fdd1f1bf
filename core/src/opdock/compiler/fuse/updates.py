"""Updates: what an optimizer does to many small variables becomes one call.

The pass looks for updates that are alike but for their variables and gradients, of which none has
to wait for another; it makes a node of those that the device has a kernel for. Large variables stay
alone: their updates take longer than a call, and their gradients need not all be in memory at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Final

from opdock.compiler.fuse.instead import Instead, declined, put
from opdock.compiler.ir.block import Block, Fused, Node, Value
from opdock.compiler.ir.order import Before, state_order
from opdock.compiler.ir.state import cell_inputs, written
from opdock.compiler.place.placer import Placer
from opdock.compiler.place.target import Target
from opdock.kernels.expr.updates import UPDATES
from opdock.kernels.select.arguments import positions
from opdock.kernels.select.selection import LABEL_ATTR
from opdock.shapes import num_elements

FUSION: Final = "updates"
_SMALL: Final = 1 << 14
"""Elements of a variable up to which a call costs about as much as what it computes."""


def updates(block: Block, placer: Placer, ordered: Before | None = None) -> None:
    """Joins the updates of small variables that are alike, on devices with a kernel for that.

    Args:
        block: a placed block; it stays in executable order.
        placer: knows the devices, and which kernels gave up at run time.
        ordered: its `state_order`, where it is at hand.
    """
    # A device is not asked, which may have to load its kernels first, where nothing could be one.
    count = Counter(node.target for node in block.nodes if node.traits.own)
    able = {t for t in placer.targets if count[t] > 1 and t.is_open and UPDATES in t.index}
    if not able:
        return
    likes = _likes(block, able)
    if not likes:
        return
    block.looked_at(FUSION, len(block.nodes))
    before = state_order(block.nodes) if ordered is None else ordered
    made = []
    for members in _at_once(block, before, likes):
        node = _joined(members)
        refused = declined(node, placer)
        if refused:
            block.missed.append((node.name, FUSION, refused))
        else:
            made.append(Instead(node, members, members))
    if made:
        put(block, {n: i for i, n in enumerate(block.nodes)}, before, made)


# ---------------------------------------------------------------- find
def _likes(block: Block, able: set[Target]) -> dict[Node, Hashable]:
    """The updates that are alike with others, each with all in which they are."""
    found: dict[Node, Hashable] = {}
    for node in block.nodes:
        if node.traits.own and node.target in able:
            alike = _apart_from_own(node)
            if alike is not None:
                found[node] = alike
    # A result that is used is the variable after this update, which the next ones may follow.
    used = {source for n in block.nodes for source, _ in n.inputs if source in found}
    used.update(v.node for v in block.fetches)
    for node in used:
        found.pop(node, None)
    count = Counter(found.values())
    return {node: alike for node, alike in found.items() if count[alike] > 1}


def _at_once(block: Block, before: Before, likes: dict[Node, Hashable]) -> Iterable[list[Node]]:
    """Groups of at least two updates that are alike and may be done in any order.

    Behind each update that might be joined everything is a level deeper, so those of one level do
    not wait for each other, in whatever way groups are joined. What may wait for another step,
    which may wait for an update of this one, begins a level too.
    """
    deep: dict[Node, int] = {}  # the levels of what is behind anything
    groups: dict[Hashable, list[Node]] = {}
    for node in block.nodes:
        level = 0
        for other, _ in node.inputs:
            if other in deep and deep[other] > level:
                level = deep[other]
        if node.control or node in before:
            for other in (*node.control, *before.get(node, ())):
                level = max(level, deep.get(other, 0))
        alike = likes.get(node)
        if alike is not None:
            groups.setdefault((level, alike), []).append(node)
        if alike is not None or node.traits.blocks:
            level += 1
        if level:
            deep[node] = level
    return [members for members in groups.values() if len(members) > 1]


def _apart_from_own(node: Node) -> Hashable | None:
    """All that has to be equal for updates to be joined; None for one that is not to be."""
    assert node.spec is not None
    if node.kernel is None or LABEL_ATTR in node.attrs:
        return None
    cells, own = cell_inputs(node), _own(node)
    for i in own:
        before, index = node.inputs[i]
        if i in cells:
            # An argument may be any variable, and one of another memory comes as a copy.
            if not before.traits.holds or before.target is not node.target:
                return None
            continue
        if not 0 < (num_elements(before.out_shapes[index]) or 0) <= _SMALL:
            return None
    shared = tuple([v for i, v in enumerate(node.inputs) if i not in own])
    attrs = tuple([(name, node.attrs[name]) for name in node.spec.definition.attrs])
    return node.op, node.target, shared, attrs


def _own(node: Node) -> list[int]:
    """The inputs of which each update has its own."""
    assert node.spec is not None
    where = positions(node.spec.definition.inputs, node.attrs)
    return [i for name in node.traits.own for i in where[name]]


# ---------------------------------------------------------------- form
def _joined(members: list[Node]) -> Node:
    """A node for updates that are alike; it has no kernel yet."""
    first, last = members[0], members[-1]
    assert first.spec is not None
    own, cells, changed = _own(first), cell_inputs(first), written(first)
    inputs: list[Value] = []
    names: list[str] = []
    here: dict[str, list[int]] = {"cells": [], "written": []}
    where = positions(first.spec.definition.inputs, first.attrs)
    for i, name in sorted((i, name) for name, at in where.items() for i in at):
        taken = [m.inputs[i] for m in (members if i in own else members[:1])]
        placed = range(len(inputs), len(inputs) + len(taken))
        for kind, found in (("cells", cells), ("written", changed)):
            here[kind] += placed if i in found else ()
        inputs += taken
        names += [name] * len(taken)
    attrs = {name: first.attrs[name] for name in first.spec.definition.attrs}
    attrs |= {name: frozenset(at) for name, at in here.items()}
    attrs |= {"op": first.op, "count": len(members), "own": first.traits.own}
    node = Node(
        UPDATES, last.name, spec=None, attrs=attrs, inputs=inputs, out_dtypes=[], out_shapes=[],
        origin=last.origin, requested=last.requested, order=last.id,
    )  # fmt: skip
    node.target, node.why = last.target, f"{len(members)} updates in one call"
    node.fused = Fused(FUSION, tuple(members), tuple(names), tuple(inputs), ())
    gone = set(members)
    node.control = list(dict.fromkeys(c for m in members for c in m.control if c not in gone))
    return node
