"""The device under test: its names, its kernels and fusions, and what its plugin says of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from opdock.devices.pool import DevicePool, PoolDevice
from opdock.dtypes import DType
from opdock.kernels.select.selection import KernelIndex
from opdock.nearest import meant
from opdock.plugins.manager import OpenDevice, get_manager
from opdock.plugins.patterns import Fusions
from opdock.plugins.records import Requirement, ToleranceRow
from opdock.testing.harness.plugins import load_plugins

__all__ = ["DeviceUnderTest", "open_device"]

_NAME = re.compile(r"(?:/?device:)?([A-Za-z_]\w*):(\d+)|/.*device:(\w+):(\d+)")


@dataclass(frozen=True)
class DeviceUnderTest:
    """One open device.

    Attributes:
        asked: what the user called it, "cpu:0".
        pool: its place in the pool of devices.
        opened: the device with its kernels and fusions, from the plugin manager.
        requirements: what its plugin says that it does not do.
        tolerances: where its plugin asks for more slack, with reasons.
    """

    asked: str
    pool: PoolDevice
    opened: OpenDevice
    requirements: tuple[Requirement, ...] = ()
    tolerances: tuple[ToleranceRow, ...] = ()

    @property
    def device(self) -> Any:
        """The backend's device object."""
        return self.opened.device

    @property
    def kernels(self) -> KernelIndex:
        """Every kernel of the device, ranked."""
        return self.opened.kernels

    @property
    def fusions(self) -> Fusions:
        """The fusion patterns that plugins declare for the device."""
        return self.opened.fusions

    @property
    def name(self) -> str:
        """The canonical full name, as `Session.explain` gives it."""
        return self.pool.name

    @property
    def scope(self) -> str:
        """The device by its backend's own type: unambiguous whatever else is installed."""
        return f"/device:{self.pool.own_type}:{self.pool.own_index}"

    @property
    def api(self) -> tuple[int, int]:
        """The plugin API version for which the backend was written."""
        return self.opened.probed.spec.api

    @property
    def dtypes(self) -> frozenset[DType] | None:
        """Element types that buffers can hold; None for all."""
        found: frozenset[DType] | None = self.device.dtypes
        return found

    def requirement(self, name: str, dtype: str = "") -> Requirement | None:
        """What the plugin says about an op type or feature for an element type."""
        for record in self.requirements:
            if record.name == name and (not record.dtypes or dtype in record.dtypes):
                return record
        return None

    def tolerance(self, op: str, dtype: str) -> ToleranceRow | None:
        """The plugin's wider tolerance for an op and element type."""
        for row in self.tolerances:
            if row.op in (op, "*") and row.dtype == dtype:
                return row
        return None


def open_device(name: str) -> DeviceUnderTest:
    """Opens the device called ``name``: "cpu:0", "/device:CPU:0" or a full name.

    Raises:
        ValueError: the text is no device name.
        LookupError: there is no such device; the message says why.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} is no device name; write type:number, for instance cpu:0")
    device_type = (match[1] or match[3]).upper()
    index = int(match[2] or match[4])
    manager = get_manager()
    pool = DevicePool.build(manager.devices())
    found = pool.matching(device_type, index)
    if not found:
        known = ", ".join(sorted(str(d) for d in pool.devices)) or "none"
        why = manager.why_unavailable(device_type)
        types = {d.name.rpartition("/device:")[2].partition(":")[0] for d in pool}
        near = meant(device_type, types - {device_type})
        raise LookupError(f"There is no device {name!r}: {why or f'devices are {known}'}{near}")
    opened = manager.open(found[0].probed)
    load_plugins()  # what the device claims depends on what the samples of an op vary
    records = manager.requirements(opened.backend)
    return DeviceUnderTest(
        name,
        found[0],
        opened,
        tuple(r for r in records if isinstance(r, Requirement)),
        tuple(r for r in records if isinstance(r, ToleranceRow)),
    )
