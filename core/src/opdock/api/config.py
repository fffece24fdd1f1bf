"""`tf.config`: what sessions are asked that are made without a `tf.ConfigProto`.

A session reads the settings when it is made; one with a ConfigProto takes that and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from opdock import errors
from opdock.graph.nodes.graph import Graph
from opdock.io import protos
from opdock.ops.composed.function_traces import (
    run_functions_eagerly as experimental_run_functions_eagerly,
)
from opdock.runtime.process_settings import FIRST_CPU, kept_options, settings
from opdock.runtime.session import Session

__all__ = [
    "experimental", "experimental_run_functions_eagerly", "get_soft_device_placement",
    "optimizer", "set_soft_device_placement", "threading",
]  # fmt: skip


_MEGABYTE: Final = 2**20


class PhysicalDevice(NamedTuple):
    """A device of this machine."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device as operations name it."""

    name: str
    device_type: str


class VirtualDeviceConfiguration(NamedTuple):
    """One of the devices that a physical one is divided into.

    Attributes:
        memory_limit: how many megabytes of a GPU's memory it may take; None for a processor.
    """

    memory_limit: int | None = None


_Parts = list[VirtualDeviceConfiguration]


def _devices(config: Any) -> list[LogicalDevice]:
    with Session(graph=Graph(), config=config) as session:
        found = session.list_devices()
    return [LogicalDevice(_name(d, "/device:"), d.device_type) for d in found]


def _name(device: Any, kind: str) -> str:
    return kind + str(device.name).partition("/device:")[2]


def get_soft_device_placement() -> bool:
    """What `set_soft_device_placement` was given; False at first."""
    return bool(settings.soft)


def set_soft_device_placement(enabled: bool) -> None:
    """Sets `ConfigProto.allow_soft_placement` of sessions without a ConfigProto.

    Args:
        enabled: whether it is on.
    """
    settings.soft = bool(enabled)


class threading:
    """Numbers of threads of sessions without a ConfigProto."""

    @staticmethod
    def get_intra_op_parallelism_threads() -> int:
        """What was set; 0 lets the system choose."""
        return settings.intra

    @staticmethod
    def set_intra_op_parallelism_threads(num_threads: int) -> None:
        """Has one operation use at most `num_threads` threads; 0 lets the runtime choose."""
        settings.intra = int(num_threads)

    @staticmethod
    def get_inter_op_parallelism_threads() -> int:
        """What was set; 0 lets the system choose."""
        return settings.inter

    @staticmethod
    def set_inter_op_parallelism_threads(num_threads: int) -> None:
        """Has at most `num_threads` operations run at once; 0 lets the runtime choose."""
        settings.inter = int(num_threads)


class optimizer:
    """Options of the graph optimizer, in the ConfigProto's words, for sessions without one."""

    @staticmethod
    def get_jit() -> bool:
        """What `set_jit` was given; False at first."""
        return bool(settings.jit)

    @staticmethod
    def set_jit(enabled: bool) -> None:
        """Keeps `enabled`; whether a device compiles whole programs is its plugin's matter."""
        settings.jit = bool(enabled)

    @staticmethod
    def get_experimental_options() -> dict[str, Any]:
        """The options that were set, and the two plain switches in any case."""
        return kept_options()

    @staticmethod
    def set_experimental_options(options: dict[str, Any]) -> None:
        """Sets fields of `RewriterConfig` to what `options`, a dict by their names, says.

        Names that it does not have are passed over.
        """
        settings.optimizer.update(options)


