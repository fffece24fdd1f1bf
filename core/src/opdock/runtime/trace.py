"""Tracing: step_stats and partition graphs in TF's protobufs."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from opdock.compiler.ir import COPY, FEED, HOST, Block, Node
from opdock.compiler.schedule import Step
from opdock.runtime.program import Program


class Tracer:
    """Collects what ran, where and for how long."""

    def __init__(self) -> None:
        self._records: list[tuple[Step, float, float, list[Any]]] = []
        # perf_counter has no epoch; timestamps in StepStats are microseconds since 1970.
        self._offset = time.time() - time.perf_counter()

    def __call__(self, step: Step, begin: float, end: float, results: Sequence[Any]) -> None:
        """Records one step."""
        outputs = [(tuple(getattr(r, "shape", ())), getattr(r, "nbytes", 0)) for r in results]
        self._records.append((step, begin, end, outputs))

    def step_stats(self) -> Any:
        """The records as a StepStats message: one DeviceStepStats a device."""
        from opdock.io import protos

        stats = protos.StepStats()
        by_device: dict[str, Any] = {}
        for step, begin, end, outputs in self._records:
            if step.kind == "alias":
                continue
            device = device_of(step.node)
            if device not in by_device:
                by_device[device] = stats.dev_stats.add(device=device)
            self._add(by_device[device], step, begin, end, outputs)
        return stats

    def _add(self, device: Any, step: Step, begin: float, end: float, outputs: list[Any]) -> None:
        node = step.node
        micros = int((begin + self._offset) * 1e6)
        length = max(int((end - begin) * 1e6), 0)
        name = f"{node.name}/read" if step.kind == "read" else node.name
        op = (
            _copy_label(node)
            if node.op == COPY
            else "ReadVariable"
            if step.kind == "read"
            else node.op
        )
        record = device.node_stats.add(
            node_name=name, all_start_micros=micros, op_start_rel_micros=0,
            op_end_rel_micros=length, all_end_rel_micros=length,
            timeline_label=f"{name} = {op}({', '.join(v.node.name for v in node.inputs)})",
            scheduled_micros=micros, thread_id=threading.get_ident() % 2**31,
        )  # fmt: skip
        for slot, (shape, nbytes) in enumerate(outputs):
            output = record.output.add(slot=slot)
            description = output.tensor_description
            if slot < len(node.out_dtypes):
                description.dtype = node.out_dtypes[slot].base_dtype.as_datatype_enum
            for dim in shape:
                description.shape.dim.add(size=dim)
            description.allocation_description.requested_bytes = int(nbytes)
            description.allocation_description.allocator_name = "opdock"


def device_of(node: Node) -> str:
    """The device that a node's record stands under; host copies count for their device."""
    if node.target is not None:
        return node.target.name
    return "/job:localhost/replica:0/task:0/device:CPU:0"


def _copy_label(node: Node) -> str:
    source, to = node.attrs["from"], node.attrs["to"]
    if source == HOST:
        return "MEMCPYHtoD"
    return "MEMCPYDtoH" if to == HOST else "MEMCPYPtoP"


def partition_graphs(program: Program) -> list[Any]:
    """One GraphDef a device of what the program runs; copies appear as _Send and _Recv."""
    return graphs_of(program.block)


def graphs_of(block: Block) -> list[Any]:
    """The partition graphs of a compiled block."""
    from opdock.graph.attr_proto import encode_attr
    from opdock.io import protos

    graphs: dict[str, Any] = {}
    for node in block.nodes:
        device = device_of(node)
        graph = graphs.get(device)
        if graph is None:
            graph = graphs[device] = protos.GraphDef()
            graph.versions.producer = 134
        made = graph.node.add(name=node.name, op=_partition_op(node), device=device)
        for value in node.inputs:
            made.input.append(
                value.node.name if value.index == 0 else f"{value.node.name}:{value.index}"
            )
        made.input.extend(f"^{c.name}" for c in node.control)
        if node.spec is not None:
            for key, native in node.attrs.items():
                if not key.startswith("_"):
                    made.attr[key].CopyFrom(encode_attr(native, node.spec.attr_type(key)))
        elif node.op == COPY:
            made.attr["T"].type = node.out_dtypes[0].base_dtype.as_datatype_enum
            made.attr["send_device"].s = str(node.attrs["from"]).encode()
            made.attr["recv_device"].s = str(node.attrs["to"]).encode()
        elif node.op == FEED:
            made.attr["dtype"].type = node.out_dtypes[0].base_dtype.as_datatype_enum
    return list(graphs.values())


def _partition_op(node: Node) -> str:
    if node.op == COPY:
        return "_HostSend" if node.attrs["to"] == HOST else "_HostRecv"
    return "_Arg" if node.op == FEED else node.op


__all__ = ["Tracer", "device_of", "graphs_of", "partition_graphs"]
