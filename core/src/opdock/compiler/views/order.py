"""The order of a block's nodes, and who uses them, while a pass changes both.

A node's place is a tuple of numbers, so that there is room between any two: what a pass puts in
moves nobody, and a whole pass costs what it looks at.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from opdock.compiler.ir.block import Block, Node, Value

__all__ = ["Order"]

_Place = tuple[float, ...]


class Order:
    """Places, users and waiters of the nodes of a block; made when they are first asked for."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._places: dict[Node, _Place] | None = None
        self._users: dict[Value, dict[Node, None]] = {}
        self._waiters: dict[Node, dict[Node, None]] = {}
        self._sorted: list[Node] | None = block.nodes
        self._count = itertools.count(1)

    def _known(self) -> dict[Node, _Place]:
        if self._places is None:
            self._places = {}
            for i, node in enumerate(self._block.nodes):
                self._places[node] = (i,)
                self._note(node)
        return self._places

    def _note(self, node: Node) -> None:
        for value in node.inputs:
            self._users.setdefault(value, {})[node] = None
        for other in node.control:
            self._waiters.setdefault(other, {})[node] = None

    # ------------------------------------------------------------ asking
    def nodes(self) -> list[Node]:
        """The nodes in executable order; a fresh list."""
        if self._sorted is None:
            places = self._known()
            self._sorted = sorted(places, key=places.__getitem__)
        return list(self._sorted)

    def __len__(self) -> int:
        return len(self._block.nodes if self._places is None else self._places)

    def __contains__(self, node: Node) -> bool:
        return node in self._known()

    def precedes(self, first: Node, node: Node) -> bool:
        """Whether `first` stands before `node`."""
        places = self._known()
        return places[first] < places[node]

    def users(self, value: Value) -> list[Node]:
        """The nodes that take a value, in order."""
        places = self._known()
        return sorted(self._users.get(value, ()), key=places.__getitem__)

    def waiters(self, node: Node) -> list[Node]:
        """The nodes that wait for one without taking its values."""
        self._known()
        return list(self._waiters.get(node, ()))

    def between(self, first: Node, last: Node) -> set[Node]:
        """`last`, and the nodes after `first` on which it depends."""
        places = self._known()
        found: set[Node] = set()
        stack = [last]
        while stack:
            node = stack.pop()
            if node not in found and places[node] > places[first]:
                found.add(node)
                stack += [v.node for v in node.inputs]
                stack += node.control
        return found

    # ------------------------------------------------------------ changing
    def put_after(self, nodes: Sequence[Node], after: Iterable[Node]) -> None:
        """Puts new nodes right behind the last of some; at the front without any."""
        places = self._known()
        place = max((places[n] for n in after), default=(-1.0,))
        # In front of what was put there earlier, which may be to take the new nodes' values.
        self._put(nodes, (*place, -next(self._count)))

    def put_before(self, nodes: Sequence[Node], node: Node) -> None:
        """Puts new nodes in front of one."""
        place = self._known()[node]
        self._put(nodes, (*place[:-1], place[-1] - 0.5))

    def _put(self, nodes: Sequence[Node], place: _Place) -> None:
        places = self._known()
        for node in nodes:
            places[node] = (*place, next(self._count))
            self._note(node)
        self._sorted = None

    def wait(self, node: Node, other: Node) -> None:
        """Makes a node wait for another."""
        if other not in node.control:
            node.control = [*node.control, other]
            self._waiters.setdefault(other, {})[node] = None

    def take(self, node: Node, index: int, value: Value) -> None:
        """Gives a node another value for an input."""
        self._known()
        old = node.inputs[index]
        node.inputs = [*node.inputs[:index], value, *node.inputs[index + 1 :]]
        if old not in node.inputs:
            self._users[old].pop(node, None)
        self._users.setdefault(value, {})[node] = None

    def drop(self, node: Node, instead: Iterable[Node]) -> None:
        """Takes a node out; those that waited for it, and targets, have others instead."""
        del self._known()[node]
        self._sorted = None
        for value in node.inputs:
            self._users[value].pop(node, None)
        for other in node.control:
            self._waiters[other].pop(node, None)
        others = list(dict.fromkeys(instead))
        for waiter in self._waiters.pop(node, ()):
            kept = [n for n in waiter.control if n is not node]
            kept += [n for n in others if n is not waiter]
            waiter.control = list(dict.fromkeys(kept))
            self._note(waiter)
        if node in self._block.targets:
            targets = [n for n in self._block.targets if n is not node]
            self._block.targets = list(dict.fromkeys([*targets, *others]))
