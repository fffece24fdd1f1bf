"""Recompute: what a part computes itself rather than read it, so that fewer arrays are in memory.

A cheap value is computed again where it is used if that reads no more than its result would. And
what merely repeats a smaller array, or adds dimensions of size one to it, is read at its source.
Nothing here changes a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from opdock.compiler.fuse.cluster_line import MAX_STEPS
from opdock.compiler.fuse.parts import Flow, Part, Parts
from opdock.compiler.ir.block import Node, Value

_MOST_AGAIN: Final = 4
"""Steps that a value may take to be computed again."""


def whole_inputs(parts: Parts, part: Part) -> set[Value]:
    """The arrays of the full shape that a part reads, each at its source."""
    inside = set(part.nodes)
    parts.visits += len(inside)
    return {v for n in part.all() for v in _whole(parts, n) if v.node not in inside}


def _whole(parts: Parts, node: Node) -> Sequence[Value]:
    """Of what a candidate reads, the arrays of the full shape, each at its source."""
    found = parts.whole.get(node)
    if found is None:
        candidate = parts.candidates[node]
        shape = candidate.key[1]
        found = []
        for i in candidate.used:
            value = source(parts.flow, node.inputs[i], shape)[0]
            if value.shape == shape and not value.node.is_const:
                found.append(value)
        parts.whole[node] = found
    return found


# ---------------------------------------------------------------- cheap values
def recomputed(parts: Parts, part: Part) -> tuple[list[Node], set[Value]]:
    """The cheap values that a part is to compute itself, where that takes no more reading.

    Args:
        parts: the state of the pass.
        part: one of its parts.

    Returns:
        The nodes to compute again, in executable order, and the whole arrays that are then read.
    """
    have, again = whole_inputs(parts, part), []
    if not any(v.node in parts.candidates for v in have):
        return [], have
    room = MAX_STEPS - parts.size(part)

    def place(value: Value) -> int:
        return parts.flow.place[value.node]

    waiting, put_off = sorted(have, key=place), set[Value]()
    # What is read to make a value may be cheap to make as well.
    for value in waiting:
        found = _recipe(parts, value, part, have, min(room, _MOST_AGAIN))
        if found is None:
            continue
        nodes, new = found
        if new and value not in parts.inner:
            if value not in put_off:
                # Another value may bring what this one is made of.
                put_off.add(value)
                waiting.append(value)
            continue
        again += [n for n in nodes if n not in again]
        room -= sum(parts.candidates[n].size for n in nodes)
        have = (have | new) - {value}
        waiting += sorted(new, key=place)
    return parts.flow.in_order(again), have


def _recipe(
    parts: Parts, value: Value, part: Part, have: set[Value], steps: float
) -> tuple[list[Node], set[Value]] | None:
    """The nodes that make a value again, and which whole arrays must be read for it."""
    nodes: list[Node] = []
    new: set[Value] = set()
    stack = [value]
    while stack:
        node = stack.pop().node
        parts.visits += 1
        if node in nodes:
            continue
        if not _is_cheap(parts, node, part):
            return None
        nodes.append(node)
        steps -= parts.candidates[node].size
        if steps < 0:
            return None
        for operand in _whole(parts, node):
            if operand in have and operand != value:
                continue
            if _is_there(parts, operand):
                new.add(operand)
            else:
                stack.append(operand)
    return (nodes, new) if len(new) <= 1 else None


def _is_cheap(parts: Parts, node: Node, part: Part) -> bool:
    candidate = parts.candidates.get(node)
    return (
        candidate is not None
        and candidate.reduce is None
        and candidate.key == part.key
        and candidate.member is not None
        and candidate.member.cheap
        and node not in parts.flow.awaited
    )


def _is_there(parts: Parts, value: Value) -> bool:
    """Whether a value is in memory in any case."""
    candidate = parts.candidates.get(value.node)
    if candidate is None or candidate.reduce is not None or value in parts.flow.fetched:
        return True
    part = parts.owner[value.node]
    return any(parts.owner.get(u) is not part for u in parts.flow.users[value])


# ---------------------------------------------------------------- sources
def source(flow: Flow, value: Value, shape: tuple[int | None, ...]) -> tuple[Value, list[Node]]:
    """The smaller array whose broadcast to `shape` has the same elements, and what it skips."""
    skipped: list[Node] = []
    while True:
        found = _looked_through(value)
        if found is None or found.shape is None or len(found.shape) > len(shape):
            return value, skipped
        if value.node in flow.awaited:
            return value, skipped
        skipped.append(value.node)
        value = found


def _looked_through(value: Value) -> Value | None:
    """The operand of a node whose output is its broadcast."""
    node, index = value.node, value.node.traits.repeats
    if index is None or node.kernel is None or "_kernel" in node.attrs:
        return None
    shape = value.shape
    if shape is None or None in shape:
        return None
    if any(not v.node.is_const for i, v in enumerate(node.inputs) if i != index):
        return None
    operand = node.inputs[index]
    if operand.shape is None or operand.dtype._is_ref_dtype:
        return None
    return operand if _broadcasts(operand.shape, shape) else None


def _broadcasts(old: tuple[int | None, ...], new: tuple[int | None, ...]) -> bool:
    """Whether elements that are repeated to a shape are repeated as broadcasting does it."""
    old = _lean(old)
    if len(old) > len(new):
        return False
    return all(a in (1, b) for a, b in zip(reversed(old), reversed(new), strict=False))


def _lean(shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """A shape without the sizes of one in front."""
    start = next((i for i, n in enumerate(shape) if n != 1), len(shape))
    return shape[start:]
