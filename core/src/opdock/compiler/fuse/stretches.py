"""Stretches: small steps that come together become one call, for devices that generate code.

Of a product of two small matrices, or of a few elementwise ops on some hundred numbers, the call is
what takes the time. The pass gathers those steps that nothing large stands between, whatever they
depend on; it makes a node of those that the device has a kernel for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from opdock.compiler.fuse.find import Waiting
from opdock.compiler.fuse.form import controls_of
from opdock.compiler.fuse.instead import Instead, declined, put
from opdock.compiler.fuse.parts import Flow
from opdock.compiler.fuse.patterns import may_fuse
from opdock.compiler.fuse.stretch_stages import Small, Stages, small
from opdock.compiler.ir.block import Block, Fused, Node, Value
from opdock.compiler.place.placer import Placer
from opdock.compiler.place.target import Target
from opdock.kernels.expr.cluster import CLUSTER
from opdock.kernels.expr.stretch import STRETCH

__all__ = ["stretches"]

Steps = dict[Node, Small]

FUSION: Final = "stretches"
_LEAST: Final = 4
"""Calls that a stretch has to save: its own is one, and code is generated for it."""
_CLUSTERS: Final = 2
"""What the call of a cluster counts: it takes longer than one of NumPy's."""
_MOST_WORK: Final = 1 << 21
"""Elements that one call computes: it takes a millisecond, then others are heard."""
_MOST_KINDS: Final = 48
"""Kinds of steps in a stretch: compile times grow with them."""


def stretches(block: Block, placer: Placer) -> None:
    """Replaces small steps that come together by one node, on devices with a kernel for that.

    Args:
        block: a placed block; it stays in executable order.
        placer: knows the devices, and which kernels gave up at run time.
    """
    able = {t for t in placer.targets if t.is_open and t.is_host and STRETCH in t.index}
    if not able:
        return
    steps: Steps = {}
    for node in block.nodes:
        if node.target in able and _may_join(node):
            step = small(node)
            if step is not None:
                steps[node] = step
    if not _pays(steps):
        return
    block.looked_at(FUSION, len(block.nodes))
    flow = Flow.of(block)
    for node in _refused(flow, steps, placer):
        del steps[node]
    made = []
    for together in _groups(flow, steps):
        for members in _cut(together, steps):
            one = _formed(flow, members, steps) if _pays(members) else None
            if one is None:
                continue
            why = declined(one.node, placer)
            if why:
                block.missed.append((one.node.name, FUSION, why))
            else:
                made.append(one)
    if made:
        put(block, flow.place, flow.before, made)
        block.sweep()


def _refused(flow: Flow, steps: Steps, placer: Placer) -> list[Node]:
    """The steps that no kernel takes even alone; the device takes clusters that it has taken."""
    found: list[Node] = []
    known: dict[Any, bool] = {}
    for node in steps:
        if node.op == CLUSTER:
            continue
        types = [before.out_dtypes[index]._enum for before, index in node.inputs]
        kind = _kind(node), tuple(types), node.out_dtypes[0]._enum
        if kind not in known:
            alone = _formed(flow, [node], steps)
            known[kind] = alone is not None and bool(declined(alone.node, placer))
        if known[kind]:
            found.append(node)
    return found


# ---------------------------------------------------------------- find
def _may_join(node: Node) -> bool:
    """Whether a node computes its outputs from its inputs, and does nothing else."""
    if node.fused is not None:
        return node.op == CLUSTER or all(map(may_fuse, node.fused.members))
    if may_fuse(node):
        return True
    return node.is_alias and not node.stateful and not node.control


def _pays(nodes: Iterable[Node]) -> bool:
    """Whether one call in the place of theirs saves any time."""
    calls = 0
    for node in nodes:
        calls += _CLUSTERS if node.op == CLUSTER else 0 if _only_moves(node) else 1
        if calls >= _LEAST:
            return True
    return False


def _only_moves(node: Node) -> bool:
    return node.is_alias or node.traits.reshapes


def _groups(flow: Flow, steps: Steps) -> Iterator[list[Node]]:
    """Small nodes of one device that may run together, each time after all else that may run.

    So nothing stands between them, and no group waits for a later one.
    """
    waiting = Waiting(flow)
    free = [n for n in flow.place if not waiting.left[n]]
    pending: dict[Target, list[Node]] = {}
    while free or pending:
        while free:
            node = free.pop()
            if node in steps:
                assert node.target is not None
                pending.setdefault(node.target, []).append(node)
            else:
                free += waiting.released(node)
        if pending:
            target, left = pending.popitem()
            group = []
            while left:
                node = left.pop()
                group.append(node)
                for other in waiting.released(node):
                    joins = other in steps and other.target is target
                    (left if joins else free).append(other)
            yield flow.in_order(group)


def _cut(group: Sequence[Node], steps: Steps) -> Iterator[list[Node]]:
    """A group in pieces of which none is too large, in executable order."""
    piece: list[Node] = []
    kinds: set[Any] = set()
    done = 0
    for node in group:
        own = steps[node].work
        kind = _kind(node)
        if piece and (done + own > _MOST_WORK or len(kinds | {kind}) > _MOST_KINDS):
            yield piece
            piece, kinds, done = [], set(), 0
        piece.append(node)
        kinds.add(kind)
        done += own
    yield piece


def _kind(node: Node) -> Any:
    """What is the same of nodes that are likely to be computed by one code."""
    ops = tuple([op for _, op in node.attrs["members"]]) if node.op == CLUSTER else ()
    shapes = tuple([before.out_shapes[index] for before, index in node.inputs])
    return node.op, ops, shapes, tuple(node.out_shapes)


# ---------------------------------------------------------------- form
def _formed(flow: Flow, members: list[Node], steps: Steps) -> Instead | None:
    """A node for small ones; it has no kernel yet. None if nothing would be left of it."""
    inside = set(members)
    wanted: list[Value] = []
    for member in members:
        wanted += [v for v in member.values() if _leaves(flow, v, inside)]
    if not wanted:
        return None
    stages = Stages()
    for member in members:
        stages.add(member, steps[member].ways)
    stretch, inputs = stages.finished(wanted)
    last = next(n for n in reversed(members) if any(v.node is n for v in wanted))
    names = tuple(f"x{i}" for i in range(len(inputs)))
    attrs = {"stretch": stretch, "members": tuple((n.name, n.op) for n in members)}
    node = Node(
        STRETCH, last.name, spec=None, attrs=attrs, inputs=inputs,
        out_dtypes=[v.dtype.base_dtype for v in wanted], out_shapes=[v.shape for v in wanted],
        origin=last.origin, requested=last.requested, order=last.id,
    )  # fmt: skip
    node.target, node.why = last.target, f"{len(members)} small steps in one call"
    node.fused = Fused(FUSION, tuple(members), names, tuple(inputs), tuple(wanted))
    node.control = controls_of(members, set(inputs))
    return Instead(node, members, members, [[v] for v in wanted])


def _leaves(flow: Flow, value: Value, inside: set[Node]) -> bool:
    users = flow.users.get(value, ())
    return value in flow.fetched or not inside.issuperset(users)
