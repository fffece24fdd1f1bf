"""What one node did in one traced step: times by device, and memory."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from opdock.profiler.figures import Figures

__all__ = ["Execution", "is_accelerator_stream", "is_device"]

_DEVICE: Final = re.compile(r".*/(device:\w+|cpu|gpu):\d+")
_STREAM: Final = "stream:all"


def is_device(name: str) -> bool:
    """Whether a record stands under a device itself, as the host saw it run."""
    return _DEVICE.fullmatch(name) is not None


def is_accelerator_stream(name: str) -> bool:
    """Whether records of this name are an accelerator's own times."""
    return _STREAM in name


@dataclass(slots=True)
class Execution:
    """The records of a node in a step; in a loop there are several.

    Attributes:
        start: when it first began, in microseconds since 1970; 0 if that is not known.
        end: when it last ended.
        on_device: by device, begin and length as the host saw them.
        on_stream: the same by the clock of an accelerator.
        memory: an `ExecMemory` for each time that it ran.
        allocations: the messages of what allocators of accelerators did.
        devices: all names under which there are records.
    """

    start: int = 0
    end: int = 0
    on_device: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    on_stream: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    memory: list[Any] = field(default_factory=list)
    allocations: list[Any] = field(default_factory=list)
    devices: set[str] = field(default_factory=set)

    def add_time(self, device: str, record: Any) -> None:
        """Adds when a `NodeExecStats` says that the node ran."""
        self.devices.add(device)
        start = record.all_start_micros
        if start <= 0:
            return
        length = record.op_end_rel_micros or 1  # what ran has taken some time
        self.start = min(self.start, start) if self.start else start
        self.end = max(self.end, start + length)
        if is_accelerator_stream(device):
            self.on_stream.setdefault(device, []).append((start, length))
        elif is_device(device):
            self.on_device.setdefault(device, []).append((start, length))

    def add_memory(self, device: str, record: Any) -> None:
        """Adds what a `NodeExecStats` says of memory; nothing if it has no time."""
        from opdock.io import protos

        if record.all_start_micros <= 0:
            return
        made = protos.ExecMemory(memory_micros=record.all_start_micros + record.op_end_rel_micros)
        for allocator in record.memory:
            if "gpu" in allocator.allocator_name.lower():
                made.allocator_bytes_in_use = max(
                    made.allocator_bytes_in_use, allocator.allocator_bytes_in_use
                )
                self.allocations.extend(allocator.allocation_records)
        for output in record.output:
            allocated = output.tensor_description.allocation_description
            size = max(allocated.allocated_bytes, allocated.requested_bytes)
            made.output_bytes += size
            made.output_memory[output.slot].bytes = size
            made.output_memory[output.slot].ptr = allocated.ptr
        temporary = record.memory_stats.temp_memory_size
        persistent = record.memory_stats.persistent_memory_size
        where = "host" if "cpu" in device else "accelerator"
        setattr(made, f"{where}_temp_bytes", temporary)
        setattr(made, f"{where}_persistent_bytes", persistent)
        made.requested_bytes = sum(m.total_bytes for m in record.memory) + temporary + persistent
        made.peak_bytes = sum(m.peak_bytes for m in record.memory) + temporary + persistent
        made.residual_bytes = sum(m.live_bytes for m in record.memory) + persistent
        self.memory.append(made)

    @property
    def runs(self) -> dict[str, list[tuple[int, int]]]:
        """By device and stream, begin and length of each run."""
        return self.on_device | self.on_stream

    @property
    def figures(self) -> Figures:
        """The sums over all times that it ran."""
        host = [length for times in self.on_device.values() for _, length in times]
        streams = [length for times in self.on_stream.values() for _, length in times]
        return Figures(
            run_count=len(host),
            exec_micros=sum(host) + sum(streams),
            accelerator_exec_micros=sum(streams),
            cpu_exec_micros=sum(host),
            requested_bytes=sum(m.requested_bytes for m in self.memory),
            peak_bytes=sum(m.peak_bytes for m in self.memory),
            residual_bytes=sum(m.residual_bytes for m in self.memory),
            output_bytes=sum(m.output_bytes for m in self.memory),
        )

    def as_proto(self) -> Any:
        """The execution as an `ExecProfile` message."""
        from opdock.io import protos

        made = protos.ExecProfile(
            run_count=self.figures.run_count, all_start_micros=self.start,
            latest_end_micros=self.end, memory_execs=self.memory, allocations=self.allocations,
            devices=sorted(self.devices),
        )  # fmt: skip
        for times, field_name in ((self.on_stream, "accelerator_execs"),
                                  (self.on_device, "cpu_execs")):  # fmt: skip
            for device, runs in times.items():
                for run in runs:
                    getattr(made, field_name)[device].times.add(int64_values=run)
        return made
