"""Names of devices as strategies compare them: with every part filled in."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.devicespec import DeviceSpec, canonical_name
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.scopes import executing_eagerly_outside_functions

__all__ = [
    "canonicalize", "current", "get_host_for_device", "local_devices_from_num_gpus", "resolve",
]  # fmt: skip


class _Asked:
    """What device functions are asked about when no operation is being made."""

    device = type = name = ""
    node_def: Any = None

    def _set_device(self, device: Any) -> None:
        self.device = canonical_name(device)


def current() -> str:
    """The device on which an operation made now would be; empty where nothing says."""
    asked = _Asked()
    asked.node_def = _Asked()
    get_default_graph()._apply_device_functions(asked)
    return asked.device


def canonicalize(d: str | None, default: str | None = None) -> str:
    """A device's name with all parts: its own, those of `default`, those of the first CPU.

    Raises:
        AssertionError: the type of the device is not in capitals.
    """
    spec = DeviceSpec.from_string(d)
    kind = spec.device_type
    if kind is not None and kind != kind.upper():
        raise AssertionError(f"Device type '{kind}' must be all-caps.")
    job = "localhost" if executing_eagerly_outside_functions() else None
    found = DeviceSpec(job=job, replica=0, task=0, device_type="CPU", device_index=0)
    if default:
        found = found.make_merged_spec(DeviceSpec.from_string(default))
    return found.make_merged_spec(spec).to_string()


def resolve(d: str | None) -> str:
    """A device's name with all parts; those it lacks are the current device's."""
    return canonicalize(d, default=current())


def get_host_for_device(device: str) -> str:
    """The CPU of the task that has a device."""
    spec = DeviceSpec.from_string(device)
    return spec.replace(device_type="CPU", device_index=0).to_string()


def local_devices_from_num_gpus(num_gpus: int) -> tuple[str, ...]:
    """So many GPUs, or the CPU where there are none."""
    return tuple(f"/device:GPU:{i}" for i in range(num_gpus)) or ("/device:CPU:0",)
