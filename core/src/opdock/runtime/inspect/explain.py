"""`Session.explain`: every decision about a program, as data and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from opdock.compiler.ir.block import COPY, FEED, SEGMENT, Node
from opdock.compiler.place.experience import Experience
from opdock.compiler.place.target import parsed
from opdock.graph.nodes.traits import Control
from opdock.kernels.select.table import qualname
from opdock.runtime.program.program import Program


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one node.

    Attributes:
        node: the node's name.
        op: the op type.
        requested: the device that was asked for, or empty.
        device: where it runs; empty for nodes that a pass removed.
        how: native, portable, decomposed, builtin, copy, feed, control, fused or removed.
        kernel: where the kernel's code lives; for a copy the way it takes: upload, download, dlpack
            or a plugin's function.
        plugin: the plugin that brought the kernel, with whose code it took over, if it did:
            "mine (taken over from 'cpu')".
        why: the reason for the device; for a copy the whole route and its cost.
        rejections: each kernel or device that did not get the node, and why.
        line: the user's line that made the op.
        fusion: the pattern, or "cluster", by which the node was fused or stands for others.
        members: for a node that stands for others, their names.
        into: for a node that was fused, the op type that took it in.
        missed: each fusion that was found here and not applied, and why.
        means: what the kernel says of how it computes: by which library, on how many threads.
        us: the microseconds that it took in the traced step, all its calls together; None where
            none was traced, or the node did not run by itself.
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
    fusion: str = ""
    members: tuple[str, ...] = ()
    into: str = ""
    missed: tuple[str, ...] = ()
    plugin: str = ""
    means: tuple[str, ...] = ()
    us: float | None = None


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
            that were removed.
        memory: how much the memory plan takes.
        moves: ops that left a device at run time in this session.
        segments: for each part that a backend compiled as a whole, by name, who did and what has
            become of it.
        missing: why there is no device of a type that a node asks for: what its plugins' probes
            say, and what they raised.
        devices: what devices say of how they work just now, by name.
        crossings: what tasks of a cluster send each other in the step.
    """

    rows: list[Row]
    memory: Memory
    moves: list[Any] = field(default_factory=list)
    segments: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    devices: dict[str, str] = field(default_factory=dict)
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

    def table(self, rejections: bool = False) -> str:
        """All rows as aligned text, with the rejections below each when asked for."""
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
        widths = [max(len(str(x[i])) for x in [head, *body]) for i in range(len(head))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(head, widths, strict=True)).rstrip()]
        for cells, row in zip(body, self.rows, strict=True):
            lines.append("  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip())
            if rejections:
                lines += [f"    not {r}" for r in (*row.rejections, *row.missed)]
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
        times = {} if traced is None else _times(traced.step_stats)
        rows = [_of_data(row) for part in told for row in part["rows"]]
        sums = [sum(p[name] for p in told) for name in ("planned_bytes", "naive_bytes", "buffers")]
        return cls(
            [replace(r, us=times.get(r.node)) for r in rows], Memory(*sums),
            [m for p in told for m in p["moves"]],
            {k: v for p in told for k, v in p["segments"].items()},
            list(dict.fromkeys(m for p in told for m in p["missing"])),
            {k: v for p in told for k, v in p["devices"].items()}, list(crossings),
        )  # fmt: skip


def explain(
    program: Program, experience: Experience, unavailable: Callable[[str], str | None],
    traced: Any = None,
) -> Explanation:  # fmt: skip
    """The explanation of a compiled program.

    Args:
        program: what was compiled.
        experience: what moved in the session.
        unavailable: why there is no device of a type, or None if there is one.
        traced: the RunMetadata of a traced step, which says what nodes took, or None.
    """
    missed: dict[str, list[str]] = {}
    for name, fusion, why in program.block.missed:
        missed.setdefault(name, []).append(f"fusion '{fusion}': {why}")
    nodes = program.block.nodes
    steps = zip(program.schedule.steps, program.bound.notes, strict=True)
    means = {step.node: tuple(said) for step, said in steps if said}
    times = {} if traced is None else _times(traced.step_stats)
    rows = [replace(_row(n, missed), means=means.get(n, ()), us=times.get(n.name)) for n in nodes]
    rows += [_fused_row(m, n, missed) for n in nodes if n.fused for m in n.fused.members]
    rows += [
        Row(node=name, op=op, requested="", device="", how="removed", kernel="", why=why)
        for name, op, why in program.block.folded
    ]
    segments = {n.name: _segment(n) for n in nodes if n.op == SEGMENT}
    asked = sorted({parsed(r.requested).device_type or "" for r in rows if r.requested} - {""})
    missing = [reason for kind in asked if (reason := unavailable(kind))]
    plan = program.plan
    memory = Memory(plan.planned_bytes, plan.naive_bytes, len(plan.buffers))
    return Explanation(rows, memory, experience.told(), segments, missing, _told(nodes))


def _of_data(told: Mapping[str, Any]) -> Row:
    """A row that came as JSON, which has lists for tuples."""
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in told.items()}
    return Row(**fields)


def _short(device: str, several: bool) -> str:
    """A device as tables have it, with its task if they have several."""
    if several:
        return device.replace("/replica:0", "").replace("/device:", "/")
    return device.rsplit("/device:", 1)[-1]


def _times(stats: Any) -> dict[str, float]:
    """Microseconds by node, all calls of a node together."""
    found: dict[str, float] = {}
    for device in stats.dev_stats:
        # What a device says of its own kernels is a part of what their nodes took.
        for record in device.node_stats if "/stream:" not in device.device else ():
            took = record.all_end_rel_nanos / 1e3 or record.all_end_rel_micros
            found[record.node_name] = found.get(record.node_name, 0.0) + took
    return found


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
    state = getattr(node.attrs["executable"], "state", "")
    text = f"{len(node.fused.members)} ops by {qualname(node.target.compiler)}"
    return f"{text}; {state}" if state else text


def _row(node: Node, missed: dict[str, list[str]]) -> Row:
    kernel = "" if node.kernel is None else node.kernel.qualname
    if node.op == COPY:
        kernel = node.attrs["how"]
    how = "copy" if node.op == COPY else "feed" if node.op == FEED else node.how
    if node.traits.control is not Control.NONE:
        how = "control"
    why = f"{node.why}; made by {node.made_by}" if node.made_by else node.why
    return Row(
        node=node.name, op=node.op, requested=node.requested,
        device=node.target.name if node.target is not None else "host",
        how=how, kernel=kernel, why=why, rejections=tuple(str(r) for r in node.rejections),
        line=_line(node), fusion="" if node.fused is None else node.fused.fusion,
        members=() if node.fused is None else tuple(m.name for m in node.fused.members),
        missed=tuple(missed.get(node.name, ())), plugin=_plugin(node),
    )  # fmt: skip


def _plugin(node: Node) -> str:
    if node.kernel is None or node.target is None:
        return ""
    found = node.target.index.find(node.kernel)
    if found is None:
        return ""
    taken = f" (taken over from {found.taken_from!r})" if found.taken_from else ""
    return f"{found.plugin}{taken}"


def _fused_row(member: Node, node: Node, missed: dict[str, list[str]]) -> Row:
    assert node.fused is not None
    made = _row(member, missed)
    return replace(
        made, how="fused", kernel=made.kernel if node.kernel is None else node.kernel.qualname,
        plugin=_plugin(node),
        why=f"part of {node.op} '{node.name}' by fusion '{node.fused.fusion}'",
        fusion=node.fused.fusion, into=node.op,
    )  # fmt: skip


def _line(node: Node) -> str:
    return node.origin.user_line if node.origin is not None else ""
