"""A shapes-only device: what would run where, with which copies and how much memory.

Nothing is computed, so a fetched value holds zeros. `OPDOCK_NULL_DEVICES` (default 1) and
`OPDOCK_NULL_MEMORY` (bytes a device, default unlimited) describe the hardware to pretend.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from opdock.plugin import BackendSpec, DeviceAttributes, Probe, hookimpl


@hookimpl
def opdock_backends() -> Iterator[BackendSpec]:
    """The backend; placement never chooses it unasked."""
    yield BackendSpec(
        name="null",
        device_type="NULL",
        own_type="NULL",
        api=(1, 0),
        priority=-20,
        probe="opdock_null:probe",
        device="opdock_null.device:NullDevice",
        kernels=("opdock_null.kernels:table_for",),
        automatic=False,
    )


def probe() -> Probe:
    """As many devices as the environment asks for."""
    try:
        count = int(os.environ.get("OPDOCK_NULL_DEVICES", "1"))
        memory = int(os.environ.get("OPDOCK_NULL_MEMORY", "0")) or None
    except ValueError as e:
        return Probe(reason=f"OPDOCK_NULL_DEVICES and OPDOCK_NULL_MEMORY take numbers: {e}")
    if count <= 0:
        return Probe(reason="OPDOCK_NULL_DEVICES asks for no device")
    return Probe(
        devices=tuple(
            DeviceAttributes(index=i, description="shapes only", memory_bytes=memory, kind="null")
            for i in range(count)
        )
    )
