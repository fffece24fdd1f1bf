"""What `doctor` and `devices` share: records as JSON, sizes and device names for people."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Final

from opdock.devices.pool import DevicePool

DEVICE_KEYS: Final = {
    "name": "its full name",
    "aliases": "other names by which it is found",
    "description": "what it is, in words",
    "backend": "the backend that serves it",
    "distribution": "the package that brings the backend",
    "priority": "devices of higher priority are taken first",
    "automatic": "whether it is taken without being asked for",
    "memory_bytes": "the size of its memory; null if unknown",
    "physical_id": "what tells the same hardware behind two backends",
    "features": "what it can, in words",
}
"""What `pool_rows` says of each device."""


def as_json(value: Any) -> str:
    """Records as indented JSON; sets become sorted lists."""
    return json.dumps(_plain(value), indent=2)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def size(n_bytes: int | None) -> str:
    """Bytes for people: "23.5 GiB"; "-" when unknown."""
    if n_bytes is None:
        return "-"
    value = float(n_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} TiB"


def short(name: str) -> str:
    """A device name without its task: "/device:GPU:0"."""
    return name[name.index("/device:") :]


def pool_rows(pool: DevicePool) -> list[dict[str, Any]]:
    """The devices of a pool as plain data, best first."""
    return [
        {
            "name": device.name,
            "aliases": list(device.aliases),
            "description": device.description,
            "backend": device.probed.spec.name,
            "distribution": device.probed.distribution,
            "priority": device.priority,
            "automatic": device.automatic,
            "memory_bytes": device.probed.attributes.memory_bytes,
            "physical_id": device.probed.attributes.physical_id,
            "features": sorted(device.probed.attributes.features),
        }
        for device in pool
    ]
