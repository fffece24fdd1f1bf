"""What the page shows of traces and of graphs as they are written: no program is compiled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from opdock.io.step_stats import label
from opdock.view.model import Life, Row, Span, View

_COPIES: Final = frozenset({
    "_Send", "_Recv", "_HostSend", "_HostRecv", "MEMCPYHtoD", "MEMCPYDtoH", "MEMCPYPtoP",
})  # fmt: skip
_DEVICE_OWN: Final = "/stream:"
"""Marks what a device says of its own kernels, which is a part of what their nodes took."""


def spans_of(stats: Any) -> list[Span]:
    """The calls of a StepStats message, in the order in which they began."""
    calls = [(device.device, record) for device in stats.dev_stats for record in device.node_stats]
    calls.sort(key=lambda call: _start(call[1]))
    origin = _start(calls[0][1]) if calls else 0.0
    found = []
    for device, record in calls:
        name, op, _, rest = label(record)
        found.append(Span(name, op, device, _start(record) - origin, _took(record), rest))
    return found


def times_of(spans: Iterable[Span]) -> dict[str, float]:
    """Microseconds by node, all calls of a node together."""
    found: dict[str, float] = {}
    for span in spans:
        if _DEVICE_OWN not in span.device:
            found[span.node] = found.get(span.node, 0.0) + span.us
    return found


def view_of_run(metadata: Any, title: str) -> View:
    """The view of a RunMetadata: what ran and where, how long, and what it made.

    The graphs of its partitions say how the nodes hang together, or, without them, the labels of
    the calls.
    """
    spans = spans_of(metadata.step_stats)
    took = times_of(spans)
    rows = [
        row for graph in metadata.partition_graphs for row in _rows(graph.node)
    ] or _called(metadata.step_stats)  # fmt: skip
    lives = _lives(metadata.step_stats)
    rows = [replace(row, us=took.get(row.node)) for row in rows]
    return View(title, rows, steps=len(spans), lives=lives, spans=spans)


def view_of_graph(graph_def: Any, title: str) -> View:
    """The view of a GraphDef as it is written, with the devices that its nodes ask for."""
    rows = [replace(row, requested=row.device, device="") for row in _rows(graph_def.node)]
    return View(title, rows)


def _rows(nodes: Iterable[Any]) -> list[Row]:
    return [
        Row(
            node=node.name, op=node.op, requested="", device=node.device, why="",
            how="copy" if node.op in _COPIES else "",
            kernel=node.attr["route"].s.decode("utf-8", "replace") if "route" in node.attr else "",
            inputs=tuple(name for name in node.input if not name.startswith("^")),
            control=tuple(name[1:] for name in node.input if name.startswith("^")),
        )
        for node in nodes
    ]  # fmt: skip


def _called(stats: Any) -> list[Row]:
    """One row a node that was called."""
    found: dict[str, Row] = {}
    for device in stats.dev_stats:
        for record in device.node_stats if _DEVICE_OWN not in device.device else ():
            name, op, inputs, _ = label(record)
            found[name] = Row(
                node=name, op=op, requested="", device=device.device, kernel="", why="",
                how="copy" if op in _COPIES else "",
                inputs=tuple(i for i in inputs if not i.startswith("^")),
                control=tuple(i[1:] for i in inputs if i.startswith("^")),
            )  # fmt: skip
    return list(found.values())


def _lives(stats: Any) -> list[Life]:
    """What the calls made, counted in calls: from the one that makes it to the last that reads."""
    calls = [(device.device, record) for device in stats.dev_stats for record in device.node_stats]
    calls = sorted(
        (call for call in calls if _DEVICE_OWN not in call[0]), key=lambda call: _start(call[1])
    )
    last: dict[str, int] = {}
    for i, (_, record) in enumerate(calls):
        for name in label(record).inputs:
            last[name.lstrip("^").partition(":")[0]] = i
    found = []
    for i, (device, record) in enumerate(calls):
        name = label(record).name
        for made in record.output:
            size = made.tensor_description.allocation_description.requested_bytes
            if size:
                end = max(last.get(name, i), i)
                found.append(Life(name, made.slot, device, size, i, end, "made"))
    return found


def _start(record: Any) -> float:
    return float(record.all_start_nanos / 1e3 or record.all_start_micros)


def _took(record: Any) -> float:
    return float(record.all_end_rel_nanos / 1e3 or record.all_end_rel_micros)
