"""Fuse: the patterns that a device computes at once become one node each.

Patterns are tried by benefit, then by name, on nodes in executable order, so that one program is
always fused in one way. Results are those of the unfused nodes, and so is the order of effects.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator
from typing import Any

from opdock.compiler.emit.partition import declare_memory
from opdock.compiler.fuse.match import Match, Matcher
from opdock.compiler.ir.block import Block, Fused, Node, Value
from opdock.compiler.ir.order import Before, preceding, state_order
from opdock.compiler.ir.state import cell_inputs
from opdock.compiler.place.ladder import node_sig
from opdock.compiler.place.placer import Placer
from opdock.compiler.place.target import Target
from opdock.failures import failures
from opdock.kernels.select.selection import LABEL_ATTR, read_verdict
from opdock.plugins.patterns import FusionPattern, P

_log = logging.getLogger("opdock.fuse")
_ByOp = dict[Target | None, dict[str, list[Node]]]


def fuse(block: Block, placer: Placer, disabled: frozenset[str] = frozenset()) -> None:
    """Applies the patterns of every device in place.

    Args:
        block: a placed block; it stays in executable order.
        placer: knows the devices, and which kernels gave up at run time.
        disabled: names of patterns to leave out.
    """
    by_op: _ByOp = {}
    for node in block.nodes:
        there = by_op.get(node.target)
        if there is None:
            there = by_op[node.target] = {}
        alike = there.get(node.op)
        if alike is None:
            there[node.op] = [node]
        else:
            alike.append(node)
    patterns = [
        (target, pattern)
        for target in placer.targets
        if target in by_op
        for pattern in target.fusions.among(by_op[target].keys())
        if pattern.name not in disabled
    ]
    if patterns:
        fuser = _Fuser(block, placer, by_op)
        for target, pattern in patterns:
            fuser.apply(target, pattern)
        fuser.finish()


def may_fuse(node: Node) -> bool:
    """Whether a node computes its outputs from its inputs and does nothing else."""
    spec = node.spec
    if spec is None or spec.is_stateful or node.kernel is None or LABEL_ATTR in node.attrs:
        return False
    for dtype in node.out_dtypes:
        if dtype._is_ref_dtype or dtype._is_handle:
            return False
    refers = False
    for before, index in node.inputs:
        dtype = before.out_dtypes[index]
        if dtype._is_handle:
            return False
        refers = refers or dtype._is_ref_dtype
    return not refers or not cell_inputs(node)


class _Fuser:
    """The block as a list with holes, in executable order all the time."""

    def __init__(self, block: Block, placer: Placer, by_op: _ByOp) -> None:
        self.block = block
        self.placer = placer
        self.line: list[Node | None] = list(block.nodes)
        self.at = {n: i for i, n in enumerate(block.nodes)}
        self.fetched = set(block.fetches)
        self.into: dict[Node, Node] = {}  # matched nodes and what became of them
        self.made: list[Node] = []
        self.by_op = by_op

    # What only a match asks for.
    @functools.cached_property
    def before(self) -> Before:
        """What the order of effects adds."""
        return state_order(self.block.nodes)

    @functools.cached_property
    def users(self) -> dict[Value, list[Node]]:
        """The nodes that take a value."""
        users: dict[Value, list[Node]] = {}
        for node in self.block.nodes:
            for value in node.inputs:
                users.setdefault(value, []).append(node)
        return users

    @functools.cached_property
    def waiters(self) -> dict[Node, list[Node]]:
        """Who runs after a node without reading of it."""
        waiters: dict[Node, list[Node]] = {}
        for node in self.block.nodes:
            for other in (*node.control, *self.before.get(node, ())):
                waiters.setdefault(other, []).append(node)
        return waiters

    def apply(self, target: Target, pattern: FusionPattern) -> None:
        """Replaces every match of one pattern on one device."""

        def fits(node: Node) -> bool:
            return node.target is target and node not in self.into and may_fuse(node)

        # Most nodes have no input that the pattern's inner ops could be.
        inner = [p.ops for p in pattern.pattern.inputs if isinstance(p, P)]
        roots = [
            n for op in pattern.pattern.ops for n in self.by_op[target].get(op, ())
            if n.kernel is not None
            and all(any(before.op in ops for before, _ in n.inputs) for ops in inner)
        ]  # fmt: skip
        if not roots:
            return
        matcher = Matcher(fits, self.users)
        for root in sorted(roots, key=lambda n: self.at[n]):
            refused = ""
            for match in matcher.matches(pattern, root):
                reason = self._try(pattern, root, match)
                if not reason:
                    refused = ""
                    break
                refused = refused or reason
            if refused:
                self.block.missed.append((root.name, pattern.name, refused))

    def finish(self) -> None:
        """Puts the fused nodes into the block."""
        if not self.made:
            return
        values = {
            old: Value(node, i)
            for node in self.made
            if node.fused is not None
            for i, old in enumerate(node.fused.results)
        }
        self.block.nodes = [n for n in self.line if n is not None]
        self.block.replace(values, {old: [new] for old, new in self.into.items()})

    # ------------------------------------------------------------ one match
    def _try(self, pattern: FusionPattern, root: Node, match: Match) -> str:
        """Applies a match; the reason when it cannot be done."""
        members = match.members()
        for node in members:
            declare_memory(node)
            if node.host_outputs:
                return f"'{node.name}' has results in host memory"
        named = {name: match.nodes[p] for name, p in pattern.named().items()}
        for name, index in pattern.outputs:
            if index >= len(named[name].out_dtypes):
                return f"'{named[name].name}' has no output {index}"
        results = tuple(Value(named[name], index) for name, index in pattern.outputs)
        reason = (
            self._takes_itself(match, members)
            or self._used_outside(members, results)
            or self._declined(pattern, named)
        )
        if reason:
            return reason
        around = self._around(members)
        if around is None:
            return "something between its ops waits for one of them"
        members.sort(key=lambda n: self.at[n])
        node = self._node(pattern, root, match, named, members, results)
        assert node.target is not None
        choice, lost = self.placer.climb(node, node.target)
        if choice is None:
            return "; ".join(str(r) for r in lost if r.kernel != "decomposition")
        node.kernel, node.how = choice.kernel, choice.kind
        self._put(node, members, *around)
        return ""

    def _takes_itself(self, match: Match, members: list[Node]) -> str:
        """Why the one node cannot be: a capture is what it would compute, as in conv(x) + conv(x)
        where the second is no part of the pattern."""
        inside = set(members)
        for name, value in match.captures.items():
            if value.node in inside:
                return f"'{value.node.name}' is used by it as '{name}' too"
        return ""

    def _used_outside(self, members: list[Node], results: tuple[Value, ...]) -> str:
        inside = set(members)
        for node in members:
            for value in node.values():
                if value in results:
                    continue
                shown = f"'{node.name}:{value.index}'" if value.index else f"'{node.name}'"
                if value in self.fetched:
                    return f"{shown} is fetched"
                for user in self.users.get(value, ()):
                    if user not in inside:
                        return f"{shown} is also used by '{user.name}'"
        return ""

    def _declined(self, pattern: FusionPattern, named: dict[str, Node]) -> str:
        if pattern.when is None:
            return ""
        resources = self.placer.resources
        try:
            reason, _ = read_verdict(
                pattern.when({k: node_sig(n, n.target, resources) for k, n in named.items()})
            )
        except failures() as e:
            _log.exception("when() of fusion %s failed at %s", pattern.name, named[""].name)
            return f"its when() raised {type(e).__name__}: {e}"
        return reason

    def _following(self, node: Node) -> Iterator[Node]:
        for value in node.values():
            for user in self.users.get(value, ()):
                yield self.into.get(user, user)
        for other in self.waiters.get(node, ()):
            yield self.into.get(other, other)

    def _preceding(self, node: Node) -> Iterator[Node]:
        for other in preceding(node, self.before):
            yield self.into.get(other, other)

    def _around(self, members: list[Node]) -> tuple[list[Node], list[Node], range] | None:
        """What stands between the members: nodes to run before and after them, and the places.

        None if one must run both after a member and before another.
        """
        inside = set(members)
        places = [self.at[n] for n in members]
        first, last = min(places), max(places)
        follow = (n for m in members for n in self._following(m) if n not in inside)
        if all(self.at[n] > last for n in follow):
            # Nobody minds if all members run where the last of them does, however far that is.
            return [], [], range(last, last + 1)
        window = range(first, last + 1)
        early: list[Node] = []
        late: dict[Node, None] = {}
        for i in window:
            node = self.line[i]
            if node is None:
                continue
            needs = list(self._preceding(node))
            if node in inside:
                if any(n in late for n in needs):
                    return None
            elif any(n in late or n in inside for n in needs):
                late[node] = None
            else:
                early.append(node)
        return early, list(late), window

    def _node(
        self, pattern: FusionPattern, root: Node, match: Match, named: dict[str, Node],
        members: list[Node], results: tuple[Value, ...],
    ) -> Node:  # fmt: skip
        inputs = [match.captures[name] for name in pattern.captures()]
        attrs: dict[str, Any] = {**root.attrs, **{k: n.attrs for k, n in named.items()}}
        node = Node(
            pattern.op, root.name, spec=None, attrs=attrs, inputs=inputs,
            out_dtypes=[v.dtype.base_dtype for v in results], out_shapes=[v.shape for v in results],
            origin=root.origin, requested=root.requested, order=root.id,
        )  # fmt: skip
        node.target, node.why = root.target, f"fusion '{pattern.name}'"
        node.fused = Fused(pattern.name, tuple(members), pattern.captures(), tuple(inputs), results)
        inside = set(members)
        waits = (c for m in members for c in m.control if c not in inside)
        node.control = list(dict.fromkeys(waits))
        return node

    def _put(self, node: Node, members: list[Node], early: list[Node], late: list[Node],
             window: range) -> None:  # fmt: skip
        inside = set(members)
        waits = [b for m in members for b in self.before.get(m, ()) if b not in inside]
        if waits:
            self.before[node] = waits
        self.into.update(dict.fromkeys(members, node))
        self.made.append(node)
        for member in members:
            self.line[self.at[member]] = None
        fresh: list[Node | None] = [*early, node, *late]
        fresh += [None] * (len(window) - len(fresh))
        for i, entry in zip(window, fresh, strict=True):
            self.line[i] = entry
            if entry is not None:
                self.at[entry] = i
