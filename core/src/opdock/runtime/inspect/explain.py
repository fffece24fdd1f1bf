"""`Session.explain`: every decision about a program, as data and as text."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from opdock.compiler.ir.block import SEGMENT, Node
from opdock.compiler.place.experience import Experience
from opdock.compiler.place.target import parsed
from opdock.failures import failures
from opdock.io.files import as_path
from opdock.kernels.select.table import qualname
from opdock.runtime.inspect.lives import lives_of
from opdock.runtime.inspect.parts import clear, parts_of
from opdock.runtime.program.program import Program
from opdock.view.model import Life, Row, Span, View
from opdock.view.trace import spans_of, times_of


@dataclass(frozen=True, slots=True)
class Memory:
    """What a program plans to hold, of all tasks together.

    Attributes:
        planned_bytes: the size of all buffers that it keeps.
        naive_bytes: what one buffer per planned result would take.
        buffers: how many there are.
    """

    planned_bytes: int
    naive_bytes: int
    buffers: int


@dataclass(slots=True)
class Explanation:
    """The decisions about one program.

    Attributes:
        rows: one a node, in the order in which they run; then the nodes that were fused, then those
            that were removed. Behind them the same of each loop and branch.
        memory: how much the memory plan takes.
        moves: ops that left a device at run time in this session.
        segments: for each part that a backend compiled as a whole, by name, who did and what has
            become of it.
        missing: why there is no device of a type that a node asks for: what its plugins' probes
            say, and what they raised; and why a branch cannot be compiled.
        devices: what devices say of how they work just now, by name.
        steps: how many steps the program has.
        lives: what lies in memory, and from which step to which.
        spans: the calls of the traced step.
        crossings: what tasks of a cluster send each other in the step.
    """

    rows: list[Row]
    memory: Memory
    moves: list[Any] = field(default_factory=list)
    segments: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    devices: dict[str, str] = field(default_factory=dict)
    steps: int = 0
    lives: list[Life] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    crossings: list[str] = field(default_factory=list)

    @property
    def traced(self) -> bool:
        """Whether it is known what nodes took."""
        return any(r.us is not None for r in self.rows)

    def counts(self) -> dict[str, int]:
        """How many nodes ran each way."""
        return dict(Counter(r.how for r in self.rows))

    def fusions(self) -> dict[str, int]:
        """How often each fusion was applied: by pattern name, or "cluster"."""
        return dict(Counter(r.fusion for r in self.rows if r.members))

    def summary(self) -> str:
        """A few lines: ops by device and way, copies, fallbacks, memory."""
        lines = []
        by_device: dict[str, Counter[str]] = {}
        for row in self.rows:
            if row.device and row.how not in ("feed", "fused"):
                by_device.setdefault(row.device, Counter())[row.how] += 1
        for device, ways in sorted(by_device.items()):
            parts = ", ".join(f"{n} {how}" for how, n in sorted(ways.items()))
            lines.append(f"{device}: {sum(ways.values())} ops ({parts})")
        ways = Counter(r.kernel for r in self.rows if r.how == "copy")
        if ways:
            parts = ", ".join(f"{n} by {way}" for way, n in sorted(ways.items()))
            lines.append(f"{sum(ways.values())} copies between devices a step ({parts})")
        fused = sum(1 for r in self.rows if r.how == "fused")
        if fused:
            parts = ", ".join(f"{n} {name}" for name, n in sorted(self.fusions().items()))
            lines.append(f"{fused} ops fused into {sum(self.fusions().values())} ({parts})")
        removed = sum(1 for r in self.rows if r.how == "removed")
        lines.append(
            f"{removed} ops removed by the compiler; {self.memory.planned_bytes} bytes planned "
            f"in {self.memory.buffers} buffers (one each would take {self.memory.naive_bytes})"
        )
        lines += self.crossings
        lines += [f"{name}: {told}" for name, told in self.devices.items()]
        lines += [f"segment {name}: {told}" for name, told in self.segments.items()]
        lines += self.missing
        lines += [f"run-time fallback: {m}" for m in self.moves]
        return "\n".join(lines)

    def cells(self, rejections: bool = False) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """What a table of all rows has: the names of its columns, and the cells of each row.

        Args:
            rejections: whether the last cell has why others lost, a line each.
        """
        head: tuple[str, ...] = ("node", "op", "device", "how", "kernel", "computed by", "why")
        several = (
            len({r.device.rpartition("/device:")[0] for r in self.rows if "/" in r.device}) > 1
        )
        body: list[tuple[str, ...]] = [
            (
                r.node, r.op, _short(r.device, several), r.how, r.kernel,
                "; ".join(r.means), r.why,
            )
            for r in self.rows
        ]  # fmt: skip
        if self.traced:
            head = (*head[:4], "us", *head[4:])
            times = ["" if r.us is None else f"{r.us:.1f}" for r in self.rows]
            body = [(*b[:4], us, *b[4:]) for b, us in zip(body, times, strict=True)]
        if rejections:
            body = [(*b[:-1], _with_lost(b[-1], r)) for b, r in zip(body, self.rows, strict=True)]
        return head, body

    def table(self, rejections: bool = False) -> str:
        """All rows as aligned text, with the rejections below each when asked for."""
        head, body = self.cells()
        widths = [max(len(str(x[i])) for x in [head, *body]) for i in range(len(head))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(head, widths, strict=True)).rstrip()]
        for cells, row in zip(body, self.rows, strict=True):
            lines.append("  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip())
            if rejections:
                lines += [f"    not {r}" for r in (*row.rejections, *row.missed)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.table()}\n\n{self.summary()}"

    def view(self, title: str = "program") -> View:
        """What a page shows of it, under a title."""
        notes = [*self.devices.items()]
        notes += [(f"segment {name}", told) for name, told in self.segments.items()]
        notes += [("no device", reason) for reason in self.missing]
        notes += [("run-time fallback", str(move)) for move in self.moves]
        return View(
            title, self.rows, steps=self.steps, lives=self.lives, spans=self.spans, notes=notes,
            planned_bytes=self.memory.planned_bytes, naive_bytes=self.memory.naive_bytes,
        )  # fmt: skip

    def page(
        self, path: str | os.PathLike[str], *, title: str = "program",
        beside: Explanation | None = None, beside_title: str = "",
    ) -> None:  # fmt: skip
        """Writes it as one HTML file for a browser: graph, decisions, times, memory.

        Args:
            path: the file; one that is there is replaced.
            title: what to call the program.
            beside: another explanation to compare with: of another run, or on another device.
            beside_title: what to call that one; by default the same with "(2)" behind it.

        Raises:
            OpError: the file cannot be written.
        """
        from opdock.view.page import write_page

        views = [self.view(title)]
        if beside is not None:
            views.append(beside.view(beside_title or f"{title} (2)"))
        write_page(as_path(path), views)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data."""
        names = Row.__dataclass_fields__
        return {
            "rows": [{n: getattr(r, n) for n in names} for r in self.rows],
            "planned_bytes": self.memory.planned_bytes,
            "naive_bytes": self.memory.naive_bytes,
            "buffers": self.memory.buffers,
            "fusions": self.fusions(),
            "moves": [str(m) for m in self.moves],
            "segments": self.segments,
            "missing": self.missing,
            "devices": self.devices,
            "crossings": self.crossings,
        }

    @classmethod
    def of_tasks(
        cls, told: Sequence[Mapping[str, Any]], crossings: Sequence[str], traced: Any
    ) -> Explanation:
        """What several tasks tell of their parts of a step.

        Args:
            told: of each, `to_dict` of its own explanation.
            crossings: what they send each other.
            traced: the RunMetadata of a traced step, or None.
        """
        spans = [] if traced is None else spans_of(traced.step_stats)
        times = times_of(spans)
        rows = [_of_data(row) for part in told for row in part["rows"]]
        sums = [sum(p[name] for p in told) for name in ("planned_bytes", "naive_bytes", "buffers")]
        return cls(
            [replace(r, us=times.get(r.node)) for r in rows], Memory(*sums),
            [m for p in told for m in p["moves"]],
            {k: v for p in told for k, v in p["segments"].items()},
            list(dict.fromkeys(m for p in told for m in p["missing"])),
            {k: v for p in told for k, v in p["devices"].items()},
            spans=spans,
            crossings=list(crossings),
        )  # fmt: skip


