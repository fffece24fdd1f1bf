"""opdock's CPU backend: every op of TensorFlow 1 on NumPy arrays in host memory."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from opdock.plugin import BackendSpec, GraphPass, GraphView, KernelModule, hookimpl
from opdock_cpu._kernels import TABLES


@hookimpl
def opdock_backends() -> Iterator[BackendSpec]:
    """The backend that is always there, and to which every other falls back."""
    yield BackendSpec(
        name="cpu",
        device_type="CPU",
        own_type="CPU",
        api=(1, 0),
        priority=0,
        probe="opdock_cpu.probe:probe",
        device="opdock_cpu.device:CpuDevice",
        kernels=tuple(
            KernelModule(table=table, ops=frozenset(ops.split())) for table, ops in TABLES.items()
        ),
        fusions=(
            "opdock_cpu.onednn.fusions:patterns",
            "opdock_cpu.onednn.narrowed_fusions:patterns",
            "opdock_cpu.jit.entropy:patterns",
        ),
        notes="opdock_cpu.notes:notes",
    )


@hookimpl
def opdock_graph_passes() -> Iterator[GraphPass]:
    """Tells convolutions and the like which of their inputs can be laid out once."""

    def note(graph: GraphView) -> None:
        importlib.import_module("opdock_cpu.onednn.stays").note_kept_inputs(graph)

    yield GraphPass(name="cpu_kept_inputs", stage="after_place", run=note)
