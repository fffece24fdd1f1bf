"""Fold: nodes whose inputs are all constant become constants.

Values come from the session's own host kernels, so folding never changes a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from opdock import dtypes, errors, shapes
from opdock.compiler.ir import Block, Node, Value
from opdock.graph.constant import const_op

Evaluate = Callable[[Node, list[Any]], "list[Any] | None"]
MAX_FOLDED_BYTES: Final = 10 * 2**20
# Stateful, but a run that leaves them out changes nothing that anybody can see later.
HARMLESS: Final = frozenset({
    "Multinomial", "ParameterizedTruncatedNormal", "TruncatedNormal", "GuaranteeConst",
    "Variable", "VariableV2", "VarHandleOp", "TemporaryVariable", "ReadVariableOp",
    "ResourceGather", "VarIsInitializedOp", "IsVariableInitialized", "VariableShape", "Identity",
})  # fmt: skip
_KEEP: Final = frozenset({"Const", "Placeholder", "PlaceholderWithDefault", "_Arg", "NoOp"})
_ABOUT_SHAPES: Final = frozenset({"Shape", "ShapeN", "Size", "Rank"})
# They pass values on; no kernel does that.
_SAME: Final = frozenset({"Identity", "StopGradient", "PreventGradient", "Snapshot"})


def fold(block: Block, evaluate: Evaluate) -> None:
    """Replaces constant subgraphs by their values.

    Args:
        block: changed in place.
        evaluate: runs one node on host arrays; None when it cannot.
    """
    block.looked_at("fold", len(block.nodes))
    mapping: dict[Value, Value] = {}
    controls: dict[Node, list[Node]] = {}
    fresh: list[Node] = []
    effects: set[Node] = set()  # nodes that have an effect or wait for one
    for node in block.nodes:
        before, node.inputs = node.inputs, [mapping.get(v, v) for v in node.inputs]
        if has_effect(node) or any(n in effects for n in _before(node)):
            effects.add(node)
        if _foldable(node):
            # A shape is known without its tensor, but what makes the tensor may have to run.
            results = None if node in effects else _shape_facts(node)
            if results is None:
                results = _try(node, evaluate)
            if results is not None:
                for i, result in enumerate(results):
                    constant = _constant(node, i, result)
                    fresh.append(constant)
                    mapping[Value(node, i)] = Value(constant, 0)
                controls[node] = []
                block.folded.append((node.name, node.op, "fold: its inputs are constant"))
                continue
        if node.op not in _KEEP and (node.inputs != before or _has_unknown(node)):
            # A shape that was unknown may follow from a value folded just now.
            try:
                node.infer()
            except ValueError as e:
                raise errors.InvalidArgumentError(None, node.origin, str(e)) from None
        fresh.append(node)
    block.nodes = fresh
    block.replace(mapping, controls)
    block.sweep()


def has_effect(node: Node) -> bool:
    """Whether a run without the node is a different run, even if nobody uses its result."""
    return node.stateful and not (
        node.spec is None or node.op in HARMLESS or node.op.startswith("Random")
    )


def _has_unknown(node: Node) -> bool:
    return bool(node.inputs) and any(s is None or None in s for s in node.out_shapes)


def _before(node: Node) -> Iterator[Node]:
    yield from (v.node for v in node.inputs)
    yield from node.control


def _foldable(node: Node) -> bool:
    # A node without inputs is a generator such as a random op or a handle, not a computation.
    if node.op not in _ABOUT_SHAPES and not (
        node.inputs and all(v.node.op == "Const" for v in node.inputs)
    ):
        return False
    if (
        node.spec is None
        or node.op in _KEEP
        or node.control
        or node.stateful
        or not node.out_dtypes
    ):
        return False
    if any(d is dtypes.resource or d is dtypes.variant for d in node.out_dtypes):
        return False
    if any(
        not isinstance(
            v, (int, float, str, bool, list, tuple, type(None), dtypes.DType, np.ndarray, bytes)
        )
        for v in node.attrs.values()
    ):
        return False
    size = 0
    for shape, dtype in zip(node.out_shapes, node.out_dtypes, strict=True):
        count = shapes.num_elements(shape)
        size += 0 if count is None else count * dtype.size
    return size <= MAX_FOLDED_BYTES


def _shape_facts(node: Node) -> list[Any] | None:
    if node.op not in _ABOUT_SHAPES:
        return None
    facts: list[Any] = []
    for value, dtype in zip(node.inputs, node.out_dtypes, strict=True):
        known = value.shape
        if known is None or (node.op != "Rank" and None in known):
            return None
        fact: Any = known
        if node.op == "Size":
            fact = shapes.num_elements(known)
        elif node.op == "Rank":
            fact = len(known)
        facts.append(np.array(fact, dtype.np))
    return facts


def _try(node: Node, evaluate: Evaluate) -> list[Any] | None:
    if node.op in _ABOUT_SHAPES:
        return None
    if node.op in _SAME:
        return [v.node.const() for v in node.inputs]
    try:
        return evaluate(node, [v.node.const() for v in node.inputs])
    except errors.OpError:
        # The step will raise it with the full context, or never run the node.
        return None


def _constant(node: Node, index: int, value: Any) -> Node:
    dtype = node.out_dtypes[index]
    array = np.asarray(value)
    if array.dtype != dtype.np:
        array = array.astype(dtype.np)
    name = node.name if index == 0 else f"{node.name}/folded_{index}"
    return Node(
        "Const", name, spec=const_op, attrs={"value": array, "dtype": dtype}, inputs=[],
        out_dtypes=[dtype], out_shapes=[array.shape], origin=node.origin,
        requested=node.requested, order=node.id,
    )  # fmt: skip
