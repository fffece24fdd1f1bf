"""opdock's CPU backend: every op of TensorFlow 1 on NumPy arrays in host memory."""

from __future__ import annotations

from collections.abc import Iterator

from opdock.plugin import BackendSpec, hookimpl

FAMILIES = (
    "arithmetic",
    "array",
    "bitwise",
    "cast",
    "compare",
    "complex",
    "conv",
    "ctc",
    "decompositions",
    "depthwise",
    "elementary",
    "gather",
    "histogram",
    "io",
    "joining",
    "linalg",
    "matrix",
    "morphology",
    "nn",
    "norm",
    "padding",
    "partition",
    "pool",
    "random",
    "random_dist",
    "random_grad",
    "reduce",
    "scan",
    "scatter",
    "segment",
    "select",
    "solve",
    "sets",
    "sorting",
    "sparse_math",
    "special",
    "state",
    "strings",
    "summary",
    "tiling",
    "xent",
)


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
        kernels=tuple(f"opdock_cpu.kernels.{family}:table" for family in FAMILIES),
    )
