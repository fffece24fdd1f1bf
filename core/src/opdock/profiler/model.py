"""All that a profile knows: the nodes of a graph, what is noted of them, and traced steps."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation
from opdock.profiler.execution import Execution, is_accelerator_stream, is_device
from opdock.profiler.figures import Figures
from opdock.profiler.operations import operations, sources
from opdock.shapes import Shape

__all__ = ["Line", "Model", "ProfiledNode"]

Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A call on the way to where a node was made."""

    file: str
    number: int
    function: str
    start: int


@dataclass(slots=True, eq=False)
class ProfiledNode:
    """A node of the graph, or of a step alone.

    Attributes:
        name: its name.
        op_type: its op type; of what is no node of the graph, the name.
        number: its place among the nodes.
        inputs: the names of the nodes that it is made from, with the number of the output.
        shape: the sizes of its attribute `shape`, (1,) for a scalar's, empty if it has none.
        output_shapes: those of its outputs, written the same way.
        types: what `account_type_regexes` may match: op type, device, and those of op logs.
        float_ops: floating-point operations of one run.
        code: a `CodeDef` message, or None.
        lines: the same, outermost first.
        operation: the node itself; None for what is no node of the graph.
        device: where it ran.
        executions: by step.
    """

    name: str
    op_type: str
    number: int
    inputs: list[tuple[str, int]] = field(default_factory=list)
    shape: Sizes = ()
    output_shapes: list[Sizes] = field(default_factory=list)
    types: set[str] = field(default_factory=set)
    float_ops: int = 0
    code: Any = None
    lines: list[Line] = field(default_factory=list)
    operation: Operation | None = None
    device: str = ""
    executions: dict[int, Execution] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.types.add(self.op_type)

    @property
    def parameters(self) -> int:
        """How many numbers a variable holds, or what else says its own shape; 0 if not known."""
        return math.prod(self.shape) if self.shape and min(self.shape) >= 0 else 0

    def figures(self, step: int) -> Figures:
        """Its figures in a step; on average over all steps if that is negative."""
        if step >= 0:
            runs = [self.executions[step].figures] if step in self.executions else [Figures()]
        else:
            runs = [each.figures for each in self.executions.values()]
        total = Figures()
        for each in runs:
            total = total.plus(each)
        averages = Figures(*(figure // max(len(runs), 1) for figure in total))
        times = averages.run_count if self.executions else 1
        return averages._replace(
            definition_count=1, parameters=self.parameters, float_ops=self.float_ops * times
        )

    def add_record(self, step: int, device: str, record: Any) -> None:
        """Adds a `NodeExecStats` of a step. What ran on a second device does not count."""
        device = device.lower()
        if is_device(device):
            if self.device and self.device != device:
                return
            self.device = device
            self.types.add(device)
        execution = self.executions.setdefault(step, Execution())
        execution.add_time(device, record)
        if device == self.device:
            execution.add_memory(device, record)


class Model:
    """The nodes by name, and the steps.

    Attributes:
        nodes: all nodes.
        steps: those that were added.
        strings: what the numbers in op logs stand for.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, ProfiledNode] = {}
        self.steps: set[int] = set()
        self.strings: dict[int, str] = {}
        self._ran: set[str] = set()

    @property
    def coverage(self) -> float:
        """The share of the nodes that ran in some step."""
        return len(self._ran) / len(self.nodes) if self.nodes else 0.0

    @property
    def has_code(self) -> bool:
        """Whether it is known which lines made the nodes."""
        return any(node.code is not None for node in self.nodes.values())

    def add_graph(self, graph: Graph, measured: Mapping[str, Shape]) -> None:
        """Adds the nodes that are new, with the shapes of a step where the graph has none."""
        for op in operations(graph):
            if op.name in self.nodes:
                continue
            self.nodes[op.name] = ProfiledNode(
                op.name, op.type, len(self.nodes), inputs=sources(op),
                shape=_own_shape(op),
                output_shapes=[
                    _known(measured.get(out.name, out.raw_shape)) for out in op.outputs
                ],
                operation=op,
            )  # fmt: skip

    def add_log(self, op_log: Any) -> None:
        """Adds what an OpLogProto says of nodes that are there."""
        offset = self._add_strings(op_log.id_to_string)
        for entry in op_log.log_entries:
            node = self.nodes.get(entry.name)
            if node is None:
                continue
            node.types.update(entry.types)
            node.float_ops = entry.float_ops or node.float_ops
            if entry.HasField("code_def") and node.code is None:
                node.code = _renumbered(entry.code_def, offset)
                node.lines = [self._line(trace) for trace in node.code.traces]

    def _add_strings(self, given: Mapping[int, str]) -> dict[int, int]:
        """Notes an op log's strings, and says which number each of its numbers has here."""
        known = {text: number for number, text in self.strings.items()}
        offset = {}
        for number, text in sorted(given.items()):
            offset[number] = known.setdefault(text, len(known))
        self.strings = {number: text for text, number in known.items()}
        return offset

    def _line(self, trace: Any) -> Line:
        return Line(
            self.strings.get(trace.file_id, ""), trace.lineno,
            self.strings.get(trace.function_id, ""), trace.func_start_line,
        )  # fmt: skip

    def add_step(self, step: int, run_meta: Any) -> None:
        """Adds what a RunMetadata says of a step; several may belong to one."""
        if not run_meta.HasField("step_stats"):
            print(f"There is nothing of a traced step in what was given for step {step}.",
                  file=sys.stderr)  # fmt: skip
            return
        self.steps.add(step)
        for device in run_meta.step_stats.dev_stats:
            for record in device.node_stats:
                name = record.node_name.partition(":")[0]
                if name in self.nodes:
                    self._ran.add(name)
                else:
                    self.nodes[name] = ProfiledNode(name, name, len(self.nodes))
                self.nodes[name].add_record(step, device.device, record)

    def as_proto(self) -> Any:
        """All of it as a ProfileProto."""
        from opdock.io import protos

        made = protos.ProfileProto(has_trace=self.has_code, steps=sorted(self.steps))
        made.id_to_string.update(self.strings)
        streams = False
        scheduled = False
        for node in self.nodes.values():
            made.nodes[node.number].CopyFrom(self._node_proto(node))
            for execution in node.executions.values():
                streams |= any(map(is_accelerator_stream, execution.devices))
                scheduled |= any("gpu" in device for device in execution.devices)
        made.miss_accelerator_stream = scheduled and not streams
        return made

    def _node_proto(self, node: ProfiledNode) -> Any:
        from opdock.io import protos

        made = protos.ProfileNode(
            name=node.name, op=node.op_type, id=node.number, shape=node.shape,
            op_types=sorted(node.types), canonical_device=node.device, float_ops=node.float_ops,
        )  # fmt: skip
        for index, (source, output) in enumerate(node.inputs):
            if source in self.nodes:
                made.inputs[index] = self.nodes[source].number
                made.src_output_index[self.nodes[source].number] = output
        for index, sizes in enumerate(node.output_shapes):
            made.output_shapes[index].int64_values.extend(sizes)
        if node.operation is not None:
            for name, value in node.operation.node_def.attr.items():
                made.attrs[name].CopyFrom(value)
        if node.code is not None:
            made.trace.CopyFrom(node.code)
        for step, execution in node.executions.items():
            made.execs[step].CopyFrom(execution.as_proto())
        return made


def _renumbered(code: Any, numbers: Mapping[int, int]) -> Any:
    """A CodeDef whose numbers of strings are those of the profile."""
    made = type(code)()
    made.CopyFrom(code)
    for trace in made.traces:
        for name in ("file_id", "function_id", "line_id"):
            setattr(trace, name, numbers.get(getattr(trace, name), 0))
    return made


def _own_shape(op: Operation) -> Sizes:
    shape = op.attrs.get("shape")
    return _known(shape) if isinstance(shape, tuple) else ()


def _known(shape: Shape) -> Sizes:
    """A shape's sizes, -1 for one that is not known, and (1,) for a scalar."""
    if shape is None:
        return ()
    return tuple(-1 if size is None else size for size in shape) or (1,)
