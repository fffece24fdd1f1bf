"""The devices among which `opdock_place_node` chooses, as placement itself sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opdock import errors
from opdock.compiler.ir.block import Node
from opdock.compiler.place.target import Target
from opdock.compiler.views.node import NodeView
from opdock.plugins.records import Candidate

if TYPE_CHECKING:
    from opdock.compiler.place.placer import Placer

__all__ = ["Answer", "choose"]

Answer = Callable[[NodeView, Sequence[Candidate]], "tuple[str, str] | None"]
"""The name of a candidate's device and of the plugin that chose it, or None."""


def choose(
    members: Sequence[Node], targets: Sequence[Target], placer: Placer, answer: Answer
) -> tuple[Target, str] | None:
    """The device that a plugin chooses for a group of nodes, and the plugin's name.

    Args:
        members: nodes that share a device; the first that computes stands for all.
        targets: the devices that can store what they make, core's preference first.
        placer: knows how each device would run a node.
        answer: asks the plugins.
    """
    working = [n for n in members if not n.builtin]
    node = working[0] if working else members[0]
    found: dict[str, tuple[int, Target, Candidate]] = {}
    for target in targets:
        candidate = _candidate(node, working, target, placer)
        if candidate is not None:
            found[target.name] = len(candidate.elsewhere), target, candidate
    # Core takes the first of those that run most of the group.
    offered = sorted(found.values(), key=lambda entry: entry[0])
    if not offered:
        return None
    chosen = answer(NodeView(node), tuple(c for _, _, c in offered))
    return None if chosen is None else (found[chosen[0]][1], chosen[1])


def _candidate(
    node: Node, working: Sequence[Node], target: Target, placer: Placer
) -> Candidate | None:
    """What a device offers; None where it neither opens nor runs any of the group."""
    choice, rejections = placer.climb(node, target)
    if node.builtin:
        try:
            target.opened()
        except errors.OpError:
            return None
    missing = [n for n in working if placer.climb(n, target)[0] is None]
    if working and len(missing) == len(working):
        return None
    fields: dict[str, Any] = {"rung": "fallback"}
    if choice is not None:
        kernel = "" if choice.kernel is None else choice.kernel.qualname
        fields = {"rung": choice.kind, "kernel": kernel, "plugin": choice.plugin}
    return Candidate(
        device=target.name, backend=target.backend, priority=target.priority,
        elsewhere=tuple(n.name for n in missing), rejections=tuple(rejections), **fields,
    )  # fmt: skip
