"""opdock's CUDA backend: NVIDIA GPUs through CuPy, which is imported when a device opens."""

from __future__ import annotations

from collections.abc import Iterator

from opdock.plugin import BackendSpec, hookimpl


@hookimpl
def opdock_backends() -> Iterator[BackendSpec]:
    """The backend; it comes before others that drive the same GPU."""
    yield BackendSpec(
        name="cuda",
        device_type="GPU",
        own_type="CUDA",
        api=(1, 0),
        priority=200,
        probe="opdock_cuda.probe:probe",
        device="opdock_cuda.device:CudaDevice",
        kernels=(),
        install_hint='pip install "opdock-cuda[cuda12]" or "opdock-cuda[cuda13]"',
    )
