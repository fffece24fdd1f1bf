"""Experience: what running steps have taught about placement, in one place for a whole session.

The compiler asks it which kernels and devices to leave out. Run-time fallback adds to it, and
`explain` tells it. Whoever keeps programs is told when other placement would heed something new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from opdock.kernels.select.selection import LABEL_ATTR
from opdock.kernels.select.table import Kernel
from opdock.late import record

if TYPE_CHECKING:
    from opdock.compiler.ir.block import Node

GAVE_UP: Final = "gave up at run time"
ALL: Final = "*"
"""In place of a kernel: the device as a whole."""


@record(slots=True)
class Move:
    """One decision: an op left a kernel at run time."""

    node: str
    op: str
    source: str
    kernel: str
    destination: str
    reason: str
    count: int = 1

    def __str__(self) -> str:
        return (
            f"{self.node} ({self.op}) moved from {self.source} to {self.destination}, "
            f"{self.count} time(s): {self.reason}"
        )


@record(slots=True)
class Loss:
    """One report: a device was lost.

    Attributes:
        device: its full name.
        node, op: the node that met the loss.
        line: the user's line that made it.
        reason: the backend's words.
        variables: names of the variables whose values are gone.
    """

    device: str
    node: str
    op: str
    line: str
    reason: str
    variables: tuple[str, ...]

    def __str__(self) -> str:
        at = f", defined at {self.line}" if self.line else ""
        text = f"{self.device} was lost, as {self.node} ({self.op}{at}) found: {self.reason}"
        if self.variables:
            text += f"; lost with it: {', '.join(self.variables)}"
        return text


@record(frozen=True, slots=True, eq=False)
class Swap:
    """One wish: a kernel that the user wants for an op.

    Attributes:
        kernel: the record.
        node: the only node that gets it; all of the op type if empty.
        device: the only device on which it serves, by its full name; all if empty.
    """

    kernel: Kernel
    node: str = ""
    device: str = ""

    def wants(self, node: Node) -> bool:
        """Whether the kernel is meant for a node."""
        return node.op == self.kernel.op and self.node in ("", node.name)


class Experience:
    """Bans, losses and moves, and the kernels that the user tries.

    Attributes:
        swaps: the wishes, the last one first.
        bans: (node, device, kernel or `ALL`) to the reason why it gave up.
        lost: names of devices that were lost, to the reasons.
        moves: by (node, device that it left, destination).
        losses: the reports.
        loose: names of variables that have had other values than their shapes say.
    """

    def __init__(self) -> None:
        self.swaps: list[Swap] = []
        self.bans: dict[tuple[str, str, str], str] = {}
        self.lost: dict[str, str] = {}
        self.moves: dict[tuple[str, str, str], Move] = {}
        self.losses: list[Loss] = []
        self.loose: set[str] = set()
        self._watchers: list[Callable[[], None]] = []

    def watch(self, forget: Callable[[], None]) -> None:
        """Has `forget` called whenever programs are no longer placed as they should be."""
        self._watchers.append(forget)

    def ban(self, node: Node, device: str, kernel: str, why: str) -> str:
        """Keeps a node from a kernel, or with `ALL` from a device, and says so in one line."""
        text = f"{GAVE_UP}: {why}"
        self.bans[node.name, device, kernel] = text
        self.changed()
        return f"{device}: {kernel}: {text}"

    def loosen(self, variable: str) -> None:
        """Has no program rely on the shape of a variable any more."""
        self.loose.add(variable)
        self.changed()

    def barred(self, node: Node) -> frozenset[tuple[str, str, str]]:
        """The bans of a node, as keys of `bans`."""
        return frozenset(key for key in list(self.bans) if key[0] == node.name)

    def absolve(self, node: Node, earlier: frozenset[tuple[str, str, str]]) -> None:
        """Takes back the bans of a node but the earlier ones: it would have no kernel left."""
        for key in self.barred(node) - earlier:
            self.bans.pop(key, None)
        self.changed()

    def mark(self, nodes: Iterable[Node]) -> None:
        """Keeps passes from the nodes whose kernel the user has chosen, as a label would."""
        for node in nodes if self.swaps else ():
            if any(swap.wants(node) for swap in self.swaps):
                node.attrs = {LABEL_ATTR: "", **node.attrs}

    def wanted(self, node: Node, device: str) -> list[Kernel]:
        """The kernels that the user wants for a node on a device, the last one first."""
        return [s.kernel for s in self.swaps if s.wants(node) and s.device in ("", device)]

    def banned(self, node: Node, device: str, kernel: str = ALL) -> str | None:
        """Why a kernel of a device may not run a node any more, or None."""
        if kernel == ALL and device in self.lost:
            return f"the device was lost: {self.lost[device]}"
        return self.bans.get((node.name, device, kernel)) if self.bans else None

    def lose(self, loss: Loss) -> None:
        """Gives up a device."""
        self.lost[loss.device] = loss.reason
        self.losses.append(loss)
        self.changed()

    def move(self, node: Node, destination: str, reason: str) -> Move | None:
        """Counts a node that left its kernel; the record if it is the first of its kind."""
        assert node.target is not None
        key = node.name, node.target.name, destination
        if (found := self.moves.get(key)) is not None:
            found.count += 1
            return None
        kernel = "" if node.kernel is None else node.kernel.qualname
        made = Move(node.name, node.op, node.target.name, kernel, destination, reason)
        self.moves[key] = made
        return made

    def changed(self) -> None:
        """Tells whoever keeps programs that they would be made in another way now."""
        for forget in self._watchers:
            forget()

    def told(self) -> list[Move | Loss]:
        """What `explain` shows."""
        return [*self.moves.values(), *self.losses]


__all__ = ["ALL", "GAVE_UP", "Experience", "Loss", "Move", "Swap"]
