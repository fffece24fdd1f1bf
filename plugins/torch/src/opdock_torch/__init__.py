"""PyTorch's devices as devices of opdock; imports of opdock only its module for plugins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opdock.plugin import BackendSpec, CopyRoute, hookimpl


@hookimpl
def opdock_backends() -> Iterator[BackendSpec]:
    """Accelerators join the GPU pool behind backends of their own; a CPU serves who asks for it."""
    yield BackendSpec(
        name="torch",
        device_type="GPU",
        own_type="TORCH",
        api=(1, 0),
        priority=50,
        probe="opdock_torch.probe:probe",
        device="opdock_torch.device:TorchDevice",
        kernels=("opdock_torch.kernels:table", "opdock_torch.functions:table"),
        compiler="opdock_torch.segments:compile_segment",
        install_hint='pip install "opdock-torch"',
    )


def _move(buffer: Any, source: Any, target: Any) -> Any:
    return target.take(buffer, copy=True)


@hookimpl
def opdock_copy_routes() -> Iterator[CopyRoute]:
    """From one device of PyTorch to another without a stop in host memory."""
    yield CopyRoute(src="TORCH", dst="TORCH", cost=0.3, copy=_move)
