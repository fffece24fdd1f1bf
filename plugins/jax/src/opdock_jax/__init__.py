"""JAX's devices as devices of opdock; imports of opdock only its module for plugins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opdock.plugin import BackendSpec, CopyRoute, hookimpl


@hookimpl
def opdock_backends() -> Iterator[BackendSpec]:
    """Accelerators join the GPU pool behind backends of their own; a CPU serves who asks for it."""
    yield BackendSpec(
        name="jax",
        device_type="GPU",
        own_type="JAX",
        api=(1, 1),
        priority=40,
        probe="opdock_jax.probe:probe",
        device="opdock_jax.device:JaxDevice",
        kernels=("opdock_jax.kernels:table_for",),
        compiler="opdock_jax.segments:compile_segment",
        install_hint='pip install "opdock-jax"',
    )


def _move(buffer: Any, source: Any, target: Any) -> Any:
    return target.take(buffer)


@hookimpl
def opdock_copy_routes() -> Iterator[CopyRoute]:
    """From one device of JAX to another without a stop in host memory."""
    yield CopyRoute(src="JAX", dst="JAX", cost=0.3, copy=_move)
