"""Switch and Merge as If: one rewrite at a time, innermost first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.dtypes import int32
from opdock.graph.control.v1_control_flow import (
    ENTER,
    EXIT,
    MERGE,
    NEXT,
    SWITCH,
    Edge,
    Rewriter,
    parse,
    text_of,
    unsupported,
)

_BLOCKS = EXIT | NEXT | MERGE | {"LoopCond"}


def rewrite_a_cond(graph: Rewriter, whole: bool = True) -> bool:
    """Rewrites the Merges of one innermost cond; False when there is none.

    Args:
        graph: the nodes.
        whole: leave conds alone of which a Merge waits for an inner pattern. Their results come
            together, or side effects would happen twice.
    """
    if graph.chained:
        _unchain(graph)
    groups: dict[tuple[str, Edge], list[_Merge]] = {}
    blocked: set[str] = set()
    for node in graph.merges:
        if node.name in graph.loop_merges or node.name in graph.done:
            continue
        scope = node.name.rpartition("/")[0]
        merge = _Merge.of(graph, node)
        if merge is None:
            blocked.add(scope)
        else:
            groups.setdefault((scope, merge.pred), []).append(merge)
    for (scope, pred), merges in groups.items():
        if not whole or scope not in blocked:
            _rewrite(graph, scope, pred, merges)
            return True
    return False


def pinned(graph: Rewriter, edges: Iterable[Edge]) -> Edge | None:
    """The output of a Switch without which these edges are dead; None where no Merge is missing.

    Where several decide, it is one of the innermost.
    """
    loops = graph.merging
    found: dict[Edge, Edge] = {}
    waiting, seen = list(edges), set[str]()
    while waiting:
        _, stops = graph.region(waiting, lambda n: _stop(graph, n) or graph.op(n) in _BLOCKS)
        waiting = []
        for name, index in sorted(stops):
            if graph.op(name) not in SWITCH or parse(graph.nodes[name].input[0])[0] in loops:
                continue
            if index >= 0:
                found.setdefault(_pred(graph, name), (name, index))
            elif name not in seen:
                # To wait for a Switch is to wait for what it takes, not for one of its sides.
                seen.add(name)
                waiting += [parse(t) for t in graph.nodes[name].input]
    for pred, edge in found.items():
        others = [p for p in found if p != pred]
        if not any(_pred_is_under(graph, other, pred) for other in others):
            return edge
    return None


def _unchain(graph: Rewriter) -> None:
    """Has what takes a value on a side take it without a further Switch to the same side."""
    for node in graph.switches:
        data, pred = parse(node.input[0]), _pred(graph, node.name)
        _, stops = graph.region([data], lambda n: _stop(graph, n) or graph.op(n) in _BLOCKS)
        for name, side in stops:
            if side >= 0 and graph.op(name) in SWITCH and _pred(graph, name) == pred:
                graph.redirect((node.name, side), data)


def _pred_is_under(graph: Rewriter, pred: Edge, outer: Edge) -> bool:
    """Whether a predicate exists on one side of another only."""
    _, stops = graph.region([pred], lambda n: _stop(graph, n))
    return any(graph.op(n) in SWITCH and _pred(graph, n) == outer for n, _ in stops)


def _stop(graph: Rewriter, name: str) -> bool:
    return graph.op(name) in SWITCH | ENTER or name in graph.loop_merges


class _Merge:
    """A Merge that closes a cond, with what leads to its two inputs (false, true)."""

    def __init__(self, node: Any, pred: Edge, inputs: list[Edge], swapped: bool) -> None:
        self.node = node
        self.pred = pred
        self.sides = inputs[::-1] if swapped else inputs
        self._swapped = swapped

    def input_index(self, side: int) -> int:
        """Which input of the Merge is alive on a side."""
        return 1 - side if self._swapped else side

    @classmethod
    def of(cls, graph: Rewriter, node: Any) -> _Merge | None:
        """None when another pattern inside has to go first."""
        inputs = [parse(t) for t in node.input if not t.startswith("^")]
        if len(inputs) != 2:
            raise unsupported(node, f"it merges {len(inputs)} values")
        votes: list[set[tuple[Edge, int]]] = []
        for edge in inputs:
            region, stops = graph.region([edge], lambda n: _stop(graph, n))
            if any(graph.op(n) in _BLOCKS for n in region):
                return None
            found = set()
            for name, index in stops:
                if graph.op(name) in SWITCH:
                    for k in (index,) if index >= 0 else ():
                        found.add((_pred(graph, name), k))
            votes.append(found)
        for swapped in (False, True):
            first, second = (1, 0) if swapped else (0, 1)
            preds = [
                p
                for p, k in sorted(votes[0] | votes[1])
                if ((p, first) in votes[0] or (p, second) in votes[1])
                and (p, second) not in votes[0]
                and (p, first) not in votes[1]
            ]
            # A predicate that decides both sides beats one that one side merely passes by.
            both = [p for p in preds if (p, first) in votes[0] and (p, second) in votes[1]]
            if both or preds:
                return cls(node, (both or preds)[0], inputs, swapped)
        raise unsupported(node, "no predicate tells its inputs apart")


def _pred(graph: Rewriter, switch: str) -> Edge:
    """What a Switch decides by, identities followed."""
    edge = parse(graph.nodes[switch].input[1])
    while graph.op(edge[0]) == "Identity" and len(graph.nodes[edge[0]].input) == 1:
        edge = parse(graph.nodes[edge[0]].input[0])
    return edge


def _rewrite(graph: Rewriter, scope: str, pred: Edge, merges: list[_Merge]) -> None:
    prefix = f"{scope}/" if scope else ""
    captures: dict[Edge, int] = {}
    branches = [_Branch(graph, pred, side, [m.sides[side] for m in merges]) for side in (0, 1)]
    for branch in branches:
        for source in branch.sources.values():
            captures.setdefault(source, len(captures))
    names = []
    members: set[str] = set()
    controls: dict[str, None] = {}
    types = [graph.dtype(edge) for edge in captures]
    used = {parse(t) for n in graph.nodes.values() for t in n.input}
    asked = [m for m in merges if (m.node.name, 1) in used]
    for side, branch in enumerate(branches):
        mapping = {edge: captures[source] for edge, source in branch.sources.items()}
        name = graph.unique(f"{prefix}{'true' if side else 'false'}".replace("/", "_"))
        function = graph.function(branch.members, mapping, branch.outputs)
        function.parameters = types
        for merge in asked:
            function.add_constant(np.int32(merge.input_index(side)))
        graph.functions[name] = function
        members |= branch.members
        controls.update(dict.fromkeys(branch.waits()))
        names.append(name)
    stateful = graph.is_stateful(members)
    inputs = [text_of(pred), *(text_of(e) for e in captures), *controls]
    made = graph.add(graph.unique(f"{prefix}If"), "If" if stateful else "StatelessIf", inputs)
    made.attr["Tcond"].type = graph.dtype(pred).as_datatype_enum
    made.attr["Tin"].list.SetInParent()
    made.attr["Tin"].list.type.extend(t.base_dtype.as_datatype_enum for t in types)
    made.attr["Tout"].list.type.extend(m.node.attr["T"].type % 100 for m in merges)
    made.attr["Tout"].list.type.extend(int32.as_datatype_enum for _ in asked)
    made.attr["else_branch"].func.name = names[0]
    made.attr["then_branch"].func.name = names[1]
    for i, merge in enumerate(asked):
        graph.redirect((merge.node.name, 1), (made.name, len(merges) + i))
    for i, merge in enumerate(merges):
        graph.replace_by_identity(merge.node.name, f"{made.name}:{i}")
        graph.done.add(merge.node.name)


class _Branch:
    """One side of a cond.

    Attributes:
        sources: edges at which the branch begins -> what they carry outside of it.
        members: the nodes of the branch.
        outputs: the values for the Merges.
    """

    def __init__(self, graph: Rewriter, pred: Edge, side: int, outputs: list[Edge]) -> None:
        region, stops = graph.region(outputs, lambda n: _stop(graph, n))
        inner = graph.inside(region, lambda n: graph.op(n) in SWITCH and _pred(graph, n) == pred)
        self._graph = graph
        self.outputs = outputs
        self.members = inner | {n for n in region if graph.is_small_constant(n)}
        self.sources: dict[Edge, Edge] = {}
        for edge in sorted(stops):
            if edge[1] < 0:
                continue
            if graph.op(edge[0]) in SWITCH and _pred(graph, edge[0]) == pred:
                if edge[1] != side:
                    raise unsupported(graph.nodes[edge[0]], "it crosses from one branch to another")
                self.sources[edge] = parse(graph.nodes[edge[0]].input[0])
            elif self._enters(graph, edge):
                self.sources[edge] = edge
        for edge in [*graph.outside_edges(region, inner), *outputs]:
            if edge[0] in region and edge[0] not in self.members:
                self.sources[edge] = edge

    def waits(self) -> list[str]:
        """The control inputs from outside, for which the whole cond has to wait."""
        found = dict.fromkeys(t for n in self.members for t in self._graph.nodes[n].input)
        outside = {t for t in found if t.startswith("^") and t[1:] not in self.members}
        return sorted(t for t in outside if self._graph.op(t[1:]) not in SWITCH)

    def _enters(self, graph: Rewriter, edge: Edge) -> bool:
        """Whether a member, or a result, takes this edge of the graph around."""
        taken = {parse(t) for n in self.members for t in graph.nodes[n].input}
        return edge in taken or edge in self.outputs
