"""Waits: a node need not wait for what changes nothing.

TF's gradients tie the results of one op together, so that all are computed before an optimizer
writes what they read. The compiler keeps reads and writes in order by itself, and such ties would
only keep apart what could be computed at once.
"""

from __future__ import annotations

from opdock.compiler.clean.dead import asked_for, needless
from opdock.compiler.ir.block import Block, Node
from opdock.compiler.ir.state import follow_effects, has_effect


def waits(block: Block) -> None:
    """Drops, in place, waiting for nodes without an effect that run in any case or need not run.

    A node with an effect goes on waiting: what it waits for may fail, and then it must not run.
    So does what the user asked for, which may be a group and nothing else.
    """
    if not any(node.control for node in block.nodes):
        return
    effects: set[Node] = set()  # nodes that have an effect or wait for one
    for node in block.nodes:
        if effects or node.touches:
            follow_effects(node, effects)
    live = _live(block, effects)
    kept = asked_for(block)
    idle: set[Node] = set()
    dropped = False
    for node in block.nodes:
        if node.control and node not in kept and not idle.isdisjoint(node.control):
            if not has_effect(node):
                node.control = [c for c in node.control if c not in idle]
                dropped = True
        if node not in effects and (
            node in live or (needless(node) and idle.issuperset(node.needs()))
        ):
            idle.add(node)
    if dropped:
        block.sweep()


def _live(block: Block, effects: set[Node]) -> set[Node]:
    """What runs even if nothing waits for nodes without an effect."""
    live: set[Node] = set()
    stack = [v.node for v in (*block.fetches, *block.feeds)] + list(block.targets)
    while stack:
        node = stack.pop()
        if node not in live:
            live.add(node)
            for before, _ in node.inputs:
                stack.append(before)
            if node.control:
                stack += effects.intersection(node.control)
    return live
