"""Lost devices: what a loss does to state and placement, and when a step may run again.

A backend says that a device is lost by raising `UnavailableError` from a kernel, a copy or any
other call. Nothing that was in its memory comes back: variables that lived there are lost, and
reading one says so. Work without state moves to other devices under soft placement.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from opdock import errors
from opdock.codes import coded
from opdock.compiler.emit.schedule import Step
from opdock.compiler.ir.block import COPY, HOST, Node
from opdock.compiler.ir.state import cell_inputs, written
from opdock.compiler.place.experience import ALL, Loss
from opdock.compiler.place.placer import Placer
from opdock.compiler.place.target import Target
from opdock.runtime.resources import ResourceManager

__all__ = ["DeviceLostError", "Losses", "NoRoomError", "RestartError", "has_effect", "homewards"]

_log = logging.getLogger("opdock.fallback")


class RestartError(errors.OpError):
    """A step failed in a way that other placement may cure.

    Attributes:
        again: whether the step may run again from its beginning: nothing that it did outlasts it.
    """

    again: bool = False


class DeviceLostError(errors.UnavailableError, RestartError):
    """A step met a lost device."""


class NoRoomError(errors.ResourceExhaustedError, RestartError):
    """A value could not be copied to a device for lack of memory there."""


class Losses:
    """Finds out that devices are lost or full, and tells placement."""

    def __init__(self, placer: Placer, resources: ResourceManager) -> None:
        self._placer = placer
        self._resources = resources

    def meet(self, node: Node, error: errors.OpError) -> DeviceLostError | None:
        """The error to raise when `error` means that a device of `node` is lost, else None."""
        if not isinstance(error, errors.UnavailableError):
            return None
        target = self._culprit(self._involved(node))
        if target is None:
            return None
        head, _, located = error.message.partition("\n")
        if target.name not in self._placer.experience.lost:
            self.lose(target, node, head)
        told = f"Device {target.name} was lost: {head}" + (f"\n{located}" if located else "")
        found = DeviceLostError(None, node.origin, coded("OPD-DEVICE-001", told))
        found.again = self._placer.soft
        return found

    def lose(self, target: Target, node: Node, reason: str) -> None:
        """Gives up a device: its variables are lost, later programs do without it."""
        gone = []
        for cell in self._resources.items("variable"):
            if cell.home == target.name and cell.initialized:
                cell.lose(f"{target.name} was lost: {reason}")
                gone.append(cell.name)
        line = node.origin.user_line if node.origin is not None else ""
        report = Loss(target.name, node.name, node.op, line, reason, tuple(sorted(gone)))
        self._placer.experience.lose(report)
        _log.warning("%s", report)

    def no_room(
        self, copy: Node, nodes: Sequence[Node], error: errors.OpError
    ) -> NoRoomError | None:
        """Keeps the consumers, among `nodes`, of a copy from a device that has no room for it.

        Returns:
            The error to raise, or None when placing them elsewhere is not possible.
        """
        if copy.op != COPY or not isinstance(error, errors.ResourceExhaustedError):
            return None
        where = copy.attrs["to"]
        if where == HOST or not self._placer.soft:
            return None
        users = [n for n in nodes if any(v.node is copy for v in n.inputs)]
        tied = any(n.builtin or cell_inputs(n) for n in users)
        experience = self._placer.experience
        if not users or tied or all(experience.banned(n, where) for n in users):
            return None
        reason = error.message.split("\n", 1)[0]
        for node in users:
            experience.ban(node, where, ALL, reason)
            _log.warning(
                "%s (%s) leaves %s, which has no room for its input: %s",
                node.name, node.op, where, reason,
            )  # fmt: skip
        found = NoRoomError(None, error.op, error.message)
        found.again = True
        return found

    # ------------------------------------------------------------ whose fault
    def _involved(self, node: Node) -> list[Target]:
        """The devices, other than the host, that a call of `node` touches."""
        if node.op == COPY:
            names = {node.attrs["from"], node.attrs["to"]}
            found = [t for t in self._placer.targets if t.name in names]
        else:
            found = [node.target] if node.target is not None else []
            for i in cell_inputs(node):
                home = node.inputs[i].node.target
                if home is not None and home not in found:
                    found.append(home)
        return [t for t in found if not t.is_host]

    def _culprit(self, involved: list[Target]) -> Target | None:
        if len(involved) == 1:
            return involved[0]
        for target in involved:
            try:
                target.device.synchronize()
            except errors.UnavailableError:
                return target
        return None


def homewards(
    copy: Callable[[Any], Any], place: str, node: Node, located: str
) -> Callable[[Any], Any]:
    """A copy of a result to where it belongs: when there is no room, no other kernel can help.

    Args:
        copy: moves the buffer.
        place: where to.
        node: whose result it is.
        located: the suffix that names the node in messages.
    """

    def bring(value: Any) -> Any:
        try:
            return copy(value)
        except (errors.ResourceExhaustedError, MemoryError) as e:
            reason = getattr(e, "message", str(e))
            text = f"{place} has no room for what {node.op} gave elsewhere: {reason}{located}"
            raise NoRoomError(None, node.origin, coded("OPD-DEVICE-002", text)) from e

    return bring


def has_effect(step: Step) -> bool:
    """Whether a call of the step leaves something behind that a second one would repeat.

    A random op's stream goes on when the op runs again, as it does from step to step.
    """
    node = step.node
    if step.kind in ("read", "copy", "alias", "segment"):
        return False
    return (node.spec is not None and node.spec.has_effect) or bool(written(node))
