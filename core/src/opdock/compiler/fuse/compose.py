"""Compose: the line of a part. Parts that are alike, such as those of equal layers, have one line,
and the device is asked about them once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field
from typing import Any

from opdock.compiler.fuse.cluster_line import Composer, Member
from opdock.compiler.fuse.instead import declined
from opdock.compiler.fuse.parts import Candidate, Flow, Part
from opdock.compiler.fuse.recompute import source
from opdock.compiler.ir.block import Node, Value
from opdock.compiler.place.placer import Placer
from opdock.kernels.expr.cluster import Reduce
from opdock.kernels.expr.lowering import Line
from opdock.late import record

__all__ = ["Composed", "Lines", "alone"]


@record(slots=True, eq=False)
class _Kind:
    """What parts of one structure have in common; their nodes are known by their places.

    Attributes:
        line: the steps.
        names: the inputs' names in it.
        inputs: which of the values that the part reads, as they are first met, the inputs are.
        outputs: for each result the nodes that compute it.
        reduces: how the last results are folded.
        verdict: the kernel, how it computes, and the reason if there is none; None until it is
            asked for.
    """

    line: Line
    names: tuple[str, ...]
    inputs: tuple[int, ...]
    outputs: tuple[tuple[int, ...], ...]
    reduces: tuple[Reduce | None, ...]
    verdict: tuple[Any, str, str] | None = None


@record(slots=True, eq=False)
class Composed:
    """The line of one part.

    Attributes:
        kind: what it has in common with others.
        inputs: the values that are the line's inputs, in order.
        outputs: for each result the values that are the same.
        skipped: nodes that it reads through: what they repeat is read instead.
    """

    kind: _Kind
    inputs: list[Value]
    outputs: list[list[Value]]
    skipped: list[Node] = field(default_factory=list)


class Lines:
    """The lines of a program's parts.

    Args:
        flow, candidates: of the program.
        placer: knows the devices, and which kernels gave up at run time.
    """

    def __init__(self, flow: Flow, candidates: dict[Node, Candidate], placer: Placer) -> None:
        self._flow, self._candidates, self._placer = flow, candidates, placer
        self._known: dict[Hashable, _Kind] = {}
        experience = placer.experience
        # What gave up at run time did so as one node, and the user may want a kernel for one.
        self._asks_each = bool(experience.bans or experience.swaps)

    def of(self, part: Part, leaving: Sequence[Node]) -> Composed:
        """The line of a part.

        Args:
            part: its nodes, those that it computes again, and its reductions.
            leaving: the nodes whose results others read.
        """
        nodes = self._flow.in_order((*part.again, *part.nodes))
        read: dict[Value, int] = {}
        key = self._structure(part, nodes, leaving, read)
        kind = None if key is None else self._known.get(key)
        if kind is None:
            skipped: list[Node] = []
            kind = self._composed(part, nodes, leaving, read, skipped)
            if key is not None:
                self._known[key] = kind
        else:
            skipped = []
        values, every = list(read), [*nodes, *part.ends]
        inputs = [values[i] for i in kind.inputs]
        outputs = [[Value(every[i], 0) for i in same] for same in kind.outputs]
        return Composed(kind, inputs, outputs, skipped)

    def refused(self, composed: Composed) -> str:
        """Why a part of the kind was declined; empty if none was."""
        verdict = composed.kind.verdict
        return "" if verdict is None or self._asks_each else verdict[2]

    def declined(self, composed: Composed, node: Node) -> str:
        """Gives the node of a part the kernel that takes it; the reason if none does."""
        kind = composed.kind
        if kind.verdict is None or self._asks_each:
            refused = declined(node, self._placer)
            kind.verdict = node.kernel, node.how, refused
        node.kernel, node.how, refused = kind.verdict
        return refused

    def _structure(
        self, part: Part, nodes: list[Node], leaving: Sequence[Node], read: dict[Value, int]
    ) -> Hashable | None:
        """What decides about a part's line; notes the values that it reads.

        None for a part that reads what another array repeats.
        """
        candidates = self._candidates
        at = {node: i for i, node in enumerate(nodes)}
        found: list[Any] = []
        for node in (*nodes, *part.ends):
            found.append(id(candidates[node]))
            for value in node.inputs:
                before = value.node
                place = at.get(before)
                if place is not None:
                    found.append(place)
                    continue
                if before.traits.repeats is not None and source(self._flow, value, part.key[1])[1]:
                    return None
                found.append(-1 - read.setdefault(value, len(read)))
                if before.is_const:
                    found.append(id(before))
        return part.key, (*found,), len(nodes), (*[at[n] for n in leaving],)

    def _composed(
        self, part: Part, nodes: list[Node], leaving: Sequence[Node], read: dict[Value, int],
        skipped: list[Node],
    ) -> _Kind:  # fmt: skip
        """Makes a line; adds to the values that the part reads, and to the nodes that it skips."""

        def through(value: Value) -> Value:
            found, passed = source(self._flow, value, part.key[1])
            skipped.extend(passed)
            return found

        composer = Composer(through)
        for node in nodes:
            member = self._candidates[node].member
            assert member is not None
            composer.add(node, member)
        outputs: dict[int, list[int]] = {}
        at = {node: i for i, node in enumerate((*nodes, *part.ends))}
        for node in leaving:
            outputs.setdefault(composer.at[Value(node, 0)], []).append(at[node])
        steps, results = list(outputs), [tuple(same) for same in outputs.values()]
        for node in part.ends:
            member = self._candidates[node].member
            steps.append(
                composer.read(node, node.inputs[0]) if member is None
                else composer.add(node, member)
            )  # fmt: skip
            results.append((at[node],))
        line, inputs = composer.line(steps)
        places = tuple([read.setdefault(v, len(read)) for v in inputs])
        reduces = tuple([self._candidates[n].reduce for n in part.ends])
        return _Kind(line, _names(len(inputs)), places, tuple(results), reduces)


def alone(node: Node, member: Member) -> Composed:
    """The line of one op."""
    composer = Composer()
    line, inputs = composer.line([composer.add(node, member)])
    count = len(inputs)
    kind = _Kind(line, _names(count), (*range(count),), ((0,),), ())
    return Composed(kind, inputs, [[Value(node, 0)]])


def _names(count: int) -> tuple[str, ...]:
    return tuple([f"x{i}" for i in range(count)])
