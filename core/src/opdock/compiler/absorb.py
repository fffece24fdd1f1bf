"""Absorb: what clusters take in so that fewer whole arrays go through memory.

A part whose results only one other part reads joins it. A cheap member is computed again where it
is used if that reads no more than its result would. And what merely repeats a smaller array, or
adds dimensions of size one to it, is read at its source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from opdock.compiler.cluster_line import MAX_STEPS, Member
from opdock.compiler.ir import Node, Value
from opdock.compiler.partition import _declare_memory
from opdock.compiler.target import Target
from opdock.kernels.lowering import CAST, INPUT, NUMBER
from opdock.shapes import num_elements

Key = tuple[Target, tuple[int, ...]]
_MOST_AGAIN: Final = 4
"""Steps that a value may take to be computed again."""
_CHEAP: Final = frozenset({
    INPUT, NUMBER, CAST, "add", "sub", "mul", "neg", "abs", "max", "min", "where", "lt", "le", "gt",
    "ge", "eq", "ne", "bitand", "bitor", "bitxor", "bitnot", "sign",
})  # fmt: skip
_SHAPED: Final = frozenset({"Reshape", "ExpandDims", "Squeeze"})
_SPREAD: Final = frozenset({"BroadcastTo", "Tile"})


@dataclass(slots=True)
class Part:
    """Nodes that are to become one: elementwise ones, and perhaps the reduction that ends them.

    Attributes:
        key: the device and the shape.
        nodes: the elementwise nodes, in executable order.
        last: the reduction.
        again: nodes computed here too, in executable order, whatever else becomes of them.
    """

    key: Key
    nodes: list[Node]
    last: Node | None = None
    again: list[Node] = field(default_factory=list)

    def all(self) -> list[Node]:
        """Every node that goes into the part, in executable order."""
        return [*self.nodes, self.last] if self.last is not None else self.nodes

    @property
    def pays(self) -> bool:
        """Whether there is anything to fuse."""
        return len(self.nodes) + len(self.again) + (self.last is not None) > 1


@dataclass(slots=True)
class Absorber:
    """What must be known of the program.

    Attributes:
        members: the elementwise nodes that may be in clusters.
        owner: the part of each node that is in one.
        users: the nodes that take a value.
        after: the nodes that wait for a node, for whatever reason.
        fetched: the values that the caller gets.
        place: each node's place in an executable order.
    """

    members: Mapping[Node, Member]
    owner: dict[Node, Part]
    users: Mapping[Value, list[Node]]
    after: Mapping[Node, list[Node]]
    fetched: set[Value]
    place: Mapping[Node, int]
    _known: dict[Node, bool] = field(default_factory=dict)
    _free: dict[Value, bool] = field(default_factory=dict)

    # ------------------------------------------------------------ whole parts
    def merge(self, parts: list[Part]) -> list[Part]:
        """Joins parts to the only part that reads them; parts come and stay in order."""
        for part in parts:
            into = self._reader(part)
            if into is None or self._size(part) + self._size(into) > MAX_STEPS:
                continue
            here = self._whole_inputs(into)
            left = self._results(part)
            if len(self._whole_inputs(part) - here) > len(left):
                continue  # It would keep more alive than it saves.
            into.nodes = sorted((*part.nodes, *into.nodes), key=self.place.__getitem__)
            self.owner.update(dict.fromkeys(part.nodes, into))
            part.nodes = []
        return [p for p in parts if p.nodes or p.last]

    def _reader(self, part: Part) -> Part | None:
        """The one other part of the same key that waits for this one, if nothing else does."""
        found: Part | None = None
        if part.last is not None or any(Value(n, 0) in self.fetched for n in part.nodes):
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

    def _size(self, part: Part) -> int:
        return sum(self.members[n].size for n in part.nodes)

    def _whole_inputs(self, part: Part) -> set[Value]:
        inside = set(part.nodes)
        return {
            v for n in part.nodes for v in self._whole(n, part.key) if v.node not in inside
        }  # fmt: skip

    def _whole(self, node: Node, key: Key) -> Iterator[Value]:
        """The inputs of the full shape, at their sources."""
        for i in self.members[node].used:
            value = self.source(node.inputs[i], key[1])[0]
            if value.shape == key[1] and value.node.op != "Const":
                yield value

    def _results(self, part: Part) -> list[Node]:
        inside = set(part.nodes)
        return [
            n for n in part.nodes
            if any(u not in inside for u in self.users.get(Value(n, 0), ()))
        ]  # fmt: skip

    # ------------------------------------------------------------ cheap values
    def take(self, part: Part) -> bool:
        """Lets a part compute cheap inputs itself where that takes no more reading.

        Returns:
            Whether the part can be: a reduction alone must have something to compute.
        """
        if not part.nodes:
            return self._ending(part)
        have = self._whole_inputs(part)
        room = MAX_STEPS - self._size(part)
        for value in sorted(have, key=lambda v: self.place[v.node]):
            found = self._recipe(value, part, have, min(room, _MOST_AGAIN))
            if found is None:
                continue
            nodes, new = found
            if new and not self._goes(value):
                continue
            part.again += [n for n in nodes if n not in part.again]
            room -= sum(self.members[n].size for n in nodes)
            have = (have | new) - {value}
        part.again.sort(key=self.place.__getitem__)
        return True

    def _ending(self, part: Part) -> bool:
        assert part.last is not None
        found = self._recipe(part.last.inputs[0], part, set(), _MOST_AGAIN)
        part.again = sorted(found[0], key=self.place.__getitem__) if found else []
        return found is not None

    def _goes(self, value: Value) -> bool:
        """Whether the value may need no memory, as all that use it can compute it."""
        found = self._free.get(value)
        if found is None:
            inside = all(u in self.owner for u in self.users[value])
            found = self._free[value] = inside and value not in self.fetched
        return found

    def _recipe(
        self, value: Value, part: Part, have: set[Value], steps: int
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
            _declare_memory(value.node)
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
    if node.op == "Fill" and node.inputs[0].node.op == "Const":
        return node.inputs[1]
    if node.op not in _SHAPED and node.op not in _SPREAD:
        return None
    operand, *others = node.inputs
    old = operand.shape
    if old is None or None in old or any(v.node.op != "Const" for v in others):
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