class experimental:
    """The devices, and what may be said of them."""

    @staticmethod
    def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
        """The devices of this machine, or those of `device_type`, such as "GPU"."""
        return [
            PhysicalDevice(d.name.replace("/device:", "/physical_device:"), d.device_type)
            for d in _devices(protos.ConfigProto())
            if device_type in (None, d.device_type)
        ]

    @staticmethod
    def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
        """Devices of sessions without a ConfigProto, of `device_type` or all, as operations say."""
        return [d for d in _devices(None) if device_type in (None, d.device_type)]

    @staticmethod
    def get_visible_devices(device_type: str | None = None) -> list[Any]:
        """The devices of `device_type`, or of all types, that were not hidden."""
        listed = experimental.list_physical_devices(device_type)
        visible = settings.visible
        return [
            d for d in listed
            if d.device_type not in visible or _number(d) in visible[d.device_type]
        ]  # fmt: skip

    @staticmethod
    def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
        """Has sessions without a ConfigProto see `devices` alone, of `device_type` or of all types.

        Raises:
            ValueError: a device does not exist, or is of another type.
        """
        chosen = list(devices) if isinstance(devices, (list, tuple)) else [devices]
        chosen = [d for d in chosen if d is not None]
        known = _check_known(chosen)
        for device in chosen:
            if device_type is not None and device.device_type != device_type:
                raise ValueError(f"Unrecognized device: {device!r}")
        for kind in [device_type] if device_type else {d.device_type for d in known}:
            numbers = tuple(_number(d) for d in chosen if d.device_type == kind)
            settings.visible[str(kind)] = numbers

    @staticmethod
    def get_memory_growth(device: Any) -> bool:
        """What was set for a device.

        Raises:
            ValueError: the device does not exist.
        """
        _check_known([device])
        return device.name in settings.growing

    @staticmethod
    def set_memory_growth(device: Any, enable: bool) -> None:
        """Sets `GPUOptions.allow_growth` where `enable` says so: memory grows as it is needed.

        Raises:
            ValueError: the device does not exist.
        """
        _check_known([device])
        (settings.growing.add if enable else settings.growing.discard)(device.name)

    VirtualDeviceConfiguration = VirtualDeviceConfiguration

    @staticmethod
    def get_virtual_device_configuration(device: Any) -> _Parts | None:
        """What `set_virtual_device_configuration` was given for a device; None at first.

        Raises:
            ValueError: the device does not exist.
        """
        _check_known([device])
        return settings.virtual.get(device.name)

    @staticmethod
    def set_virtual_device_configuration(device: Any, virtual_devices: _Parts) -> None:
        """Divides the processor into several devices, or limits how much memory of GPUs is taken.

        Args:
            device: one of `list_physical_devices`.
            virtual_devices: a configuration for each device that it is to be.

        Raises:
            ValueError: the device does not exist, or is of no type that can be divided; a
                processor is given a limit, or a GPU none.
            UnimplementedError: a GPU is to be several devices, or GPUs differ in their limits, or
                it is not known how much memory they have.
        """
        _check_known([device])
        given = list(virtual_devices)
        if device.device_type == "CPU":
            if any(v.memory_limit is not None for v in given):
                raise ValueError(
                    "Setting memory limit on CPU virtual devices is currently not supported"
                )
        elif device.device_type == "GPU":
            settings.fraction = _fraction(device, given)
        else:
            raise ValueError(f"Virtual devices are not supported for {device.device_type}")
        settings.virtual[device.name] = given

    @staticmethod
    def get_device_policy() -> str:
        """What `set_device_policy` was given; "silent" at first."""
        return _eager.policy

    @staticmethod
    def set_device_policy(device_policy: str | None) -> None:
        """Keeps what to do where eager operations take tensors of other devices: there are none.

        Args:
            device_policy: "silent", "silent_for_int32", "explicit", "warn" or None for "silent".

        Raises:
            ValueError: it is none of these.
        """
        if device_policy not in (None, "silent", "silent_for_int32", "explicit", "warn"):
            raise ValueError(f"{device_policy!r} is not a valid device policy")
        _eager.policy = device_policy or "silent"

    @staticmethod
    def get_synchronous_execution() -> bool:
        """What `set_synchronous_execution` was given; True at first."""
        return _eager.synchronous

    @staticmethod
    def set_synchronous_execution(enable: bool) -> None:
        """Keeps `enable`: whether eager operations wait for their results. They always do."""
        _eager.synchronous = bool(enable)


@dataclass
class _Eager:
    """What programs say of eager operations, and may ask for."""

    policy: str = "silent"
    synchronous: bool = True


_eager: Final = _Eager()


def _fraction(device: PhysicalDevice, given: _Parts) -> float:
    """The part of a GPU's memory that it is limited to."""
    if any(v.memory_limit is None for v in given):
        raise ValueError("Setting memory limit is required for GPU virtual devices")
    if len(given) != 1:
        raise errors.UnimplementedError(
            None, None, f"{device.name} cannot be {len(given)} devices: a GPU is one device"
        )
    with Session(graph=Graph(), config=protos.ConfigProto()) as session:
        sizes = {
            _name(d, "/physical_device:"): d.memory_limit_bytes for d in session.list_devices()
        }
    if not sizes[device.name]:
        raise errors.UnimplementedError(
            None, None, f"it is not known how much memory {device.name} has, so it has no limit"
        )
    fraction: float = min(1.0, int(given[0].memory_limit or 0) * _MEGABYTE / sizes[device.name])
    others = [name for name in settings.virtual if name not in (device.name, FIRST_CPU)]
    if others and settings.fraction != fraction:
        raise errors.UnimplementedError(
            None, None, f"one part of the memory is for all GPUs: {others[0]} was given another"
        )
    return fraction


def _number(device: PhysicalDevice) -> int:
    return int(device.name.rpartition(":")[2])


def _check_known(devices: list[Any]) -> list[PhysicalDevice]:
    known = experimental.list_physical_devices()
    for device in devices:
        if device not in known:
            raise ValueError(f"Unrecognized device: {device!r}")
    return known
