"""Stages: in which order the tasks of a step, or of a body, work and tell each other.

What a task needs of another comes in as few messages as can be without a part that waits for
another that waits for it. Each node has a stage: how often the way to it has led from one task to
another, or through an operation that waits. What one task makes for another in one stage goes
together, unless it comes from different waiting. A task works stage by stage, so whatever it waits
for is sent by somebody who does not wait for it. Branches and loops in several tasks are a meeting:
all of these run their part, in the same order, after all that was sent in the stages before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from opdock import errors
from opdock.compiler.ir.block import FEED, Block, Node, Value
from opdock.compiler.ir.state import is_handle
from opdock.compiler.tasks.assign import Tasks
from opdock.dtypes import string
from opdock.graph.control.func_graph import FuncGraph
from opdock.shapes import num_elements

__all__ = ["Bundle", "Crossing", "Share", "Stages", "Writer"]


@dataclass(frozen=True, slots=True)
class Crossing:
    """What one task sends another in one message.

    Attributes:
        source, to: the tasks.
        values: names of tensors.
        bytes: their size, or None if that is known only when they are there.
        after: names of the operations that are to have run before.
    """

    source: str
    to: str
    values: tuple[str, ...]
    bytes: int | None
    after: tuple[str, ...]

    def __str__(self) -> str:
        size = "of sizes known when they are there" if self.bytes is None else f"{self.bytes} bytes"
        what = [f"{', '.join(self.values)} ({size})"] if self.values else []
        what += [f"that {', '.join(self.after)} has run"] if self.after else []
        return f"{self.source} to {self.to}: {'; '.join(what)}"


@dataclass(eq=False, slots=True)
class Bundle:
    """What goes from one task to another at once: values, and nodes that are to have run."""

    source: str
    to: str
    key: str
    values: dict[Value, int] = field(default_factory=dict)
    after: dict[Node, None] = field(default_factory=dict)

    def crossing(self) -> Crossing:
        """What to tell of it."""
        sizes = [_size(v) for v in self.values]
        known = [s for s in sizes if s is not None]
        return Crossing(
            self.source, self.to, tuple(f"{v.node.name}:{v.index}" for v in self.values),
            sum(known) if len(known) == len(sizes) else None, tuple(n.name for n in self.after),
        )  # fmt: skip


def _size(value: Value) -> int | None:
    count = num_elements(value.shape)
    fixed = value.dtype.base_dtype is not string
    return count * value.dtype.base_dtype.size if fixed and count is not None else None


@dataclass(slots=True)
class Share:
    """What one task has of a branch or a loop that is in several.

    Attributes:
        inputs: what it takes, of the block around; a branch's predicate comes first.
        results: for each of the results that it has, which of the node's it is.
        functions: its part of each body, by attribute. Their parameters are `inputs`, then the
            number of turns of a loop, then the number of the step.
        crossings: what the bodies send.
    """

    inputs: list[Value]
    results: list[int]
    functions: dict[str, FuncGraph]
    crossings: list[Crossing] = field(default_factory=list)


class Writer(Protocol):
    """What a task's part is written with, node by node."""

    def add(self, node: Node) -> None:
        """A node of the graph."""

    def meet(self, node: Node, share: Share) -> None:
        """The task's share of a branch or loop in several tasks."""

    def send(self, bundle: Bundle) -> None:
        """A node that sends what another task needs."""

    def receive(self, bundle: Bundle) -> None:
        """A node that waits for what another task sends."""


_Key = tuple[str, str, int, frozenset[Node]]
Shares = Mapping[Node, Mapping[str, Share]]


