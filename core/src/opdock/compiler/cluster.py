"""Cluster: elementwise ops that hang together become one op, for devices that generate code.

First every node gets a place in some executable order in which elementwise nodes of one device and
shape wait for each other as long as anything else can run. What such a group computes between two
waits holds no path that leaves it and comes back, so each connected part of it can be one node.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from opdock import errors
from opdock.compiler.absorb import Absorber, Key, Part
from opdock.compiler.cluster_line import MAX_STEPS, Composer, Member, member_of
from opdock.compiler.fuse import may_fuse
from opdock.compiler.ir import FEED, Block, Fused, Node, Value
from opdock.compiler.ladder import climb
from opdock.compiler.order import preceding, sort, state_order
from opdock.compiler.place import GAVE_UP, Placer
from opdock.compiler.target import Target
from opdock.kernels.cluster import CLUSTER, REDUCTIONS, Reduce
from opdock.kernels.lowering import Line
from opdock.kernels.portable.reduce import reduced_axes
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
        self.keys: dict[Node, Key] = {}
        self.after: dict[Node, list[Node]] = {}
        self.users: dict[Value, list[Node]] = {}
        self.made: list[Node] = []
        self.outputs: dict[Node, list[list[Value]]] = {}
        self.owned: dict[Node, list[Node]] = {}  # what is gone when the cluster is there
        self.owner: dict[Node, Part] = {}
        self.again: dict[Node, list[Node]] = {}  # for each node in a cluster, what it has copies of
        self.needed: set[Value] = set()  # inputs of clusters
        self.absorber = Absorber(
            self.members, self.owner, self.users, self.after, self.fetched, self.place
        )
        self._alone: dict[tuple[Any, ...], tuple[str, Line]] = {}

    def run(self) -> None:
        """Finds the clusters and puts them into the block."""
        for node in self.block.nodes:
            self._classify(node)
        if not self.members:
            return
        parts = [p for group, freed in self._groups() for p in self._parts(group, freed)]
        # From the end: what a part computes again, an earlier one need not hand out.
        for part in reversed(self.absorber.merge(parts)):
            part.nodes = self._still_used(part)
            if part.all() and self.absorber.take(part) and part.pays:
                self._form(part)
        if self.made:
            self.made.reverse()
            self._rewire()

    # ------------------------------------------------------------ candidates
    def _classify(self, node: Node) -> None:
        if node.target not in self.able or len(node.out_dtypes) != 1 or not may_fuse(node):
            return
        shape = node.out_shapes[0]
        if not _is_known(shape) or not num_elements(shape):
            return
        if not all(_is_known(v.shape) for v in node.inputs):
            return
        kernel = node.kernel
        if kernel is None or kernel.host_inputs or kernel.host_outputs:
            return
        member = member_of(node)
        if member is None:
            return
        self.members[node] = member
        self.keys[node] = (node.target, shape)  # type: ignore[assignment]
        refused = self._refused(node, member)
        if refused:
            self.block.missed.append((node.name, FUSION, refused))
            del self.members[node], self.keys[node]

    def _refused(self, node: Node, member: Member) -> str:
        """Why the device's kernel would not take the op alone; empty when it would."""
        key = (
            node.target, id(member.line), node.out_shapes[0],
            tuple((v.shape, v.node.op == "Const") for v in node.inputs),
        )  # fmt: skip
        found = self._alone.get(key)
        if found is None:
            made = self._node(Part(self.keys[node], [node]), whole=True)
            choice = None if made is None else self._chosen(made)
            # With the line itself, so that its id stays its own.
            found = self._alone[key] = choice if isinstance(choice, str) else "", member.line
        return found[0]

    # ------------------------------------------------------------ groups
    def _groups(self) -> Iterator[tuple[list[Node], list[Node]]]:
        """Elementwise nodes of one key that may run together, and the nodes that waited for them.

        A node is free once all before it are placed; of the free ones, those that are no members
        are placed first, then the smallest shape's, as what is small is mostly input to the rest.
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
        sizes: list[tuple[int, int, Key]] = []
        while free or sizes:
            while free:
                node = free.pop()
                key = self.keys.get(node)
                if key is None:
                    free += self._release(node, waiting)
                    continue
                if key not in pending:
                    pending[key] = []
                    heapq.heappush(sizes, (num_elements(key[1]) or 0, self.place[node], key))
                pending[key].append(node)
            if sizes:
                key = heapq.heappop(sizes)[2]
                group, free = self._together(key, pending.pop(key), waiting)
                yield group, free

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
        stack = start
        group: list[Node] = []
        free: list[Node] = []
        while stack:
            node = stack.pop()
            group.append(node)
            for other in self._release(node, waiting):
                (stack if self.keys.get(other) == key else free).append(other)
        return group, free

    # ------------------------------------------------------------ parts
    def _parts(self, group: list[Node], freed: list[Node]) -> Iterator[Part]:
        """The parts of a group, cut to size, each with a reduction if one follows."""
        key = self.keys[group[0]]
        reductions: dict[Node, list[Node]] = {}
        for node in sorted(freed, key=self.place.__getitem__):
            if (node.op in REDUCTIONS or node.op == "BiasAddGrad") and may_fuse(node):
                reductions.setdefault(node.inputs[0].node, []).append(node)
        beside = self._beside(list(self._connected(group)), reductions)
        parts = [Part(key, piece) for nodes in beside for piece in self._cut(nodes)]
        self.owner.update((n, p) for p in parts for n in p.nodes)
        for part in parts:
            ends = [r for n in part.nodes for r in reductions.get(n, ())]
            # The deepest value is the hardest to compute again.
            part.last = next((r for r in reversed(ends) if self._may_end(r, part)), None)
            # What is left may yet compute its operand for itself.
            for node in ends:
                if node is part.last:
                    self.owner[node] = part
                elif node.target is key[0] and _reduction(node) is not None:
                    self.owner[node] = Part(key, [], node)
            yield part
            yield from (self.owner[r] for r in ends if r in self.owner and r is not part.last)

    def _beside(
        self, connected: list[list[Node]], reductions: Mapping[Node, list[Node]]
    ) -> Iterable[list[Node]]:
        """Joins what reads the same whole array: once is enough.

        Not where both end in reductions, of which a cluster has one, nor where many results
        would be in memory at once.
        """
        first: dict[Value, int] = {}
        into = list(range(len(connected)))
        for i, nodes in enumerate(connected):
            for value in (v for n in nodes for v in n.inputs):
                if value.shape != nodes[0].out_shapes[0] or value.node.op == "Const":
                    continue
                j = into[first.setdefault(value, i)]
                if j == into[i] or into[i] != i:
                    continue
                both = [*connected[j], *nodes]
                ends = [any(n in reductions for n in part) for part in (connected[j], nodes)]
                if not all(ends) and self._is_small(both):
                    connected[j], connected[i], into[i] = both, [], j
                    nodes = both
        return [sorted(nodes, key=self.place.__getitem__) for nodes in connected if nodes]

    def _is_small(self, nodes: list[Node]) -> bool:
        inside = set(nodes)
        left = sum(self._leaves(Value(n, 0), inside, None) for n in nodes)
        return left <= _MOST_BESIDE and sum(self.members[n].size for n in nodes) <= MAX_STEPS

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

    def _cut(self, nodes: list[Node]) -> Iterator[list[Node]]:
        piece: list[Node] = []
        steps = 0
        for node in nodes:
            size = self.members[node].size
            if piece and steps + size > MAX_STEPS:
                yield piece
                piece, steps = [], 0
            piece.append(node)
            steps += size
        yield piece

    def _may_end(self, node: Node, part: Part) -> bool:
        """Whether a reduction can run with a part: it waits for none that is of the same key."""
        return (
            node.target is part.key[0]
            and _reduction(node) is not None
            and all(
                self.owner.get(p, part) is part or self.keys.get(p) != part.key
                for p in preceding(node, self.before)
            )
        )

    # ------------------------------------------------------------ nodes
    def _still_used(self, part: Part) -> list[Node]:
        """The nodes of a part less those of which all that use them have copies."""
        kept: dict[Node, None] = {}
        inside = set(part.nodes)
        for node in reversed(part.nodes):
            users = self.users.get(Value(node, 0), ())
            if any(u in kept or u is part.last for u in users) or self._leaves(
                Value(node, 0), inside, part.last
            ):
                kept[node] = None
        return list(reversed(kept))

    def _form(self, part: Part) -> None:
        """Makes a node of a part; a part that is declined is tried without its end, then halved."""
        node = self._node(part)
        if node is None:
            return
        choice = self._chosen(node)
        if not isinstance(choice, str):
            node.kernel, node.how = choice.kernel, choice.kind
            self.made.append(node)
            self.owned[node] = part.all()
            self.again.update(dict.fromkeys(part.all(), part.again))
            self.needed.update(node.inputs)
            return
        self.block.missed.append((node.name, FUSION, choice))
        if GAVE_UP in choice:
            # Its parts would most likely give up as well, each in a step of the user's.
            return
        if part.last is not None:
            if len(part.nodes) > 1:
                self._form(Part(part.key, part.nodes))
        elif len(part.nodes) > 3:
            half = len(part.nodes) // 2
            self._form(Part(part.key, part.nodes[:half]))
            self._form(Part(part.key, part.nodes[half:]))

    def _chosen(self, node: Node) -> Any:
        """The kernel's choice, or the reason why there is none."""
        assert node.target is not None
        choice, lost = climb(node, node.target, self.placer.resources, self.placer.banned)
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
            if whole or self._leaves(value, inside, part.last):
                outputs.setdefault(composer.at[value], []).append(value)
        steps, results = list(outputs), list(outputs.values())
        if part.last is not None:
            steps.append(composer.at[part.last.inputs[0]])
            results.append([Value(part.last, 0)])
        line, inputs = composer.line(steps)
        if not inputs or not steps:
            return None
        return self._assembled(part, skipped, line, inputs, results)

    def _leaves(self, value: Value, inside: set[Node], last: Node | None) -> bool:
        """Whether a value of a part is used by others, as far as they have no copy of it."""
        return (
            value in self.fetched
            or value in self.needed
            or any(
                u not in inside and u is not last and value.node not in self.again.get(u, ())
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
            "reduce": None if part.last is None else _reduction(part.last),
            "members": tuple((n.name, n.op) for n in members),
        }  # fmt: skip
        node = Node(
            CLUSTER, last.name, spec=None, attrs=attrs, inputs=list(inputs),
            out_dtypes=[v.dtype.base_dtype for v in firsts], out_shapes=[v.shape for v in firsts],
            origin=last.origin, requested=last.requested, order=last.id,
        )  # fmt: skip
        node.target, node.why = last.target, f"{len(members)} elementwise ops"
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
            if v not in inputs and v.node.op not in ("Const", FEED)
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


def _reduction(node: Node) -> Reduce | None:
    """A reduction over axes that are known, or None."""
    shape, dtype = node.inputs[0].shape, node.inputs[0].dtype
    if shape is None or not shape:
        return None
    if node.op == "BiasAddGrad":
        channel = 1 if node.attrs.get("data_format") == "NCHW" else len(shape) - 1
        return Reduce("sum", tuple(a for a in range(len(shape)) if a != channel), False)
    indices = node.inputs[1].node.const()
    if indices is None or (node.op == "Mean" and not dtype.is_floating):
        return None
    try:
        axes = reduced_axes(indices, len(shape))
    except errors.OpError:
        # The op itself says what is wrong, when it runs.
        return None
    return Reduce(REDUCTIONS[node.op], axes, bool(node.attrs["keep_dims"])) if axes else None


def _is_known(shape: Shape) -> bool:
    return shape is not None and None not in shape
