"""`tf.config`: what TF 1.15 keeps for eager execution; sessions take a `tf.ConfigProto` instead.

A graph's session does not look at these settings, neither in TF nor here: they are kept and told.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from opdock.graph.nodes.graph import Graph
from opdock.runtime.session import Session

__all__ = [
    "experimental", "get_soft_device_placement", "optimizer", "set_soft_device_placement",
    "threading",
]  # fmt: skip

_kept: Final[dict[str, Any]] = {"soft": False, "intra": 0, "inter": 0, "jit": False}
_optimizer_options: Final[dict[str, Any]] = {}
_memory_growth: Final[dict[Any, bool]] = {}
_visible: Final[dict[str, list[Any]]] = {}


class PhysicalDevice(NamedTuple):
    """A device of this machine."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device as operations name it."""

    name: str
    device_type: str


def _devices() -> list[LogicalDevice]:
    with Session(graph=Graph()) as session:
        found = session.list_devices()
    return [
        LogicalDevice("/device:" + d.name.partition("/device:")[2], d.device_type) for d in found
    ]


def get_soft_device_placement() -> bool:
    """What `set_soft_device_placement` was given; False at first."""
    return bool(_kept["soft"])


def set_soft_device_placement(enabled: bool) -> None:
    """Keeps the setting; a session's is `ConfigProto.allow_soft_placement`."""
    _kept["soft"] = bool(enabled)


class threading:
    """Numbers of threads; a session's are those of its ConfigProto."""

    @staticmethod
    def get_intra_op_parallelism_threads() -> int:
        """What was set; 0 lets the system choose."""
        return int(_kept["intra"])

    @staticmethod
    def set_intra_op_parallelism_threads(num_threads: int) -> None:
        """Keeps the number."""
        _kept["intra"] = int(num_threads)

    @staticmethod
    def get_inter_op_parallelism_threads() -> int:
        """What was set; 0 lets the system choose."""
        return int(_kept["inter"])

    @staticmethod
    def set_inter_op_parallelism_threads(num_threads: int) -> None:
        """Keeps the number."""
        _kept["inter"] = int(num_threads)


class optimizer:
    """Options of TF's graph optimizer; opdock's passes are switched in a session's options."""

    @staticmethod
    def get_jit() -> bool:
        """What `set_jit` was given."""
        return bool(_kept["jit"])

    @staticmethod
    def set_jit(enabled: bool) -> None:
        """Keeps the setting."""
        _kept["jit"] = bool(enabled)

    @staticmethod
    def get_experimental_options() -> dict[str, Any]:
        """What `set_experimental_options` was given."""
        return dict(_optimizer_options)

    @staticmethod
    def set_experimental_options(options: dict[str, Any]) -> None:
        """Keeps the options."""
        _optimizer_options.update(options)


class experimental:
    """The devices, and what may be said of them."""

    @staticmethod
    def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
        """The devices that a session finds, or those of one type, such as "GPU"."""
        return [
            PhysicalDevice(d.name.replace("/device:", "/physical_device:"), d.device_type)
            for d in _devices()
            if device_type in (None, d.device_type)
        ]

    @staticmethod
    def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
        """The same devices as operations name them."""
        return [d for d in _devices() if device_type in (None, d.device_type)]

    @staticmethod
    def get_visible_devices(device_type: str | None = None) -> list[Any]:
        """The devices of a type that were not hidden."""
        listed = experimental.list_physical_devices(device_type)
        return [d for d in listed if d in _visible.get(d.device_type, listed)]

    @staticmethod
    def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
        """Keeps which devices should be seen.

        Raises:
            ValueError: a device does not exist, or is of another type.
        """
        chosen = list(devices) if isinstance(devices, (list, tuple)) else [devices]
        chosen = [d for d in chosen if d is not None]
        _check_known(chosen)
        for device in chosen:
            if device_type is not None and device.device_type != device_type:
                raise ValueError(f"Unrecognized device: {device!r}")
        types = [device_type] if device_type else {d.device_type for d in chosen}
        for kind in types:
            _visible[str(kind)] = [d for d in chosen if d.device_type == kind]

    @staticmethod
    def get_memory_growth(device: Any) -> bool:
        """What was set for a device.

        Raises:
            ValueError: the device does not exist.
        """
        _check_known([device])
        return _memory_growth.get(device, False)

    @staticmethod
    def set_memory_growth(device: Any, enable: bool) -> None:
        """Keeps the setting: memory always grows as it is needed.

        Raises:
            ValueError: the device does not exist.
        """
        _check_known([device])
        _memory_growth[device] = bool(enable)


def _check_known(devices: list[Any]) -> None:
    known = experimental.list_physical_devices()
    for device in devices:
        if device not in known:
            raise ValueError(f"Unrecognized device: {device!r}")
