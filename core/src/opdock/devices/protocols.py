"""The device contract: structural protocols for buffers and devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple, Protocol, TypeGuard, runtime_checkable

import numpy as np

from opdock.dtypes import DType
from opdock.fields import check_fields
from opdock.kernels.portable import Exclusion
from opdock.late import record


@record(frozen=True, kw_only=True)
class DeviceAttributes:
    """Facts about a device, known after the probe and before the device is opened.

    Attributes:
        index: its number among the devices of its backend; `/device:<OWN>:index` names it.
        description: one line for people, e.g. the product name and the driver version.
        physical_id: what the hardware is called whoever drives it (a PCI bus id). Two backends that
            report the same id serve the same hardware, which then counts once in a pool. Empty:
            never de-duplicated.
        memory_bytes: memory in bytes, or None when unknown.
        features: words that kernels and placement may ask for. Core knows "virtual": the device may
            be opened several times under `ConfigProto(device_count=...)`.
        kind: what the hardware is ("cpu", "gpu", ...; empty when that says nothing). Hardware whose
            kind contradicts the backend's device type does not join that type's pool.

    Raises:
        TypeError, ValueError: a field is malformed.
    """

    index: int
    description: str = ""
    physical_id: str = ""
    memory_bytes: int | None = None
    features: frozenset[str] = frozenset()
    kind: str = ""

    def __post_init__(self) -> None:
        check_fields(self, "DeviceAttributes.")
        if self.index < 0:
            raise ValueError(f"DeviceAttributes.index must be an int >= 0, got {self.index!r}")
        features = (self.features,) if isinstance(self.features, str) else self.features
        if not isinstance(features, Iterable):
            raise TypeError(f"DeviceAttributes.features must hold words, got {features!r}")
        object.__setattr__(self, "features", frozenset(features))


@record(frozen=True, kw_only=True)
class MemoryStats:
    """Bytes of device memory; None where the device cannot tell."""

    in_use: int | None = None
    peak: int | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, "MemoryStats.")


@runtime_checkable
class Buffer(Protocol):
    """A tensor in device memory. NumPy, CuPy and PyOpenCL arrays are buffers as they are."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions."""

    @property
    def dtype(self) -> Any:
        """The element type: a NumPy dtype, or the one of the device's array namespace."""


class KernelTime(NamedTuple):
    """When a kernel ran, in nanoseconds of the device's clock."""

    name: str
    begin: int
    end: int


