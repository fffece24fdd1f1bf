"""Parts: what the phases of the cluster pass hand on: the program, its candidates, their parts."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final

from opdock.compiler.fuse.cluster_line import MAX_STEPS, Member
from opdock.compiler.ir.block import Block, Node, Value
from opdock.compiler.ir.order import Before, preceding, state_order
from opdock.compiler.place.target import Target
from opdock.kernels.expr.cluster import Reduce
from opdock.late import record
from opdock.shapes import num_elements

Key = tuple[Target, tuple[int | None, ...]]
"""The device, and the shape over which all of a part is computed, as far as it is known."""
MOST_ENDS: Final = 16
"""Reductions of one part."""


@record(slots=True, eq=False)
class Candidate:
    """An op that may be in a cluster.

    Attributes:
        key: the device and the shape.
        member: the op's steps; None for a reduction of its operand itself.
        reduce: what becomes of their result; None for an elementwise op.
        size: the steps that compute something.
        used: which of the op's inputs the steps read.
    """

    key: Key
    member: Member | None
    reduce: Reduce | None = None
    size: float = field(init=False)
    used: Collection[int] = field(init=False)

    def __post_init__(self) -> None:
        elements = num_elements(self.key[1])
        self.size = 0 if self.member is None else self.member.size(elements)
        self.used = self.member.used if self.member is not None and self.reduce is None else (0,)


@record(slots=True, eq=False)
class Part:
    """Nodes that are to become one: elementwise ones, and reductions of what they read or compute.

    Attributes:
        key: the device and the shape.
        nodes: the elementwise nodes, in executable order.
        ends: the reductions.
        again: nodes computed here too, in executable order, whatever else becomes of them.
        pieces: the parts that it was joined of, in executable order.
        turn: when it runs; those of one turn run in the order in which they are found.
    """

    key: Key
    nodes: list[Node]
    ends: list[Node] = field(default_factory=list)
    again: list[Node] = field(default_factory=list)
    pieces: list[Part] = field(default_factory=list)
    turn: int = 0

    def all(self) -> list[Node]:
        """Every node that goes into the part."""
        return [*self.nodes, *self.ends]

    @property
    def pays(self) -> bool:
        """Whether there is anything to fuse."""
        return len(self.nodes) + len(self.again) + len(self.ends) > 1

    def join(self, other: Part, place: Mapping[Node, int]) -> None:
        """Takes in a part that waits for nothing of this one.

        Args:
            other: the other part.
            place: where nodes stand in an executable order.
        """
        its, mine = ([Part(p.key, p.nodes, p.ends)] for p in (other, self))
        self.pieces = [*(other.pieces or its), *(self.pieces or mine)]
        self.nodes = sorted((*self.nodes, *other.nodes), key=place.__getitem__)
        self.ends = sorted((*self.ends, *other.ends), key=place.__getitem__)


@record(frozen=True, slots=True)
class Flow:
    """What waits for what in the program as it came; no phase changes it.

    Attributes:
        place: each node's place in an executable order.
        fetched: the values that the caller gets, and those of the ops that it asks for.
        before: what the order of effects adds.
        users: the nodes that take a value.
        after: the nodes that wait for a node, for whatever reason.
        left: how many nodes each node waits for.
        awaited: nodes for which one waits that does not take what they compute: a write to what
            they read, say.
    """

    place: dict[Node, int]
    fetched: frozenset[Value]
    before: Before
    users: dict[Value, list[Node]]
    after: dict[Node, list[Node]]
    left: dict[Node, int]
    awaited: set[Node]

    @classmethod
    def of(cls, block: Block) -> Flow:
        """That of a block in executable order."""
        flow = cls(
            {n: i for i, n in enumerate(block.nodes)},
            frozenset([*block.fetches, *(Value(n, 0) for n in block.targets if n.out_dtypes)]),
            state_order(block.nodes), {}, {}, {}, set(),
        )  # fmt: skip
        place, before, users, after = flow.place, flow.before, flow.users, flow.after
        for node in block.nodes:
            needed: dict[Node, None] = {}
            for value in node.inputs:
                taken = users.get(value)
                if taken is None:
                    users[value] = [node]
                else:
                    taken.append(node)
                needed[value[0]] = None
            if node.control or node in before:
                more = [n for n in preceding(node, before) if n not in needed]
                flow.awaited.update(more)
                needed.update(dict.fromkeys(more))
            left = 0
            for other in needed:
                if other in place:
                    left += 1
                    waiting = after.get(other)
                    if waiting is None:
                        after[other] = [node]
                    else:
                        waiting.append(node)
            flow.left[node] = left
        return flow

    def in_order(self, nodes: Iterable[Node]) -> list[Node]:
        """The nodes in the order in which they came."""
        return sorted(nodes, key=self.place.__getitem__)

    def leaves(self, node: Node, inside: Container[Node]) -> bool:
        """Whether others than those inside use what a node computes."""
        value = Value(node, 0)
        return value in self.fetched or any(u not in inside for u in self.users.get(value, ()))


@record(slots=True)
class Parts:
    """The state of the pass.

    `find` makes it, `merge` leaves fewer parts, and `form` makes nodes of them, for which
    `recompute` says what each computes again.

    Attributes:
        flow: the program.
        candidates: the ops that may be in clusters.
        inner: the values that nothing but candidates uses, so that they may need no memory.
        found: the parts, in an executable order.
        owner: the part of each candidate.
        turn: when each node that is in no part runs.
        whole: what `recompute` has found out of what candidates read.
        visits: how many nodes the phases looked at.
    """

    flow: Flow
    candidates: dict[Node, Candidate]
    inner: set[Value]
    found: list[Part] = field(default_factory=list)
    owner: dict[Node, Part] = field(default_factory=dict)
    turn: dict[Node, int] = field(default_factory=dict)
    whole: dict[Node, Sequence[Value]] = field(default_factory=dict)
    visits: int = 0

    def own(self, part: Part) -> None:
        """Makes a part that of its nodes."""
        self.owner.update(dict.fromkeys(part.all(), part))

    def last(self, part: Part) -> Node:
        """The last of a part's nodes."""
        return max(part.all(), key=self.flow.place.__getitem__)

    def size(self, part: Part) -> float:
        """The steps that a part computes."""
        candidates = self.candidates
        return sum([candidates[n].size for n in part.nodes]) + sum(
            [candidates[n].size for n in part.ends]
        )

    def fit(self, a: Part, b: Part) -> bool:
        """Whether two parts together are not too large."""
        few = len(a.ends) + len(b.ends) <= MOST_ENDS
        return few and self.size(a) + self.size(b) <= MAX_STEPS