def _with_lost(why: str, row: Row) -> str:
    return "\n".join([why, *(f"not {r}" for r in (*row.rejections, *row.missed))])


def explain(
    programs: Sequence[Program], experience: Experience,
    unavailable: Callable[[str], str | None], traced: Any = None,
) -> Explanation:  # fmt: skip
    """The explanation of a step.

    Args:
        programs: what was compiled, one after the other.
        experience: what moved in the session.
        unavailable: why there is no device of a type, or None if there is one.
        traced: the RunMetadata of a traced step, which says what nodes took, or None.
    """
    failures: list[str] = []
    parts = list(parts_of(programs, failures))
    spans = [] if traced is None else clear(parts, spans_of(traced.step_stats))
    rows = [row for part in parts for row in part.rows(times_of(spans))]
    nodes = [node for part in parts for node in part.program.block.nodes]
    segments = {n.name: _segment(n) for n in nodes if n.op == SEGMENT}
    asked = sorted({parsed(r.requested).device_type or "" for r in rows if r.requested} - {""})
    missing = [reason for kind in asked if (reason := unavailable(kind))]
    plans = [program.plan for program in programs]
    memory = Memory(
        sum(p.planned_bytes for p in plans), sum(p.naive_bytes for p in plans),
        sum(len(p.buffers) for p in plans),
    )  # fmt: skip
    return Explanation(
        rows, memory, experience.told(), segments, missing + failures, _told(nodes),
        sum(len(program.schedule.steps) for program in programs),
        lives_of(programs[-1].schedule, plans[-1]), spans,
    )  # fmt: skip


def _of_data(told: Mapping[str, Any]) -> Row:
    """A row that came as JSON, which has lists for tuples."""
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in told.items()}
    return Row(**fields)


def _short(device: str, several: bool) -> str:
    """A device as tables have it, with its task if they have several."""
    if several:
        return device.replace("/replica:0", "").replace("/device:", "/")
    return device.rsplit("/device:", 1)[-1]


def _told(nodes: Sequence[Node]) -> dict[str, str]:
    """What the devices say; one that is made by hand need not know the question."""
    targets = {n.target.name: n.target for n in nodes if n.target is not None}
    found = {
        name: target.device.told()
        for name, target in sorted(targets.items())
        if hasattr(target.device, "told")
    }
    return {name: text for name, text in found.items() if text}


def _segment(node: Node) -> str:
    assert node.target is not None
    assert node.fused is not None
    try:
        state = getattr(node.attrs["executable"], "state", "")
    except failures() as e:
        state = f"its state raised {type(e).__name__}: {e}"
    text = f"{len(node.fused.members)} ops by {qualname(node.target.compiler)}"
    return f"{text}; {state}" if state else text
