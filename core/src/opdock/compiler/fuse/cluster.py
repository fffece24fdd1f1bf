"""Cluster: elementwise ops that hang together become one op, for devices that generate code.

First every node gets a place in some executable order in which elementwise nodes of one device and
shape wait for each other as long as anything else can run. So do reductions of one shape, but what
waits for a reduction is never in its group. What such a group computes between two waits holds no
path that leaves it and comes back, so each connected part of it can be one node, and so can several
parts that read the same array.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable, Iterator
from typing import Any, Final

from opdock.compiler.fuse.absorb import MOST_ENDS, Absorber, Key, Part
from opdock.compiler.fuse.cluster_line import (
    MAX_STEPS,
    Composer,
    Ending,
    Member,
    ending_of,
    member_of,
)
from opdock.compiler.fuse.patterns import may_fuse
from opdock.compiler.ir.block import FEED, Block, Fused, Node, Value
from opdock.compiler.ir.order import preceding, sort, state_order
from opdock.compiler.place.experience import GAVE_UP
from opdock.compiler.place.placer import Placer
from opdock.compiler.place.target import Target
from opdock.kernels.expr.cluster import CLUSTER
from opdock.kernels.expr.lowering import Line
from opdock.shapes import Shape, num_elements

FUSION: Final = "cluster"
_MOST_BESIDE: Final = 6
"""Results up to which parts that depend on nothing of each other are joined."""


def cluster(block: Block, placer: Placer) -> None:
    """Replaces connected elementwise nodes by clusters, on devices with a kernel for them.

    Args:
        block: a placed block; it stays in executable order.
        placer: knows the devices, and which kernels gave up at run time.
    """
    able = {t for t in placer.targets if t.is_open and CLUSTER in t.index}
    if able:
        _Clusterer(block, placer, able).run()


class _Clusterer:
    def __init__(self, block: Block, placer: Placer, able: set[Target]) -> None:
        self.block = block
        self.placer = placer
        self.able = able
        self.place = {n: i for i, n in enumerate(block.nodes)}
        self.fetched = set(block.fetches)
        self.before = state_order(block.nodes)
        self.members: dict[Node, Member] = {}
        self.endings: dict[Node, Ending] = {}
        self.keys: dict[Node, Key] = {}
        self.after: dict[Node, list[Node]] = {}
        self.users: dict[Value, list[Node]] = {}
        self.made: list[Node] = []
        self.outputs: dict[Node, list[list[Value]]] = {}
        self.owned: dict[Node, list[Node]] = {}  # what is gone when the cluster is there
        self.owner: dict[Node, Part] = {}
        self.again: dict[Node, list[Node]] = {}  # for each node in a cluster, what it has copies of
        self.needed: set[Value] = set()  # inputs of clusters
        self.turn: dict[Node, int] = {}
        self.now = 0
        self.absorber = Absorber(
            self.members, self.endings, self.owner, self.users, self.after, self.fetched,
            self.place, self.turn,
        )  # fmt: skip
        self._alone: dict[tuple[Any, ...], tuple[str, Line]] = {}

    def run(self) -> None:
        """Finds the clusters and puts them into the block."""
        for node in self.block.nodes:
            self._classify(node)
        if len(self.keys) < 2:
            return
        parts = [p for group in self._groups() for p in self._parts(group)]
        # From the end: what a part computes again, an earlier one need not hand out.
        for part in reversed(self.absorber.merge(parts)):
            self._settle(part)
        if self.made:
            self.made.reverse()
            self._rewire()

    # ------------------------------------------------------------ candidates
    def _classify(self, node: Node) -> None:
        if node.target not in self.able or len(node.out_dtypes) != 1 or not may_fuse(node):
            return
        if not all(_is_known(v.shape) for v in node.inputs):
            return
        ending = ending_of(node)
        shape = node.out_shapes[0] if ending is None else node.inputs[0].shape
        if not _is_known(shape) or not num_elements(shape):
            return
        if ending is not None:
            self.endings[node] = ending
            self.keys[node] = (node.target, shape)  # type: ignore[assignment]
            return
        kernel = node.kernel
        if kernel is None or kernel.host_inputs or kernel.host_outputs:
            return
        member = member_of(node)
        if member is None:
            return
        self.members[node] = member.over(num_elements(shape) or 0)
        self.keys[node] = (node.target, shape)  # type: ignore[assignment]
        refused = self._refused(node, member)
        if refused:
            self.block.missed.append((node.name, FUSION, refused))
            del self.members[node], self.keys[node]

    def _refused(self, node: Node, member: Member) -> str:
        """Why the device's kernel would not take the op alone; empty when it would."""
        key = (
            node.target, id(member.line), node.out_shapes[0],
            tuple((v.shape, v.node.is_const) for v in node.inputs),
        )  # fmt: skip
        found = self._alone.get(key)
        if found is None:
            made = self._node(Part(self.keys[node], [node]), whole=True)
            choice = None if made is None else self._chosen(made)
            # With the line itself, so that its id stays its own.
            found = self._alone[key] = choice if isinstance(choice, str) else "", member.line
        return found[0]

    # ------------------------------------------------------------ groups
    def _groups(self) -> Iterator[list[Node]]:
        """Nodes of one key that may run together.

        A node is free once all before it are placed; of the free ones, those that are no members
        are placed first, then reductions, then the smallest shape's, as what is small is mostly
        input to the rest.
        """
        waiting: dict[Node, int] = {}
        for node in self.block.nodes:
            needs = set(preceding(node, self.before)) & self.place.keys()
            waiting[node] = len(needs)
            for other in needs:
                self.after.setdefault(other, []).append(node)
            for value in node.inputs:
                self.users.setdefault(value, []).append(node)
        free = [n for n in self.block.nodes if not waiting[n]]
        pending: dict[Key, list[Node]] = {}
        reductions: dict[Key, list[Node]] = {}
        sizes: list[tuple[int, int, Key]] = []
        while free or reductions or sizes:
            while free:
                node = free.pop()
                key = self.keys.get(node)
                if key is None:
                    self.turn[node] = self.now
                    free += self._release(node, waiting)
                elif node in self.endings:
                    reductions.setdefault(key, []).append(node)
                else:
                    if key not in pending:
                        pending[key] = []
                        heapq.heappush(sizes, (num_elements(key[1]) or 0, self.place[node], key))
                    pending[key].append(node)
            if not reductions and not sizes:
                return
            if reductions:
                key, start = reductions.popitem()
            else:
                key = heapq.heappop(sizes)[2]
                start = pending.pop(key)
            group, free = self._together(key, start, waiting)
            yield sorted(group, key=self.place.__getitem__)

    def _release(self, node: Node, waiting: dict[Node, int]) -> list[Node]:
        out = []
        for other in self.after.get(node, ()):
            waiting[other] -= 1
            if not waiting[other]:
                out.append(other)
        return out

    def _together(
        self, key: Key, start: list[Node], waiting: dict[Node, int]
    ) -> tuple[list[Node], list[Node]]:
        """The group that starts with some nodes, and the nodes that waited for it."""
        stack = start
        group: list[Node] = []
        ends: list[Node] = []
        free: list[Node] = []
        while stack:
            node = stack.pop()
            if node in self.endings:
                ends.append(node)
                continue
            group.append(node)
            for other in self._release(node, waiting):
                (stack if self.keys.get(other) == key else free).append(other)
        # Last, so that all that waits for a reduction is freed by one.
        for node in ends:
            free += self._release(node, waiting)
        return group + ends, free

    # ------------------------------------------------------------ parts
    def _parts(self, group: list[Node]) -> Iterator[Part]:
        """The parts of a group, cut to size."""
        key = self.keys[group[0]]
        connected = [
            Part(key, [n for n in nodes if n in self.members],
                 [n for n in nodes if n in self.endings])
            for nodes in self._connected(group)
        ]  # fmt: skip
        start = self.now + 1
        for joined in self._beside(connected):
            for i, part in enumerate(self._cut(joined)):
                self.owner.update(dict.fromkeys(part.all(), part))
                # Between the turns of parts are those of what has no part.
                self.turn.update(dict.fromkeys(part.all(), start + 2 * i))
                self.now = max(self.now, start + 2 * i + 1)
                yield part

    def _beside(self, connected: list[Part]) -> Iterable[Part]:
        """Joins what reads the same whole array, as once is enough.

        Not where many results would be in memory at once.
        """
        first: dict[Value, Part] = {}
        into: dict[int, Part] = {}
        for part in connected:
            here = part
            for value in self._read(part):
                other = first.setdefault(value, here)
                other = into.get(id(other), other)
                if other is not here and here is part and self._are_few(other, part):
                    other.join(part, self.place)
                    here = into[id(part)] = other
        return [p for p in connected if id(p) not in into]

    def _read(self, part: Part) -> Iterator[Value]:
        """The whole arrays that a part reads, as far as it does not compute them."""
        inside = set(part.nodes)
        for node in part.all():
            for value in node.inputs[: 1 if node in self.endings else None]:
                whole = value.shape == part.key[1] and not value.node.is_const
                if whole and value.node not in inside:
                    yield value

    def _are_few(self, a: Part, b: Part) -> bool:
        """Whether two parts can be one that does not leave many results."""
        inside, ends = {*a.nodes, *b.nodes}, [*a.ends, *b.ends]
        left = sum(self._leaves(Value(n, 0), inside, ends) for n in inside)
        return left <= _MOST_BESIDE and self.absorber.fit(a, b)

    def _connected(self, group: list[Node]) -> Iterable[list[Node]]:
        parent = {n: n for n in group}

        def find(node: Node) -> Node:
            while parent[node] is not node:
                parent[node] = parent[parent[node]]
                node = parent[node]
            return node

        for node in group:
            # Controls and order connect too, so that no two parts wait for each other.
            for other in preceding(node, self.before):
                if other in parent:
                    parent[find(other)] = find(node)
        parts: dict[Node, list[Node]] = {}
        for node in group:
            parts.setdefault(find(node), []).append(node)
        return parts.values()

    def _sizes(self, part: Part) -> dict[Node, float]:
        """The steps of each node; a result that is stored is at least one, however few elements."""
        inside, sizes = set(part.nodes), {n: self.endings[n].size for n in part.ends}
        for node in part.nodes:
            size = self.members[node].size
            stored = size < 1 and self._leaves(Value(node, 0), inside, part.ends)
            sizes[node] = 1 if stored else size
        return sizes

    def _cut(self, part: Part) -> Iterable[Part]:
        """The part in pieces that are small enough; a reduction is in the first that it can."""
        sizes = self._sizes(part)
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
            own = self.endings[node].size
            place = max((at[n] for n in preceding(node, self.before) if n in at), default=0)
            while (
                len(pieces[place].ends) == MOST_ENDS
                or self.absorber.size(pieces[place]) + own > MAX_STEPS
            ):
                place += 1
                if place == len(pieces):
                    pieces.append(Part(part.key, []))
            pieces[place].ends.append(node)
        return pieces

    # ------------------------------------------------------------ nodes
    def _settle(self, part: Part) -> None:
        """Makes a node of a part, if one comes of it."""
        self.owner.update(dict.fromkeys(part.all(), part))
        part.nodes = self._still_used(part)
        self.absorber.take(part)
        if part.pays:
            self._form(part)

    def _still_used(self, part: Part) -> list[Node]:
        """The nodes of a part less those of which all that use them have copies."""
        kept: dict[Node, None] = {}
        inside = set(part.nodes)
        for node in reversed(part.nodes):
            users = self.users.get(Value(node, 0), ())
            if any(u in kept or u in part.ends for u in users) or self._leaves(
                Value(node, 0), inside, part.ends
            ):
                kept[node] = None
        return list(reversed(kept))

    def _form(self, part: Part) -> None:
        """Makes a node of a part; one that is declined comes apart."""
        refused = self._try(part)
        if not refused or GAVE_UP in refused:
            # What gave up would most likely do so in parts as well, each in a step of the user's.
            return
        if part.pieces:
            for piece in reversed(part.pieces):
                self._settle(piece)
        elif part.ends:
            self._shed(part)
        elif len(part.nodes) > 3:
            half = len(part.nodes) // 2
            self._form(Part(part.key, part.nodes[:half]))
            self._form(Part(part.key, part.nodes[half:]))

    def _shed(self, part: Part) -> None:
        """Leaves a part the reductions that the kernel takes; the others may do without it."""
        kept: list[Node] = []
        # The deepest value is the hardest to compute again.
        for node in reversed(part.ends) if len(part.all()) > 2 else ():
            tried = self._node(Part(part.key, part.nodes, [node, *kept], part.again))
            if tried is not None and not isinstance(self._chosen(tried), str):
                kept.insert(0, node)
        rest = [n for n in part.ends if n not in kept]
        if rest and (kept or part.nodes):
            self._settle(Part(part.key, [], rest))
        if not kept or self._try(Part(part.key, part.nodes, kept, part.again)):
            bare = Part(part.key, part.nodes)
            if bare.pays:
                self._form(bare)

    def _try(self, part: Part) -> str:
        """Makes a node of a part as it is; the reason if it is declined."""
        node = self._node(part)
        if node is None:
            return ""
        choice = self._chosen(node)
        if isinstance(choice, str):
            self.block.missed.append((node.name, FUSION, choice))
            return choice
        node.kernel, node.how = choice.kernel, choice.kind
        self.made.append(node)
        self.owned[node] = part.all()
        self.again.update(dict.fromkeys(part.all(), part.again))
        self.needed.update(node.inputs)
        return ""

    def _chosen(self, node: Node) -> Any:
        """The kernel's choice, or the reason why there is none."""
        assert node.target is not None
        choice, lost = self.placer.climb(node, node.target)
        if choice is not None:
            return choice
        return "; ".join(str(r) for r in lost if r.kernel != "decomposition")

    def _node(self, part: Part, whole: bool = False) -> Node | None:
        """The node of a part; None if nothing would be left of it.

        With `whole` every result counts, whether it is used or not.
        """
        skipped: list[Node] = []

        def through(value: Value) -> Value:
            found, nodes = self.absorber.source(value, part.key[1])
            skipped.extend(nodes)
            return found

        composer = Composer() if whole else Composer(through)
        for node in sorted((*part.again, *part.nodes), key=self.place.__getitem__):
            composer.add(node, self.members[node])
        inside = set(part.nodes)
        outputs: dict[int, list[Value]] = {}
        for node in part.nodes:
            value = Value(node, 0)
            if whole or self._leaves(value, inside, part.ends):
                outputs.setdefault(composer.at[value], []).append(value)
        steps, results = list(outputs), list(outputs.values())
        for node in part.ends:
            member = self.endings[node].member
            steps.append(
                composer.read(node, node.inputs[0]) if member is None
                else composer.add(node, member)
            )  # fmt: skip
            results.append([Value(node, 0)])
        line, inputs = composer.line(steps)
        if not inputs or not steps:
            return None
        return self._assembled(part, skipped, line, inputs, results)

    def _leaves(self, value: Value, inside: set[Node], ends: Container[Node]) -> bool:
        """Whether a value of a part is used by others, as far as they have no copy of it."""
        return (
            value in self.fetched
            or value in self.needed
            or any(
                u not in inside and u not in ends and value.node not in self.again.get(u, ())
                for u in self.users.get(value, ())
            )
        )

    def _assembled(
        self, part: Part, skipped: list[Node], line: Line, inputs: list[Value],
        outputs: list[list[Value]],
    ) -> Node:  # fmt: skip
        last = max(part.all(), key=self.place.__getitem__)
        members = sorted({*skipped, *part.again, *part.all()}, key=self.place.__getitem__)
        firsts = tuple(values[0] for values in outputs)
        names = tuple(f"x{i}" for i in range(len(inputs)))
        attrs = {
            "line": line, "names": names, "shape": part.key[1],
            "reduces": tuple(self.endings[n].reduce for n in part.ends),
            "members": tuple((n.name, n.op) for n in members),
        }  # fmt: skip
        node = Node(
            CLUSTER, last.name, spec=None, attrs=attrs, inputs=list(inputs),
            out_dtypes=[v.dtype.base_dtype for v in firsts], out_shapes=[v.shape for v in firsts],
            origin=last.origin, requested=last.requested, order=last.id,
        )  # fmt: skip
        node.target, node.why = last.target, f"{len(members)} ops in one pass"
        node.fused = Fused(FUSION, tuple(members), names, tuple(inputs), firsts)
        node.control = self._controls(members, set(inputs))
        self.outputs[node] = outputs
        return node

    def _controls(self, members: list[Node], inputs: set[Value]) -> list[Node]:
        """What the members wait for: their controls, and inputs of which only the shape counts."""
        inside = set(members)
        found = [c for m in members for c in m.control]
        found += [
            v.node for m in members for v in m.inputs
            if v not in inputs and not (v.node.is_const or v.node.op == FEED)
        ]  # fmt: skip
        return [n for n in dict.fromkeys(found) if n not in inside]

    def _rewire(self) -> None:
        block, place = self.block, self.place
        values: dict[Value, Value] = {}
        into: dict[Node, Node] = {}
        for node in self.made:
            assert node.fused is not None
            into.update(dict.fromkeys(self.owned[node], node))
            place[node] = max(place[m] for m in node.fused.members)
            for i, same in enumerate(self.outputs[node]):
                values.update(dict.fromkeys(same, Value(node, i)))
        before: dict[Node, list[Node]] = {}
        copies = [(m, n) for n in self.made if n.fused for m in n.fused.members]
        for node, new in [*((n, into.get(n, n)) for n in self.before), *copies]:
            found = (into.get(n, n) for n in self.before.get(node, ()))
            before.setdefault(new, []).extend(n for n in found if n is not new)
        block.nodes = [n for n in block.nodes if n not in into] + self.made
        block.replace(values, {old: [new] for old, new in into.items()})
        sort(block, before, place)
        block.sweep()


def _is_known(shape: Shape) -> bool:
    return shape is not None and None not in shape
