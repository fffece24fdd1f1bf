"""The runs of a view's nodes on a time axis, as a Chrome trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opdock.api.timeline import Timeline
from opdock.io import files
from opdock.profiler.items import Item, downwards
from opdock.profiler.model import Model, ProfiledNode

__all__ = ["write_timelines"]


def write_timelines(root: Item, model: Model, steps: Iterable[int], path: str) -> None:
    """Writes a file for each step, `PATH_STEP`, with the nodes that are shown.

    Args:
        root: the view.
        model: what is known.
        steps: the steps.
        path: how the names of the files begin.
    """
    nodes = [node for item in downwards([root], lambda item: item.children) for node in item.nodes]
    for step in steps:
        trace = Timeline(_step_stats(nodes, step)).generate_chrome_trace_format()
        files.write_file(f"{path}_{step}", trace.encode())


def _step_stats(nodes: list[ProfiledNode], step: int) -> Any:
    from opdock.io import protos

    stats = protos.StepStats()
    devices: dict[str, Any] = {}
    for node in nodes:
        execution = node.executions.get(step)
        for device, runs in (execution.runs if execution is not None else {}).items():
            if device not in devices:
                devices[device] = stats.dev_stats.add(device=device)
            label = f"{node.name} = {node.op_type}({', '.join(name for name, _ in node.inputs)})"
            for start, length in runs:
                devices[device].node_stats.add(
                    node_name=node.name, all_start_micros=start, op_end_rel_micros=length,
                    all_end_rel_micros=length, timeline_label=label,
                )  # fmt: skip
    return stats
