"""Enter, Merge, Switch, NextIteration and Exit as While: one rewrite at a time, innermost first."""

from __future__ import annotations

from typing import Any

from opdock.graph.control.v1_conds import closed
from opdock.graph.control.v1_control_flow import (
    ENTER,
    EXIT,
    NEXT,
    SWITCH,
    V1_OPS,
    Edge,
    Rewriter,
    parse,
    text_of,
    unsupported,
)


def keep_records(graph: Rewriter) -> None:
    """Has the turns of loops give what gradients record of them, which nobody takes otherwise.

    In TF the next turn waits for it: NextIterations have control inputs. What a value is taken
    from runs in any case, and what waits for a Switch is closed by a Merge.
    """
    waiting = [n for n in graph.nodes.values() if n.op in NEXT and len(n.input) > 1]
    if not waiting:
        return
    edges = (parse(t) for n in graph.nodes.values() for t in n.input)
    taken = {name for name, index in edges if index >= 0}
    for node in waiting:
        value, *waits = node.input
        awaited = [n for n in _awaited(graph, waits) if n not in taken and graph.op(n) not in EXIT]
        node.input[:] = [value]
        if awaited:
            name = graph.unique(f"{node.name}/recorded")
            inputs = [value, *(f"^{closed(graph, n)}" for n in awaited)]
            made = graph.add(name, "Identity", inputs)
            made.attr["T"].type = node.attr["T"].type % 100
            made.device = node.device
            node.input[:] = [f"{name}:0"]


def _awaited(graph: Rewriter, waits: list[str]) -> list[str]:
    """The nodes that are waited for, also through triggers, which run when those are dead."""
    found: dict[str, None] = {}
    for text in waits:
        name = parse(text)[0]
        if graph.op(name) == "ControlTrigger":
            found.update(dict.fromkeys(_awaited(graph, list(graph.nodes[name].input))))
        else:
            found[name] = None
    return list(found)


def rewrite_a_loop(graph: Rewriter) -> bool:
    """Rewrites one innermost loop; False when there is none."""
    for name, enters in graph.frames.items():
        loop = _Loop(graph, name, enters)
        for variable in loop.variables:
            if variable.leaves_at_once():
                graph.replace_by_identity(variable.merge.name, variable.enter.name)
                graph.loop_merges.discard(variable.merge.name)
                graph.done.add(variable.merge.name)
                return True
        if not loop.variables:
            if not _pass_through(graph, enters):
                continue
            del graph.frames[name]
            return True
        if loop.is_innermost():
            loop.rewrite()
            del graph.frames[name]
            return True
    return False


def _pass_through(graph: Rewriter, enters: list[Any]) -> bool:
    """Takes away a frame without a loop variable: what enters it runs once.

    Returns:
        False if there is a frame inside, which goes first.
    """
    users: dict[str, list[str]] = {}
    for node in graph.nodes.values():
        for text in node.input:
            users.setdefault(parse(text)[0], []).append(node.name)
    inside: set[str] = set()
    exits: list[Any] = []
    waiting = [e.name for e in enters]
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user in inside:
                continue
            inside.add(user)
            if graph.op(user) in EXIT:
                exits.append(graph.nodes[user])
            elif graph.op(user) in ENTER:
                return False
            else:
                waiting.append(user)
    for node in [*enters, *exits]:
        graph.replace_by_identity(node.name, node.input[0])
    return True


class _Variable:
    """A loop variable: Enter, Merge, Switch, what the next turn gets, and the Exits."""

    def __init__(self, graph: Rewriter, enter: Any, merge: Any) -> None:
        self.enter = enter
        self.merge = merge
        sources = [parse(t)[0] for t in merge.input if not t.startswith("^")]
        following = [s for s in sources if graph.op(s) in NEXT]
        if len(sources) != 2 or len(following) != 1:
            raise unsupported(merge, "a loop variable enters once and is renewed once")
        self.next = parse(graph.nodes[following[0]].input[0])
        self.switches: list[Any] = []
        self.exits: list[str] = []
        self._graph = graph

    def leaves_at_once(self) -> bool:
        """Whether only the value that leaves the loop would renew it, so that no turn follows."""
        name, index = self.next
        if self._graph.op(name) not in SWITCH or index:
            return False
        return bool(parse(self._graph.nodes[name].input[0])[0] == self.merge.name)


