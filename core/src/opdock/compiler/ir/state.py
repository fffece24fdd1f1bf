"""State: which inputs of a node are variables and other resources, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from opdock import shapes
from opdock.compiler.ir.block import SEGMENT, Node, Value
from opdock.graph.nodes.opdef import ArgDef
from opdock.graph.nodes.traits import Control
from opdock.kernels.expr.updates import UPDATES
from opdock.kernels.select.arguments import positions

_NONE: Final[frozenset[int]] = frozenset()
_MADE: Final = (SEGMENT, UPDATES)
"""Nodes that stand for several: they say themselves which inputs are variables."""


def is_handle(value: Value) -> bool:
    """Whether a value is a handle, which names state and is no data: it is never copied."""
    node, index = value
    return node.out_dtypes[index]._is_handle


def is_state(value: Value) -> bool:
    """Whether a value names a variable or another resource."""
    node, index = value
    return node.out_dtypes[index]._is_state


def variable_name(node: Node) -> str:
    """What the variable that a node names is called in the session."""
    return str(node.attrs.get("shared_name") or node.name)


def cell_inputs(node: Node) -> frozenset[int]:
    """The flat indices of inputs that take a variable itself rather than its value."""
    if not node.touches:
        return _NONE
    if node.op in _MADE:
        inside: frozenset[int] = node.attrs["cells"]
        return inside
    if node.spec is None:
        return _NONE
    if node.traits.control is not Control.NONE:
        return _control_cells(node)
    if not node.takes_handles:
        if not node.spec.takes_refs:
            return _NONE
        fixed = node.spec.fixed_refs
        if fixed is not None:
            return fixed[0]
    found: set[int] = set()
    where = positions(node.spec.definition.inputs, node.attrs)
    for arg in node.spec.definition.inputs:
        found.update(i for i in where[arg.name] if arg.is_ref or is_handle(node.inputs[i]))
    for name, attr in node.traits.captures:
        captured = where[name]
        parameters = node.attrs[attr].inputs[len(node.attrs[attr].inputs) - len(captured) :]
        found.update(i for i, p in zip(captured, parameters, strict=True) if p.dtype._is_ref_dtype)
    return frozenset(found)


def written(node: Node, cells: frozenset[int] | None = None) -> frozenset[int]:
    """Those of a node's `cell_inputs` that it changes.

    Args:
        node: any node.
        cells: its `cell_inputs`, where they are at hand.
    """
    if node.op in _MADE:
        changed: frozenset[int] = node.attrs["written"]
        return changed
    cells = cell_inputs(node) if cells is None else cells
    if not cells or node.spec is None:
        return _NONE
    fixed = node.spec.fixed_refs
    if fixed is not None and cells is fixed[0]:
        return fixed[1]
    return cells - flat_indices(node.spec.definition.inputs, node.traits.reads, node)


def resizes(node: Node) -> bool:
    """Whether a node may give a variable another shape than it has."""
    attr = node.traits.validates
    if not attr or node.attrs.get(attr, True):
        return False
    before, after = (v.shape for v in node.inputs[:2])
    return before != after or not shapes.is_fully_defined(after)


def chooses(node: Node) -> bool:
    """Whether a node hands on one of several variables, and which one is known when it runs."""
    if node.spec is None or not node.spec.takes_refs:
        return False
    if len(node.inputs) < 2 or written(node):
        return False
    given = [v for v in node.inputs if v.dtype._is_ref_dtype]
    return len(given) > 1 and any(d._is_ref_dtype for d in node.out_dtypes)


def has_effect(node: Node) -> bool:
    """Whether a run without the node is a different run, even if nobody uses its result."""
    if not node.touches:
        return False
    spec = node.spec
    if spec is None:
        return node.op == UPDATES
    if spec.has_effect or not spec.traits.drop:
        return True
    # In this order: calls of functions, which are not taken apart yet, have no body to look into.
    return node.stateful and bool(written(node))


def follow_effects(node: Node, effects: set[Node]) -> None:
    """Adds a node to those that have an effect or wait for one; all before it have been asked."""
    if node.touches and has_effect(node):
        effects.add(node)
    elif effects:
        # Every pass asks this of every node, so no list is made.
        for before, _ in node.inputs:
            if before in effects:
                effects.add(node)
                return
        if node.control and not effects.isdisjoint(node.control):
            effects.add(node)


def _control_cells(node: Node) -> frozenset[int]:
    """Inputs of a control-flow node that its bodies take as variables."""
    first = 1 if node.traits.control is Control.COND else 0
    if node.traits.control is Control.CALL:
        assert node.spec is not None
        assert node.spec.callee_fn is not None
        body = node.spec.callee_fn(node.attrs)
    else:
        body = node.attrs["then_branch" if first else "body"]
    return frozenset(
        i + first
        for i, tensor in enumerate(body.inputs)
        if tensor.dtype._is_ref_dtype or tensor.dtype._is_handle
    )


def flat_indices(args: tuple[ArgDef, ...], names: Iterable[str], node: Node) -> frozenset[int]:
    """The flat indices of the inputs, or outputs, that belong to arguments of these names."""
    if not names:
        return _NONE
    where = positions(args, node.attrs)
    return frozenset(i for name in names for i in where.get(name, ()))
