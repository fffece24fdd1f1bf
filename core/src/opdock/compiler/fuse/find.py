"""Find: which ops may be in clusters, and which of them can be one node together.

Every node gets a place in some executable order in which elementwise nodes of one device and shape
wait for each other as long as anything else can run. So do reductions of one shape, but what waits
for a reduction is never in its group. What such a group computes between two waits holds no path
that leaves it and comes back, so each connected part of it can be one node, and so can several
parts that read the same array.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from opdock.compiler.fuse.cluster_line import (
    MAX_STEPS,
    alike_as,
    ending_of,
    may_be_in_line,
    member_of,
)
from opdock.compiler.fuse.form import FUSION, op_of, refused_alone
from opdock.compiler.fuse.parts import MOST_ENDS, Candidate, Flow, Key, Part, Parts
from opdock.compiler.fuse.patterns import may_fuse
from opdock.compiler.ir.block import Block, Node, Value
from opdock.compiler.ir.order import preceding
from opdock.compiler.ir.together import Together
from opdock.compiler.place.placer import Placer
from opdock.compiler.place.target import Target
from opdock.shapes import num_elements

_MOST_BESIDE: Final = 6
"""Results up to which parts that depend on nothing of each other are joined."""


def find(block: Block, placer: Placer, able: Mapping[Target, Collection[str]]) -> Parts | None:
    """The parts of a block as they are found, each connected or with an array that all of it reads.

    Args:
        block: in executable order; ops that the device declines are noted in `block.missed`.
        placer: knows the devices.
        able: for each device the op types of the clusters for which it has kernels.

    Returns:
        The state for the other phases; None if no two ops could be one.
    """
    candidates = _candidates(block, placer, able)
    if len(candidates) < 2:
        return None
    flow = Flow.of(block)
    inner = {Value(n, 0) for n in candidates if not flow.leaves(n, candidates)}
    parts = Parts(flow, candidates, inner)
    now = 0
    for others, group in _groups(parts):
        parts.turn.update(dict.fromkeys(others, now))
        parts.visits += len(others) + len(group)
        start = now + 1
        for joined in _beside(parts, _connected(parts, group)):
            for i, part in enumerate(_cut(parts, joined)):
                # Between the turns of parts are those of what has no part.
                part.turn = start + 2 * i
                now = max(now, part.turn + 1)
                parts.own(part)
                parts.found.append(part)
    return parts


# ---------------------------------------------------------------- candidates
def _candidates(
    block: Block, placer: Placer, able: Mapping[Target, Collection[str]]
) -> dict[Node, Candidate]:
    found: dict[Node, Candidate] = {}
    known: dict[Any, tuple[Candidate | None, str]] = {}
    for node in block.nodes:
        ways = able.get(node.target) if node.target is not None else None
        if not ways or node.kernel is None or not may_be_in_line(node):
            continue
        alike = alike_as(node)
        answer = known.get(alike)
        if answer is None:
            candidate, refused = _candidate(node, ways), ""
            if candidate is not None and candidate.reduce is None:
                refused = refused_alone(node, candidate, placer)
            answer = candidate, refused
            if alike is not None:
                known[alike] = answer
        candidate, refused = answer
        if refused:
            block.missed.append((node.name, FUSION, refused))
        elif candidate is not None:
            found[node] = candidate
    return found


def _candidate(node: Node, ways: Collection[str]) -> Candidate | None:
    """What a node would be in a cluster, if it can be in one at all."""
    if len(node.out_dtypes) != 1 or not may_fuse(node):
        return None
    closed = True
    for before, index in node.inputs:
        known = before.out_shapes[index]
        if known is None:
            return None
        closed = closed and None not in known
    ending = ending_of(node)
    shape = node.out_shapes[0] if ending is None else node.inputs[0].shape
    if shape is None or 0 in shape or op_of(shape) not in ways:
        return None
    # What is open comes of what is open alone, and ends nowhere: how much is folded is not known.
    if closed == (None in shape) or not (closed or ending is None):
        return None
    key: Key = node.target, shape  # type: ignore[assignment]
    if ending is not None:
        return Candidate(key, ending.member, ending.reduce)
    kernel = node.kernel
    if kernel is None or kernel.host_inputs or kernel.host_outputs:
        return None
    member = member_of(node)
    return None if member is None else Candidate(key, member)


# ---------------------------------------------------------------- groups
def _groups(parts: Parts) -> Iterator[tuple[list[Node], list[Node]]]:
    """Candidates of one key that may run together, each time after the others that run before.

    A node is free once all before it are placed; of the free ones, those that are no candidates
    are placed first, then reductions, then the smallest shape's, as what is small is mostly
    input to the rest.
    """
    flow, candidates = parts.flow, parts.candidates
    waiting = _Waiting(flow)
    free = [n for n in flow.place if not waiting.left[n]]
    pending: dict[Key, list[Node]] = {}
    reductions: dict[Key, list[Node]] = {}
    sizes: list[tuple[int, int, Key]] = []
    while free or reductions or sizes:
        others: list[Node] = []
        while free:
            node = free.pop()
            candidate = candidates.get(node)
            if candidate is None:
                others.append(node)
                free += waiting.released(node)
                continue
            key = candidate.key
            if candidate.reduce is not None:
                reductions.setdefault(key, []).append(node)
                continue
            if key not in pending:
                pending[key] = []
                heapq.heappush(sizes, (num_elements(key[1]) or 0, flow.place[node], key))
            pending[key].append(node)
        group: list[Node] = []
        if reductions:
            key, start = reductions.popitem()
            group, free = _together(candidates, key, start, waiting)
        elif sizes:
            key = heapq.heappop(sizes)[2]
            group, free = _together(candidates, key, pending.pop(key), waiting)
        yield others, flow.in_order(group)


class _Waiting:
    """How many nodes each node still waits for."""

    def __init__(self, flow: Flow) -> None:
        self.after = flow.after
        self.left = flow.left.copy()

    def released(self, node: Node) -> list[Node]:
        """What waits for nothing any more once a node has run."""
        out = []
        for other in self.after.get(node, ()):
            self.left[other] -= 1
            if not self.left[other]:
                out.append(other)
        return out


def _together(
    candidates: dict[Node, Candidate], key: Key, start: list[Node], waiting: _Waiting
) -> tuple[list[Node], list[Node]]:
    """The group that starts with some nodes, and the nodes that waited for it."""
    stack = start
    group: list[Node] = []
    ends: list[Node] = []
    free: list[Node] = []
    while stack:
        node = stack.pop()
        if candidates[node].reduce is not None:
            ends.append(node)
            continue
        group.append(node)
        for other in waiting.released(node):
            candidate = candidates.get(other)
            same = candidate is not None and candidate.key == key
            (stack if same else free).append(other)
    # Last, so that all that waits for a reduction is freed by one.
    for node in ends:
        free += waiting.released(node)
    return group + ends, free


# ---------------------------------------------------------------- parts of a group
def _connected(parts: Parts, group: list[Node]) -> list[Part]:
    """The parts of a group that hang together."""
    if len(group) == 1:
        return [_part_of(parts, group)]
    together = Together(group)
    for node in group:
        for other, _ in node.inputs:
            if other in together:
                together.join(other, node)
        # Controls and order connect too, so that no two parts wait for each other.
        if node.control or node in parts.flow.before:
            for other in preceding(node, parts.flow.before):
                if other in together:
                    together.join(other, node)
    found: dict[Node, list[Node]] = {}
    for node in group:
        found.setdefault(together.root(node), []).append(node)
    return [_part_of(parts, nodes) for nodes in found.values()]


def _part_of(parts: Parts, nodes: list[Node]) -> Part:
    part = Part(parts.candidates[nodes[0]].key, [])
    for node in nodes:
        (part.nodes if parts.candidates[node].reduce is None else part.ends).append(node)
    return part


def _beside(parts: Parts, connected: list[Part]) -> Iterable[Part]:
    """Joins what reads the same whole array, as once is enough.

    Not where many results would be in memory at once.
    """
    if len(connected) < 2:
        return connected
    first: dict[Value, Part] = {}
    into: dict[Part, Part] = {}
    for part in connected:
        here = part
        for value in _read(parts, part):
            other = first.setdefault(value, here)
            other = into.get(other, other)
            if other is not here and here is part and _are_few(parts, other, part):
                other.join(part, parts.flow.place)
                here = into[part] = other
    return [p for p in connected if p not in into]


def _read(parts: Parts, part: Part) -> Iterator[Value]:
    """The whole arrays that a part reads, as far as it does not compute them."""
    inside = set(part.nodes)
    for node in part.all():
        ends = parts.candidates[node].reduce is not None
        for value in node.inputs[: 1 if ends else None]:
            whole = value.shape == part.key[1] and not value.node.is_const
            if whole and value.node not in inside:
                yield value


def _are_few(parts: Parts, a: Part, b: Part) -> bool:
    """Whether two parts can be one that does not leave many results."""
    inside = {*a.all(), *b.all()}
    parts.visits += len(inside)
    left = sum(parts.flow.leaves(n, inside) for n in (*a.nodes, *b.nodes))
    return left <= _MOST_BESIDE and parts.fit(a, b)


def _cut(parts: Parts, part: Part) -> Iterable[Part]:
    """The part in pieces that are small enough; a reduction is in the first that it can."""
    if len(part.nodes) + len(part.ends) == 1:
        return [part]
    sizes = _sizes(parts, part)
    if sum(sizes.values()) <= MAX_STEPS and len(part.ends) <= MOST_ENDS:
        return [part]
    pieces = [Part(part.key, [])]
    at: dict[Node, int] = {}
    steps = 0.0
    for node in part.nodes:
        size = sizes[node]
        if pieces[-1].nodes and steps + size > MAX_STEPS:
            pieces.append(Part(part.key, []))
            steps = 0.0
        pieces[-1].nodes.append(node)
        at[node] = len(pieces) - 1
        steps += size
    for node in part.ends:
        place = max((at[n] for n in preceding(node, parts.flow.before) if n in at), default=0)
        while (
            len(pieces[place].ends) == MOST_ENDS
            or parts.size(pieces[place]) + sizes[node] > MAX_STEPS
        ):
            place += 1
            if place == len(pieces):
                pieces.append(Part(part.key, []))
        pieces[place].ends.append(node)
    return pieces


def _sizes(parts: Parts, part: Part) -> dict[Node, float]:
    """The steps of each node; a result that is stored is at least one, however few elements."""
    sizes = {n: parts.candidates[n].size for n in part.all()}
    for node in part.nodes:
        if sizes[node] < 1 and parts.flow.leaves(node, sizes):
            sizes[node] = 1
    return sizes
