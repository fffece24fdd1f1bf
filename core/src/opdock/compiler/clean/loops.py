"""Loops: variables that nobody needs are not computed, and what no turn changes goes around.

The gradient of a loop collects one for everything that its body uses, and the forward loop records
what each of them needs. Usually only some are asked for: the rest is found here, where it is known
what is fetched, first in the backward loop and then, as its lists are no longer used, in the
forward one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from opdock.compiler.clean.branches import acts
from opdock.compiler.clean.dead import asked_for
from opdock.compiler.ir.block import Block, Node, Value
from opdock.graph.nodes.traits import Control

if TYPE_CHECKING:
    from opdock.graph.control.func_graph import FuncGraph
    from opdock.graph.nodes.operation import Operation, Tensor

__all__ = ["loops", "passes_on"]



def loops(block: Block) -> None:
    """Narrows each loop to the variables that its condition, its effects or its users need.

    Args:
        block: changed in place.
    """
    block.looked_at("loops", len(block.nodes))
    if not any(_is_loop(n) for n in block.nodes):
        return
    mapping: dict[Value, Value] = {}
    controls: dict[Node, list[Node]] = {}
    # Who runs a loop for its own sake wants all of it computed.
    asked = [v for n in asked_for(block) if _is_loop(n) for v in n.values()]
    used = {*block.fetches, *block.feeds, *asked}
    needed = {v.node for v in used} | set(block.targets)
    fresh: list[Node] = []
    # Users come last, so when a loop's turn comes it is known what is used of it.
    for node in reversed(block.nodes):
        if node not in needed:
            continue
        if _is_loop(node):
            around = _around(node, used)
            mapping.update(around)
            used.update(around.values())
            needed.update(v.node for v in around.values())
            wanted = [v.index for v in node.values() if v in used and v not in around]
            narrow = _narrowed(node, wanted)
            if narrow is not None:
                made, kept = narrow
                mapping.update((Value(node, i), Value(made, k)) for k, i in enumerate(kept))
                controls[node] = [made]
                removed = len(node.inputs) - len(kept)
                why = f"loops: {removed} of {len(node.inputs)} variables are not needed"
                block.folded.append((node.name, node.op, why))
                node = made
        fresh.append(node)
        used.update(node.inputs)
        needed.update(v.node for v in node.inputs)
        needed.update(node.control)
    block.nodes = fresh[::-1]
    block.replace(mapping, controls)


def _is_loop(node: Node | Operation) -> bool:
    return node.spec is not None and node.spec.traits.control is Control.LOOP


def passes_on(function: FuncGraph, index: int) -> bool:
    """Whether a loop's body hands a variable to the next turn as it is."""
    parameter, result = function.inputs[index], function.outputs[index]
    # A reference is read when its value is needed, and by then it may be another.
    if parameter.dtype._is_ref_dtype:
        return False
    while result.op.spec.traits.forwards:
        result = result.op.inputs[result.value_index]
    return result is parameter


def _around(node: Node, used: set[Value]) -> dict[Value, Value]:
    """The results in use that are the loop's own inputs, however often it turns.

    Users of a loop with effects may have to see them.
    """
    if node.stateful:
        return {}
    body: FuncGraph = node.attrs["body"]
    return {
        v: node.inputs[v.index] for v in node.values() if v in used and passes_on(body, v.index)
    }


def _narrowed(node: Node, used: Sequence[int]) -> tuple[Node, list[int]] | None:
    """A loop with only the variables that it needs, and which those are; None if it needs all."""
    body: FuncGraph = node.attrs["body"]
    cond: FuncGraph = node.attrs["cond"]
    kept = sorted(_needed(cond, body, used))
    if len(kept) == len(node.inputs):
        return None
    attrs = {
        **node.attrs,
        "T": [node.attrs["T"][i] for i in kept],
        "cond": cond.part(kept, range(len(cond.outputs))),
        "body": body.part(kept, kept),
    }
    if attrs["output_shapes"]:
        attrs["output_shapes"] = [attrs["output_shapes"][i] for i in kept]
    made = Node(
        node.op, node.name, spec=node.spec, attrs=attrs, origin=node.origin,
        inputs=[node.inputs[i] for i in kept], out_dtypes=[node.out_dtypes[i] for i in kept],
        out_shapes=[node.out_shapes[i] for i in kept], requested=node.requested, order=node.id,
    )  # fmt: skip
    made.control = list(node.control)
    return made, kept


def _needed(cond: FuncGraph, body: FuncGraph, used: Iterable[int]) -> set[int]:
    """The variables that some turn needs for the condition, an effect or a used result."""
    walk = _Walk(body)
    needed = {*used, *walk.needs([], _acting(body))}
    needed |= _Walk(cond).needs(cond.outputs, _acting(cond))
    pending = list(needed)
    while pending:
        found = walk.needs([body.outputs[pending.pop()]]) - needed
        needed |= found
        pending += found
    return needed


def _acting(function: FuncGraph) -> list[Operation]:
    return [op for op in function.get_operations() if acts(op)]


class _Walk:
    """A walk from values of a function back to its parameters, going nowhere twice."""

    def __init__(self, function: FuncGraph) -> None:
        self._parameters = {t: i for i, t in enumerate(function.inputs)}
        self._seen: set[Operation] = set()
        self._loops: dict[Operation, set[int]] = {}

    def needs(self, values: Iterable[Tensor], ops: Iterable[Operation] = ()) -> set[int]:
        """The parameters, not found before, on which values and operations depend."""
        found: set[int] = set()
        tensors, pending = list(values), list(ops)
        while tensors or pending:
            if pending:
                op = pending.pop()
            else:
                tensor = tensors.pop()
                op = tensor.op
                if _is_loop(op):
                    tensors += self._through(op, [tensor.value_index])
                elif tensor in self._parameters:
                    found.add(self._parameters[tensor])
            if op not in self._seen:
                self._seen.add(op)
                tensors += self._through(op, []) if _is_loop(op) else op._inputs
                pending += op._control_inputs
        return found

    def _through(self, loop: Operation, used: list[int]) -> list[Tensor]:
        """What goes into a loop within this one and is needed for some of its results."""
        known = self._loops.setdefault(loop, set())
        if known.issuperset(used) and used:
            return []
        fresh = _needed(loop.attrs["cond"], loop.attrs["body"], known.union(used)) - known
        known |= fresh
        return [loop._inputs[i] for i in fresh]
