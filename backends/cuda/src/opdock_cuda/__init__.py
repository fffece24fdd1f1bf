"""opdock's CUDA backend: NVIDIA GPUs through CuPy, which is imported when a device opens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opdock.plugin import BackendSpec, CopyRoute, hookimpl


@hookimpl
def opdock_backends() -> Iterator[BackendSpec]:
    """The backend; it comes before others that drive the same GPU."""
    yield BackendSpec(
        name="cuda",
        device_type="GPU",
        own_type="CUDA",
        api=(1, 1),
        priority=200,
        probe="opdock_cuda.probe:probe",
        device="opdock_cuda.device:CudaDevice",
        kernels=("opdock_cuda.kernels:table_for",),
        fusions=("opdock_ckernels.families.fusion:patterns",),
        compiler="opdock.plugin:record_segment",
        install_hint='pip install "opdock-cuda[cuda12]" or "opdock-cuda[cuda13]"',
    )


@hookimpl
def opdock_copy_routes() -> Iterator[CopyRoute]:
    """Between two GPUs without a stop in host memory."""
    yield CopyRoute(src="CUDA", dst="CUDA", cost=0.2, copy=_between)


def _between(buffer: Any, source: Any, target: Any) -> Any:
    return target.copy_peer(buffer)
