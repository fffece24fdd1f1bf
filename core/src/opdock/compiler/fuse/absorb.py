"""Absorb: what clusters take in so that fewer whole arrays go through memory.

A part whose results only one other part reads joins it. One of which only reductions come waits for
a part that reads what it reads. A cheap member is computed again where it is used if that reads no
more than its result would. And what merely repeats a smaller array, or adds dimensions of size one
to it, is read at its source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from opdock.compiler.emit.partition import declare_memory
from opdock.compiler.fuse.cluster_line import MAX_STEPS, Ending, Member
from opdock.compiler.ir.block import Node, Value
from opdock.compiler.place.target import Target
from opdock.kernels.expr.lowering import CAST, INPUT, NUMBER
from opdock.shapes import num_elements

Key = tuple[Target, tuple[int, ...]]
_MOST_AGAIN: Final = 4
"""Steps that a value may take to be computed again."""
MOST_ENDS: Final = 16
"""Reductions of one part."""
_MOST_LATER: Final = 32
"""Nodes that may be moved behind a part together with the reductions that they wait for."""
_CHEAP: Final = frozenset({
    INPUT, NUMBER, CAST, "add", "sub", "mul", "neg", "abs", "max", "min", "where", "lt", "le", "gt",
    "ge", "eq", "ne", "bitand", "bitor", "bitxor", "bitnot", "sign",
})  # fmt: skip
_SHAPED: Final = frozenset({"Reshape", "ExpandDims", "Squeeze"})
_SPREAD: Final = frozenset({"BroadcastTo", "Tile"})


@dataclass(slots=True)
class Part:
    """Nodes that are to become one: elementwise ones, and reductions of what they read or compute.

    Attributes:
        key: the device and the shape.
        nodes: the elementwise nodes, in executable order.
        ends: the reductions.
        again: nodes computed here too, in executable order, whatever else becomes of them.
        pieces: the parts that it was joined of, in executable order.
    """

    key: Key
    nodes: list[Node]
    ends: list[Node] = field(default_factory=list)
    again: list[Node] = field(default_factory=list)
    pieces: list[Part] = field(default_factory=list)

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


@dataclass(slots=True)
class Absorber:
    """What must be known of the program.

    Attributes:
        members: the elementwise nodes that may be in clusters.
        endings: the reductions that may.
        owner: the part of each node that is in one.
        users: the nodes that take a value.
        after: the nodes that wait for a node, for whatever reason.
        fetched: the values that the caller gets.
        place: each node's place in an executable order.
        turn: when each node runs in the order in which the parts were found: those of one turn
            do not depend on each other.
    """

    members: Mapping[Node, Member]
    endings: Mapping[Node, Ending]
    owner: dict[Node, Part]
    users: Mapping[Value, list[Node]]
    after: Mapping[Node, list[Node]]
    fetched: set[Value]
    place: Mapping[Node, int]
    turn: dict[Node, int]
    _known: dict[Node, bool] = field(default_factory=dict)
    _free: dict[Value, bool] = field(default_factory=dict)

    # ------------------------------------------------------------ whole parts
    def merge(self, parts: list[Part]) -> list[Part]:
        """Joins parts to later ones that read what they compute, or what they read.

        Args:
            parts: in the order in which they were found.

        Returns:
            Those that are left, in the same order.
        """
        for part in parts:
            into = self._reader(part) if part.nodes else None
            if into is not None and self.fit(part, into):
                here = self._whole_inputs(into)
                # Else it would keep more alive than it saves.
                if len(self._whole_inputs(part) - here) <= len(self._results(part)):
                    self._move(part, into)
        parts = [p for p in parts if p.all()]
        for part in parts:
            companion = self._companion(part) if part.ends and self._only_ends(part) else None
            if companion is not None:
                self._move(part, companion)
        return [p for p in parts if p.all()]

    def _move(self, part: Part, into: Part) -> None:
        """Leaves a part empty."""
        turn = self.turn[into.all()[0]]
        self.turn.update(dict.fromkeys(part.all(), turn))
        self.owner.update(dict.fromkeys(part.all(), into))
        into.join(part, self.place)
        part.nodes, part.ends = [], []

    def _reader(self, part: Part) -> Part | None:
        """The one other part of the same key that waits for this one, if nothing else does."""
        found: Part | None = None
        if part.ends or any(Value(n, 0) in self.fetched for n in part.nodes):
            return None
        for node in part.nodes:
            for user in self.after.get(node, ()):
                other = self.owner.get(user)
                if other is part:
                    continue
                if other is None or other.key != part.key or found not in (None, other):
                    return None
                found = other
        return found

    def _only_ends(self, part: Part) -> bool:
        """Whether only reductions come of a part."""
        inside = set(part.all())
        return not any(
            Value(n, 0) in self.fetched or any(u not in inside for u in self.after.get(n, ()))
            for n in part.nodes
        )

    def _companion(self, part: Part) -> Part | None:
        """A later part that reads all that some reductions read, and waits for none of them."""
        read = self._whole_inputs(part)
        users = self._readers(read)
        others = {id(p): p for p in map(self.owner.__getitem__, users) if p.key == part.key}
        now = self.turn[part.ends[0]]
        later = [(self.turn[p.all()[0]], i, p) for i, p in others.items()]
        for turn, _, other in sorted(later, key=lambda found: found[0]):
            if turn < now or other is part or not self.fit(part, other):
                continue
            if not read <= self._whole_inputs(other) | self._taken(other)[1]:
                continue
            behind = self._behind(part, turn)
            if behind is not None:
                self.turn.update(dict.fromkeys(behind, turn + 1))
                return other
        return None

    def _readers(self, values: set[Value]) -> Iterator[Node]:
        """Nodes of parts that read values, or compute them again because they are cheap."""
        for value in values:
            for user in self.users.get(value, ()):
                if user not in self.owner:
                    continue
                yield user
                for later in self.users.get(Value(user, 0), ()):
                    if later in self.owner and user in self.members:
                        yield later

    def _behind(self, part: Part, turn: int) -> list[Node] | None:
        """What must then run after that turn too; None if it is much, or in parts itself.

        All parts run in the order of their turns before and after the move, so there is no cycle.
        """
        found: dict[Node, None] = {}
        stack = part.all()
        while stack:
            for node in self.after.get(stack.pop(), ()):
                if node in found or self.turn[node] > turn or self.owner.get(node) is part:
                    continue
                if node in self.owner or len(found) == _MOST_LATER:
                    return None
                found[node] = None
                stack.append(node)
        return list(found)

    def size(self, part: Part) -> float:
        """The steps that a part computes."""
        return sum(self.members[n].size for n in part.nodes) + sum(
            self.endings[n].size for n in part.ends
        )

    def fit(self, a: Part, b: Part) -> bool:
        """Whether two parts together are not too large."""
        few = len(a.ends) + len(b.ends) <= MOST_ENDS
        return few and self.size(a) + self.size(b) <= MAX_STEPS

    def _whole_inputs(self, part: Part) -> set[Value]:
        inside = set(part.nodes)
        return {
            v for n in part.all() for v in self._whole(n, part.key) if v.node not in inside
        }  # fmt: skip

    def _whole(self, node: Node, key: Key) -> Iterator[Value]:
        """The inputs of the full shape, at their sources."""
        for i in (0,) if node in self.endings else self.members[node].used:
            value = self.source(node.inputs[i], key[1])[0]
            if value.shape == key[1] and not value.node.is_const:
                yield value

    def _results(self, part: Part) -> list[Node]:
        inside = set(part.nodes)
        return [
            n for n in part.nodes
            if any(u not in inside for u in self.users.get(Value(n, 0), ()))
        ]  # fmt: skip

    # ------------------------------------------------------------ cheap values
    def take(self, part: Part) -> None:
        """Lets a part compute cheap inputs itself where that takes no more reading."""
        part.again = self._taken(part)[0]

    def _taken(self, part: Part) -> tuple[list[Node], set[Value]]:
        """The nodes to compute again, and the whole arrays that are then read."""
        have, again = self._whole_inputs(part), []
        room = MAX_STEPS - self.size(part)
        for value in sorted(have, key=lambda v: self.place[v.node]):
            found = self._recipe(value, part, have, min(room, _MOST_AGAIN))
            if found is None:
                continue
            nodes, new = found
            if new and not self._goes(value):
                continue
            again += [n for n in nodes if n not in again]
            room -= sum(self.members[n].size for n in nodes)
            have = (have | new) - {value}
        return sorted(again, key=self.place.__getitem__), have

    def _goes(self, value: Value) -> bool:
        """Whether the value may need no memory, as all that use it can compute it."""
        found = self._free.get(value)
        if found is None:
            inside = all(u in self.owner for u in self.users[value])
            found = self._free[value] = inside and value not in self.fetched
        return found

    def _recipe(
        self, value: Value, part: Part, have: set[Value], steps: float
    ) -> tuple[list[Node], set[Value]] | None:
        """The nodes that make a value again, and which whole arrays must be read for it."""
        nodes: list[Node] = []
        new: set[Value] = set()
        stack = [value]
        while stack:
            node = stack.pop().node
            if node in nodes:
                continue
            if not self._is_cheap(node, part):
                return None
            nodes.append(node)
            steps -= self.members[node].size
            if steps < 0:
                return None
            for operand in self._whole(node, part.key):
                if operand in have and operand != value:
                    continue
                if self._is_there(operand):
                    new.add(operand)
                else:
                    stack.append(operand)
        return (nodes, new) if len(new) <= 1 else None

    def _is_cheap(self, node: Node, part: Part) -> bool:
        member = self.members.get(node)
        return (
            member is not None
            and node.target is part.key[0]
            and node.out_shapes[0] == part.key[1]
            and all(s.op in _CHEAP for s in member.line.steps)
            and self._only_read(node)
        )

    def _is_there(self, value: Value) -> bool:
        """Whether a value is in memory in any case."""
        part = self.owner.get(value.node)
        if part is None or value in self.fetched or value.node not in self.members:
            return True
        return any(self.owner.get(u) is not part for u in self.users[value])

    # ------------------------------------------------------------ sources
    def source(self, value: Value, shape: tuple[int, ...]) -> tuple[Value, list[Node]]:
        """The smaller array whose broadcast to `shape` has the same elements, and what it skips."""
        skipped: list[Node] = []
        while True:
            found = _looked_through(value)
            if found is None or found.shape is None or len(found.shape) > len(shape):
                return value, skipped
            if not self._only_read(value.node):
                return value, skipped
            declare_memory(value.node)
            skipped.append(value.node)
            value = found

    def _only_read(self, node: Node) -> bool:
        """Whether nothing waits for a node but what uses its value: no write to what it reads."""
        found = self._known.get(node)
        if found is None:
            readers = set(self.users.get(Value(node, 0), ()))
            found = self._known[node] = readers.issuperset(self.after.get(node, ()))
        return found


# ---------------------------------------------------------------- sources
def _looked_through(value: Value) -> Value | None:
    """The operand of a node whose output is its broadcast."""
    node, shape = value.node, value.shape
    if node.kernel is None or "_kernel" in node.attrs or shape is None or None in shape:
        return None
    if node.op == "Fill" and node.inputs[0].node.is_const:
        return node.inputs[1]
    if node.op not in _SHAPED and node.op not in _SPREAD:
        return None
    operand, *others = node.inputs
    old = operand.shape
    if old is None or None in old or any(not v.node.is_const for v in others):
        return None
    if operand.dtype._is_ref_dtype:
        return None
    if node.op == "BroadcastTo" or num_elements(old) == 1:
        return operand
    return operand if node.op in _SHAPED and _lean(old) == _lean(shape) else None


def _lean(shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """A shape without the sizes of one in front."""
    start = next((i for i, n in enumerate(shape) if n != 1), len(shape))
    return shape[start:]
