"""Sums: what a loop adds up over the rows of its turns, and reads only when it has ended.

So are the gradients of a recurrent network's weights: each turn adds a product that sums along the
examples of a batch. Many turns may keep what is multiplied, row below row, and one product of all
these rows takes the place of theirs. It is a large one, of which threads have a share each, where
those of the turns are small; and the rest of a turn may go its way row by row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opdock import shapes
from opdock.compiler.emit.turn_views import adds, multiplied, placed
from opdock.compiler.fuse.cluster_line import ending_of
from opdock.compiler.ir.block import Block, Node, Value
from opdock.compiler.ir.copies import copied, fed

__all__ = ["Sums", "sums_of"]


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of a loop.

    Attributes:
        variables: which of the loop's variables are such sums.
        kept: what a turn keeps for them, whose first dimension is that of the rows.
        nodes: the nodes that a turn need not compute.
        block: a function of the variables, and of what many turns have kept, that of one turn
            behind that of the one before; it gives the variables after these turns.
    """

    variables: tuple[int, ...]
    kept: tuple[Value, ...]
    nodes: frozenset[Node]
    block: Block


def sums_of(condition: Block, body: Block) -> Sums | None:
    """What a loop only adds up over rows and turns; None if that is nothing.

    Args:
        condition, body: its functions, before their nodes are placed.
    """
    found = _Finder(condition, body)
    trees = {
        i: tree
        for i in range(len(body.feeds))
        if (tree := found.tree(i)) is not None
    }  # fmt: skip
    if not trees:
        return None
    # In the order of the body, each after those that it needs.
    every = {node for tree in trees.values() for node in tree}
    nodes = [node for node in body.nodes if node in every]
    return _written(body, found.same, list(trees), nodes)


class _Finder:
    """Looks for variables that are sums."""

    def __init__(self, condition: Block, body: Block) -> None:
        self._body = body
        self.same: dict[Value, Value] = {}
        """What hands on another value, with that value."""
        self._users: dict[Value, list[Node | int]] = {}
        for node in body.nodes:
            if node.is_alias:
                self.same[Value(node, 0)] = self._resolved(node.inputs[0])
                continue
            for value in node.inputs:
                self._users.setdefault(self._resolved(value), []).append(node)
        for i, value in enumerate(body.fetches):
            self._users.setdefault(self._resolved(value), []).append(i)
        decided = {v for node in condition.nodes for v in node.inputs} | {*condition.fetches}
        self._decides = [feed in decided for feed in condition.feeds]

    def _resolved(self, value: Value) -> Value:
        return self.same.get(value, value)

    def tree(self, variable: int) -> list[Node] | None:
        """The additions and what they add, if a variable is such a sum."""
        feed, total = self._body.feeds[variable], self._resolved(self._body.fetches[variable])
        if total == feed or self._decides[variable] or not shapes.is_fully_defined(feed.shape):
            return None
        found: list[Node] = []
        if self._times(feed, total, found) != 1:
            return None
        mine, made = {*found, variable}, {feed, *(v for node in found for v in node.values())}
        rows = {self._resolved(node.inputs[at]) for node in found for at in rows_of(node)}
        if rows & made or not all(mine.issuperset(self._users.get(v, ())) for v in made):
            return None
        return found

    def _times(self, feed: Value, value: Value, found: list[Node]) -> float:
        """How often a variable is added to a value; infinity where that is no sum over rows.

        Args:
            feed: the variable.
            value: the value.
            found: grows by the nodes that compute it.
        """
        if value == feed:
            return 1
        node = value.node
        found.append(node)
        if adds(node):
            return sum(self._times(feed, self._resolved(v), found) for v in node.inputs)
        if (data := placed(node)) is not None:
            inner = sum(self._times(feed, self._resolved(v), found) for v in data)
            return math.inf if inner else 0
        return 0 if rows_of(node) else math.inf


def rows_of(node: Node) -> Sequence[int]:
    """Which inputs a node sums along the first dimension of, whatever their number of rows."""
    if (turned := multiplied(node)) is not None:
        return (0, 1) if turned == (True, False) else ()
    ending = ending_of(node)
    return (0,) if ending and ending.reduce.kind == "sum" and 0 in ending.reduce.axes else ()


def _written(
    body: Block, same: Mapping[Value, Value], variables: Sequence[int], nodes: Sequence[Node]
) -> Sums:
    """The sums of some variables, which these nodes compute."""
    block, like = Block(within=body.within), body.feeds[variables[0]].node
    mapping: dict[Value, Value] = {}

    def feed(value: Value) -> Value:
        known = fed(value, len(block.feeds), like)
        known.node.attrs["stays"] = False
        block.feeds.append(known)
        block.nodes.append(known.node)
        return known

    for i in variables:
        mapping[body.feeds[i]] = feed(body.feeds[i])
    kept: dict[Value, Value] = {}
    for node in nodes:
        inputs = []
        for at, given in enumerate(node.inputs):
            value = same.get(given, given)
            if at in rows_of(node):
                if value not in kept:
                    kept[value] = feed(value)
                    kept[value].node.has_shape(0, (None, *(value.shape or ())[1:]))
                inputs.append(kept[value])
                continue
            if value not in mapping:  # axes
                constant = copied(value.node)
                block.nodes.append(constant)
                mapping[value] = Value(constant, 0)
            inputs.append(mapping[value])
        made = copied(node, inputs)
        block.nodes.append(made)
        mapping[Value(node, 0)] = Value(made, 0)
    block.fetches = [mapping[same.get(v, v)] for v in (body.fetches[i] for i in variables)]
    return Sums(tuple(variables), tuple(kept), frozenset(nodes), block)
