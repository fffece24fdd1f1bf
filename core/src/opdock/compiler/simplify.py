"""Simplify: algebra that changes no bit of any result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from opdock.compiler.ir import Block, Node, Value


def simplify(block: Block) -> None:
    """Removes nodes that return one of their inputs unchanged."""
    mapping: dict[Value, Value] = {}
    controls: dict[Node, list[Node]] = {}
    for node in block.nodes:
        node.inputs = [mapping.get(v, v) for v in node.inputs]
        if node.control or len(node.out_dtypes) != 1 or node.op not in _RULES:
            continue
        same = _RULES[node.op](node)
        if same is None or same.dtype.base_dtype is not node.out_dtypes[0].base_dtype:
            continue
        mapping[Value(node, 0)] = same
        controls[node] = [same.node]
        if node.op != "Identity":
            block.folded.append((node.name, node.op, f"equal to its input '{same.node.name}'"))
    if mapping:
        block.replace(mapping, controls)
        removed = set(controls)
        block.nodes = [n for n in block.nodes if n not in removed]
        block.sweep()


def _pass_through(node: Node) -> Value | None:
    return node.inputs[0]


def _is_constant(value: Value, number: int) -> bool:
    """Whether a value is `number` alone; complex and negative zero are not neutral to the bit."""
    array = value.node.const()
    return (
        array is not None
        and array.size == 1
        and array.dtype.kind in "iuf"
        and bool(np.all(array == number))
        and not np.signbit(array).any()
    )


def _keeps_shape(node: Node, value: Value) -> bool:
    shape = node.out_shapes[0]
    return shape is not None and None not in shape and shape == value.shape


def _neutral(number: int, left: bool) -> Callable[[Node], Value | None]:
    def rule(node: Node) -> Value | None:
        a, b = node.inputs
        if _is_constant(b, number) and _keeps_shape(node, a):
            return a
        if left and _is_constant(a, number) and _keeps_shape(node, b):
            return b
        return None

    return rule


def _integer_zero(node: Node) -> Value | None:
    # For floats -0.0 + 0.0 is 0.0, which would change a bit.
    if not node.out_dtypes[0].is_integer:
        return None
    return _neutral(0, True)(node)


def _same_shape(node: Node) -> Value | None:
    source = node.inputs[0]
    return source if _keeps_shape(node, source) else None


def _transpose(node: Node) -> Value | None:
    perm = node.inputs[1].node.const()
    if perm is not None and list(perm) == list(range(perm.size)):
        return node.inputs[0]
    return None


def _no_axes(node: Node) -> Value | None:
    axes = node.inputs[1].node.const()
    return node.inputs[0] if axes is not None and axes.size == 0 else None


def _cast(node: Node) -> Value | None:
    return node.inputs[0] if node.inputs[0].dtype.base_dtype is node.out_dtypes[0] else None


_RULES: Final[dict[str, Callable[[Node], Value | None]]] = {
    # The alias of a variable stays an alias: each consumer reads when it runs, as in TF.
    "Identity": _pass_through,
    "StopGradient": _pass_through,
    "PreventGradient": _pass_through,
    "Mul": _neutral(1, True),
    "Div": _neutral(1, False),
    "RealDiv": _neutral(1, False),
    "Sub": _neutral(0, False),
    "Add": _integer_zero,
    "AddV2": _integer_zero,
    "Reshape": _same_shape,
    "Transpose": _transpose,
    "Cast": _cast,
    # What is left of the gradient of a broadcast that repeats nothing.
    "Sum": _no_axes,
    "Prod": _no_axes,
    "Max": _no_axes,
    "Min": _no_axes,
    "Mean": _no_axes,
}
