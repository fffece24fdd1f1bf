"""Form: each part becomes a node, as far as the device has a kernel for it.

A part that is declined comes apart: into the pieces that it was joined of, into what its reductions
are and what they are not, into halves.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

from opdock.compiler.emit.partition import declare_memory
from opdock.compiler.fuse.compose import Composed, Lines, alone
from opdock.compiler.fuse.instead import Instead, declined
from opdock.compiler.fuse.parts import Candidate, Part, Parts
from opdock.compiler.fuse.recompute import recomputed
from opdock.compiler.ir.block import FEED, Block, Fused, Node, Value
from opdock.compiler.place.experience import GAVE_UP
from opdock.compiler.place.placer import Placer
from opdock.kernels.expr.cluster import CLUSTER, OPEN_CLUSTER
from opdock.late import record

FUSION: Final = "cluster"


def form(parts: Parts, block: Block, placer: Placer) -> list[Instead]:
    """Makes the nodes of parts; puts none into the block.

    Args:
        parts: as merged; what is declined comes apart, and owners change with that.
        block: gets a note in `missed` for each node that is declined.
        placer: knows the devices, and which kernels gave up at run time.

    Returns:
        The clusters in an executable order.
    """
    former = _Former(parts, block, Lines(parts.flow, parts.candidates, placer))
    # From the end: what a part computes again, an earlier one need not hand out.
    for part in reversed(parts.found):
        former.settle(part)
    former.made.reverse()
    return former.made


def op_of(shape: tuple[int | None, ...]) -> str:
    """The op type of a cluster of a shape."""
    return OPEN_CLUSTER if None in shape else CLUSTER


def refused_alone(node: Node, candidate: Candidate, placer: Placer) -> str:
    """Why the device's kernel would not take an elementwise op alone; empty when it would."""
    assert candidate.member is not None
    composed = alone(node, candidate.member)
    if not composed.inputs:
        return ""
    return declined(_node(Part(candidate.key, [node]), node, [node], composed), placer)


