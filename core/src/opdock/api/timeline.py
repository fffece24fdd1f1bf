"""A Chrome trace (chrome://tracing, Perfetto) from the StepStats of one `Session.run`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from opdock.io.step_stats import label

__all__ = ["StepStatsAnalysis", "Timeline"]

Event = dict[str, Any]


@dataclass
class _Node:
    """One record of StepStats: what ran, where, when."""

    name: str
    op: str
    inputs: list[str]
    device: str
    start: int
    duration: int
    lane: int = 0
    outputs: list[tuple[int, int, str]] = field(default_factory=list)  # slot, bytes, allocator

    @property
    def end(self) -> int:
        return self.start + self.duration


@dataclass
class StepStatsAnalysis:
    """What `Timeline.analyze_step_stats` found.

    Attributes:
        chrome_trace: the trace events.
        allocator_maximums: bytes held at most, by allocator.
    """

    chrome_trace: list[Event]
    allocator_maximums: dict[str, int]


class Timeline:
    """The ops of one step on a time axis, one track a device.

    Args:
        step_stats: the `StepStats` of a `RunMetadata`.
        graph: accepted for TF's signature.
    """

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        self._nodes = [n for device in step_stats.dev_stats for n in _nodes(device)]
        self._origin = min((n.start for n in self._nodes), default=0)

    def analyze_step_stats(
        self, show_dataflow: bool = True, show_memory: bool = True
    ) -> StepStatsAnalysis:
        """The trace events and the memory maximums."""
        pids = self._devices()
        self._assign_lanes()
        events = [
            {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": f"{device} Compute"}}
            for device, pid in pids.items()
        ]
        events += [self._op_event(n, pids[n.device]) for n in self._nodes]
        if show_dataflow:
            events += self._flows(pids)
        maximums, counters = self._memory(len(pids))
        if show_memory:
            events += counters
        return StepStatsAnalysis(events, maximums)

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False
    ) -> str:
        """The trace as JSON.

        Args:
            show_dataflow: draw arrows from producers to consumers.
            show_memory: add counters of the bytes that outputs hold.

        Returns:
            Text for a file that chrome://tracing and Perfetto open.
        """
        events = self.analyze_step_stats(show_dataflow, show_memory).chrome_trace
        return json.dumps({"traceEvents": events}, indent=4, separators=(",", ": "))

    # ------------------------------------------------------------ layout
    def _devices(self) -> dict[str, int]:
        return {d: i for i, d in enumerate(dict.fromkeys(n.device for n in self._nodes))}

    def _assign_lanes(self) -> None:
        """Ops that overlap on a device get lanes of their own, or one would hide the other."""
        busy: dict[str, list[int]] = {}
        for node in sorted(self._nodes, key=lambda n: (n.start, -n.duration)):
            lanes = busy.setdefault(node.device, [])
            free = next((i for i, until in enumerate(lanes) if until <= node.start), None)
            if free is None:
                free = len(lanes)
                lanes.append(0)
            lanes[free] = node.end
            node.lane = free

    def _op_event(self, node: _Node, pid: int) -> Event:
        args: dict[str, Any] = {"name": node.name, "op": node.op}
        args.update((f"input{i}", name) for i, name in enumerate(node.inputs))
        return {
            "ph": "X", "cat": "Op", "name": node.op, "pid": pid, "tid": node.lane,
            "ts": node.start - self._origin, "dur": node.duration, "args": args,
        }  # fmt: skip

    def _flows(self, pids: dict[str, int]) -> Iterator[Event]:
        producers = {n.name: n for n in self._nodes}
        number = 0
        for node in self._nodes:
            for text in dict.fromkeys(node.inputs):
                source = producers.get(text.lstrip("^").partition(":")[0])
                if source is None or source is node:
                    continue
                for phase, at, when in (("s", source, source.end), ("t", node, node.start)):
                    yield {
                        "ph": phase, "cat": "DataFlow", "name": source.name, "id": number,
                        "pid": pids[at.device], "tid": at.lane, "ts": when - self._origin,
                    }  # fmt: skip
                number += 1

    # ------------------------------------------------------------ memory
    def _memory(self, pid: int) -> tuple[dict[str, int], list[Event]]:
        """A tensor counts from the end of its op to the end of its last consumer."""
        last_use: dict[str, int] = {}
        for node in self._nodes:
            for text in node.inputs:
                name = text.lstrip("^").partition(":")[0]
                last_use[name] = max(last_use.get(name, 0), node.end)
        changes: dict[str, list[tuple[int, int]]] = {}
        for node in self._nodes:
            freed = max(last_use.get(node.name, node.end), node.end)
            for _, size, allocator in node.outputs:
                changes.setdefault(allocator, []).extend([(node.end, size), (freed, -size)])
        maximums: dict[str, int] = {}
        events: list[Event] = []
        if changes:
            events.append(
                {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": "Memory"}}
            )
        for allocator, steps in changes.items():
            held = maximums[allocator] = 0
            # What is taken at a moment counts before what is given back then.
            for when, size in sorted(steps, key=lambda s: (s[0], -s[1])):
                held += size
                maximums[allocator] = max(maximums[allocator], held)
                events.append({
                    "ph": "C", "cat": "Memory", "name": allocator, "pid": pid,
                    "ts": when - self._origin, "args": {allocator: held},
                })  # fmt: skip
        return maximums, events


def _nodes(device: Any) -> Iterator[_Node]:
    for record in device.node_stats:
        name, op, inputs, _ = label(record)
        node = _Node(
            name, op, inputs, device.device,
            record.all_start_micros, max(record.all_end_rel_micros, 1),
        )  # fmt: skip
        for output in record.output:
            allocation = output.tensor_description.allocation_description
            if allocation.requested_bytes:
                node.outputs.append(
                    (output.slot, allocation.requested_bytes, allocation.allocator_name)
                )
        yield node
