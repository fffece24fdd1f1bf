"""Stages: in which order the tasks of a step, or of a body, work and tell each other.

What a task needs of another comes in as few messages as can be without a part that waits for
another that waits for it. Each node has a stage: how often the way to it has led from one task to
another, or through an operation that waits. What one task makes for another in one stage goes
together, unless it comes from different waiting. A task works stage by stage, so whatever it waits
for is sent by somebody who does not wait for it. Branches and loops in several tasks are a meeting:
all of these run their part, in the same order, after all that was sent in the stages before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from opdock import errors
from opdock.compiler.ir.block import FEED, Block, Node, Value
from opdock.compiler.ir.state import is_handle
from opdock.compiler.tasks.assign import Tasks
from opdock.dtypes import string
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.traits import Control, Cost
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
    """What goes from one task to another at once: values, and nodes that are to have run.

    Attributes:
        source, to: the tasks.
        key: its name.
        waits: the operations that wait without which it is not sent.
        values: with their places in it.
        after: what is to have run.
        behind: what comes to the same task and may be waited for before, whatever happens.
        users: the nodes that need it; None among them is whoever else does.
    """

    source: str
    to: str
    key: str
    waits: frozenset[Node] = frozenset()
    values: dict[Value, int] = field(default_factory=dict)
    after: dict[Node, None] = field(default_factory=dict)
    behind: list[Bundle] = field(default_factory=list)
    users: set[Node | None] = field(default_factory=set)

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
        self._join()
        nodes = sorted((n for n in self._block.nodes if n.op != FEED), key=self._stage.__getitem__)
        # Of one stage, what waits for something comes last: it holds nothing up.
        due = sorted(self._bundles.items(), key=lambda item: (item[0][2], bool(item[1].waits)))
        order: list[Node | Bundle] = []
        for node in nodes:
            while due and due[0][0][2] < self._stage[node]:
                order.append(due.pop(0)[1])
            order.append(node)
        order += [bundle for _, bundle in due]
        self._let_wait_in_order(order)
        for one in order:
            if isinstance(one, Bundle):
                writers[one.source].send(one)
                writers[one.to].receive(one)
            elif one in self._shares:
                for task, share in self._shares[one].items():
                    writers[task].meet(one, share)
            else:
                writers[self._tasks[one]].add(one)

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
        bundle.users.add(user)

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
                    bundle = self._bundle(before, here)
                    bundle.after[before] = None
                    bundle.users.add(node)

    def _join(self) -> None:
        """Has what nobody needs before a later message go with that one."""
        for key, bundle in sorted(self._bundles.items(), key=lambda item: item[0][2]):
            source, to, stage, waits = key
            later = [
                other for (*between, at, held), other in self._bundles.items()
                if between == [source, to] and at > stage and held == waits
                and None not in bundle.users and bundle.users <= other.users
            ]  # fmt: skip
            if later:
                del self._bundles[key]
                for value in bundle.values:
                    later[0].values.setdefault(value, len(later[0].values))
                later[0].after.update(bundle.after)

    # ------------------------------------------------------------ waiting
    def _let_wait_in_order(self, order: Sequence[Node | Bundle]) -> None:
        """Finds which messages a task may wait for one after the other, on its own thread.

        It may if the earlier one is kept by nothing that does not keep the later one too, and if
        all that the task does after that one needs what that one waits for.
        """
        last = self._holding_nothing_up(order)
        # Whatever a task comes by before it sends, be it that the message does not need it.
        keeps: defaultdict[str, frozenset[Node]] = defaultdict(frozenset)
        came: defaultdict[str, list[tuple[Bundle, frozenset[Node]]]] = defaultdict(list)
        for one in order:
            if isinstance(one, Bundle):
                kept, before = keeps[one.source], came[one.to]
                if one in last:
                    one.behind = [b for b, kept_before in before if kept_before <= one.waits]
                before.append((one, kept))
                keeps[one.to] |= kept
            elif _may_wait(one):
                for task in self._tasks_of(one):
                    keeps[task] |= {one}

    def _holding_nothing_up(self, order: Sequence[Node | Bundle]) -> set[Bundle]:
        """The messages that nothing comes after which could do without what they wait for."""
        found: set[Bundle] = set()
        later: dict[str, frozenset[Node]] = {}  # what all that comes later in a task waits for
        for one in reversed(order):
            if isinstance(one, Bundle):
                if one.waits <= later.get(one.to, one.waits):
                    found.add(one)
                tasks, waits = [one.source, one.to], one.waits
            else:
                tasks, waits = self._tasks_of(one), self._waits[one]
            for task in tasks:
                later[task] = later.get(task, waits) & waits
        return found

    def _tasks_of(self, node: Node) -> list[str]:
        return list(self._shares[node]) if node in self._shares else [self._tasks[node]]

    # ------------------------------------------------------------ what is needed where
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
            found = self._bundles[key] = Bundle(there, to, name, waits)
        return found


def _may_wait(node: Node) -> bool:
    traits = node.traits
    return traits.blocks or traits.cost is Cost.WAIT or traits.control is not Control.NONE


def _no_data(node: Node, value: Value, here: str) -> errors.UnimplementedError:
    return errors.UnimplementedError(
        None, node.origin,
        f"Operation {node.name} in {here} takes {value.node.name}:{value.index} of another task, "
        f"a {value.dtype.name}, which names what only its own task has.",
    )  # fmt: skip
