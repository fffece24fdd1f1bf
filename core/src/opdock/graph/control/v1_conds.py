"""Switch and Merge as If: one rewrite at a time, innermost first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from opdock.dtypes import DType, as_dtype, int32
from opdock.graph.control.v1_control_flow import (
    ENTER,
    EXIT,
    MERGE,
    NEXT,
    PARAMETER,
    SWITCH,
    Edge,
    FlatFunction,
    Rewriter,
    parse,
    text_of,
    unsupported,
)
from opdock.io import protos

Arm = tuple[Edge, int]  # a predicate, and one side of it

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
    groups: dict[tuple[str, tuple[Arm, ...]], list[_Merge]] = {}
    blocked: set[str] = set()
    for node in graph.merges:
        if node.name in graph.loop_merges or node.name in graph.done:
            continue
        scope = node.name.rpartition("/")[0]
        merge = _Merge.of(graph, node)
        if merge is None:
            blocked.add(scope)
        else:
            groups.setdefault((scope, merge.arms), []).append(merge)
    for (scope, arms), merges in groups.items():
        if not whole or scope not in blocked:
            _rewrite(graph, scope, arms, merges)
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


def closed(graph: Rewriter, name: str) -> str:
    """A node that runs whenever another has run, or is dead; that one where it never is.

    The Merges are of the cond whose branch it is in, so that it is one with its other results.
    """
    found = pinned(graph, [(name, 0)])
    while found is not None:
        switch, side = found
        pred, dtype = graph.nodes[switch].input[1], graph.nodes[switch].attr["T"].type % 100
        scope = "".join(parse(pred)[0].rpartition("/")[:2])
        ends = []
        for which, waits in ((side, [f"^{name}"]), (1 - side, [])):
            end = graph.unique(f"{scope}{'ran' if waits else 'dead'}")
            graph.add(end, "Identity", [text_of((switch, which)), *waits]).attr["T"].type = dtype
            ends.append(end)
        merge = graph.add(graph.unique(f"{scope}either"), "Merge", ends)
        merge.attr["T"].type, merge.attr["N"].i = dtype, len(ends)
        graph.merges.append(merge)
        name = merge.name
        found = pinned(graph, [(name, 0)])
    return name


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
    """A Merge that closes a cond, with what leads to its inputs.

    Attributes:
        arms: (predicate, side) for each branch: where a branch's value is alive. A `tf.cond` has
            both sides of one predicate; programs that built their Switches by hand may have a
            predicate for each branch, of which one holds.
        values: what each branch gives, in the order of the arms.
        places: which input of the Merge that is.
    """

    def __init__(self, node: Any, inputs: list[Edge], arms: Sequence[Arm]) -> None:
        places: Sequence[int] = range(len(inputs))
        if len({pred for pred, _ in arms}) == 1:
            places = sorted(places, key=lambda i: arms[i][1])
        self.node = node
        self.arms = tuple(arms[i] for i in places)
        self.values = [inputs[i] for i in places]
        self.places = tuple(places)

    @classmethod
    def of(cls, graph: Rewriter, node: Any) -> _Merge | None:
        """None when another pattern inside has to go first."""
        inputs = [parse(t) for t in node.input if not t.startswith("^")]
        votes: list[set[Arm]] = []
        for edge in inputs:
            region, stops = graph.region([edge], lambda n: _stop(graph, n))
            if any(graph.op(n) in _BLOCKS for n in region):
                return None
            switches = [(n, side) for n, side in stops if graph.op(n) in SWITCH and side >= 0]
            votes.append({(_pred(graph, name), side) for name, side in switches})
        arms = _arms(votes)
        if arms is None or len(arms) < 2:
            raise unsupported(node, "no predicate tells its inputs apart")
        return cls(node, inputs, arms)


def _arms(votes: list[set[Arm]]) -> list[Arm] | None:
    """Where each input of a Merge is alive, from the sides on which there is something it needs."""
    passed = None if len(votes) != 2 else _one_predicate(*votes)
    if passed is not None and all(arm in vote for arm, vote in zip(passed, votes, strict=True)):
        return passed
    own = [
        sorted(vote - set[Arm]().union(*votes[:i], *votes[i + 1 :])) for i, vote in enumerate(votes)
    ]
    return [found[0] for found in own] if all(own) else passed


def _one_predicate(left: set[Arm], right: set[Arm]) -> list[Arm] | None:
    """Two inputs that are the two sides of one predicate."""
    for first, second in ((0, 1), (1, 0)):
        preds = [
            p
            for p, k in sorted(left | right)
            if ((p, first) in left or (p, second) in right)
            and (p, second) not in left
            and (p, first) not in right
        ]
        # A predicate that decides both sides beats one that one side merely passes by.
        both = [p for p in preds if (p, first) in left and (p, second) in right]
        for pred in (both or preds)[:1]:
            return [(pred, first), (pred, second)]
    return None


def _pred(graph: Rewriter, switch: str) -> Edge:
    """What a Switch decides by, identities followed."""
    edge = parse(graph.nodes[switch].input[1])
    while graph.op(edge[0]) == "Identity" and len(graph.nodes[edge[0]].input) == 1:
        edge = parse(graph.nodes[edge[0]].input[0])
    return edge


def _rewrite(graph: Rewriter, scope: str, arms: tuple[Arm, ...], merges: list[_Merge]) -> None:
    prefix = f"{scope}/" if scope else ""
    branches = [
        _Branch(graph, pred, side, [m.values[i] for m in merges])
        for i, (pred, side) in enumerate(arms)
    ]
    captures: dict[Edge, int] = {}
    for source in (s for branch in branches for s in branch.sources.values()):
        captures.setdefault(source, len(captures))
    several = arms[0][0] != arms[1][0]
    for pred, _ in arms[1:] if several else ():
        captures.setdefault(pred, len(captures))
    used = {parse(t) for n in graph.nodes.values() for t in n.input}
    asked = [m for m in merges if (m.node.name, 1) in used]
    results = [as_dtype(m.node.attr["T"].type % 100) for m in merges]
    chain = _Chain(
        graph,
        prefix.replace("/", "_"),
        "If" if graph.is_stateful({n for b in branches for n in b.members}) else "StatelessIf",
        [graph.dtype(edge) for edge in captures],
        [*results, *(int32 for _ in asked)],
    )
    names = []
    for i, branch in enumerate(branches):
        mapping = {edge: captures[source] for edge, source in branch.sources.items()}
        function = graph.function(branch.members, mapping, branch.outputs)
        for merge in asked:
            function.add_constant(np.int32(merge.places[i]))
        side = ("false", "true")[arms[i][1]] if len(arms) == 2 else f"case{i}"
        names.append(chain.add(side, function))
    rest = chain.dead() if several else names[1]
    for i in range(len(arms) - 1, 0, -1) if several else ():
        rest = chain.either(arms[i], f"{PARAMETER}{captures[arms[i][0]]}:0", names[i], rest)
    controls = dict.fromkeys(t for b in branches for t in b.waits())
    inputs = [text_of(arms[0][0]), *(text_of(e) for e in captures), *controls]
    made = graph.add(graph.unique(f"{prefix}If"), chain.op, inputs)
    chain.fill(made, arms[0], names[0], rest)
    for i, merge in enumerate(asked):
        graph.redirect((merge.node.name, 1), (made.name, len(merges) + i))
    for i, merge in enumerate(merges):
        graph.replace_by_identity(merge.node.name, f"{made.name}:{i}")
        graph.done.add(merge.node.name)


class _Chain:
    """The functions of a cond, and the Ifs that choose where each has a predicate of its own.

    All take the same parameters and give the same results.
    """

    def __init__(
        self, graph: Rewriter, prefix: str, op: str, taken: list[DType], given: list[DType]
    ) -> None:
        self.op = op
        self._graph = graph
        self._prefix = prefix
        self._taken = taken
        self._given = given

    def add(self, name: str, function: FlatFunction) -> str:
        """Adds a function; returns its name."""
        found = self._graph.unique(self._prefix + name)
        function.parameters = self._taken
        self._graph.functions[found] = function
        return found

    def either(self, arm: Arm, pred: str, chosen: str, rest: str) -> str:
        """Adds a function that calls one where the arm is alive, else the other."""
        inputs = [pred, *(f"{PARAMETER}{i}:0" for i in range(len(self._taken)))]
        node = protos.NodeDef(name="If", op=self.op, input=inputs)
        self.fill(node, arm, chosen, rest)
        outputs = [f"If:{i}" for i in range(len(self._given))]
        return self.add("else", FlatFunction(nodes=[node], outputs=outputs))

    def dead(self) -> str:
        """Adds a function that fails, for where no branch is alive."""
        function = FlatFunction()
        for i, dtype in enumerate(self._given):
            node = protos.NodeDef(name=f"dead{i}", op="_DeadValue", input=[f"{PARAMETER}0:0"])
            node.attr["T"].type = dtype.as_datatype_enum
            node.attr["S"].type = self._taken[0].base_dtype.as_datatype_enum
            node.attr["index"].i = i
            function.nodes.append(node)
            function.outputs.append(f"{node.name}:0")
        return self.add("dead", function)

    def fill(self, node: Any, arm: Arm, chosen: str, rest: str) -> None:
        """Sets the attributes of an If: `chosen` where the arm is alive, else `rest`."""
        pred, side = arm
        node.attr["Tcond"].type = self._graph.dtype(pred).as_datatype_enum
        for name, types in (("Tin", self._taken), ("Tout", self._given)):
            node.attr[name].list.SetInParent()
            node.attr[name].list.type.extend(t.base_dtype.as_datatype_enum for t in types)
        node.attr["then_branch"].func.name = chosen if side else rest
        node.attr["else_branch"].func.name = rest if side else chosen


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
