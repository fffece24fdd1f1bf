"""Fold: nodes whose inputs are all constant become constants.

Values come from the session's own host kernels, so folding never changes a result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock import dtypes, errors, shapes
from opdock.compiler.ir.block import Array, Block, Node, Value
from opdock.compiler.ir.state import follow_effects
from opdock.graph.nodes.constant import const_op

Evaluate = Callable[[Node, list[Any]], "list[Any] | None"]
MAX_FOLDED_BYTES: Final = 10 * 2**20


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
    folded = mapping.keys()
    for node in block.nodes:
        before = node.inputs
        if not folded.isdisjoint(before):
            node.inputs = [mapping.get(v, v) for v in before]
        if effects or node.touches:
            follow_effects(node, effects)
        if _may_fold(node):
            # A shape is known without its tensor, but what makes the tensor may have to run.
            results = None if node in effects else _facts(node)
            if results is None and all(v.node.is_const for v in node.inputs):
                results = _try(node, evaluate)
            if results is not None:
                for i, result in enumerate(results):
                    constant = _constant(node, i, result)
                    fresh.append(constant)
                    mapping[Value(node, i)] = Value(constant, 0)
                controls[node] = []
                block.folded.append((node.name, node.op, "fold: its inputs are constant"))
                continue
        if node.inputs is not before or _has_unknown(node):
            # A shape that was unknown may follow from a value folded just now.
            try:
                node.infer()
            except ValueError as e:
                raise errors.InvalidArgumentError(None, node.origin, str(e)) from None
        fresh.append(node)
    if mapping:
        block.nodes = fresh
        block.conclude(mapping, controls)
        block.sweep()


def _has_unknown(node: Node) -> bool:
    if node.inputs:
        for shape in node.out_shapes:
            if shape is None or None in shape:
                return True
    return False


def _may_fold(node: Node) -> bool:
    # A node without inputs is a generator such as a random op or a handle, not a computation.
    if not node.inputs or node.spec is None or node.control:
        return False
    # What is quick to see comes first: most nodes are none.
    if node.spec.known_fn is None:
        for before, _ in node.inputs:
            if not before.is_const:
                return False
    if node.stateful:
        return False
    if not node.traits.fold or not node.out_dtypes:
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


def _facts(node: Node) -> list[Array] | None:
    """The outputs, if all of them follow from static shapes and known inputs."""
    found = node.known_outputs() or ()
    facts = [value for value in found if isinstance(value, np.ndarray)]
    return facts if facts and len(facts) == len(node.out_dtypes) else None


def _try(node: Node, evaluate: Evaluate) -> list[Any] | None:
    values = [v.node.const() for v in node.inputs]
    if node.traits.forwards:
        return values
    try:
        return evaluate(node, values)
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
        const_op.name, name, spec=const_op, attrs={"value": array, "dtype": dtype}, inputs=[],
        out_dtypes=[dtype], out_shapes=[array.shape], origin=node.origin,
        requested=node.requested, order=node.id,
    )  # fmt: skip