@record(slots=True)
class _Former:
    """Parts become nodes, the last first.

    Attributes:
        lines: what parts compute.
        made: the clusters so far.
        copies: for each node in a cluster, what that has copies of.
        left_out: nodes of parts of which all that use them have copies.
        needed: the inputs of clusters.
    """

    parts: Parts
    block: Block
    lines: Lines
    made: list[Instead] = field(default_factory=list)
    copies: dict[Node, list[Node]] = field(default_factory=dict)
    left_out: set[Node] = field(default_factory=set)
    needed: set[Value] = field(default_factory=set)

    def settle(self, part: Part) -> None:
        """Makes a node of a part, if one comes of it."""
        self.parts.own(part)
        part.nodes = self._still_used(part)
        part.again = recomputed(self.parts, part)[0]
        if part.pays:
            self._form(part)

    def _still_used(self, part: Part) -> list[Node]:
        """The nodes of a part less those of which all that use them have copies."""
        inside, kept = set(part.all()), set(part.ends)
        for node in reversed(part.nodes):
            users = self.parts.flow.users.get(Value(node, 0), ())
            if any(u in kept for u in users) or self._leaves(node, inside):
                kept.add(node)
        for node in reversed(part.nodes):
            # What only controls wait for stays, and reads what it reads.
            later = self.parts.flow.after.get(node, ())
            if node not in kept and later and all(self._does_without(u, node) for u in later):
                self.left_out.add(node)
        return [n for n in part.nodes if n in kept]

    def _does_without(self, user: Node, node: Node) -> bool:
        """Whether a node is no reason for another to stay: it has a copy, or goes itself."""
        return user in self.left_out or node in self.copies.get(user, ())

    def _leaves(self, node: Node, inside: set[Node]) -> bool:
        """Whether a part's value is used by others, as far as they have no copy of it."""
        value, flow = Value(node, 0), self.parts.flow
        return (
            value in flow.fetched
            or value in self.needed
            or any(
                u not in inside and u not in self.left_out and node not in self.copies.get(u, ())
                for u in flow.users.get(value, ())
            )
        )

    # ------------------------------------------------------------ coming apart
    def _form(self, part: Part) -> None:
        """Makes a node of a part; one that is declined comes apart."""
        refused = self._try(part)
        if not refused or GAVE_UP in refused:
            # What gave up would most likely do so in parts as well, each in a step of the user's.
            return
        if part.pieces:
            for piece in reversed(part.pieces):
                self.settle(piece)
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
            cluster, _ = self._cluster(Part(part.key, part.nodes, [node, *kept], part.again))
            if cluster is not None:
                kept.insert(0, node)
        rest = [n for n in part.ends if n not in kept]
        if rest and (kept or part.nodes):
            self.settle(Part(part.key, [], rest))
        if not kept or self._try(Part(part.key, part.nodes, kept, part.again)):
            bare = Part(part.key, part.nodes)
            if bare.pays:
                self._form(bare)

    def _try(self, part: Part) -> str:
        """Makes a node of a part as it is; the reason if it is declined."""
        cluster, refused = self._cluster(part)
        if refused:
            self.block.missed.append((self.parts.last(part).name, FUSION, refused))
        if cluster is not None:
            self.made.append(cluster)
            self.copies.update(dict.fromkeys(part.all(), part.again))
            self.needed.update(cluster.node.inputs)
        return refused

    # ------------------------------------------------------------ one node
    def _cluster(self, part: Part) -> tuple[Instead | None, str]:
        """The cluster of a part, or why it is declined; neither if nothing would be left of it."""
        inside = set(part.all())
        self.parts.visits += len(inside)
        composed = self.lines.of(part, [n for n in part.nodes if self._leaves(n, inside)])
        if not composed.inputs or not composed.outputs:
            return None, ""
        refused = self.lines.refused(composed)
        if refused:
            return None, refused
        members = self.parts.flow.in_order({*composed.skipped, *part.again, *inside})
        node = _node(part, self.parts.last(part), members, composed)
        refused = self.lines.declined(composed, node)
        return (None if refused else Instead(node, members, part.all(), composed.outputs)), refused


def _node(part: Part, last: Node, members: list[Node], composed: Composed) -> Node:
    """A cluster's node, which takes the name of the last node that it takes the place of."""
    kind, inputs = composed.kind, composed.inputs
    firsts = tuple([values[0] for values in composed.outputs])
    attrs = {
        "line": kind.line, "names": kind.names, "shape": part.key[1], "reduces": kind.reduces,
        "members": tuple([(n.name, n.op) for n in members]),
    }  # fmt: skip
    node = Node(
        op_of(part.key[1]), last.name, spec=None, attrs=attrs, inputs=list(inputs),
        out_dtypes=[v.dtype.base_dtype for v in firsts], out_shapes=[v.shape for v in firsts],
        origin=last.origin, requested=last.requested, order=last.id,
    )  # fmt: skip
    node.target, node.why = last.target, f"{len(members)} ops in one pass"
    node.fused = Fused(FUSION, tuple(members), kind.names, tuple(inputs), firsts)
    node.control = _controls(members, set(inputs))
    for member in members:
        # When the kernel gives up as it runs, they run.
        kernel = member.kernel
        if kernel is not None and (kernel.host_inputs or kernel.host_outputs):
            declare_memory(member)
    return node


def _controls(members: list[Node], inputs: set[Value]) -> list[Node]:
    """What the members wait for: their controls, and inputs of which only the shape counts."""
    inside = set(members)
    found = [c for m in members for c in m.control]
    found += [
        v.node for m in members for v in m.inputs
        if v not in inputs and not (v.node.is_const or v.node.op == FEED)
    ]  # fmt: skip
    return [n for n in dict.fromkeys(found) if n not in inside]
