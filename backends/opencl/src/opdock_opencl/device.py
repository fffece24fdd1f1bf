"""An OpenCL device: a context, an in-order queue, its memory, and its compiled programs."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pyopencl as cl

from opdock.plugin import (
    NUMBERS,
    BaseDevice,
    DeviceAttributes,
    DType,
    KernelTime,
    MemoryStats,
    as_dtype,
    dtypes,
    errors,
)
from opdock_ckernels.families import WIDE
from opdock_opencl.apart import OwnMemory
from opdock_opencl.array import Array, Flag
from opdock_opencl.dialect import OPENCL_C
from opdock_opencl.elementary import before
from opdock_opencl.gemm import tiled
from opdock_opencl.kernel import Kernel
from opdock_opencl.probe import device_of
from opdock_opencl.shared import SharedMemory, shares

__all__ = ["OpenCLDevice"]

_GROUP = 256
_ZERO = np.zeros(1, np.int32)
_ZERO_BYTE = np.zeros(1, np.uint8)


class OpenCLDevice(BaseDevice):
    """One device with a context and an in-order queue of its own.

    Memory that a step frees is used again by later work of the same queue, so kernels never wait
    for the host.

    Attributes:
        vector_bytes: what a vector register of a CPU holds.
    """

    takes_lines = True

    def __init__(self, attributes: DeviceAttributes) -> None:
        super().__init__(attributes)
        self.cl_device = device_of(cl, attributes)
        self.has_double = "cl_khr_fp64" in self.cl_device.extensions.split()
        self.is_cpu = bool(self.cl_device.type & cl.device_type.CPU)
        self.vector_bytes = min(max(4 * int(self.cl_device.native_vector_width_float), 16), 64)
        self.largest_group = int(self.cl_device.max_work_group_size)
        self.dialect = OPENCL_C
        self._elementary = self.is_cpu and self.has_double
        self.rounded = "wide_" if self._elementary else ""
        held = NUMBERS | {dtypes.bool_}
        self.dtypes = held if self.has_double else held - WIDE
        self.context = cl.Context([self.cl_device])
        self.queue = self._plain = cl.CommandQueue(self.context)
        self._timed: list[tuple[str, Any]] = []
        self._memory: SharedMemory | OwnMemory = (
            SharedMemory if self.is_cpu and shares(self.cl_device) else OwnMemory
        )(self.context, self.queue)
        self._largest = int(self.cl_device.max_mem_alloc_size)
        self._limit = attributes.memory_bytes
        self._peak = 0
        self._lock = threading.RLock()
        self._queueing = False
        self._programs: dict[tuple[object, ...], Any] = {}
        self._kernels: dict[tuple[object, ...], Kernel] = {}
        self._zeros: list[Flag] = []

    # ------------------------------------------------------------ values
    def upload(self, array: np.ndarray[Any, Any]) -> Array:
        """A copy in device memory, maybe queued; the caller may change `array` afterwards."""
        source = np.asarray(array)
        if as_dtype(source.dtype) not in (self.dtypes or ()):
            raise errors.UnimplementedError(
                None, None, f"this OpenCL device holds no {source.dtype} values"
            )
        return self._placed(Array(None, source.shape, source.dtype), source)

    def download(self, buffer: Array) -> np.ndarray[Any, Any]:
        """A fresh host array; blocks until the values are computed."""
        return self._memory.fetch(buffer)

    def surrender(self, buffer: Array) -> np.ndarray[Any, Any]:
        """The memory of a large result itself, where that is the host's; blocks as well."""
        return self._memory.give(buffer)

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Array:
        """An uninitialized buffer."""
        return self.allocate(tuple(shape), dtype.np)

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An uninitialized buffer of a NumPy type.

        Raises:
            ResourceExhaustedError: the device has not that much memory.
        """
        return self._placed(Array(None, shape, dtype))

    def _placed(self, out: Array, source: np.ndarray[Any, Any] | None = None) -> Array:
        """The array with memory of its own, and with values where there is a source of them."""
        size, limit = max(out.nbytes, 16), self._limit
        if size > self._largest or (limit and self._memory.active + size > limit):
            raise self._exhausted(out)
        try:
            if source is None:
                out.data, out.lease = self._memory.room(size)
            else:
                self._memory.place(out, source)
        except (cl.MemoryError, MemoryError):
            raise self._exhausted(out) from None
        self._peak = max(self._peak, self._memory.active)
        return out

    def _exhausted(self, wanted: Array) -> errors.ResourceExhaustedError:
        return errors.ResourceExhaustedError(
            None,
            None,
            f"OOM when allocating tensor with shape{list(wanted.shape)} and type {wanted.dtype} on "
            f"{self.attributes.description}: {wanted.nbytes} bytes, "
            f"{self._memory.active} in use",
        )

    def fill_zero(self, array: Array) -> None:
        """Sets all bytes of a buffer to zero."""
        if array.size:
            with self._lock:
                cl.enqueue_fill_buffer(self.queue, array.data, _ZERO_BYTE, 0, array.nbytes)
                self._memory.queued()

    def copy_into(self, source: Array, target: Array, offset: int) -> None:
        """Copies all of `source` into `target` from its element `offset` on."""
        if source.size:
            at = offset * target.dtype.itemsize
            with self._lock:
                cl.enqueue_copy(
                    self.queue, target.data, source.data, byte_count=source.nbytes, dst_offset=at
                )
                self._memory.queued()

    # ------------------------------------------------------------ programs
    def kernel(self, source: str, name: str, **macros: object) -> Kernel:
        """A compiled kernel, kept in memory by its source; PyOpenCL keeps binaries on disk.

        Args:
            source: the program, in the words of `opdock_ckernels.dialect`.
            name: the kernel in it.
            **macros: defined before the program is read.
        """
        key = (source, name, *macros.items())
        with self._lock:
            found = self._kernels.get(key)
            if found is None:
                found = self._kernels[key] = self._compiled(source, name, macros)
        return found

    def _compiled(self, source: str, name: str, macros: Mapping[str, object]) -> Kernel:
        key = (source, *macros.items())
        try:
            if key not in self._programs:
                self._programs[key] = self._program(source, macros)
            return Kernel(self._programs[key], name)
        except cl.Error:
            # What drivers keep of a program may be broken, and is found by its source.
            self._programs[key] = self._program(f"{source}\n// once more\n", macros)
            return Kernel(self._programs[key], name)

    def _program(self, source: str, macros: Mapping[str, object]) -> Any:
        prelude = self.dialect.prelude
        body = source.removeprefix(prelude)
        text = f"{prelude}\n{before(body) if self._elementary else ''}{body}"
        # Some drivers print each warning, helpless ones about unused helpers above all.
        options = ["-w", *(f"-D{k}={v}" for k, v in macros.items())]
        with warnings.catch_warnings():
            # Some drivers' compilers talk even when all is well.
            warnings.simplefilter("ignore")
            return cl.Program(self.context, text).build(options=options)

    def multiply(self, a: Any, b: Any, out: Any, pairs: Any | None, add: bool) -> bool:
        """A batch of matrix products in register-blocked tiles; False for small ones."""
        return tiled(self, a, b, out, pairs, add)

    def launch(self, kernel: Kernel, size: int, *args: Any, group: int = 0) -> None:
        """Queues a kernel for at least `size` work items.

        Args:
            kernel: from `kernel`.
            size: the number of work items; the kernel ignores those beyond.
            args: arrays and NumPy scalars.
            group: items a group; 0 for what the device allows, up to a default.
        """
        if not size:
            return
        group = group or min(_GROUP, kernel.largest)
        items = (-(-size // group) * group,)
        self.launch_grid(kernel, items, (group,), *args)

    def launch_grid(
        self, kernel: Kernel, items: tuple[int, ...], group: tuple[int, ...] | None, *args: Any
    ) -> None:
        """Queues a kernel over a grid of work items, a multiple of `group` in each dimension."""
        plain = [a.data if isinstance(a, Array) else a for a in args]
        with self._lock:  # a kernel holds its arguments between being given them and being queued
            before, self._queueing = self._queueing, True
            if before:  # so a signal handler has others for its step
                kernel = kernel.again()
            try:
                event = kernel(self.queue, items, group, plain)
            except cl.MemoryError as e:
                raise errors.ResourceExhaustedError(None, None, str(e)) from None
            finally:
                self._memory.queued()
                self._queueing = before
            if self.queue is not self._plain:
                self._timed.append((kernel.name, event))

    def read_int(self, array: Array) -> int:
        """The first element of an int32 array; blocks."""
        value = self._memory.first(array)
        if isinstance(array, Flag) and not value:
            self._zeros.append(array)  # as good as a new one
        return value

    def flag(self) -> Array:
        """A zero that a kernel may overwrite to report an error; done with when it was read."""
        if self._zeros:
            with suppress(IndexError):  # another thread took the last one
                return self._zeros.pop()
        out = Flag(None, (1,), _ZERO.dtype)
        self._placed(out, _ZERO)
        return out

    # ------------------------------------------------------------ the rest of the contract
    def synchronize(self) -> None:
        """Blocks until the queue is empty."""
        self._memory.wait()

    def profile(self, on: bool) -> None:
        """Moves work to a queue that keeps times, or back: keeping them always costs speed."""
        with self._lock:
            self._memory.wait()
            timing = cl.command_queue_properties.PROFILING_ENABLE
            self.queue = cl.CommandQueue(self.context, properties=timing) if on else self._plain
            self._memory.queue = self.queue
            self._timed.clear()

    def kernel_times(self) -> list[KernelTime]:
        """The times of the kernels since the last call."""
        with self._lock:
            ran, self._timed = self._timed, []
        return [KernelTime(name, e.profile.start, e.profile.end) for name, e in ran]

    def memory(self) -> MemoryStats:
        """Bytes of live buffers, now and at most."""
        return MemoryStats(
            in_use=self._memory.active, peak=self._peak,
            limit=self.attributes.memory_bytes,
        )  # fmt: skip

    def configure(self, options: Mapping[str, Any]) -> None:
        """Takes "memory_fraction": the part of the device's memory that buffers may fill."""
        fraction, size = float(options.get("memory_fraction") or 0), self.attributes.memory_bytes
        self._limit = int(size * fraction) if size and fraction > 0 else size

    def close(self) -> None:
        """Waits for the queue and gives unused memory back."""
        self._memory.wait()
        self._zeros.clear()
        self._memory.trim()
        self._kernels.clear()
        self._programs.clear()