class Device(Protocol):
    """An open device: `BaseDevice` has its attributes, and defaults for all but two methods."""

    attributes: DeviceAttributes
    is_host: bool
    """True when the buffers are plain NumPy arrays in host memory."""
    namespace: Any
    """The array namespace that works on the buffers, or None; it mounts the portable kernels."""
    dtypes: frozenset[DType] | None
    """The element types that a buffer can hold; None for all."""
    namespace_device: Any
    """What the namespace's functions take as `device=` for an array that has no input to follow;
    None where the namespace knows."""
    dlpack: tuple[int, int] | None
    """What `__dlpack_device__` of the buffers says, (1, 0) for host memory, when values may come
    and go through DLPack without a copy through the host; else None."""
    data_format: str | None
    """"NHWC" or "NCHW" where programs are to be compiled for that one; None: as written."""
    refuses: Mapping[str, Exclusion]
    """Portable kernels that the device does without, by op type; see `BaseDevice.refuses`."""

    def upload(self, array: np.ndarray[Any, Any]) -> Buffer:
        """A copy of a host array; the caller may change the array as soon as this returns."""

    def borrow(self, array: np.ndarray[Any, Any]) -> Buffer:
        """`upload` of what is fed to one step; see `BaseDevice.borrow`."""

    def download(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """A fresh host array with the buffer's values; blocks until they are computed."""

    def surrender(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """`download` of what nobody else uses; see `BaseDevice.surrender`."""

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Buffer:
        """An uninitialized buffer; ResourceExhaustedError when memory does not suffice."""

    def from_dlpack(self, buffer: Any) -> Buffer:
        """A buffer over the memory of an array that speaks DLPack; see `BaseDevice.from_dlpack`."""

    def duplicate(self, buffer: Any) -> Buffer:
        """A copy in a buffer of its own, made in the order of the device's work."""

    def synchronize(self) -> None:
        """Blocks until all work queued on the device is done."""

    def memory(self) -> MemoryStats:
        """Memory in use, at most so far, and available in all."""

    def profile(self, on: bool) -> None:
        """Starts or stops keeping the times of kernels; see `BaseDevice.profile`."""

    def kernel_times(self) -> Sequence[KernelTime]:
        """The times of the kernels that ran since the last call, in order."""

    def configure(self, options: Mapping[str, Any]) -> None:
        """Takes the options of a session before it runs; see `BaseDevice.configure`."""

    def trim(self) -> None:
        """Gives back what is kept for speed alone; see `BaseDevice.trim`."""

    def close(self) -> None:
        """Gives memory and handles back; the device is not used afterwards."""


class Recording(Protocol):
    """Work that a device can queue again."""

    result: Any
    """What the recorded function returned: buffers that every replay fills again."""

    def replay(self) -> None:
        """Queues the recorded work once more, behind what is queued already."""


@runtime_checkable
class RecordingDevice(Protocol):
    """A device that can replay what it queues. Both methods go together, and are optional.

    Its backend names `opdock.plugin:record_segment` as its compiler: segments whose shapes are
    static, and which need nothing of the host, run from a recording.
    """

    def record(self, work: Callable[[], Any]) -> Recording | str:
        """Calls `work`, keeping what it queues instead of running it.

        The buffers that `work` allocates belong to the recording as long as it lives. Uploads are
        done at once. What cannot be kept, such as a download, is the reason that is returned.
        """

    def assign(self, target: Any, source: Any) -> None:
        """Copies a buffer's elements over those of another of its shape and type."""


@runtime_checkable
class ArenaDevice(Protocol):
    """A device whose buffers can be parts of one block of memory; optional."""

    def arena(
        self, nbytes: int, places: Sequence[tuple[int, tuple[int, ...], DType]]
    ) -> Sequence[Buffer]:
        """Uninitialized buffers over one new block; ResourceExhaustedError without memory for it.

        Args:
            nbytes: the size of the block.
            places: offset, shape and element type of each buffer. Offsets are multiples of 64 from
                the block's beginning, which must be as well aligned. Buffers may overlap.
        """


class LimitedDevice(Protocol):
    """A device that keeps to what each session allows it, such as a number of threads; optional."""

    def within(self, options: Mapping[str, Any]) -> AbstractContextManager[None] | None:
        """What a session's kernels are bound within and its steps run within; None for nothing.

        Args:
            options: those of `Device.configure`.
        """


# ---------------------------------------------------------------- which device can what
def records(device: Device) -> TypeGuard[RecordingDevice]:
    """Whether a device can replay whole steps."""
    return hasattr(device, "record")  # `check_device` has seen to the other two


def has_arena(device: Device) -> TypeGuard[ArenaDevice]:
    """Whether a device's buffers can be parts of one block."""
    return hasattr(device, "arena")  # `isinstance` takes longer than to plan a buffer


def has_limits(device: Device) -> TypeGuard[LimitedDevice]:
    """Whether a device keeps to what a session allows it."""
    return hasattr(device, "within")


_MEMBERS: Final = tuple(
    sorted({*Device.__annotations__, *(n for n in vars(Device) if not n.startswith("_"))})
)
_RECORDING: Final = ("record", "assign")


def check_device(device: Any) -> None:
    """Whether an object is a device, for whoever has just made one.

    Raises:
        TypeError: it lacks a member of `Device`, or a part of a capability; its `dtypes` are no
            dtypes: nothing would be placed on it; `refuses` or `dlpack` are of another form.
        ValueError: its data format is none.
    """
    kind = type(device).__name__
    missing = [name for name in _MEMBERS if not hasattr(device, name)]
    if missing == ["attributes"]:
        raise TypeError(
            f"{kind} lacks attributes: its __init__ should call super().__init__(attributes)"
        )
    if missing:
        raise TypeError(
            f"{kind} lacks {', '.join(missing)}; opdock.plugin.BaseDevice has defaults for all "
            "but upload and download"
        )
    parts = [name for name in _RECORDING if hasattr(device, name)]
    if parts and len(parts) < len(_RECORDING):
        raise TypeError(f"{kind} has {', '.join(parts)}: {', '.join(_RECORDING)} go together")
    strange = [d for d in device.dtypes or () if not isinstance(d, DType)]
    if strange:
        raise TypeError(
            f"{kind}.dtypes must hold dtypes of opdock.plugin, such as dtypes.float32, got "
            f"{strange[0]!r}"
        )
    if device.data_format not in (None, "NHWC", "NCHW"):
        raise ValueError(
            f"{kind}.data_format must be 'NHWC', 'NCHW' or None, got {device.data_format!r}"
        )
    if not isinstance(device.refuses, Mapping):
        raise TypeError(
            f"{kind}.refuses must be a mapping of op types to reasons, got {device.refuses!r}"
        )
    if device.dlpack is not None and not _is_place(device.dlpack):
        raise TypeError(
            f"{kind}.dlpack must be what __dlpack_device__ gives, such as (1, 0), or None, got "
            f"{device.dlpack!r}"
        )


def _is_place(dlpack: Any) -> bool:
    return (
        isinstance(dlpack, tuple)
        and len(dlpack) == 2
        and all(isinstance(number, int) for number in dlpack)
    )
