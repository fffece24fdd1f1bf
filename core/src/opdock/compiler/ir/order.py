"""What must stay in order: data, controls, and the reads and writes of each variable.

Fusion moves nodes, and a node that reads a variable must go on seeing the same writes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

from opdock import errors
from opdock.compiler.ir.block import FEED, Block, Node
from opdock.compiler.ir.state import cell_inputs, chooses, is_state, written

_T = TypeVar("_T", bound=Hashable)
Before = dict[Node, list[Node]]
_ARGUMENT = "argument"  # the one root of all variables when it is open which one some name


def state_order(nodes: Iterable[Node]) -> Before:
    """For each node with an effect on state, or that sees one: the nodes that must precede it.

    Only the nearest ones are listed: the order is what follows from them.
    """
    nodes = list(nodes)
    found: Before = {}
    roots: dict[Node, Any] = {}
    reads: dict[Any, list[Node]] = {}
    writer: dict[Any, Node] = {}
    effect: Node | None = None
    shared = any(chooses(n) for n in nodes if n.spec is not None and n.spec.takes_refs)
    for node in nodes:
        touched: list[int] = []
        for i, (before, index) in enumerate(node.inputs):
            if before.out_dtypes[index]._is_state:
                touched.append(i)
        if node.op == FEED and not shared:
            shared = True in [d._is_state for d in node.out_dtypes]
        if touched:
            cells = cell_inputs(node)
            changed = written(node, cells)
            for i in touched:
                root = _ARGUMENT if shared else root_of(node.inputs[i].node, roots)
                last = writer.get(root)
                if last is not None and last is not node:  # which may take a variable twice
                    found.setdefault(node, []).append(last)
                if i in changed:
                    readers = (r for r in reads.pop(root, ()) if r is not node)
                    found.setdefault(node, []).extend(readers)
                    writer[root] = node
                else:
                    reads.setdefault(root, []).append(node)
        if node.spec is not None and node.spec.has_effect:
            if effect is not None:
                found.setdefault(node, []).append(effect)
            effect = node
    return found


def root_of(node: Node, known: dict[Node, Any]) -> Any:
    """The node that holds the state to which the outputs of `node` refer."""
    if node in known:
        return known[node]
    chain = []
    while node not in known:
        chain.append(node)
        source = next((v.node for v in node.inputs if is_state(v)), None)
        if source is None:
            known[node] = node
            break
        node = source
    root = known[node]
    known.update(dict.fromkeys(chain, root))
    return root


def preceding(node: Node, before: Mapping[Node, list[Node]]) -> list[Node]:
    """All that must run before a node; some may come twice."""
    return [*node.needs(), *before.get(node, ())]


def in_order(
    items: Iterable[_T], needs: Callable[[_T], Iterable[_T]], place: Callable[[_T], int]
) -> list[_T]:
    """Items so that each follows what it needs, as near to the order of `place` as it goes.

    Args:
        items: what is to be ordered.
        needs: what must come before an item; those that are none of the items do not count.
        place: a number for each item; of equals that comes first which is first among `items`.

    Returns:
        The items; those are left out that need each other, and all that need them.
    """
    present = {item: i for i, item in enumerate(items)}
    waiting: dict[_T, int] = {}
    users: dict[_T, list[_T]] = {}
    for item in present:
        needed = {n for n in needs(item) if n in present}
        waiting[item] = len(needed)
        for other in needed:
            users.setdefault(other, []).append(item)
    ready = [(place(item), i, item) for item, i in present.items() if not waiting[item]]
    heapq.heapify(ready)
    found: list[_T] = []
    while ready:
        *_, item = heapq.heappop(ready)
        found.append(item)
        for user in users.get(item, ()):
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, (place(user), present[user], user))
    return found


def sort(block: Block, before: Mapping[Node, list[Node]], place: Mapping[Node, int]) -> None:
    """Puts the nodes in executable order, as near to the order of `place` as it goes.

    Raises:
        InternalError: they wait for each other.
    """
    nodes = sorted(block.nodes, key=place.__getitem__)
    if not _is_executable(nodes, before):
        nodes = in_order(block.nodes, lambda n: preceding(n, before), place.__getitem__)
    if len(nodes) < len(block.nodes):
        done = set(nodes)
        stuck = next(n for n in block.nodes if n not in done)
        raise errors.InternalError(
            None, stuck.origin, f"Fusion made a cycle with node '{stuck.name}' ({stuck.op})."
        )
    block.nodes = nodes


def _is_executable(nodes: list[Node], before: Mapping[Node, list[Node]]) -> bool:
    """Whether each node comes after those of the others that must precede it."""
    ahead = set(nodes)
    for node in nodes:
        ahead.discard(node)
        for other, _ in node.inputs:
            if other in ahead:
                return False
        if (node.control or node in before) and not ahead.isdisjoint(preceding(node, before)):
            return False
    return True
