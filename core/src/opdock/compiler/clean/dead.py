"""Dead: what is waited for without a reason.

A node that only others wait for, whose value nobody uses and which can neither fail nor change
anything, need not run; a NoOp need not stand between the nodes that it ties together.
"""

from __future__ import annotations

from opdock.compiler.ir.block import Block, Node
from opdock.graph.nodes.traits import Fails


def dead(block: Block) -> None:
    """Removes needless waiting, in place.

    What is to run for its own sake stays, and so does what a target waits for: a user who runs
    `tf.group(y)` wants y computed.
    """
    block.looked_at("dead", len(block.nodes))
    users = _waiting(block)
    if not users:
        return
    data = {before for node in block.nodes for before, _ in node.inputs}
    data |= {v.node for v in (*block.fetches, *block.feeds)}
    kept = asked_for(block)
    controls: dict[Node, list[Node]] = {}
    for node in block.nodes:
        if node not in users or node in data or node in kept or not needless(node):
            continue
        before = list(dict.fromkeys(node.needs()))
        waiting = users[node]
        if len(before) > 1 and waiting > 1 and len(before) * waiting > len(before) + waiting:
            continue  # It saves more waiting than it makes.
        controls[node] = before
        block.folded.append((node.name, node.op, "dead: only waited for"))
    if controls:
        block.replace({}, controls)
        block.nodes = [n for n in block.nodes if n not in controls]
    if _forget_repeats(block) or controls:
        block.sweep()


def asked_for(block: Block) -> set[Node]:
    """Targets, and what they wait for through nothing but groups."""
    kept: set[Node] = set()
    stack = list(block.targets)
    while stack:
        node = stack.pop()
        if node not in kept:
            kept.add(node)
            if not node.inputs and not node.out_dtypes:
                stack.extend(node.control)
    return kept


def _waiting(block: Block) -> dict[Node, int]:
    """How many nodes wait for each node without using its value."""
    users: dict[Node, int] = {}
    for node in block.nodes:
        for other in node.control:
            users[other] = users.get(other, 0) + 1
    return users


def needless(node: Node) -> bool:
    """Whether a node that nobody uses the value of can neither fail nor change anything."""
    if node.spec is None or node.stateful or "_kernel" in node.attrs or not node.traits.drop:
        return False
    if any(v.dtype.name == "resource" for v in node.inputs):
        return False
    if node.traits.fails is Fails.NEVER:
        return True
    if node.traits.fails is Fails.BY_SHAPE:
        shapes = [*(v.shape for v in node.inputs), *node.out_shapes]
        return all(s is not None and None not in s for s in shapes)
    # Division by zero is an error for integers, as is a negative power.
    return node.spec.expr is not None and all(d.is_floating or d.is_bool for d in node.out_dtypes)


def _forget_repeats(block: Block) -> bool:
    """A node waits for its own inputs anyway, and nobody need wait for a constant."""
    found = False
    for node in block.nodes:
        if node.control:
            inputs = {v.node for v in node.inputs}
            needed = [c for c in dict.fromkeys(node.control) if c not in inputs and not c.is_const]
            found = found or len(needed) < len(node.control)
            node.control = needed
    return found
