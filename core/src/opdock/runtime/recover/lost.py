"""Lost devices: what a loss does to state and placement, and when a step may run again.

A backend says that a device is lost by raising `UnavailableError` from a kernel, a copy or any
other call. Nothing that was in its memory comes back: variables that lived there are lost, and
reading one says so. Work without state moves to other devices under soft placement.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Final

from opdock import errors
from opdock.codes import coded
from opdock.compiler.emit.schedule import Step
from opdock.compiler.ir.block import COPY, HOST, Node
from opdock.compiler.ir.state import cell_inputs, written
from opdock.compiler.place.experience import ALL, Loss
from opdock.compiler.place.placer import Placer
from opdock.compiler.place.target import Target
from opdock.graph.control.effects import does_something
from opdock.kernels import kept
from opdock.runtime.resources import ResourceManager

__all__ = [
    "DeviceLostError",
    "Losses",
    "NoRoomError",
    "NotHeldError",
    "RestartError",
    "has_effect",
    "homewards",
    "runs_again",
]

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


class NotHeldError(errors.UnimplementedError, RestartError):
    """A value could not be copied to a device that holds no such arrays."""


def runs_again(error: BaseException) -> bool:
    """Whether a step that failed is to run again, placed anew.

    If so, what it held is given back: an error leads to the frames that it went through, and these
    to it, so they would keep the step's values in memory that the next attempt may lack.
    """
    if not getattr(error, "again", False):
        return False
    found: BaseException | None = error
    while found is not None:
        traceback.clear_frames(found.__traceback__)
        found = found.__cause__ or found.__context__
    return True


_NOT_TAKEN: Final = (
    (errors.ResourceExhaustedError, NoRoomError, "has no room for"),
    (errors.UnimplementedError, NotHeldError, "does not hold"),
)
"""What devices say of values that they do not take, and what becomes of it."""


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
        kept.forget()
        _log.warning("%s", report)

    def not_taken(
        self, brought: Node, nodes: Sequence[Node], error: errors.OpError
    ) -> NoRoomError | NotHeldError | None:
        """Keeps from a device what it has no room for, or refuses to hold.

        Args:
            brought: what brought a value to the device, a copy or a constant.
            nodes: the program, some of which want the value there.
            error: what the device said.

        Returns:
            The error to raise, or None when placing them elsewhere is not possible.
        """
        where = _destination(brought)
        if where is None or where == HOST or not self._placer.soft:
            return None
        for kind, cls, why in _NOT_TAKEN:
            if isinstance(error, kind) and self._leave(brought, where, nodes, why, error):
                found = cls(None, error.op, error.message)
                found.again = True
                return found
        return None

    def _leave(
        self, brought: Node, where: str, nodes: Sequence[Node], why: str, error: errors.OpError
    ) -> bool:
        """Bans from a device a constant of its, and who wants a value there; whether that helps."""
        users = [n for n in nodes if any(v.node is brought for v in n.inputs) and n.op != COPY]
        tied = any(n.builtin or cell_inputs(n) for n in users)
        leaving = [m for n in users for m in (n.fused.members if n.fused is not None else (n,))]
        leaving += [brought] if brought.is_const else []
        experience = self._placer.experience
        if not leaving or tied or all(experience.banned(n, where) for n in leaving):
            return False
        reason = error.message.split("\n", 1)[0]
        for node in leaving:
            experience.ban(node, where, ALL, reason)
            told = f"{why} {'it' if node is brought else 'its input'}"
            _log.warning("%s (%s) leaves %s, which %s: %s", node.name, node.op, where, told, reason)
        return True

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


def _destination(node: Node) -> str | None:
    """The memory to which a node brings a value that was made elsewhere."""
    if node.op == COPY:
        name: str = node.attrs["to"]
        return name
    return node.target.name if node.is_const and node.target is not None else None


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
    if step.kind == "control":
        return any(does_something(node.attrs[name]) for name in node.traits.control.functions)
    return (node.spec is not None and node.spec.has_effect) or bool(written(node))
