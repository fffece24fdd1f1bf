"""opdock's CPU backend: every op of TensorFlow 1 on NumPy arrays in host memory."""

from __future__ import annotations

from collections.abc import Iterator

from opdock.plugin import BackendSpec, hookimpl

FAMILIES = ("io", "random", "summary")


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
