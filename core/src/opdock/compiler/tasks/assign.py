"""Which task of a cluster runs which node: the first question of placement, asked before devices.

Within its task a node finds device and kernel as in any program.
"""

from __future__ import annotations

from collections.abc import Mapping

from opdock import errors
from opdock.compiler.ir.block import FEED, Block, Node
from opdock.compiler.ir.state import is_handle, is_state
from opdock.compiler.place.placer import Placer, colocated, groups, requested_by
from opdock.compiler.place.target import parsed
from opdock.graph.nodes.devicespec import DeviceSpec
from opdock.graph.nodes.traits import Control

__all__ = ["assign", "task_of"]


def task_of(device: str) -> str:
    """The task in a device's full name: `/job:ps/replica:0/task:0`."""
    return device.rpartition("/device:")[0]


def assign(block: Block, placer: Placer) -> dict[Node, str]:
    """The task of each node that is no feed: what is fed goes wherever it is needed.

    Args:
        block: pruned, a node for each operation.
        placer: over the devices of all tasks, those of the task that nodes prefer first.

    Raises:
        InvalidArgumentError: no task has the device that a node asks for.
        UnimplementedError: what must stay in one task was asked to be in several.
    """
    together = colocated(block)
    for node in block.nodes:
        for value in node.inputs:
            # A handle names what only its own task has.
            if is_handle(value) and value.node.op != FEED and _may_join(node):
                together.join(node, value.node)
    found: dict[Node, str] = {}
    for members in groups(together, block).values():
        members = [n for n in members if n.op != FEED]
        if members:
            requested, asking = requested_by(members)
            found.update(dict.fromkeys(members, _choose(placer, asking, requested)))
    for node in block.nodes:
        if not _may_join(node):
            _follow_state(node, found)
    _check_control_flow(block, found)
    return found


def _may_join(node: Node) -> bool:
    return node.traits.control is Control.NONE


def _choose(placer: Placer, asking: Node, requested: str) -> str:
    """The task of the first device that satisfies a request."""
    spec = parsed(requested) if requested else DeviceSpec()
    if placer.soft and not any(t.matches(spec) for t in placer.targets):
        # Soft placement looks for another device, but not in another task.
        requested = DeviceSpec(job=spec.job, replica=spec.replica, task=spec.task).to_string()
    candidates, _ = placer.candidates(asking, requested)
    return task_of(candidates[0].name)


def _follow_state(node: Node, found: dict[Node, str]) -> None:
    """A branch or a loop runs where the variables are that its bodies take.

    Raises:
        UnimplementedError: they are in several tasks.
    """
    held = {
        found[v.node]: v.node
        for v in node.inputs
        if (is_state(v) or is_handle(v)) and v.node in found
    }
    if len(held) > 1:
        told = ", ".join(f"{holder.name} in {task}" for task, holder in sorted(held.items()))
        raise errors.UnimplementedError(
            None, node.origin,
            f"Operation {node.name} ({node.op}) uses variables of several tasks in its bodies: "
            f"{told}. Read them before it, and use their values.",
        )  # fmt: skip
    found.update(dict.fromkeys((node,) if held else (), next(iter(held), "")))


def _check_control_flow(block: Block, found: Mapping[Node, str]) -> None:
    """Checks that no value which may not be there has to leave its task.

    Raises:
        UnimplementedError: what a Switch decides about is in another task.
    """
    for node in block.nodes:
        for value in node.inputs:
            source = value.node
            if source.traits.control in (Control.SWITCH, Control.TURN) and (
                found[source] != found[node]
            ):
                raise errors.UnimplementedError(
                    None, node.origin,
                    f"Operation {node.name} in {found[node]} takes a value of {source.name} "
                    f"({source.op}) in {found[source]}, which may have none: what such an operation"
                    " decides about has to be in its task.",
                )  # fmt: skip
