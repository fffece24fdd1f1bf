"""Tracing: step_stats and partition graphs in TF's protobufs."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from typing import Any, Final, Self

from opdock.compiler.emit.partition import short
from opdock.compiler.emit.schedule import Step
from opdock.compiler.ir.block import COPY, FEED, HOST, SEGMENT, Block, Node
from opdock.devices.protocols import Device, KernelTime
from opdock.devices.router import Hop
from opdock.graph.control.func_graph import arg_op

_MAKES: Final = ("kernel", "control", "segment", "copy")
"""Kinds of steps whose results are memory of their own."""
_ACTIVE: ContextVar[Tracer | None] = ContextVar("opdock_tracer", default=None)


def active() -> Tracer | None:
    """The tracer of the step that runs in this thread, or None."""
    return _ACTIVE.get()


class Tracer:
    """Collects what ran, where and for how long; a context manager around the step."""

    def __init__(
        self, devices: Sequence[Device] = (), planned: Mapping[str, int] | None = None
    ) -> None:
        self._devices = devices
        self._planned = planned or {}  # by device: the bytes that the program holds all along
        self._records: list[tuple[Step, float, float, list[Any]]] = []
        self._kernels: list[tuple[Node, float, Sequence[KernelTime]]] = []
        self._token: Token[Tracer | None] | None = None
        # perf_counter has no epoch; timestamps in StepStats are microseconds since 1970. Of some
        # looks at both clocks the one that was interrupted for the shortest time counts.
        looks = [(time.perf_counter(), time.time(), time.perf_counter()) for _ in range(4)]
        before, now, after = min(looks, key=lambda look: look[2] - look[0])
        self._offset = now - (before + after) / 2

    def __enter__(self) -> Self:
        self._token = _ACTIVE.set(self)
        for device in self._devices:
            device.profile(True)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _ACTIVE.reset(self._token)
        for device in self._devices:
            device.profile(False)

    def before(self, step: Step, inputs: Sequence[Any]) -> None:
        """Nothing is known of a step before it is over."""

    def after(self, step: Step, begin: float, end: float, results: Sequence[Any]) -> None:
        """Records one step."""
        outputs = [(tuple(getattr(r, "shape", ())), _nbytes(step, i, r))
                   for i, r in enumerate(results)]  # fmt: skip
        self._records.append((step, begin, end, outputs))
        target = step.node.target
        times = target.device.kernel_times() if target is not None else ()
        if times:
            self._kernels.append((step.node, end, times))

    def constants(self, block: Block) -> None:
        """Records the constants that the step delivers: nothing computes them."""
        now = time.perf_counter()
        for value in block.fetches:
            if value.node.is_const:
                self.after(Step("builtin", value.node, [], []), now, now, (value.node.const(),))

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
        self._add_kernels(stats)
        return stats

    def _add_kernels(self, stats: Any) -> None:
        """The kernels' own times, as TF shows a GPU's: under the device's "stream:all"."""
        streams: dict[str, Any] = {}
        for node, end, times in self._kernels:
            name = f"{device_of(node)}/stream:all"
            if name not in streams:
                streams[name] = stats.dev_stats.add(device=name)
            for kernel in times:
                # The clocks differ: the host saw the step end just after its last kernel did.
                begin = end + self._offset - (times[-1].end - kernel.begin) / 1e9
                length = (kernel.end - kernel.begin) // 1000
                streams[name].node_stats.add(
                    node_name=node.name, all_start_micros=int(begin * 1e6),
                    op_end_rel_micros=length, all_end_rel_micros=length,
                    timeline_label=f"{node.name}:{node.op}#{kernel.name}#",
                    scheduled_micros=int(begin * 1e6),
                )  # fmt: skip

    def _add(self, device: Any, step: Step, begin: float, end: float, outputs: list[Any]) -> None:
        node = step.node
        micros = int((begin + self._offset) * 1e6)
        nanos = max(int((end - begin) * 1e9), 0)
        length = nanos // 1000
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
            timeline_label=f"{name} = {op}({', '.join(v.node.name for v in node.inputs)})"
            + (_copy_details(node, outputs) if node.op == COPY else _members(node)),
            scheduled_micros=micros, thread_id=threading.get_ident() % 2**31,
            all_start_nanos=int((begin + self._offset) * 1e9), op_end_rel_nanos=nanos,
            all_end_rel_nanos=nanos, scheduled_nanos=int((begin + self._offset) * 1e9),
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
        made = sum(n for _, n in outputs) if step.kind in _MAKES else 0
        record.memory.add(
            allocator_name="opdock", total_bytes=made, peak_bytes=made, live_bytes=made,
            allocator_bytes_in_use=self._planned.get(device.device, 0),
        )  # fmt: skip

    def cost_graph(self) -> Any:
        """The records as a CostGraphDef message: sizes of results and times by node."""
        from opdock.io import protos

        graph = protos.CostGraphDef()
        made_by: dict[int, tuple[int, int]] = {}
        for step, begin, end, outputs in self._records:
            if step.kind == "alias":
                if step.inputs[0] in made_by:
                    made_by[step.outputs[0]] = made_by[step.inputs[0]]
                continue
            node = graph.node.add(
                name=step.node.name, device=device_of(step.node), id=len(graph.node),
                compute_time=int((end - begin) * 1e6),
            )  # fmt: skip
            for slot in step.inputs:
                if slot in made_by:
                    made, port = made_by[slot]
                    node.input_info.add(preceding_node=made, preceding_port=port)
            for port, (shape, nbytes) in enumerate(outputs):
                info = node.output_info.add(size=int(nbytes), alias_input_port=-1)
                if port < len(step.node.out_dtypes):
                    info.dtype = step.node.out_dtypes[port].base_dtype.as_datatype_enum
                for dim in shape:
                    info.shape.dim.add(size=dim)
            made_by.update({s: (node.id, port) for port, s in enumerate(step.outputs)})
        return graph