class Stages:
    """The stages of a block's nodes, and what crosses between them.

    Args:
        block: a node for each operation.
        tasks: of its nodes.
        shares: of each node that is in several tasks, what each of them has.
        path: what the keys of messages begin with.
    """

    def __init__(self, block: Block, tasks: Tasks, shares: Shares, path: str = "") -> None:
        self._block, self._tasks, self._shares, self._path = block, tasks, shares, path
        self._stage: dict[Node, int] = {}
        self._waits: dict[Node, frozenset[Node]] = {}
        self._bundles: dict[_Key, Bundle] = {}
        for node in block.nodes:
            if self._free(node):
                continue
            if node.op == FEED:  # a parameter that one task has
                self._stage[node], self._waits[node] = 0, frozenset()
            else:
                self._look_at(node)

    def write(self, writers: Mapping[str, Writer]) -> None:
        """Writes all parts, stage by stage."""
        by_stage = sorted(
            (n for n in self._block.nodes if n.op != FEED), key=self._stage.__getitem__
        )
        due = sorted(self._bundles.items(), key=lambda item: item[0][2])
        for node in by_stage:
            while due and due[0][0][2] < self._stage[node]:
                _carry(due.pop(0)[1], writers)
            if node in self._shares:
                for task, share in self._shares[node].items():
                    writers[task].meet(node, share)
            else:
                writers[self._tasks[node]].add(node)
        for _, bundle in due:
            _carry(bundle, writers)

    def bring(self, value: Value, here: str, user: Node | None = None) -> None:
        """Has a task get a value, if it is made elsewhere.

        Raises:
            UnimplementedError: it means nothing elsewhere.
        """
        source = value.node
        if self._free(source) or source.is_const or self._tasks[source] == here:
            return
        if is_handle(value):
            raise _no_data(source if user is None else user, value, here)
        bundle = self._bundle(source, here)
        bundle.values.setdefault(value, len(bundle.values))

    # ------------------------------------------------------------ stages
    def _free(self, node: Node) -> bool:
        """Whether a node is a feed that is wherever it is needed."""
        return node.op == FEED and node not in self._tasks

    def _look_at(self, node: Node) -> None:
        """Finds the stage of a node, and has what it needs of other tasks brought."""
        stage, waits = 0, frozenset[Node]()
        places = self._places(node)
        for here, inputs in places:
            for source in self._needs(inputs, node.control):
                crosses = self._tasks[source] != here and not source.is_const
                later = crosses or source.traits.blocks
                stage = max(stage, self._stage[source] + later)
                waits |= self._waits[source]
                if source.traits.blocks:
                    waits |= {source}
        self._stage[node], self._waits[node] = stage, waits
        for here, inputs in places:
            for value in inputs:
                self.bring(value, here, node)
            for before in node.control:
                if before.op != FEED and self._tasks[before] != here:
                    self._bundle(before, here).after[before] = None

    def _places(self, node: Node) -> list[tuple[str, Sequence[Value]]]:
        """The tasks that have a node, and what they need for it."""
        if node in self._shares:
            return [(task, share.inputs) for task, share in self._shares[node].items()]
        return [(self._tasks[node], node.inputs)]

    def _needs(self, inputs: Iterable[Value], control: Iterable[Node]) -> Iterable[Node]:
        for source, _ in inputs:
            if not self._free(source):
                yield source
        for source in control:
            if source.op != FEED:
                yield source

    def _bundle(self, source: Node, to: str) -> Bundle:
        waits = self._waits[source]
        if source.traits.blocks:
            waits |= {source}
        there = self._tasks[source]
        key = there, to, self._stage[source], waits
        found = self._bundles.get(key)
        if found is None:
            name = f"{len(self._bundles)};{self._path}{there};{to}"
            found = self._bundles[key] = Bundle(there, to, name)
        return found


def _carry(bundle: Bundle, writers: Mapping[str, Writer]) -> None:
    writers[bundle.source].send(bundle)
    writers[bundle.to].receive(bundle)


def _no_data(node: Node, value: Value, here: str) -> errors.UnimplementedError:
    return errors.UnimplementedError(
        None, node.origin,
        f"Operation {node.name} in {here} takes {value.node.name}:{value.index} of another task, "
        f"a {value.dtype.name}, which names what only its own task has.",
    )  # fmt: skip
