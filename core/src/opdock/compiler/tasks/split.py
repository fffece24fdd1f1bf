"""Split: a step as parts, a GraphDef a task, with sends and receives for what goes between them.

What a task needs of another comes in as few messages as can be without a part that waits for
another that waits for it. Each node has a stage: how often the way to it has led from one task to
another, or through an operation that waits. What one task makes for another in one stage goes
together, unless it comes from different waiting. A task works stage by stage, so whatever it waits
for is sent by somebody who does not wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from opdock import errors
from opdock.compiler.ir.block import FEED, Block, Node, Value
from opdock.compiler.ir.state import is_handle
from opdock.compiler.place.target import parsed
from opdock.dtypes import DType, int64, string
from opdock.graph.control.function_op import functions_of
from opdock.graph.nodes.devicespec import DeviceSpec
from opdock.graph.nodes.graph import Graph
from opdock.graph.serial.attr_proto import encode_attr
from opdock.graph.serial.function_writer import FunctionLibraryWriter
from opdock.graph.serial.node_def import fill_node_def, keep_group
from opdock.io import protos
from opdock.shapes import Shape, num_elements

__all__ = ["Crossing", "Part", "split"]

_CPU: Final = "/device:CPU:0"


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


@dataclass(slots=True)
class Part:
    """What one task does in a step.

    Attributes:
        task: its name.
        graph_def: the nodes.
        feeds: what it is fed, the number of the step last: names of tensors, types and shapes.
        fed: for each of `feeds` but the last, which of the step's feeds it is.
        fetches: names of the tensors that it returns.
        fetched: for each of those, which of the step's fetches it is.
        targets: names of the operations that it runs for their effect.
        sends: what it sends to others.
    """

    task: str
    graph_def: Any
    feeds: list[tuple[str, DType, Shape]] = field(default_factory=list)
    fed: list[int] = field(default_factory=list)
    fetches: list[str] = field(default_factory=list)
    fetched: list[int] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    sends: list[Crossing] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class _Bundle:
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


_Key = tuple[str, str, int, frozenset[Node]]


def split(block: Block, tasks: Mapping[Node, str], graph: Graph) -> list[Part]:
    """The parts of a step, those first that come first in the block.

    Args:
        block: pruned, a node for each operation.
        tasks: the task of each node that is no feed.
        graph: whose functions the nodes call.

    Raises:
        UnimplementedError: a handle, which means nothing elsewhere, is to leave its task.
    """
    return _Split(block, tasks, graph).parts()


class _Split:
    def __init__(self, block: Block, tasks: Mapping[Node, str], graph: Graph) -> None:
        self._block, self._tasks, self._graph = block, tasks, graph
        self._stage: dict[Node, int] = {}
        self._waits: dict[Node, frozenset[Node]] = {}
        self._bundles: dict[_Key, _Bundle] = {}
        self._writers: dict[str, _Writer] = {}
        self._names = {node.name for node in block.nodes}

    def parts(self) -> list[Part]:
        for node in self._block.nodes:
            if node.op != FEED:
                self._look_at(node)
        for name in dict.fromkeys(self._tasks.values()):
            self._writers[name] = _Writer(name, self._graph, self._unique)
        by_stage = sorted(
            (n for n in self._block.nodes if n.op != FEED), key=self._stage.__getitem__
        )
        due = sorted(self._bundles.items(), key=lambda item: item[0][2])
        for node in by_stage:
            while due and due[0][0][2] < self._stage[node]:
                self._carry(due.pop(0)[1])
            self._writers[self._tasks[node]].add(node)
        for _, bundle in due:
            self._carry(bundle)
        return self._ends()

    # ------------------------------------------------------------ stages
    def _look_at(self, node: Node) -> None:
        """Finds the stage of a node, and has what it needs of other tasks brought."""
        here = self._tasks[node]
        stage, waits = 0, frozenset[Node]()
        for source in _needs(node):
            crosses = self._tasks[source] != here and not source.is_const
            later = crosses or source.traits.blocks
            stage = max(stage, self._stage[source] + later)
            waits |= self._waits[source]
            if source.traits.blocks:
                waits |= {source}
        self._stage[node], self._waits[node] = stage, waits
        for value in node.inputs:
            if self._comes_from_elsewhere(value.node, here):
                bundle = self._bundle(value.node, here)
                if is_handle(value):
                    raise _no_data(node, value, here)
                bundle.values.setdefault(value, len(bundle.values))
        for before in node.control:
            if before.op != FEED and self._tasks[before] != here:
                self._bundle(before, here).after[before] = None

    def _comes_from_elsewhere(self, node: Node, here: str) -> bool:
        return node.op != FEED and not node.is_const and self._tasks[node] != here

    def _bundle(self, source: Node, to: str) -> _Bundle:
        waits = self._waits[source]
        if source.traits.blocks:
            waits |= {source}
        there = self._tasks[source]
        key = there, to, self._stage[source], waits
        found = self._bundles.get(key)
        if found is None:
            found = self._bundles[key] = _Bundle(there, to, f"{len(self._bundles)};{there};{to}")
        return found

    # ------------------------------------------------------------ writing
    def _carry(self, bundle: _Bundle) -> None:
        self._writers[bundle.source].send(bundle)
        self._writers[bundle.to].receive(bundle)

    def _unique(self, name: str) -> str:
        found, count = name, 0
        while found in self._names:
            count += 1
            found = f"{name}_{count}"
        self._names.add(found)
        return found

    def _ends(self) -> list[Part]:
        """The parts with what the step fetches and runs."""
        for i, value in enumerate(self._block.fetches):
            if value.node.op != FEED:
                part = self._writers[self._tasks[value.node]].part
                part.fetches.append(f"{value.node.name}:{value.index}")
                part.fetched.append(i)
        for node in self._block.targets:
            self._writers[self._tasks[node]].part.targets.append(node.name)
        return [writer.finished() for writer in self._writers.values()]


def _needs(node: Node) -> Iterable[Node]:
    for source, _ in node.inputs:
        if source.op != FEED:
            yield source
    for source in node.control:
        if source.op != FEED:
            yield source


def _no_data(node: Node, value: Value, here: str) -> errors.UnimplementedError:
    return errors.UnimplementedError(
        None, node.origin,
        f"Operation {node.name} in {here} takes {value.node.name}:{value.index} of another task, "
        f"a {value.dtype.name}, which names what only its own task has.",
    )  # fmt: skip


class _Writer:
    """The GraphDef of one part, node by node."""

    def __init__(self, task: str, graph: Graph, unique: Any) -> None:
        self._task, self._unique = task, unique
        self._own = parsed(task)
        proto = protos.GraphDef()
        proto.versions.CopyFrom(graph.graph_def_versions)
        self._functions = FunctionLibraryWriter(proto.library, functions_of(graph).values())
        self.part = Part(task, proto)
        self._named: dict[Value, str] = {}
        self._here: dict[Node, str] = {}
        self._step = unique("number_of_step")
        self._placeholder(self._step, int64, ())

    def add(self, node: Node) -> None:
        """A node of the graph."""
        if node in self._here:  # a constant, which a node before has brought
            return
        assert node.origin is not None
        for value in node.inputs:
            self._fetch(value)
        made = self.part.graph_def.node.add()
        fill_node_def(node.origin, made, self._functions.name_of)
        del made.input[:]
        made.input.extend(self._named.get(v) or _text(v) for v in node.inputs)
        waits = (self._here.get(c) for c in node.control if c.op != FEED)
        made.input.extend(f"^{name}" for name in dict.fromkeys(filter(None, waits)))
        made.device = self._device(node)
        self._here[node] = node.name

    def send(self, bundle: _Bundle) -> None:
        """A node that sends what another task needs."""
        inputs = [self._named.get(v) or _text(v) for v in bundle.values]
        node = self._between("_SendToTask", "send", bundle, bundle.to, inputs)
        node.input.extend(f"^{self._here[n]}" for n in bundle.after)
        self.part.targets.append(node.name)
        self.part.sends.append(bundle.crossing())

    def receive(self, bundle: _Bundle) -> None:
        """A node that waits for what another task sends."""
        node = self._between("_ReceiveFromTask", "receive", bundle, bundle.source, ())
        shapes = [v.shape for v in bundle.values]
        node.attr["shapes"].CopyFrom(encode_attr(shapes, "list(shape)"))
        for value, i in bundle.values.items():
            self._named[value] = f"{node.name}:{i + 1}"
        for before in bundle.after:
            self._here[before] = node.name

    def finished(self) -> Part:
        """The part, with its functions and the number of the step among its feeds."""
        self._functions.finish()
        graph_def = self.part.graph_def
        here = {node.name for node in graph_def.node}
        for node in graph_def.node:
            keep_group(node, here)
        self.part.feeds.append((f"{self._step}:0", int64, ()))
        return self.part

    def _between(
        self, op: str, verb: str, bundle: _Bundle, task: str, inputs: Sequence[str]
    ) -> Any:
        node = self.part.graph_def.node.add(op=op, device=f"{self._task}{_CPU}")
        node.name = self._unique(f"{verb}_{bundle.key.partition(';')[0]}")
        node.input.extend([self._step, *inputs])
        types = [v.dtype.base_dtype for v in bundle.values]
        node.attr["T"].CopyFrom(encode_attr(types, "list(type)"))
        node.attr["task"].s = task.encode()
        node.attr["key"].s = bundle.key.encode()
        return node

    def _fetch(self, value: Value) -> None:
        """Has a feed or a constant here that a node takes."""
        node = value.node
        if node.op == FEED and value not in self._named:
            name = self._unique(f"{node.name.partition(':')[0]}/fed")
            self._placeholder(name, value.dtype, value.shape)
            self._named[value] = name
            self.part.feeds.append((f"{name}:0", value.dtype, value.shape))
            self.part.fed.append(node.attrs["index"])
        elif node.is_const and node not in self._here:
            # Cheaper than sending it in every step. Its own task may have it as well.
            assert node.origin is not None
            made = self.part.graph_def.node.add()
            fill_node_def(node.origin, made, None)
            del made.input[:]
            made.attr.pop("_class", None)
            made.device = ""
            self._here[node] = node.name

    def _placeholder(self, name: str, dtype: DType, shape: Shape) -> None:
        node = self.part.graph_def.node.add(name=name, op="Placeholder")
        node.attr["dtype"].CopyFrom(encode_attr(dtype, "type"))
        node.attr["shape"].CopyFrom(encode_attr(shape, "shape"))

    def _device(self, node: Node) -> str:
        """What a node asks for, in this task: its group may have led it here."""
        asked = parsed(node.requested) if node.requested else DeviceSpec()
        return DeviceSpec(
            job=self._own.job, replica=self._own.replica, task=self._own.task,
            device_type=asked.device_type, device_index=asked.device_index,
        ).to_string()  # fmt: skip


def _text(value: Value) -> str:
    name = value.node.name
    return f"{name}:{value.index}" if value.index else name