def _nbytes(step: Step, output: int, value: Any) -> int:
    known = getattr(value, "nbytes", None)
    if known is not None or output >= len(step.node.out_dtypes):
        return int(known or 0)
    return math.prod(getattr(value, "shape", ())) * step.node.out_dtypes[output].size


def traced(hops: Sequence[Hop], name: str) -> Callable[[Any], Any]:
    """The steps of a route as one function, which a tracer sees one by one.

    For copies that are no nodes: a variable of another device, an op that moved at run time.
    """

    def carry(buffer: Any) -> Any:
        tracer = active()
        for hop in hops:
            begin = time.perf_counter()
            buffer = hop.carry(buffer)
            if tracer is not None:
                tracer.after(_copy_step(hop, name), begin, time.perf_counter(), (buffer,))
        return buffer

    return carry


def _copy_step(hop: Hop, name: str) -> Step:
    return Step("copy", copy_node(hop, name), [], [])


def copy_node(hop: Hop, name: str) -> Node:
    """What stands in messages for a copy that is no node: the value, and where it goes."""
    attrs = {"from": hop.src, "to": hop.dst, "how": hop.how}
    return Node(
        COPY, f"{name or 'value'}/copy_to_{short(hop.dst)}", spec=None, attrs=attrs,
        inputs=[], out_dtypes=[], out_shapes=[],
    )  # fmt: skip


def device_of(node: Node) -> str:
    """The device that a node's record stands under; copies to the host count for their device."""
    if node.target is not None:
        return node.target.name
    if node.op == COPY:
        to: str = node.attrs["to"]
        return to if to != HOST else str(node.attrs["from"])
    return "/job:localhost/replica:0/task:0/device:CPU:0"


def _copy_label(node: Node) -> str:
    source, to = node.attrs["from"], node.attrs["to"]
    if source == HOST:
        return "MEMCPYHtoD"
    return "MEMCPYDtoH" if to == HOST else "MEMCPYPtoP"


def _copy_details(node: Node, outputs: list[Any]) -> str:
    """How many bytes went which way; without parentheses, which end a label's inputs."""
    attrs = node.attrs
    nbytes = sum(n for _, n in outputs)
    return f" {nbytes} bytes, {short(attrs['from'])} to {short(attrs['to'])} by {attrs['how']}"


def _members(node: Node) -> str:
    """The ops for which a segment stands, by which they are found in the graph."""
    if node.op != SEGMENT or node.fused is None:
        return ""
    told = [f"{member.name} {member.op}" for member in node.fused.members]
    return f" {len(told)} ops: {', '.join(told)}"


def partition_graphs(blocks: Sequence[Block]) -> list[Any]:
    """One GraphDef a device of what programs run; copies appear as _Send and _Recv."""
    from opdock.graph.serial.attr_proto import encode_attr
    from opdock.io import protos

    graphs: dict[str, Any] = {}
    for node in (node for block in blocks for node in block.nodes):
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
            made.attr["route"].s = str(node.attrs["how"]).encode()
        elif node.op == FEED:
            made.attr["dtype"].type = node.out_dtypes[0].base_dtype.as_datatype_enum
    return list(graphs.values())


def _partition_op(node: Node) -> str:
    if node.op == COPY:
        return "_HostSend" if node.attrs["to"] == HOST else "_HostRecv"
    return arg_op.name if node.op == FEED else node.op


__all__ = ["Tracer", "device_of", "partition_graphs"]
