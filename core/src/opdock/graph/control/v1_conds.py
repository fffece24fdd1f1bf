"""Switch and Merge as If: one rewrite at a time, innermost first."""

from __future__ import annotations

from typing import Any

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


def rewrite_a_cond(graph: Rewriter) -> bool:
    """Rewrites the Merges of one innermost cond; False when there is none."""
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
        # The results of one cond come together, or its side effects would happen twice.
        if scope not in blocked:
            _rewrite(graph, scope, pred, merges)
            return True
    return False


def _stop(graph: Rewriter, name: str) -> bool:
    return graph.op(name) in SWITCH | ENTER or name in graph.loop_merges


class _Merge:
    """A Merge that closes a cond, with what leads to its two inputs (false, true)."""

    def __init__(self, node: Any, pred: Edge, sides: list[Edge]) -> None:
        self.node = node
        self.pred = pred
        self.sides = sides

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
                sides = inputs[::-1] if swapped else inputs
                return cls(node, (both or preds)[0], sides)
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
    types = [graph.dtype(edge) for edge in captures]
    for side, branch in enumerate(branches):
        mapping = {edge: captures[source] for edge, source in branch.sources.items()}
        name = graph.unique(f"{prefix}{'true' if side else 'false'}".replace("/", "_"))
        function = graph.function(branch.members, mapping, branch.outputs)
        function.parameters = types
        graph.functions[name] = function
        members |= branch.members
        names.append(name)
    stateful = graph.is_stateful(members)
    inputs = [text_of(pred), *(text_of(e) for e in captures)]
    made = graph.add(graph.unique(f"{prefix}If"), "If" if stateful else "StatelessIf", inputs)
    made.attr["Tcond"].type = graph.dtype(pred).as_datatype_enum
    made.attr["Tin"].list.SetInParent()
    made.attr["Tin"].list.type.extend(t.base_dtype.as_datatype_enum for t in types)
    made.attr["Tout"].list.type.extend(m.node.attr["T"].type % 100 for m in merges)
    made.attr["else_branch"].func.name = names[0]
    made.attr["then_branch"].func.name = names[1]
    used = {parse(t) for n in graph.nodes.values() for t in n.input}
    for i, merge in enumerate(merges):
        if (merge.node.name, 1) in used:
            raise unsupported(merge.node, "the number of the branch is used")
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

    def _enters(self, graph: Rewriter, edge: Edge) -> bool:
        """Whether a member, or a result, takes this edge of the graph around."""
        taken = {parse(t) for n in self.members for t in graph.nodes[n].input}
        return edge in taken or edge in self.outputs
