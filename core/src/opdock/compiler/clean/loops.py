"""Loops: what nobody needs of a loop or a conditional is not computed, and not passed in.

The gradient of a loop collects one for everything that its body uses, and the forward loop records
what each of them needs. Usually only some are asked for: the rest is found here, where it is known
what is fetched, first in the backward loop and then, as its lists are no longer used, in the
forward one. What no turn of a loop changes goes around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opdock.compiler.clean.dead import asked_for
from opdock.compiler.clean.dependence import branch_flow, indices_of, loop_flow
from opdock.compiler.ir.block import Block, Node, Value
from opdock.graph.nodes.traits import Control

if TYPE_CHECKING:
    from opdock.graph.control.func_graph import FuncGraph

__all__ = ["loops", "passes_on"]


def loops(block: Block) -> None:
    """Narrows each loop and conditional to what its users and its effects need.

    Args:
        block: changed in place.
    """
    block.looked_at("loops", len(block.nodes))
    if not any(t.control is not Control.NONE for t in block.kinds()):
        return
    mapping: dict[Value, Value] = {}
    controls: dict[Node, list[Node]] = {}
    used = {*block.fetches, *block.feeds, *_awaited(block)}
    needed = {v.node for v in used} | set(block.targets)
    fresh: list[Node] = []
    # Users come last, so when a node's turn comes it is known what is used of it.
    for node in reversed(block.nodes):
        if node not in needed:
            continue
        if _is_control(node):
            around = _around(node, used)
            mapping.update(around)
            used.update(around.values())
            needed.update(v.node for v in around.values())
            wanted = [v.index for v in node.values() if v in used and v not in around]
            is_loop = node.traits.control is Control.LOOP
            narrow = _narrowed_loop if is_loop else _narrowed_if
            found = narrow(node, wanted)
            if found is not None:
                made, kept = found
                mapping.update((Value(node, i), Value(made, k)) for k, i in enumerate(kept))
                controls[node] = [made]
                _tell(block, node, made)
                node = made
        fresh.append(node)
        used.update(node.inputs)
        needed.update(v.node for v in node.inputs)
        needed.update(node.control)
    block.nodes = fresh[::-1]
    block.replace(mapping, controls)
    # What goes around a loop may leave nothing of it.
    block.sweep()


def passes_on(function: FuncGraph, index: int) -> bool:
    """Whether a loop's body hands a variable to the next turn as it is."""
    parameter, result = function.inputs[index], function.outputs[index]
    # A reference is read when its value is needed, and by then it may be another.
    if parameter.dtype._is_ref_dtype:
        return False
    while result.op.spec.traits.forwards and not result.op.control_inputs:
        result = result.op.inputs[result.value_index]
    return result is parameter


def _is_control(node: Node) -> bool:
    return node.traits.control is not Control.NONE


def _awaited(block: Block) -> list[Value]:
    """All results of what is run for its own sake, and of what has effects that others wait for."""
    waited = {c for n in block.nodes for c in n.control if c.stateful}
    return [
        v for n in (*asked_for(block), *waited) if _is_control(n)
        for v in n.values()
    ]  # fmt: skip


def _around(node: Node, used: set[Value]) -> dict[Value, Value]:
    """The results in use that are the loop's own inputs, however often it turns.

    Users of a loop with effects may have to see them.
    """
    if node.stateful or node.traits.control is Control.COND:
        return {}
    body: FuncGraph = node.attrs["body"]
    return {
        v: node.inputs[v.index] for v in node.values() if v in used and passes_on(body, v.index)
    }


def _narrowed_loop(node: Node, used: Sequence[int]) -> tuple[Node, list[int]] | None:
    """A loop with only the variables that it needs, and which those are; None if it needs all."""
    body: FuncGraph = node.attrs["body"]
    cond: FuncGraph = node.attrs["cond"]
    kept = list(indices_of(loop_flow(cond, body).needs(used)))
    if len(kept) == len(node.inputs):
        return None
    attrs = {
        "T": [node.attrs["T"][i] for i in kept],
        "cond": cond.part(kept, range(len(cond.outputs))),
        "body": body.part(kept, kept),
    }
    return _like(node, attrs, [node.inputs[i] for i in kept], kept), kept


def _narrowed_if(node: Node, used: Sequence[int]) -> tuple[Node, list[int]] | None:
    """A conditional with the results in use and the arguments that they need; None if all are."""
    branches = {key: node.attrs[key] for key in ("then_branch", "else_branch")}
    given = list(indices_of(branch_flow(list(branches.values())).needs(used)))
    if len(given) == len(node.inputs) - 1 and len(used) == len(node.out_dtypes):
        return None
    attrs = {
        "Tin": [node.inputs[1 + i].dtype.base_dtype for i in given],
        "Tout": [node.attrs["Tout"][i] for i in used],
        **{key: branch.part(given, used) for key, branch in branches.items()},
    }
    inputs = [node.inputs[0], *(node.inputs[1 + i] for i in given)]
    return _like(node, attrs, inputs, used), list(used)


def _like(node: Node, attrs: dict[str, Any], inputs: list[Value], results: Sequence[int]) -> Node:
    """A node with other inputs and some of another's results."""
    attrs = {**node.attrs, **attrs}
    if attrs["output_shapes"]:
        attrs["output_shapes"] = [attrs["output_shapes"][i] for i in results]
    made = Node(
        node.op, node.name, spec=node.spec, attrs=attrs, origin=node.origin, inputs=inputs,
        out_dtypes=[node.out_dtypes[i] for i in results],
        out_shapes=[node.out_shapes[i] for i in results],
        requested=node.requested, order=node.id,
    )  # fmt: skip
    made.control = list(node.control)
    return made


def _tell(block: Block, node: Node, made: Node) -> None:
    before, left = len(node.inputs), len(made.inputs)
    what = "variables"
    if node.traits.control is Control.COND:
        what = "arguments"
        if before == left:
            before, left, what = len(node.out_dtypes), len(made.out_dtypes), "results"
    why = f"loops: {before - left} of {before} {what} are not needed"
    block.folded.append((node.name, node.op, why))
