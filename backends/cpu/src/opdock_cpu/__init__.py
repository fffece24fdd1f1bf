"""opdock's CPU backend: every op of TensorFlow 1 on NumPy arrays in host memory."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Final

from opdock.plugin import BackendSpec, FusionModule, GraphPass, GraphView, KernelModule, hookimpl
from opdock_cpu._kernels import TABLES

FUSIONS: Final = {
    "opdock_cpu.onednn.fusions:patterns": (
        "Conv2D", "Conv2DBackpropFilter", "DepthwiseConv2dNative", "MatMul",
    ),
    "opdock_cpu.onednn.narrowed_fusions:patterns": (
        "QuantizedAdd", "QuantizedBiasAdd", "QuantizedConv2D", "QuantizedMatMul",
    ),
    "opdock_cpu.jit.entropy:patterns": (
        "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits",
    ),
}  # fmt: skip
"""Fusion patterns, and the op types that they are about."""


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
        fusions=tuple(
            FusionModule(patterns=patterns, ops=frozenset(ops)) for patterns, ops in FUSIONS.items()
        ),
        notes="opdock_cpu.notes:notes",
    )


@hookimpl
def opdock_graph_passes() -> Iterator[GraphPass]:
    """Tells convolutions and the like which of their inputs can be laid out once."""

    def note(graph: GraphView) -> None:
        importlib.import_module("opdock_cpu.onednn.stays").note_kept_inputs(graph)

    yield GraphPass(name="cpu_kept_inputs", stage="after_place", run=note)
