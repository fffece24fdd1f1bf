"""Plugins of a pass that plans a whole program and asks for devices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from opdock.plugin import (
    GraphPass,
    GraphView,
    NodeView,
    ValueView,
    hookimpl,
    register,
    unregister,
)
from opdock_placer.cut import Problem, worthwhile
from opdock_placer.model import CostModel, Work

__all__ = ["Placement", "pinned_to", "placed_by", "short_name"]

HOST: Final = "CPU:0"
FEED: Final = "_Feed"
_MARGIN: Final = 0.1  # of the time on the better device: what mixing must gain
_PARTED: Final = 1e6  # seconds: a variable and those that work on it stay together


def short_name(device: str) -> str:
    """Type and number of a device by its full name, "GPU:0"; empty where they are not told."""
    _, found, rest = device.rpartition("device:")
    return rest.upper() if found and ":" in rest else ""


class _Pinned:
    """A plugin that puts everything on one device, as far as it can be there: to measure it."""

    def __init__(self, device: str) -> None:
        self._device = f"/device:{device}"

    @hookimpl
    def opdock_graph_passes(self) -> Iterator[GraphPass]:
        """The pass that asks for the device."""
        yield GraphPass(name="placer_pin", stage="before_place", run=self._pin)

    def _pin(self, graph: GraphView) -> None:
        for node in graph:
            if not node.requested and node.op != FEED:
                graph.request(node, self._device)


class Placement:
    """A plugin that places by a cost model.

    Attributes:
        model: the model.
        expected: the seconds that each planned program should take by the model, in order.
    """

    def __init__(self, model: CostModel) -> None:
        self.model = model
        self.expected: list[float] = []
        self._homes: dict[str, str] = {}  # of variables, by name

    @hookimpl
    def opdock_graph_passes(self) -> Iterator[GraphPass]:
        """The pass that plans."""
        yield GraphPass(name="placer_plan", stage="before_place", run=self.plan)

    def plan(self, graph: GraphView) -> None:
        """Asks for the devices of a program's nodes."""
        if graph.within:  # bodies follow their data
            return
        nodes, devices = graph.nodes, self.model.devices
        if len(devices) < 2:
            return
        number = {node: i for i, node in enumerate(nodes)}
        problem = Problem(
            [*(self._seconds(node, devices) for node in nodes), _fixed(HOST, devices)],
            self._edges(graph, number, devices),
        )
        chosen = worthwhile(problem, _MARGIN)
        self.expected.append(problem.cost(chosen))
        for node, device in zip(nodes, chosen, strict=False):
            if any(is_state(v) for v in node.outputs):
                self._homes.setdefault(node.name, devices[device])
            if not node.requested and node.op != FEED:
                graph.request(node, f"/device:{devices[device]}")

    def _seconds(self, node: NodeView, devices: Sequence[str]) -> list[float]:
        bound = short_name(node.requested) or self._homes.get(node.name, "")
        if node.op == FEED and not bound:
            bound = self.model.preferred
        if bound in devices:
            return _fixed(bound, devices)
        found = [self.model.seconds(d, node.op, work_of(node)) for d in devices]
        if min(found) == math.inf:  # core's own choice, whatever it is
            return [0.0] * len(devices)
        return found

    def _edges(
        self, graph: GraphView, number: dict[NodeView, int], devices: Sequence[str]
    ) -> dict[tuple[int, int], list[list[float]]]:
        edges: dict[tuple[int, int], list[list[float]]] = {}
        for node, at in number.items():
            for value in node.inputs:
                _join(edges, (number[value.node], at), self._copies(value, devices))
        host = len(number)  # the caller
        for value in graph.fetches:
            _join(edges, (number[value.node], host), self._copies(value, devices))
        return edges

    def _copies(self, value: ValueView, devices: Sequence[str]) -> list[list[float]]:
        together, size = is_state(value), Work(size_of(value))

        def copy(source: str, target: str) -> float:
            if together and source != target:
                return _PARTED
            return self.model.copy_seconds(source, target, size)

        return [[copy(a, b) for b in devices] for a in devices]


@contextmanager
def _registered(plugin: object) -> Iterator[None]:
    name = f"opdock_placer.{id(plugin)}"
    register(plugin, name)
    try:
        yield
    finally:
        unregister(name)


@contextmanager
def pinned_to(device: str) -> Iterator[None]:
    """In here, what no device scope pins down is put on one device, as far as it can be there."""
    with _registered(_Pinned(device)):
        yield


@contextmanager
def placed_by(model: CostModel) -> Iterator[Placement]:
    """In here, what no device scope pins down is placed where a step takes the least time.

    A variable lives where the first program that is planned wants it. Plan the training step before
    variables are initialized (`Session.explain` compiles without running), else initialization,
    for which they could be anywhere, decides.
    """
    placement = Placement(model)
    with _registered(placement):
        yield placement


def is_state(value: ValueView) -> bool:
    """Whether it stands for a variable rather than for its value."""
    return value.dtype.name.endswith("_ref") or value.dtype.name == "resource"


def size_of(value: ValueView) -> float:
    """Bytes of a value; dimensions that are not known count as one."""
    if value.shape is None:
        return float(value.dtype.size or 8)
    return float(math.prod(d or 1 for d in value.shape) * (value.dtype.base_dtype.size or 8))


def work_of(node: NodeView) -> Work:
    """What a node does, by its static shapes."""
    return work(
        [(size_of(v), v.dtype.base_dtype.size or 8) for v in node.inputs],
        [(size_of(v), v.dtype.base_dtype.size or 8) for v in node.outputs],
    )


def work(inputs: Sequence[tuple[float, int]], outputs: Sequence[tuple[float, int]]) -> Work:
    """What is done with values, each given as its bytes and those of an element."""
    total = sum(size for size, _ in (*inputs, *outputs))
    largest = sorted((size / each for size, each in inputs), reverse=True)[:2]
    if len(largest) < 2 or not outputs:
        return Work(total)
    made = max(size / each for size, each in outputs)
    return Work(total, math.sqrt(largest[0] * largest[1] * made))


def _fixed(device: str, devices: Sequence[str]) -> list[float]:
    if device not in devices:
        return [0.0] * len(devices)
    return [0.0 if d == device else math.inf for d in devices]


def _join(
    edges: dict[tuple[int, int], list[list[float]]], ends: tuple[int, int], copy: list[list[float]]
) -> None:
    """Adds what an edge costs to what is between the two already: the same value is copied once."""
    known = edges.get(ends)
    if known is None:
        edges[ends] = copy
    else:
        rows = zip(known, copy, strict=True)
        edges[ends] = [[max(a, b) for a, b in zip(x, y, strict=True)] for x, y in rows]
