"""Unfold: ops become what they decompose into, where clusters of that are better than one kernel.

An op whose inputs and results are whole arrays in memory keeps clusters from reading them where
they are read anyway, and from leaving out what nobody needs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container
from typing import Any

from opdock.compiler.clean.cse import cse
from opdock.compiler.fuse.cluster_line import alike_as
from opdock.compiler.fuse.patterns import may_fuse
from opdock.compiler.ir.block import Block, Node, Value
from opdock.compiler.place.ladder import Choice, node_sig
from opdock.compiler.place.placer import Placer, expand_all, take
from opdock.compiler.place.target import Target
from opdock.failures import failures
from opdock.kernels.select.selection import read_verdict
from opdock.kernels.select.signature import NodeSig

_log = logging.getLogger("opdock.fuse")


def asks(node: Node) -> bool:
    """Whether a node's kernel may do worse than clusters of the op's parts."""
    return node.kernel is not None and node.kernel.unfold is not None


def unfold(block: Block, placer: Placer, able: Container[Target], once: bool) -> None:
    """Puts decompositions in the place of the nodes whose kernels ask for that.

    Args:
        block: a placed block; it stays in executable order.
        placer: knows the devices, and which kernels gave up at run time.
        able: the devices that have kernels for clusters.
        once: whether what an op and its gradient both compute is computed once.
    """
    found = False
    known: dict[Any, Choice | None] = {}
    for node in block.nodes:
        target, kernel = node.target, node.kernel
        if target is None or target not in able or kernel is None or not may_fuse(node):
            continue
        if kernel.unfold is None or not _wanted(node, kernel.unfold, block, placer):
            continue
        # Layers of a network are alike; kernels give up on one of them.
        alike = None if placer.experience.bans else alike_as(node)
        choice = known.get(alike)
        if choice is None:
            choice, _ = placer.decompose(node, target)
            if alike is not None:
                known[alike] = choice
        if choice is not None:
            take(node, choice)
            found = True
    if found:
        expand_all(block)
        if once:
            cse(block)
        _straighten(block)
        block.sweep()


def _straighten(block: Block) -> None:
    """Takes out reshapes there and back, where one op's parts meet another's."""
    mapping: dict[Value, Value] = {}
    for node in block.nodes:
        if not node.traits.reshapes or node.control:
            continue
        inner = mapping.get(node.inputs[0], node.inputs[0]).node
        if not inner.traits.reshapes or inner.control or inner.target is not node.target:
            continue
        source, shape = mapping.get(inner.inputs[0], inner.inputs[0]), node.out_shapes[0]
        known = shape is not None and None not in shape
        if known and shape == source.shape and not source.dtype._is_ref_dtype:
            mapping[Value(node, 0)] = source
    block.replace(mapping, {})


def _wanted(node: Node, ask: Callable[[NodeSig], bool | str], block: Block, placer: Placer) -> bool:
    """Whether the node's kernel leaves it to clusters."""
    try:
        refused, _ = read_verdict(ask(node_sig(node, node.target, placer.resources)))
    except failures() as e:
        _log.exception("unfold() of %s failed at %s", node.kernel, node.name)
        block.missed.append((node.name, "cluster", f"unfold() raised {type(e).__name__}: {e}"))
        return False
    return not refused
