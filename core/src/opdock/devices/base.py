"""`BaseDevice`: working defaults for everything that a simple device need not care about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from opdock import errors
from opdock.devices.protocols import Buffer, DeviceAttributes, KernelTime, MemoryStats
from opdock.dtypes import DType
from opdock.kernels.portable import Exclusion


class BaseDevice:
    """Base class for devices.

    A subclass writes `upload` and `download`; a synchronous device needs nothing more. New
    methods of later API versions get their defaults here, so a device written for an older minor
    version keeps working.

    Args:
        attributes: the record that the backend's probe gave for the device.

    Attributes:
        is_host: whether buffers are NumPy arrays in host memory.
        namespace: an array-API namespace that takes the buffers, for core's portable kernels.
        dtypes: the types that buffers may have; None for all.
        namespace_device: what the namespace's functions take as `device=` where they make an array
            without one to follow; None where the namespace knows.
        dlpack: the DLPack device of the buffers, if they are exchanged that way.
        data_format: "NHWC" or "NCHW" where convolutions are faster in that one: programs are then
            compiled for it. None: as the user wrote them.
        refuses: portable kernels that the device does without, by op type: the reason; reasons by
            element type; or a function of the `NodeSig` that gives True where the kernel will do
            and else the reason. `Session.explain` and the conformance matrix show them.
    """

    is_host: bool = False
    namespace: Any = None
    namespace_device: Any = None
    dtypes: frozenset[DType] | None = None
    dlpack: tuple[int, int] | None = None
    data_format: str | None = None
    refuses: Mapping[str, Exclusion] = MappingProxyType({})

    def __init__(self, attributes: DeviceAttributes) -> None:
        self.attributes = attributes

    def upload(self, array: np.ndarray[Any, Any]) -> Buffer:
        """A copy of a host array in device memory.

        Args:
            array: a NumPy array in this machine's byte order, of any layout: a view, read-only,
                without elements. The caller may change it, or what it is a view of, as soon as
                this returns.

        Raises:
            ResourceExhaustedError: memory does not suffice.
            UnimplementedError: the device cannot hold the element type.
        """
        raise NotImplementedError(f"{type(self).__name__} must define upload()")

    def borrow(self, array: np.ndarray[Any, Any]) -> Buffer:
        """`upload` of what is fed to one step: the buffer may be the array's memory.

        The array stays as it is while the step runs, and what the step keeps has been copied
        before. A device that works on when a step has returned copies here as well.
        """
        return self.upload(array)

    def download(self, buffer: Any) -> np.ndarray[Any, Any]:
        """A fresh host array with the buffer's values; blocks until they are computed."""
        raise NotImplementedError(f"{type(self).__name__} must define download()")

    def surrender(self, buffer: Any) -> np.ndarray[Any, Any]:
        """`download` for the only user of a fresh result: the array may be the buffer's memory.

        The caller may write to the array, and nobody looks at the buffer again.
        """
        return self.download(buffer)

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Buffer:
        """An uninitialized buffer: by default an upload, which every device can do.

        Raises:
            ResourceExhaustedError: memory does not suffice, be it the host's.
        """
        try:
            blank = np.empty(shape, dtype.np)
        except MemoryError as e:
            raise errors.ResourceExhaustedError(None, None, str(e)) from e
        return self.upload(blank)

    def from_dlpack(self, buffer: Any) -> Buffer:
        """A buffer of this device over the memory of an array that speaks DLPack.

        Only a device that sets `dlpack` is asked, and only for arrays in the memory that it names.
        What the device cannot take as it is raises BufferError; the value is then copied.
        """
        taken: Buffer = self.namespace.from_dlpack(buffer)
        return taken

    def duplicate(self, buffer: Any) -> Buffer:
        """A copy in a buffer of its own, made in the order of the device's work."""
        copy: Buffer = self.namespace.asarray(buffer, copy=True)
        return copy

    def synchronize(self) -> None:
        """Blocks until all queued work is done: at once on a synchronous device."""

    def memory(self) -> MemoryStats:
        """The probe's memory size; usage is unknown."""
        return MemoryStats(limit=self.attributes.memory_bytes)

    def profile(self, on: bool) -> None:
        """Starts or stops keeping the times of kernels, which a traced step asks for.

        A device without a clock of its own leaves this alone: its steps are timed by the host.
        """

    def kernel_times(self) -> Sequence[KernelTime]:
        """The times of the kernels that ran since the last call while `profile` was on, in order.

        The runtime has synchronized the device before it asks.
        """
        return ()

    def configure(self, options: Mapping[str, Any]) -> None:
        """Takes a session's options; unknown keys are to be ignored.

        Args:
            options: "intra_op_parallelism_threads" (0: the device decides),
                "memory_fraction" (0.0: no limit), "allow_growth".
        """

    def told(self) -> str:
        """What `Session.explain` says of how the device works just now; empty for nothing."""
        return ""

    def trim(self) -> None:
        """Gives back what is kept for speed alone: code of finished programs, pools of free memory.

        The conformance suite asks for it between two ops, as each sample has shapes of its own.
        """

    def close(self) -> None:
        """Nothing to give back."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.attributes.index}: {self.attributes.description}>"
