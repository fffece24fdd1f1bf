"""Cluster: elementwise ops that hang together become one op, for devices that generate code.

`unfold` puts what they decompose into in the place of ops that ask for it. The pass itself has four
phases. `find` says which ops may be in clusters and gathers them in parts. `merge` joins parts.
Then, from the last part to the first, `recompute` says what it computes again and `form` makes a
node of it. What they hand on is `Parts`.
"""

from __future__ import annotations

from collections import Counter

from opdock.compiler.fuse.find import find
from opdock.compiler.fuse.form import FUSION, form
from opdock.compiler.fuse.instead import put
from opdock.compiler.fuse.merge import merge
from opdock.compiler.fuse.unfold import asks, unfold
from opdock.compiler.ir.block import Block
from opdock.compiler.ir.order import Before
from opdock.compiler.place.placer import Placer
from opdock.kernels.expr.cluster import CLUSTER, OPEN_CLUSTER


def cluster(block: Block, placer: Placer, once: bool) -> Before | None:
    """Replaces connected elementwise nodes by clusters, on devices with a kernel for them.

    Args:
        block: a placed block; it stays in executable order.
        placer: knows the devices, and which kernels gave up at run time.
        once: whether equal nodes that ops become are computed once.

    Returns:
        The `state_order` of the block as it is now; None where nobody had to know it.
    """
    # A device is not asked, which may have to load its kernels first, where nothing could be one.
    count = Counter(node.target for node in block.nodes if node.kernel is not None)
    count.update(node.target for node in block.nodes if asks(node))
    able = {
        t: [op for op in (CLUSTER, OPEN_CLUSTER) if op in t.index]
        for t in placer.targets
        if count[t] > 1 and t.is_open
    }
    unfold(block, placer, {t for t, ops in able.items() if CLUSTER in ops}, once)
    parts = find(block, placer, able) if any(able.values()) else None
    if parts is None:
        return None
    merge(parts)
    clusters = form(parts, block, placer)
    block.looked_at(FUSION, parts.visits)
    if not clusters:
        return parts.flow.before
    before = put(block, parts.flow.place, parts.flow.before, clusters)
    block.sweep()
    return before
