"""Split: a step as parts, a GraphDef a task, with sends and receives for what goes between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from opdock.compiler.ir.block import FEED, Block, Node, Value
from opdock.compiler.tasks.assign import Tasks
from opdock.compiler.tasks.bodies import (
    device_in,
    first_turn,
    meeting,
    message_attrs,
    shares_of,
)
from opdock.compiler.tasks.stages import Bundle, Crossing, Share, Stages
from opdock.dtypes import DType, int64
from opdock.graph.control.function_op import functions_of
from opdock.graph.nodes.graph import Graph
from opdock.graph.serial.attr_proto import encode_attr
from opdock.graph.serial.function_writer import FunctionLibraryWriter
from opdock.graph.serial.node_def import fill_node_def, keep_group
from opdock.io import protos
from opdock.shapes import Shape

__all__ = ["Crossing", "Part", "split"]

_CPU: Final = "/device:CPU:0"


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


def split(block: Block, tasks: Tasks, graph: Graph) -> list[Part]:
    """The parts of a step, those first that come first in the block.

    Args:
        block: pruned, a node for each operation.
        tasks: of its nodes.
        graph: whose functions the nodes call.

    Raises:
        UnimplementedError: a handle, which means nothing elsewhere, is to leave its task.
    """
    stages = Stages(block, tasks, shares_of(tasks))
    unique = _unique({node.name for node in block.nodes})
    order = dict.fromkeys(tasks.values())
    writers = {
        name: _Writer(name, graph, unique)
        for name in (order | dict.fromkeys(sorted(tasks.everywhere())))
    }
    stages.write(writers)
    for i, value in enumerate(block.fetches):
        if value.node.op != FEED:
            writers[tasks[value.node]].fetch(value, i)
    for node in block.targets:
        writers[tasks[node]].run(node)
    return [writer.finished() for writer in writers.values()]


def _unique(taken: set[str]) -> Callable[[str], str]:
    """Names that nobody has, for what tasks have beside the step's nodes."""

    def unique(name: str) -> str:
        found, count = name, 0
        while found in taken:
            count += 1
            found = f"{name}_{count}"
        taken.add(found)
        return found

    return unique


class _Writer:
    """The GraphDef of one part, node by node."""

    def __init__(self, task: str, graph: Graph, unique: Callable[[str], str]) -> None:
        self._task, self._unique = task, unique
        proto = protos.GraphDef()
        proto.versions.CopyFrom(graph.graph_def_versions)
        self._functions = FunctionLibraryWriter(proto.library, functions_of(graph).values())
        self.part = Part(task, proto)
        self._named: dict[Value, str] = {}
        self._here: dict[Node, str] = {}
        self._step = unique("number_of_step")
        self._placeholder(self._step, int64, ())
        self._exchanged: list[str] = []
        self._met: list[str] = []
        self._came: dict[Bundle, str] = {}

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
        made.device = device_in(self._task, node)
        self._here[node] = node.name

    def meet(self, node: Node, share: Share) -> None:
        """The task's share of a branch or loop that is in several."""
        for value in share.inputs:
            self._fetch(value)
        spec, attrs = meeting(node, share)
        turn = [self._zero()] if first_turn(node) else []
        name = node.name if share.results else self._unique(node.name)
        made = self.part.graph_def.node.add(name=name, op=spec.name)
        made.input.extend(self._named.get(v) or _text(v) for v in share.inputs)
        made.input.extend([*turn, self._step])
        waits = [self._here[c] for c in node.control if c in self._here]
        made.input.extend(f"^{name}" for name in dict.fromkeys([*waits, *self._exchanged]))
        made.device = device_in(self._task, node)
        for key, value in attrs.items():
            made.attr[key].CopyFrom(
                encode_attr(value, spec.attr_type(key), self._functions.name_of)
            )
        for place, i in enumerate(share.results):
            self._named[Value(node, i)] = f"{name}:{place}" if place else name
        self._here[node] = name
        self._exchanged.append(name)
        self._met = [name]
        self.part.sends += share.crossings
        self.part.targets.append(name)

    def fetch(self, value: Value, number: int) -> None:
        """Has a value be one that the step returns."""
        name = self._named.get(value) or _text(value)
        self.part.fetches.append(name if ":" in name else f"{name}:0")
        self.part.fetched.append(number)

    def run(self, node: Node) -> None:
        """Has a node run for its effect."""
        if self._here[node] not in self.part.targets:
            self.part.targets.append(self._here[node])

    def send(self, bundle: Bundle) -> None:
        """A node that sends what another task needs."""
        inputs = [self._named.get(v) or _text(v) for v in bundle.values]
        node = self._between("_SendToTask", "send", bundle, bundle.to, inputs)
        node.input.extend(f"^{self._here[n]}" for n in bundle.after)
        self.part.targets.append(node.name)
        self.part.sends.append(bundle.crossing())
        self._exchanged.append(node.name)

    def receive(self, bundle: Bundle) -> None:
        """A node that waits for what another task sends."""
        node = self._between("_ReceiveFromTask", "receive", bundle, bundle.source, ())
        shapes = [v.shape for v in bundle.values]
        node.attr["shapes"].CopyFrom(encode_attr(shapes, "list(shape)"))
        for value, i in bundle.values.items():
            self._named[value] = f"{node.name}:{i + 1}"
        before = [*self._met, *(self._came[b] for b in bundle.behind)]
        node.input.extend(f"^{name}" for name in before)
        self._came[bundle] = node.name
        for ran in bundle.after:
            self._here[ran] = node.name
        self._exchanged.append(node.name)

    def finished(self) -> Part:
        """The part, with its functions and the number of the step among its feeds."""
        self._functions.finish()
        graph_def = self.part.graph_def
        here = {node.name for node in graph_def.node}
        for node in graph_def.node:
            keep_group(node, here)
        self.part.feeds.append((f"{self._step}:0", int64, ()))
        return self.part

    def _between(self, op: str, verb: str, bundle: Bundle, task: str, inputs: Sequence[str]) -> Any:
        node = self.part.graph_def.node.add(op=op, device=f"{self._task}{_CPU}")
        node.name = self._unique(f"{verb}_{bundle.key.partition(';')[0]}")
        node.input.extend([self._step, *inputs])
        for name, value in message_attrs(bundle, task).items():
            kind = "list(type)" if name == "T" else "string"
            node.attr[name].CopyFrom(encode_attr(value, kind))
        return node

    def _zero(self) -> str:
        """A constant: the number of a loop's first turn."""
        name = self._unique("first_turn")
        node = self.part.graph_def.node.add(name=name, op="Const", device=f"{self._task}{_CPU}")
        node.attr["dtype"].CopyFrom(encode_attr(int64, "type"))
        node.attr["value"].CopyFrom(encode_attr(np.array(0, np.int64), "tensor"))
        return name

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


def _text(value: Value) -> str:
    name = value.node.name
    return f"{name}:{value.index}" if value.index else name
