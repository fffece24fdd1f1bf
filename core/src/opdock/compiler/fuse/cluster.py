"""Cluster: elementwise ops that hang together become one op, for devices that generate code.

The pass has four phases. `find` says which ops may be in clusters and gathers them in parts.
`merge` joins parts. Then, from the last part to the first, `recompute` says what it computes again
and `form` makes a node of it. What they hand on is `Parts`.
"""

from __future__ import annotations

from opdock.compiler.fuse.find import find
from opdock.compiler.fuse.form import FUSION, Cluster, form
from opdock.compiler.fuse.merge import merge
from opdock.compiler.fuse.parts import Flow
from opdock.compiler.ir.block import Block, Node, Value
from opdock.compiler.ir.order import Before, sort
from opdock.compiler.place.placer import Placer
from opdock.kernels.expr.cluster import CLUSTER


def cluster(block: Block, placer: Placer) -> None:
    """Replaces connected elementwise nodes by clusters, on devices with a kernel for them.

    Args:
        block: a placed block; it stays in executable order.
        placer: knows the devices, and which kernels gave up at run time.
    """
    able = {t for t in placer.targets if t.is_open and CLUSTER in t.index}
    parts = find(block, placer, able) if able else None
    if parts is None:
        return
    merge(parts)
    clusters = form(parts, block, placer)
    block.looked_at(FUSION, parts.visits)
    if clusters:
        _rewire(block, parts.flow, clusters)


def _rewire(block: Block, flow: Flow, clusters: list[Cluster]) -> None:
    """Puts the clusters into the block, in an order that the effects allow."""
    place = dict(flow.place)
    values: dict[Value, Value] = {}
    into: dict[Node, Node] = {}
    for made in clusters:
        into.update(dict.fromkeys(made.gone, made.node))
        place[made.node] = max(place[m] for m in made.members)
        for i, same in enumerate(made.outputs):
            values.update(dict.fromkeys(same, Value(made.node, i)))
    # A copy waits for what the copied node waits for.
    waits = [(n, into.get(n, n)) for n in flow.before]
    waits += [(m, made.node) for made in clusters for m in made.members]
    before: Before = {}
    for node, new in waits:
        found = (into.get(n, n) for n in flow.before.get(node, ()))
        before.setdefault(new, []).extend(n for n in found if n is not new)
    block.nodes = [n for n in block.nodes if n not in into] + [c.node for c in clusters]
    block.replace(values, {old: [new] for old, new in into.items()})
    sort(block, before, place)
    block.sweep()
