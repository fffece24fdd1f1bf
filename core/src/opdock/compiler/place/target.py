"""A device as the compiler sees it: name, kernels, and where its buffers live."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import field
from typing import TYPE_CHECKING, Any

from opdock import errors
from opdock.compiler.ir.block import HOST
from opdock.devices.protocols import has_limits
from opdock.graph.nodes.devicespec import DeviceSpec
from opdock.late import record

if TYPE_CHECKING:
    from opdock.devices.protocols import Device
    from opdock.devices.segment import SegmentCompiler
    from opdock.kernels.select.selection import KernelIndex
    from opdock.plugins.patterns import Fusions


@record(eq=False, slots=True)
class Target:
    """One device of a session.

    Attributes:
        name: the full name, `/job:localhost/replica:0/task:0/device:CPU:0`.
        aliases: further full names (a pool member under its backend's own type).
        backend: the backend's name.
        distribution: the installed distribution that supplies it.
        priority: higher ones get the nodes that ask for no device.
        automatic: whether placement may choose it for nodes that do not ask for it.
        open: opens the device; returns (device, index of its kernels, fusions, compiler).
        options: what the session asks of it.
    """

    name: str
    aliases: tuple[str, ...]
    backend: str
    distribution: str
    priority: int
    open: Any
    description: str = ""
    automatic: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    _opened: Any = field(default=None, repr=False)
    _refused: str | None = field(default=None, repr=False)

    def opened(self) -> Any:
        """(device, kernel index, fusions, compiler), opening the device on first use.

        Raises:
            UnavailableError: it cannot be opened, or could not be since `ask_again`.
        """
        if self._opened is None:
            if self._refused is not None:
                raise errors.UnavailableError(None, None, self._refused)
            try:
                self._opened = self.open()
            except errors.UnavailableError as e:
                self._refused = e.message
                raise
        return self._opened

    def ask_again(self) -> None:
        """Has a device that failed to open be asked once more, when it is needed."""
        self._refused = None

    @property
    def device(self) -> Device:
        """The open device."""
        device: Device = self.opened()[0]
        return device

    @property
    def index(self) -> KernelIndex:
        """The device's kernels by op."""
        index: KernelIndex = self.opened()[1]
        return index

    @property
    def is_open(self) -> bool:
        """Whether the device has been opened; no node is placed on one that has not."""
        return self._opened is not None

    @property
    def fusions(self) -> Fusions:
        """The patterns that the device computes at once."""
        fusions: Fusions = self.opened()[2]
        return fusions

    @property
    def compiler(self) -> SegmentCompiler | None:
        """What compiles segments of the device's nodes as a whole, if anything does."""
        compiler: SegmentCompiler | None = self.opened()[3]
        return compiler

    def within(self) -> AbstractContextManager[None] | None:
        """What the session's kernels are bound within here, and its steps run; None for nothing."""
        return self.device.within(self.options) if has_limits(self.device) else None

    @property
    def owner(self) -> str:
        """The backend, with the distribution that supplies it, for messages."""
        return f"backend {self.backend!r} ({self.distribution or 'no distribution'})"

    @property
    def is_host(self) -> bool:
        """Whether buffers are NumPy arrays in host memory."""
        return bool(self.opened()[0].is_host)

    @property
    def device_type(self) -> str:
        """The type part of the name: "CPU"."""
        return parsed(self.name).device_type or ""

    def matches(self, spec: DeviceSpec) -> bool:
        """Whether this device satisfies a possibly partial specification."""
        return any(_matches(parsed(n), spec) for n in (self.name, *self.aliases))

    def __repr__(self) -> str:
        return f"<{self.name}>"


def memory_of(target: Target | None) -> str:
    """Where values on a device live: its name, or `HOST`."""
    return HOST if target is None or target.is_host else target.name


@functools.lru_cache(4096)
def parsed(name: str) -> DeviceSpec:
    """A device's name in parts, which nobody changes: placement asks for them once a node."""
    return DeviceSpec.from_string(name)


def _matches(full: DeviceSpec, wanted: DeviceSpec) -> bool:
    return (
        wanted.job in (None, full.job)
        and wanted.replica in (None, full.replica)
        and wanted.task in (None, full.task)
        and (
            wanted.device_type is None
            or wanted.device_type.upper() == (full.device_type or "").upper()
        )
        and wanted.device_index in (None, full.device_index)
    )