class _Loop:
    def __init__(self, graph: Rewriter, frame: str, enters: list[Any]) -> None:
        self._graph = graph
        self._frame = frame
        merges: dict[str, Any] = {}
        for name in graph.loop_merges - graph.done:
            for text in graph.nodes[name].input:
                merges[parse(text)[0]] = graph.nodes[name]
        self.variables = [_Variable(graph, e, merges[e.name]) for e in enters if e.name in merges]
        self.invariants = [e for e in enters if e.name not in merges]
        by_merge = {v.merge.name: v for v in self.variables}
        by_switch: dict[str, _Variable] = {}
        self._conds: set[str] = set()
        for node in graph.switches:
            variable = by_merge.get(parse(node.input[0])[0])
            decides = parse(node.input[1])[0]
            if variable is not None and graph.op(decides) == "LoopCond":
                variable.switches.append(node)
                by_switch[node.name] = variable
                self._conds.add(decides)
        for node in graph.exits:
            variable = by_switch.get(parse(node.input[0])[0])
            if variable is not None:
                variable.exits.append(node.name)
        self._stops = (
            set(by_merge) | set(by_switch) | {e.name for e in self.invariants} | self._conds
        )

    def _stop(self, name: str) -> bool:
        return name in self._stops

    def _roots(self) -> tuple[Edge, list[Edge]]:
        if len(self._conds) != 1:
            raise unsupported(self.variables[0].merge, f"it has {len(self._conds)} conditions")
        (cond,) = self._conds
        return parse(self._graph.nodes[cond].input[0]), [v.next for v in self.variables]

    def is_innermost(self) -> bool:
        """Whether nothing inside has to be rewritten first."""
        cond, following = self._roots()
        region, _ = self._graph.region([cond, *following], self._stop)
        return not any(self._graph.op(n) in V1_OPS for n in region)

    def rewrite(self) -> None:
        """Adds the While and makes the Exits identities of its outputs."""
        graph = self._graph
        cond, following = self._roots()
        regions = []
        captured: dict[Edge, None] = {}
        for roots in ([cond], following):
            region, _ = graph.region(roots, self._stop)
            inner = graph.inside(region, self._stop)
            regions.append(inner | {n for n in region if graph.is_small_constant(n)})
            outside = [*graph.outside_edges(region, inner), *roots]
            captured.update(
                (e, None) for e in outside if e[0] in region and e[0] not in regions[-1]
            )
        starts = [parse(v.enter.input[0]) for v in self.variables]
        passed = [parse(e.input[0]) for e in self.invariants]
        inputs = [*starts, *passed, *captured]
        types = [graph.dtype((v.enter.name, 0)) for v in self.variables]
        types += [graph.dtype((e.name, 0)) for e in self.invariants]
        types += [graph.dtype(e) for e in captured]
        mapping = self._mapping(list(captured))
        count = len(self.variables)
        unchanged = [(e.name, 0) for e in self.invariants] + list(captured)
        prefix = self._frame.rpartition("/")[0] or self._frame
        made_names = []
        for kind, members, results in (
            ("cond", regions[0], [cond]),
            ("body", regions[1], [*following, *unchanged]),
        ):
            name = graph.unique(f"{prefix}_{kind}".replace("/", "_"))
            function = graph.function(members, mapping, results)
            function.parameters = types
            graph.functions[name] = function
            made_names.append(name)
        stateful = graph.is_stateful(regions[0] | regions[1])
        controls = dict.fromkeys(t for v in self.variables for t in v.enter.input[1:])
        made = graph.add(
            graph.unique(f"{prefix}/While"),
            "While" if stateful else "StatelessWhile",
            [*(text_of(e) for e in inputs), *controls],
        )
        made.attr["T"].list.type.extend(t.base_dtype.as_datatype_enum for t in types)
        made.attr["cond"].func.name, made.attr["body"].func.name = made_names
        turns = self.variables[0].enter.attr["parallel_iterations"].i
        made.attr["parallel_iterations"].i = turns or 10
        for i, variable in enumerate(self.variables[:count]):
            graph.done.add(variable.merge.name)
            for name in variable.exits:
                graph.replace_by_identity(name, f"{made.name}:{i}")

    def _mapping(self, captured: list[Edge]) -> dict[Edge, int]:
        mapping: dict[Edge, int] = {}
        for i, variable in enumerate(self.variables):
            mapping[variable.merge.name, 0] = i
            for switch in variable.switches:
                mapping[switch.name, 1] = i
        first = len(self.variables)
        for i, enter in enumerate(self.invariants):
            mapping[enter.name, 0] = first + i
        first += len(self.invariants)
        mapping.update((edge, first + i) for i, edge in enumerate(captured))
        return mapping
