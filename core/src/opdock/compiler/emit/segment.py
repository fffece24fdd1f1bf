"""Segments: what one device does between copies and steps of the host becomes one node.

Only for devices whose backend has a compiler. Nodes may change their order, so that segments are as
large as they can be; `order.py` says what must stay. What the compiler refuses runs op by op
between smaller segments. A segment's node keeps its members, as a fused one does: they run when the
program that was made of them gives up.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Final

from opdock.compiler.emit.asking import asked
from opdock.compiler.emit.members import Members, embedded, is_local
from opdock.compiler.emit.partition import location
from opdock.compiler.ir.block import COPY, FEED, HOST, SEGMENT, Block, Fused, Node, Value
from opdock.compiler.ir.order import preceding, root_of, state_order
from opdock.compiler.ir.state import is_state
from opdock.compiler.place.experience import Experience
from opdock.compiler.place.target import Target
from opdock.devices.segment import Refusal
from opdock.graph.nodes.traits import Control
from opdock.late import record

FUSION: Final = "segment"


def segments(block: Block, experience: Experience, members: Members) -> None:
    """Forms segments on the devices whose backend compiles.

    Args:
        block: changed in place; placed, with copies.
        experience: which segments gave up at run time.
        members: says what may be in one.
    """
    if any(t.compiler is not None for t in {n.target for n in block.nodes} if t is not None):
        _Former(block, experience, members).run()


@record(slots=True, eq=False)
class _Group:
    """Nodes of one device, and what becomes of them.

    Attributes:
        node: what stands for them, once they are compiled.
        results: the members' values that are its outputs.
    """

    target: Target
    members: list[Node]
    node: Node | None = None
    results: list[Value] = field(default_factory=list)

    def form(
        self, users: Mapping[Value, list[Node]], knows: Members, fetched: set[Value]
    ) -> None:  # fmt: skip
        """Makes the node."""
        inside, roots = set(self.members), knows.roots
        taken: dict[Value, None] = {}
        cells: dict[Value, bool] = {}  # of each variable whether it is written
        for node in self.members:
            changed = knows.changed(node)
            for i, value in enumerate(node.inputs):
                if is_state(value):
                    root = Value(root_of(value.node, roots), 0)
                    if root.node in inside:
                        continue  # it ends with the step
                    cells[root] = cells.get(root, False) or i in changed
                elif value.node not in inside and not embedded(value.node):
                    taken[value] = None
        self.results = [
            v for n in self.members for v in n.values()
            if not is_state(v)
            and (v in fetched or any(u not in inside for u in users.get(v, ())))
        ]  # fmt: skip
        last, inputs = self.members[-1], [*taken, *cells]
        self.node = node = Node(
            SEGMENT, f"{last.name}/{FUSION}", spec=None,
            attrs={
                "cells": frozenset(range(len(taken), len(inputs))),
                "written": frozenset(i for i, v in enumerate(inputs) if cells.get(v)),
            },
            inputs=inputs,
            out_dtypes=[v.dtype for v in self.results], out_shapes=[v.shape for v in self.results],
            origin=last.origin, order=last.id,
        )  # fmt: skip
        node.target, node.how, node.why = self.target, FUSION, last.why
        node.control = list(dict.fromkeys(
            c for m in self.members for c in m.control if c not in inside
        ))  # fmt: skip
        names = tuple(str(i) for i in range(len(inputs)))
        node.fused = Fused(FUSION, tuple(self.members), names, tuple(inputs), tuple(self.results))


@record(slots=True)
class _Former:
    """Groups, asks the compiler, and groups again without what it refuses.

    Attributes:
        members: says which nodes may be part of a segment at all.
        done: groups that are settled, by their nodes.
    """

    block: Block
    experience: Experience
    members: Members
    done: dict[frozenset[Node], _Group] = field(default_factory=dict)
    users: dict[Value, list[Node]] = field(default_factory=dict)
    fetched: set[Value] = field(default_factory=set)

    def run(self) -> None:
        """Until no compiler refuses anything."""
        copies = self.members.decides(self.block)
        self.members.meets(self.block)
        before = state_order(self.block.nodes)
        self.fetched = set(self.block.fetches)
        for node in self.block.nodes:
            for value in node.inputs:
                self.users.setdefault(value, []).append(node)
        while True:
            parts = self._grouped(before)
            groups = [p for p in parts if isinstance(p, _Group)]
            settled = [self._settled(g) for g in groups]
            if all(settled):
                break
        self.block.missed += [(n.name, FUSION, why) for n, why in self.members.outside.items()]
        self._rewire(list(dict.fromkeys(p for q in parts for p in _with_copies(q, copies))))

    # ------------------------------------------------------------ grouping
    def _grouped(self, before: Mapping[Node, list[Node]]) -> list[Node | _Group]:
        """All nodes in executable order, those of a segment together.

        The host and what is refused go first as far as they get; then one device, until all that
        is left waits for something else.
        """
        place = {n: i for i, n in enumerate(self.block.nodes)}
        waiting: dict[Node, int] = {}
        followers: dict[Node, list[Node]] = {}
        ready: dict[Target | None, list[tuple[int, Node]]] = {None: []}
        side = {n: self.members.home(n) for n in self.block.nodes}
        for node in self.block.nodes:
            needs = {p for p in preceding(node, before) if p in place}
            waiting[node] = len(needs)
            for other in needs:
                followers.setdefault(other, []).append(node)
            if not needs:
                heapq.heappush(ready.setdefault(side[node], []), (place[node], node))

        def drained(queue: list[tuple[int, Node]]) -> Iterable[Node]:
            while queue:
                _, node = heapq.heappop(queue)
                yield node
                for user in followers.get(node, ()):
                    waiting[user] -= 1
                    if not waiting[user]:
                        heapq.heappush(ready.setdefault(side[user], []), (place[user], user))

        out: list[Node | _Group] = []
        while any(ready.values()):
            out += drained(ready[None])
            target = next((t for t, queue in ready.items() if t is not None and queue), None)
            if target is not None:
                out.append(self._group(target, list(drained(ready[target]))))
        return out

    def _group(self, target: Target, members: list[Node]) -> _Group:
        return self.done.get(frozenset(members)) or _Group(target, members)

    # ------------------------------------------------------------ compiling
    def _settled(self, group: _Group) -> bool:
        """Compiles a group; False if nodes were refused, so that it has to come apart."""
        if group.node is not None:
            return True
        if all(n.kernel is None and n.traits.control is Control.NONE for n in group.members):
            self.members.refused.update(group.members)  # nothing is gained where values only move
            return False
        group.form(self.users, self.members, self.fetched)
        assert group.node is not None
        if torn := self._torn(group):
            self.members.refused.update(torn)
            group.node = None
            return False
        segment = self.members.segment(group.node)
        why = self.experience.banned(group.node, group.target.name, FUSION)
        answer = Refusal(why) if why else asked(group.target, segment, self.members.knows)
        if isinstance(answer, Refusal):
            group.node = None
            self._refused(group, answer)
            return False
        group.node.attrs.update(segment=segment, executable=answer)
        if getattr(answer, "takes_host", False):
            self._feed(group)
        self.done[frozenset(group.members)] = group
        return True

    def _torn(self, group: _Group) -> list[Node]:
        """The members with lists or tensor arrays of which a part would be outside.

        They have a form of their own in each program: they stay inside, or outside.
        """
        node, inside, roots = group.node, set(group.members), self.members.roots
        assert node is not None
        if any(is_local(v) and not is_state(v) for v in (*node.inputs, *group.results)):
            return [n for n in group.members if any(map(is_local, (*n.inputs, *n.values())))]
        found = {n: arrays for n in group.members if (arrays := self.members.arrays(n))}
        torn = set().union(*found.values()) - inside
        torn |= {
            root for value, users in self.users.items()
            if is_state(value) and (root := root_of(value.node, roots)).traits.local
            and not inside.issuperset(users)
        }  # fmt: skip
        return [n for n, arrays in found.items() if arrays & torn]

    def _feed(self, group: _Group) -> None:
        """Gives what the user feeds to a program as it is: uploading is the program's affair."""
        node = group.node
        assert node is not None
        if self.block.within:
            return  # a turn's values may lie in buffers that the next turn writes
        for i, value in enumerate(node.inputs):
            source = value.node.inputs[0] if value.node.op == COPY else None
            if source is None or source.node.op != FEED or location(source) != HOST:
                continue
            if set(self.users[value]) <= set(group.members) and value not in self.fetched:
                node.takes(i, source)
                node.host_inputs |= {i}

    def _refused(self, group: _Group, answer: Refusal) -> None:
        inside = set(group.members)
        parts: dict[Node, str] = {}
        for part, why in answer.nodes.items():
            node = self.members.member(part)
            leaving = [node] if node in inside else self._readers(group, node)
            parts.update(dict.fromkeys(leaving, why))
        self.members.refused.update(parts or group.members)
        parts = parts or {group.members[-1]: answer.reason}
        self.block.missed += [(node.name, FUSION, why) for node, why in parts.items()]

    def _readers(self, group: _Group, variable: Node) -> list[Node]:
        """The members that read a variable, which is none: its reading is refused with them."""
        roots = self.members.roots
        return [
            m for m in group.members if any(root_of(v.node, roots) is variable for v in m.inputs)
        ]

    # ------------------------------------------------------------ the block
    def _rewire(self, parts: list[Node | _Group]) -> None:
        """Puts the nodes of segments in the places of their members."""
        values: dict[Value, Value] = {}
        controls: dict[Node, list[Node]] = {}
        self.block.nodes = []
        for part in parts:
            if isinstance(part, Node):
                self.block.nodes.append(part)
                continue
            node = part.node
            assert node is not None
            self.block.nodes.append(node)
            values.update((v, Value(node, i)) for i, v in enumerate(part.results))
            controls.update((m, [node]) for m in part.members)
            for member in part.members:
                # A reference leads to its variable, for whoever comes after the segment.
                values.update(
                    (v, Value(root_of(member, self.members.roots), 0))
                    for v in member.values() if v.dtype._is_ref_dtype
                )  # fmt: skip
        self._wait(values)
        self.block.replace(values, controls)
        self.block.sweep()

    def _wait(self, values: Mapping[Value, Value]) -> None:
        """Who used a member's reference waits for the member from now on."""
        for node in self.block.nodes:
            for value in node.inputs:
                if value in values and value.dtype._is_ref_dtype:
                    node.control = [*node.control, value.node]
        self.block.targets += [
            v.node for v in self.block.fetches if v in values and v.dtype._is_ref_dtype
        ]


def _with_copies(
    part: Node | _Group, copies: Mapping[Node, Mapping[int, Value]]
) -> list[Node | _Group]:
    """A node that no segment took in reads on the host what it did before."""
    if not isinstance(part, Node) or part not in copies:
        return [part]
    for i, copy in copies[part].items():
        copy.node.takes(0, part.inputs[i])
        part.takes(i, copy)
    return [*(copy.node for copy in copies[part].values()), part]
