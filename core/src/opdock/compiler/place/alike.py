"""Alike: nodes between which a device's kernels see no difference are asked about once a program.

The layers of a network are alike. What a kernel's `when` is given of a node is all in its key, but
for the names of the node and of those that its inputs come from.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

from opdock.compiler.ir.block import Node
from opdock.compiler.place.experience import Experience
from opdock.compiler.place.ladder import Choice, climb
from opdock.compiler.place.target import Target
from opdock.dtypes import DType
from opdock.kernels.select.selection import Rejection

__all__ = ["Choices"]

_EXACT: Final = (str, bytes, int)
_REPRESENTED: Final = (bool, float, DType)
_SETTLED: Final = ("native", "portable")
"""How a node is computed where a kernel's answer is all: a decomposition looks further back."""

Answer = tuple[Choice | None, Sequence[Rejection]]


class Choices:
    """How devices run the nodes of one program.

    Args:
        resources, experience: of the session.
    """

    def __init__(self, resources: Any, experience: Experience) -> None:
        self._resources = resources
        self._experience = experience
        # What gave up at run time did so as one node, and the user may want a kernel for one.
        self._asks_each = bool(experience.bans or experience.swaps)
        self._known: dict[Hashable, Answer] = {}

    def climb(self, node: Node, target: Target) -> Answer:
        """How a device would run a node, and why not otherwise."""
        if self._asks_each or node.builtin:
            return climb(node, target, self._resources, self._experience)
        key = _decides(node, target)
        found = self._known.get(key)
        if found is None:
            found = climb(node, target, self._resources, self._experience)
            if found[0] is not None and found[0].kind in _SETTLED:
                self._known[key] = found
        return found


def _decides(node: Node, target: Target) -> Hashable:
    """What decides about the kernel of a node."""
    inputs: list[Any] = []
    for before, index in node.inputs:
        # Types by their numbers, whose hashes are no calls of Python.
        inputs.append(before.out_dtypes[index]._enum)
        inputs.append(before.out_shapes[index])
        if before.is_const:
            inputs.append(id(before.attrs["value"]))
    # Colocation is no business of kernels.
    attrs = [
        (name, (value._enum,) if value.__class__ is DType else _told(value))
        for name, value in node.attrs.items() if name != "_class"
    ]  # fmt: skip
    outputs = [d._enum for d in node.out_dtypes]
    return node.op, target, (*inputs,), (*outputs,), (*node.out_shapes,), (*attrs,)


def _told(value: Any) -> Hashable:
    """An attribute's value: equal for values that are the same to the last bit.

    What has no hash counts by identity, as constants do: the program keeps it while keys are used.
    """
    kind = value.__class__
    if kind in _EXACT:
        return value  # type: ignore[no-any-return]
    if kind in _REPRESENTED:
        return kind, repr(value)  # 1, 1.0 and True are equal, as are zeros of both signs
    if kind is list:
        return (list, *map(_told, value))
    return None, id(value)
