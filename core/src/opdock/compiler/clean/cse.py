"""CSE: equal stateless nodes on equal inputs are computed once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock.compiler.ir.block import Block, Node, Value

_MAX_CONSTANT_BYTES: Final = 4096


def cse(block: Block) -> None:
    """Merges duplicates in place; the first of each set of equals stays."""
    block.looked_at("cse", len(block.nodes))
    seen: dict[Any, Node] = {}
    mapping: dict[Value, Value] = {}
    controls: dict[Node, list[Node]] = {}
    for node in block.nodes:
        node.inputs = [mapping.get(v, v) for v in node.inputs]
        key = _key(node)
        if key is None:
            continue
        first = seen.setdefault(key, node)
        if first is node:
            continue
        for i in range(len(node.out_dtypes)):
            mapping[Value(node, i)] = Value(first, i)
        controls[node] = [first]
        block.folded.append((node.name, node.op, f"cse: equal to '{first.name}'"))
    if mapping:
        block.replace(mapping, controls)
        merged = set(controls)
        block.nodes = [n for n in block.nodes if n not in merged]


def _key(node: Node) -> Any:
    if node.spec is None or node.stateful or not node.traits.merge or not node.out_dtypes:
        return None
    attrs = []
    for name in sorted(node.attrs):
        # Colocation and gradient overrides do not change what is computed.
        if name in ("_class", "_gradient_op_type"):
            continue
        frozen = _freeze(node.attrs[name])
        if frozen is None and node.attrs[name] is not None:
            return None
        attrs.append((name, frozen))
    inputs = tuple((v.node.id, id(v.node), v.index) for v in node.inputs)
    controls = frozenset(id(c) for c in node.control)
    return node.op, tuple(attrs), inputs, controls, node.requested


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
