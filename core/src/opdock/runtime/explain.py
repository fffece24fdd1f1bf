"""`Session.explain`: every decision about a program, as data and as text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from opdock.compiler.ir import COPY, FEED, Node
from opdock.compiler.memory import MemoryPlan
from opdock.runtime.program import Program


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one node.

    Attributes:
        node: the node's name.
        op: the op type.
        requested: the device that was asked for, or empty.
        device: where it runs; empty for nodes that a pass removed.
        how: native, portable, decomposed, builtin, copy, feed, control or removed.
        kernel: where the kernel's code lives.
        why: the reason for the device.
        rejections: each kernel or device that did not get the node, and why.
        line: the user's line that made the op.
    """

    node: str
    op: str
    requested: str
    device: str
    how: str
    kernel: str
    why: str
    rejections: tuple[str, ...] = ()
    line: str = ""


@dataclass(slots=True)
class Explanation:
    """The decisions about one program.

    Attributes:
        rows: one a node, in the order in which they run; removed nodes last.
        memory: the memory plan.
        moves: ops that left a device at run time in this session.
    """

    rows: list[Row]
    memory: MemoryPlan
    moves: list[Any] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """How many nodes ran each way."""
        return dict(Counter(r.how for r in self.rows))

    def summary(self) -> str:
        """A few lines: ops by device and way, copies, fallbacks, memory."""
        lines = []
        by_device: dict[str, Counter[str]] = {}
        for row in self.rows:
            if row.device and row.how != "feed":
                by_device.setdefault(row.device, Counter())[row.how] += 1
        for device, ways in sorted(by_device.items()):
            parts = ", ".join(f"{n} {how}" for how, n in sorted(ways.items()))
            lines.append(f"{device}: {sum(ways.values())} ops ({parts})")
        removed = sum(1 for r in self.rows if r.how == "removed")
        lines.append(
            f"{removed} ops removed by the compiler; {self.memory.planned_bytes} bytes planned "
            f"in {len(self.memory.buffers)} buffers (one each would take {self.memory.naive_bytes})"
        )
        lines += [f"run-time fallback: {m}" for m in self.moves]
        return "\n".join(lines)

    def table(self, rejections: bool = False) -> str:
        """All rows as aligned text, with the rejections below each when asked for."""
        head = ("node", "op", "device", "how", "kernel", "why")
        body = [
            (r.node, r.op, r.device.rsplit("/device:", 1)[-1], r.how, r.kernel, r.why)
            for r in self.rows
        ]
        widths = [max(len(str(x[i])) for x in [head, *body]) for i in range(len(head))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(head, widths, strict=True)).rstrip()]
        for cells, row in zip(body, self.rows, strict=True):
            lines.append("  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip())
            if rejections:
                lines += [f"    not {r}" for r in row.rejections]
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.table()}\n\n{self.summary()}"

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data."""
        names = Row.__dataclass_fields__
        return {
            "rows": [{n: getattr(r, n) for n in names} for r in self.rows],
            "planned_bytes": self.memory.planned_bytes,
            "naive_bytes": self.memory.naive_bytes,
            "moves": [str(m) for m in self.moves],
        }


def explain(program: Program, moves: list[Any]) -> Explanation:
    """The explanation of a compiled program."""
    rows = [_row(n) for n in program.block.nodes]
    rows += [
        Row(node=name, op=op, requested="", device="", how="removed", kernel="", why=why)
        for name, op, why in program.block.folded
    ]
    return Explanation(rows, program.plan, moves)


def _row(node: Node) -> Row:
    kernel = "" if node.kernel is None else node.kernel.qualname
    how = "copy" if node.op == COPY else "feed" if node.op == FEED else node.how
    if node.op in ("If", "While", "StatelessIf", "StatelessWhile"):
        how = "control"
    return Row(
        node=node.name, op=node.op, requested=node.requested,
        device=node.target.name if node.target is not None else "host",
        how=how, kernel=kernel, why=node.why, rejections=tuple(str(r) for r in node.rejections),
        line=node.origin.user_line if node.origin is not None else "",
    )  # fmt: skip
