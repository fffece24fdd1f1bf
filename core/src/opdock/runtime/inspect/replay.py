"""Recorded steps run again on a device, and how far each operation drifts from another device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.serial.importer import import_graph_def
from opdock.io import protos
from opdock.kernels.select.streams import RandomStream
from opdock.runtime.fetch import FetchPlan
from opdock.runtime.inspect.cases import device_scope, difference
from opdock.runtime.inspect.recording import RecordedStep, Recording
from opdock.runtime.inspect.walk import Walk, check_value, largest, order_of, pairs

__all__ = ["Drift", "ReplayedStep", "replay"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Drift:
    """How far a value is from what it is elsewhere.

    Attributes:
        op, type: the operation's name and type.
        value: what it is: a tensor's name, or a variable.
        line: the user's line that made the operation.
        absolute, relative: the largest differences.
        error: what is beyond the tolerance of the element type, in words; empty if nothing is.
    """

    op: str
    type: str
    value: str
    line: str
    absolute: float
    relative: float
    error: str


@dataclass
class ReplayedStep:
    """A step that ran again.

    Attributes:
        number: which it is, from 0.
        compared: how many values were compared, op by op.
        drifts: those that differ at all, in the order in which they were computed.
        results: of each fetch that is not what was recorded, what differs.
    """

    number: int
    compared: int = 0
    drifts: list[Drift] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether all is within tolerance."""
        return not self.results and not any(d.error for d in self.drifts)


def replay(
    recording: Recording, number: int, device: str, against: str = "cpu:0",
    rtol: float | None = None, atol: float | None = None,
) -> ReplayedStep:  # fmt: skip
    """Runs a recorded step on two devices, and compares them op by op.

    Args:
        recording: what was recorded.
        number: which step.
        device: where to run it, "cpu:0" or "/device:CPU:0".
        against: the device whose values count as right.
        rtol, atol: slack in place of that of each element type.

    Raises:
        ValueError: a name is no device's, or the recording does not fit its own graph.
        OpError: an op failed, or there is no such device.
    """
    step = recording.steps[number]
    there = _Step(recording.graphs[step.graph], step)
    truth, walk = there.walk(device_scope(against)), there.walk(device_scope(device))
    lines = {d.op: d.line for d in step.decisions}
    found = ReplayedStep(number)
    for op, wanted, got, value in pairs(there.order, truth, walk):
        found.compared += 1
        absolute, relative = largest([wanted], [got])
        error = difference(got, wanted, value, rtol, atol)
        if error or absolute:
            line = lines.get(op.name, "")
            found.drifts.append(Drift(op.name, op.type, value, line, absolute, relative, error))
    for name, wanted in zip(step.fetches, step.results, strict=True):
        tensor = there.graph.get_tensor_by_name(name)
        if tensor not in walk.values:
            raise ValueError(f"the recording does not fit its graph: nothing gives '{name}'")
        error = difference(walk.values[tensor], wanted, name, rtol, atol)
        if error:
            found.results[name] = error
    return found


class _Step:
    """A recorded step in a graph of its own, without what reaches out of it."""

    def __init__(self, graph_def: Any, step: RecordedStep) -> None:
        self.graph = Graph()
        with self.graph.as_default():
            import_graph_def(_without(graph_def, {*step.outside}), name="")
        try:
            self._plan, self._feeds = self._read(step)
        except (KeyError, IndexError) as e:
            raise ValueError(f"the recording does not fit its graph: {e}") from e
        outside = {*step.outside}
        ordered = order_of(self._plan, self._feeds)
        self.order: list[Operation] = [op for op in ordered if op.name not in outside]
        self._state, self._streams = step.state, step.streams

    def _read(self, step: RecordedStep) -> tuple[FetchPlan, dict[Tensor, Array]]:
        outside = {*step.outside}
        given: Mapping[str, Array] = {**step.given, **step.feeds}
        feeds = {self.graph.get_tensor_by_name(n): v for n, v in given.items()}
        for tensor, value in feeds.items():
            check_value(f"'{tensor.name}'", value, tensor.dtype, tensor._shape)
        targets = [self.graph.get_operation_by_name(n) for n in step.targets if n not in outside]
        return FetchPlan(self.graph, [list(step.fetches), targets]), feeds

    def walk(self, scope: str) -> Walk:
        """The step on a device."""
        streams = {name: RandomStream.at(place) for name, place in self._streams.items()}
        made = Walk(scope, self.order, self._plan, self._feeds, self._state, streams)
        made.run()
        return made


def _without(graph_def: Any, outside: set[str]) -> Any:
    """A graph in which nothing waits for operations that do not run, and no device is named."""
    made = protos.GraphDef()
    made.CopyFrom(graph_def)
    for node in made.node:
        node.device = ""
        kept = [name for name in node.input if name.removeprefix("^") not in outside or
                not name.startswith("^")]  # fmt: skip
        if len(kept) != len(node.input):
            del node.input[:]
            node.input.extend(kept)
    return made
