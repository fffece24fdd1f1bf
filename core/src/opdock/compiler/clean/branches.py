"""Branches: a condition that is known when the program is prepared leaves one way to go.

An If becomes the nodes of its branch; a While that never turns becomes its inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opdock import errors, shapes
from opdock.compiler.clean.calls import calls
from opdock.compiler.clean.fold import Evaluate, fold
from opdock.compiler.clean.prune import give, is_doubted, prune, refine_shapes
from opdock.compiler.ir.block import Block, Node, Value
from opdock.compiler.ir.state import follow_effects, has_effect
from opdock.graph.nodes.traits import Control

if TYPE_CHECKING:
    from opdock.graph.control.func_graph import FuncGraph


def branches(block: Block, evaluate: Evaluate) -> bool:
    """Resolves what is known, in place.

    Args:
        block: the program.
        evaluate: runs one node on host arrays.

    Returns:
        Whether anything changed; constants may then be found that were none before.
    """
    block.looked_at("branches", len(block.nodes))
    if not any(t.control is not Control.NONE for t in block.kinds()):
        return False
    mapping: dict[Value, Value] = {}
    controls: dict[Node, list[Node]] = {}
    fresh: list[Node] = []
    effects: set[Node] = set()
    for node in block.nodes:
        node.inputs = [mapping.get(v, v) for v in node.inputs]
        follow_effects(node, effects)
        found = None
        control = node.traits.control
        if control is Control.COND:
            found = _branch(node, effects)
        elif control is Control.LOOP and _never_turns(node, evaluate):
            found = [], list(node.inputs)
        if found is None:
            fresh.append(node)
            continue
        nodes, results = found
        fresh += nodes
        mapping.update(zip(node.values(), results, strict=True))
        ends = [n for n in nodes if has_effect(n)] + [v.node for v in results]
        controls[node] = list(dict.fromkeys(ends or node.control))
        known = control is Control.COND
        why = "its condition is known" if known else "its condition is false at once"
        block.folded.append((node.name, node.op, f"branches: {why}"))
    if not controls:
        return False
    block.nodes = fresh
    block.replace(mapping, controls)
    block.sweep()
    return True


# ---------------------------------------------------------------- If
def _branch(node: Node, effects: set[Node]) -> tuple[list[Node], list[Value]] | None:
    """The nodes of the branch that is taken, and its results; None when that is not known."""
    condition = node.inputs[0].node.const()
    if is_doubted(node):
        return None
    if condition is None or condition.ndim or condition.dtype.kind not in "biuf":
        return None
    function = node.attrs["then_branch" if condition else "else_branch"]
    given = node.inputs[1:]
    if any(
        v.dtype._is_ref_dtype != t._dtype._is_ref_dtype
        for v, t in zip(given, function.inputs, strict=True)
    ):
        return None
    body = _body(function, given)
    if body is None:
        return None
    results = body.fetches
    if any(
        v.dtype.base_dtype is not d.base_dtype or v.dtype._is_ref_dtype
        for v, d in zip(results, node.out_dtypes, strict=True)
    ):
        return None
    used = {v for n in body.nodes for v in n.inputs} | set(results)
    if any(v not in used and v.node in effects for v in given):
        return None  # What makes it has to run, and nothing else would wait for it.
    made = {n for n in body.nodes if not n.is_const}
    if any(n in effects for n in node.control) and any(v.node not in made for v in results):
        return None  # What was there before, and constants, would not wait for the effect.
    for inner in body.nodes:
        if not inner.stateful and not inner.name.startswith(f"{node.name}/"):
            # Random state goes by the name, which stays the same for that reason.
            inner.name = f"{node.name}/{inner.name}"
        inner.requested = inner.requested or node.requested
        inner.id = node.id
        if not inner.is_const:
            inner.control = list(dict.fromkeys([*inner.control, *node.control]))
    return body.nodes, results


def _body(function: FuncGraph, given: Sequence[Value]) -> Block | None:
    """The nodes of a function with its arguments put in; None where the shapes do not fit."""
    feeds = [
        (t, t._dtype, shapes.merge(v.shape, t._shape))
        for t, v in zip(function.inputs, given, strict=True)
        if shapes.is_compatible(v.shape, t._shape)
    ]
    if len(feeds) < len(given):
        return None
    body = prune(function.outputs, function.targets, feeds)
    try:
        calls(body)
        refine_shapes(body)
    except errors.OpError:
        return None
    give(body, given)
    return body


# ---------------------------------------------------------------- While
def _never_turns(node: Node, evaluate: Evaluate) -> bool:
    function: Any = node.attrs["cond"]
    if node.control or is_doubted(node) or any(v.dtype._is_ref_dtype for v in node.inputs):
        return False
    body = _body(function, list(node.inputs))
    if body is None or any(has_effect(n) for n in body.nodes):
        return False
    try:
        fold(body, evaluate)
    except errors.OpError:
        return False
    answer = body.fetches[0]
    value = answer.node.const()
    return value is not None and not value.any()
