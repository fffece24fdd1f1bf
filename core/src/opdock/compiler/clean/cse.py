"""CSE: equal stateless nodes on equal inputs are computed once, and so are reads of a variable
between two writes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock.compiler.ir.block import FEED, Block, Node, Value
from opdock.compiler.ir.order import root_of
from opdock.compiler.ir.state import (
    cell_inputs,
    chooses,
    has_effect,
    is_state,
    written,
)

_MAX_CONSTANT_BYTES: Final = 4096


def cse(block: Block) -> None:
    """Merges duplicates in place; the first of each set of equals stays."""
    block.looked_at("cse", len(block.nodes))
    seen, state = _Seen(), _State(block)
    mapping: dict[Value, Value] = {}
    controls: dict[Node, list[Node]] = {}
    merged = mapping.keys()
    for node in block.nodes:
        if not merged.isdisjoint(node.inputs):
            node.inputs = [mapping.get(v, v) for v in node.inputs]
        stateful = node.stateful
        version = state.version(node) if stateful or node.takes_handles else None
        first = None if stateful and version is None else seen.equal(node, version)
        if first is None:
            continue
        for i in range(len(node.out_dtypes)):
            mapping[Value(node, i)] = Value(first, i)
        controls[node] = [first]
        block.folded.append((node.name, node.op, f"cse: equal to '{first.name}'"))
    if mapping:
        block.conclude(mapping, controls)
        block.nodes = [n for n in block.nodes if n not in controls]


class _Seen:
    """The nodes so far. Few have the first input of another of their op, and fewer all of them, so
    the rest is mostly not looked at."""

    def __init__(self) -> None:
        # By op and first input: no other has it so far.
        self._only: dict[str, dict[Value, Node | None]] = {}
        self._alone: dict[Any, Node | None] = {}  # by op, place, inputs: no other has them so far
        self._first: dict[Any, Node] = {}  # by all that counts

    def equal(self, node: Node, version: Any) -> Node | None:
        """The first node that computes the same, or None, and the node is one of them itself.

        Args:
            node: one that does no more to state than to read it.
            version: what it sees of the state that it reads.
        """
        if node.spec is None or not node.out_dtypes or not node.traits.merge:
            return None
        if version is None and node.inputs:
            only = self._only.get(node.op)
            if only is None:
                only = self._only[node.op] = {}
            other = only.setdefault(node.inputs[0], node)
            if other is node:
                return None
            if other is not None:
                only[node.inputs[0]] = None
                self._compared(other, None)
        return self._compared(node, version)

    def _compared(self, node: Node, version: Any) -> Node | None:
        rough = (node.op, version, node.target, *node.inputs)
        if rough not in self._alone:
            self._alone[rough] = node
            return None
        other = self._alone[rough]
        if other is not None:
            self._alone[rough] = None
            self._first[rough, _decided_by(other)] = other
        rest = _decided_by(node)
        first = node if rest is None else self._first.setdefault((rough, rest), node)
        return None if first is node else first


class _State:
    """What nodes see of resources, in the order in which they run."""

    def __init__(self, block: Block) -> None:
        self._writes: dict[Any, int] = {}
        self._roots: dict[Node, Any] = {}
        # Where it is open which variable a handle names, a write may be one of any.
        self._open = any(
            chooses(n) if n.spec is not None else n.op == FEED and any(map(is_state, n.values()))
            for n in block.nodes
            if n.spec is None or n.spec.takes_refs
        )

    def version(self, node: Node) -> tuple[int, ...] | None:
        """How often what a node reads has been written; None if it does more than read.

        Of nodes that have nothing to do with state nobody asks.
        """
        if self._open or node.spec is None or not node.inputs:
            return None
        cells = cell_inputs(node)
        named = cells | {i for i, (n, k) in enumerate(node.inputs) if n.out_dtypes[k]._is_ref_dtype}
        roots = {i: root_of(node.inputs[i].node, self._roots) for i in sorted(named)}
        seen = tuple([self._writes.get(root, 0) for root in roots.values()])
        changed = written(node, cells)
        for i in changed:
            self._writes[roots[i]] = self._writes.get(roots[i], 0) + 1
        traits, hands_on = node.traits, any(d._is_ref_dtype for d in node.out_dtypes)
        more = has_effect(node) or traits.random or traits.blocks or traits.foreign or traits.holds
        return None if changed or more or hands_on or not roots else seen


def _decided_by(node: Node) -> Any:
    """What decides besides op and inputs what a node is; None if nothing is equal to it."""
    attrs = []
    for name in sorted(node.attrs):
        # Colocation and gradient overrides do not change what is computed.
        if name in ("_class", "_gradient_op_type"):
            continue
        frozen = _freeze(node.attrs[name])
        if frozen is None and node.attrs[name] is not None:
            return None
        attrs.append((name, frozen))
    return tuple(attrs), frozenset(node.control), node.requested


def _freeze(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.nbytes > _MAX_CONSTANT_BYTES or value.dtype.hasobject:
            return None
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, list):
        items = [_freeze(v) for v in value]
        return None if any(i is None for i in items) else ("list", *items)
    if isinstance(value, float):
        # 0.0 == -0.0 and nan != nan, so floats are compared by their bits.
        return "float", np.float64(value).tobytes()
    if isinstance(value, (bool, int, str, bytes, tuple)) or value is None:
        return type(value).__name__, value
    try:
        hash(value)
    except TypeError:
        return None
    return value
