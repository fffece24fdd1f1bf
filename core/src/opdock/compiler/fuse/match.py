"""Matching: the ways in which a fusion pattern fits at a node. Knows nothing of what follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from opdock.compiler.ir.block import Node, Value
from opdock.late import record
from opdock.plugins.patterns import FusionPattern, P


@record(frozen=True, slots=True)
class Match:
    """A pattern laid over nodes.

    Attributes:
        captures: the value behind each capture name, in order of appearance.
        nodes: the node behind each `P`.
    """

    captures: dict[str, Value] = field(default_factory=dict)
    nodes: dict[P, Node] = field(default_factory=dict)

    def members(self) -> list[Node]:
        """The matched nodes, each once."""
        return list(dict.fromkeys(self.nodes.values()))


@record(frozen=True, slots=True)
class Matcher:
    """What matching needs to know of the program.

    Attributes:
        fits: whether a node may be part of a match at all.
        users: the nodes that take a value.
    """

    fits: Callable[[Node], bool]
    users: Mapping[Value, Sequence[Node]]

    def matches(self, pattern: FusionPattern, root: Node) -> Iterator[Match]:
        """Every way in which `pattern` fits with `root` as the outermost node."""
        yield from self._roots(pattern.also, self._node(pattern.pattern, root, Match()))

    def _roots(self, roots: Sequence[P], found: Iterator[Match]) -> Iterator[Match]:
        """The matches of `found`, each extended by further outermost nodes."""
        if not roots:
            yield from found
            return
        first, *rest = roots
        yield from self._roots(rest, (e for m in found for e in self._beside(first, m)))

    def _beside(self, root: P, match: Match) -> Iterator[Match]:
        """A further outermost node stands among the users of what it shares with the others."""
        shared = next(i for i in root.inputs if isinstance(i, str) and i in match.captures)
        taken = set(match.nodes.values())
        for node in dict.fromkeys(self.users.get(match.captures[shared], ())):
            if node not in taken:
                yield from self._node(root, node, match)

    def _node(self, wanted: P, node: Node, match: Match) -> Iterator[Match]:
        known = match.nodes.get(wanted)
        if known is not None:
            if known is node:
                yield match
            return
        if (
            node.op not in wanted.ops
            or len(wanted.inputs) != len(node.inputs)
            or not self.fits(node)
            or not all(_same(node.attrs.get(k), v) for k, v in wanted.attrs.items())
        ):
            return
        match = Match(match.captures, {**match.nodes, wanted: node})
        for values in _orders(node):
            yield from self._inputs(wanted.inputs, values, match)

    def _inputs(
        self, wanted: Sequence[P | str], values: Sequence[Value], match: Match
    ) -> Iterator[Match]:
        if not wanted:
            yield match
            return
        first, value = wanted[0], values[0]
        for extended in self._input(first, value, match):
            yield from self._inputs(wanted[1:], values[1:], extended)

    def _input(self, wanted: P | str, value: Value, match: Match) -> Iterator[Match]:
        if isinstance(wanted, P):
            if value.index == wanted.output:
                yield from self._node(wanted, value.node, match)
        elif wanted not in match.captures:
            yield Match({**match.captures, wanted: value}, match.nodes)
        elif match.captures[wanted] == value:
            yield match


def _orders(node: Node) -> Iterator[Sequence[Value]]:
    yield node.inputs
    spec = node.spec
    if spec is not None and (spec.commutative or spec.traits.commutes):
        a, *others = node.inputs
        if len(others) == 1 and others[0] != a:
            yield [others[0], a]


def _same(found: Any, wanted: Any) -> bool:
    if isinstance(found, np.ndarray) or isinstance(wanted, np.ndarray):
        return np.array_equal(found, wanted)
    if isinstance(found, (list, tuple)) and isinstance(wanted, (list, tuple)):
        return list(found) == list(wanted)
    return bool(found == wanted)
