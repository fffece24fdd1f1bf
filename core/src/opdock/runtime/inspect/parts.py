"""What a step runs, as rows: its own nodes, and those of the loops and branches in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from opdock import errors, shapes
from opdock.compiler.ir.block import COPY, FEED, Node, Value
from opdock.graph.nodes.traits import Control
from opdock.runtime.program.program import Program
from opdock.view.model import Row, Span

__all__ = ["Part", "clear", "parts_of"]


@dataclass(frozen=True, slots=True)
class Part:
    """A program that a step runs: the step itself, or a function of control flow in it.

    Attributes:
        program: what runs.
        within: the node that runs it and which of its functions it is; empty for the step.
        scope: the name of that node, below which those of the function's nodes mostly are.
        takes: what the function's arguments are outside of it.
    """

    program: Program
    within: str = ""
    scope: str = ""
    takes: Mapping[str, str] = field(default_factory=dict)

    def named(self, name: str) -> str:
        """What a node is called among those of all parts: "while/body/add" for "while/add"."""
        return f"{self.within}/{name.removeprefix(f'{self.scope}/')}" if self.within else name

    def rows(self, times: Mapping[str, float]) -> list[Row]:
        """One a node, in the order in which they run; then those fused; then those removed.

        Args:
            times: what nodes took, by the names of all parts.
        """
        program = self.program
        missed: dict[str, list[str]] = {}
        for name, fusion, why in program.block.missed:
            missed.setdefault(name, []).append(f"fusion '{fusion}': {why}")
        nodes = program.block.nodes
        steps = zip(program.schedule.steps, program.bound.notes, strict=True)
        means = {step.node: tuple(said) for step, said in steps if said}
        rows = [
            replace(_row(n, missed), means=means.get(n, ()), us=times.get(self.named(n.name)))
            for n in nodes
        ]
        rows += [_fused_row(m, n, missed) for n in nodes if n.fused for m in n.fused.members]
        rows += [
            Row(node=name, op=op, requested="", device="", how="removed", kernel="", why=why)
            for name, op, why in program.block.folded
        ]
        return [self._placed(row) for row in rows] if self.within else rows

    def _placed(self, row: Row) -> Row:
        """The row of a function's node, with the names of all parts."""

        def named(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(map(self.named, names))

        taken = self.takes.get(row.node)
        inputs = named(row.inputs) if taken is None else (taken,)
        return replace(
            row, node=self.named(row.node), within=self.within, inputs=inputs,
            control=named(row.control), members=named(row.members),
        )  # fmt: skip


def parts_of(programs: Sequence[Program], failures: list[str]) -> Iterator[Part]:
    """A step's programs, and those of the loops and branches in them.

    Args:
        programs: the step's, one after the other.
        failures: takes why branches that no step took yet cannot be compiled.
    """
    waiting = [Part(program) for program in programs]
    for part in waiting:
        yield part
        if part.program.once is not None:
            waiting.append(replace(part, program=part.program.once))
        for node, control in part.program.bound.inner.items():
            for name in node.traits.control.functions:
                within = f"{part.named(node.name)}/{name}"
                try:
                    found = control.program(name)
                except errors.OpError as e:
                    failures.append(f"{within} cannot be compiled: {e.message}")
                else:
                    waiting.append(Part(found, within, node.name, _given(part, node, found)))


def _given(part: Part, node: Node, function: Program) -> dict[str, str]:
    """What a control-flow node gives each argument of a function."""
    first = 1 if node.traits.control is Control.COND else 0
    given = node.inputs[first:]
    # What is done once before all turns comes behind the arguments.
    feeds = function.block.feeds[: len(given)]
    pairs = zip(feeds, given, strict=True)
    return {feed.node.name: part.named(_text(value)) for feed, value in pairs}


def clear(parts: Sequence[Part], spans: Sequence[Span]) -> list[Span]:
    """The spans with the names of all parts; a name that two parts have stays as it is."""
    found: dict[str, list[str]] = {}
    for part in parts:
        for node in part.program.block.nodes:
            found.setdefault(node.name, []).append(part.named(node.name))
    only = {name: names[0] for name, names in found.items() if len(names) == 1}
    return [replace(span, node=only.get(span.node, span.node)) for span in spans]


def _text(value: Value) -> str:
    """A value's name: that of its node, with a number where it is not the first."""
    return value.node.name if value.index == 0 else f"{value.node.name}:{value.index}"


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
        inputs=tuple(map(_text, node.inputs)),
        control=tuple(before.name for before in node.control),
        outputs=tuple(f"{dtype.name} {shapes.text(shape)}"
                      for dtype, shape in zip(node.out_dtypes, node.out_shapes, strict=True)),
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
        why=f"part of {node.op} '{node.name}' by fusion '{node.fused.fusion}'; {made.why}",
        fusion=node.fused.fusion, into=node.op,
    )  # fmt: skip


def _line(node: Node) -> str:
    return node.origin.user_line if node.origin is not None else ""
