"""A GPU as a device: its buffers are CuPy arrays, its kernels the shared C compiled by NVRTC.

All work goes to the stream that is current in the thread: CuPy's default stream, which keeps the
work of all threads in order, or the stream of a recording.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import array_api_compat.cupy as xp
import cupy
import numpy as np

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
from opdock_cuda import blas, dnn
from opdock_cuda.clock import Clock
from opdock_cuda.dialect import CUDA_C
from opdock_cuda.memory import Memory, Staging
from opdock_cuda.programs import Programs
from opdock_cuda.recording import Recorder, Recording, recording, refuse, set_aside

__all__ = ["CudaDevice"]

_GROUP: Final = 256
_CUDA_MEMORY: Final = 2
_NOTHING: Final = contextlib.nullcontext()
_LAST_OLD: Final = 13
"""The last major version of CuPy without bfloat16 arrays."""


def _held() -> frozenset[DType]:
    held = NUMBERS | {dtypes.bool_}
    old = int(cupy.__version__.split(".")[0]) <= _LAST_OLD
    return held - {dtypes.bfloat16} if old else held


class CudaDevice(BaseDevice):
    """One GPU; CuPy's memory pool serves the buffers."""

    dialect = CUDA_C
    has_double = True
    is_cpu = False
    takes_lines = False
    largest_group = 1024
    rounded = ""

    def __init__(self, attributes: DeviceAttributes) -> None:
        super().__init__(attributes)
        self.dtypes = _held()
        self.tf32 = False
        self.cuda = cupy.cuda.Device(attributes.index)
        # One GPU is always the current one; among several, every entry makes it so.
        self.alone = int(cupy.cuda.runtime.getDeviceCount()) == 1
        self.namespace = xp if self.alone else None
        self.dlpack = (_CUDA_MEMORY, 0) if self.alone else None
        with self.here():
            self._memory = Memory(f"GPU_{attributes.index}_bfc", attributes.memory_bytes)
            self._staging = Staging()
            self._programs = Programs()
            self._recorder = Recorder()
            self.clock = Clock()
            self.dnn = dnn.Library(self)
            self._handle = blas.Handle()

    def here(self) -> Any:
        """A context in which this GPU is the current one."""
        return _NOTHING if self.alone else self.cuda

    # ------------------------------------------------------------ values
    def upload(self, array: np.ndarray[Any, Any]) -> Any:
        """A copy in the GPU's memory; the caller may change `array` afterwards."""
        source = np.ascontiguousarray(array).reshape(np.shape(array))
        if as_dtype(source.dtype) not in (self.dtypes or ()):
            raise errors.UnimplementedError(
                None, None, f"CuPy {cupy.__version__} holds no {source.dtype} values"
            )
        with self.here():
            out = self._memory.array(source.shape, source.dtype)
            if source.size and recording():
                set_aside(source, out)
            elif source.size:
                with self._memory.told(source.shape, source.dtype):
                    self._staging.upload(source, out)
        return out

    def download(self, buffer: Any) -> np.ndarray[Any, Any]:
        """A fresh host array; blocks until the values are computed."""
        refuse("a kernel reads a value back to the host")
        with self.here():
            return np.array(cupy.asnumpy(buffer), order="C")

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        """An uninitialized array."""
        return self.allocate(tuple(shape), dtype.np)

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """An uninitialized array of a NumPy type.

        Raises:
            ResourceExhaustedError: the GPU has not that much memory left.
        """
        with self.here():
            return self._memory.array(shape, dtype)

    def fill_zero(self, array: Any) -> None:
        """Sets all bytes of an array to zero."""
        if array.size:
            with self.here():
                array.data.memset_async(0, array.nbytes, cupy.cuda.get_current_stream())

    def copy_into(self, source: Any, target: Any, offset: int) -> None:
        """Copies all of `source` into `target` from its element `offset` on."""
        if not source.size:
            return
        with self.here():
            plain = cupy.ascontiguousarray(source)
            place = target.data + offset * target.dtype.itemsize
            place.copy_from_device_async(plain.data, plain.nbytes, cupy.cuda.get_current_stream())

    def copy_peer(self, buffer: Any) -> Any:
        """A copy of another GPU's array: over NVLink or PCIe where the two reach each other."""
        with buffer.device:
            ready = cupy.cuda.get_current_stream().record()
            plain = cupy.ascontiguousarray(buffer)
        out = self.allocate(plain.shape, plain.dtype)
        if plain.size:
            with self.cuda:
                stream = cupy.cuda.get_current_stream()
                stream.wait_event(ready)
                out.data.copy_from_device_async(plain.data, plain.nbytes, stream)
                # The source may be written again once this returns.
                stream.synchronize()
        return out

    # ------------------------------------------------------------ kernels
    def kernel(self, source: str, name: str, **macros: object) -> Any:
        """A compiled kernel.

        Args:
            source: the program, in the words of `opdock_ckernels.dialect`.
            name: the kernel in it.
            **macros: defined before the program is read.
        """
        with self.here():
            return self._programs.kernel(source, name, macros)

    def launch(self, kernel: Any, size: int, *args: Any, group: int = 0) -> None:
        """Queues a kernel for at least `size` work items.

        Args:
            kernel: from `kernel`.
            size: the number of work items; the kernel ignores those beyond.
            args: arrays and NumPy scalars.
            group: items a group; 0 for a default.
        """
        if size:
            group = group or _GROUP
            self._queue(kernel, (-(-size // group),), (group,), args)

    def launch_grid(
        self, kernel: Any, items: tuple[int, ...], group: tuple[int, ...] | None, *args: Any
    ) -> None:
        """Queues a kernel over a grid of work items, a multiple of `group` in each dimension."""
        block = group or (1,) * len(items)
        if all(items):
            self._queue(
                kernel, tuple(n // g for n, g in zip(items, block, strict=True)), block, args
            )

    def _queue(
        self, kernel: Any, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...]
    ) -> None:
        # The portable kernels may leave views; the shared ones read rows one after the other.
        plain = tuple(
            [
                a
                if type(a) is not cupy.ndarray or a.flags.c_contiguous
                else cupy.ascontiguousarray(a)
                for a in args
            ]
        )
        with self.here(), self.clock.around(kernel.name) if self.clock.on else _NOTHING:
            kernel(grid, block, plain)

    def flag(self) -> Any:
        """A zero of type int32 that a kernel may overwrite to report an error."""
        out = self.allocate((1,), np.dtype(np.int32))
        self.fill_zero(out)
        return out

    def read_int(self, array: Any) -> int:
        """The first element of an int32 array; blocks."""
        refuse("a kernel checks its arguments, and the host waits for the verdict")
        with self.here():
            return int(array.reshape(-1)[0])

    def multiply(self, a: Any, b: Any, out: Any, pairs: Any | None, add: bool) -> bool:
        """A matrix product by cuBLAS; False for integers, and batches of several pairs."""
        return blas.multiply(self, a, b, out, add)

    def gemm(self, a: blas.Matrices, b: blas.Matrices, out: Any, add: bool = False) -> None:
        """`out = a @ b` over batches of matrices, by cuBLAS."""
        with self.here(), self.clock.around("gemm"):
            blas.gemm(self._handle, a, b, out, add, self.tf32)

    # ------------------------------------------------------------ the rest of the contract
    def record(self, work: Callable[[], Any]) -> Recording | str:
        """What `work` queues as a CUDA graph, or the reason why it cannot be one."""
        with self.here():
            return self._recorder.record(work)

    def duplicate(self, buffer: Any) -> Any:
        """A copy of an array."""
        out = self.allocate(tuple(buffer.shape), buffer.dtype)
        self.copy_into(buffer, out, 0)
        return out

    def assign(self, target: Any, source: Any) -> None:
        """Copies a buffer's elements over those of another."""
        self.copy_into(source, target, 0)

    def synchronize(self) -> None:
        """Blocks until the GPU has done all that was queued."""
        with self.here():
            cupy.cuda.get_current_stream().synchronize()

    def profile(self, on: bool) -> None:
        """Starts or stops taking the time of every kernel."""
        with self.here():
            self.clock.switch(on)

    def kernel_times(self) -> list[KernelTime]:
        """The times of the kernels since the last call."""
        with self.here():
            return self.clock.times()

    def memory(self) -> MemoryStats:
        """Bytes of live buffers, now and at most, and the limit."""
        with self.here():
            return self._memory.stats()

    def configure(self, options: Mapping[str, Any]) -> None:
        """Takes a session's options.

        Args:
            options: "memory_fraction" limits the buffers to a part of the GPU's memory, taken at
                once unless "allow_growth"; "allow_tf32" lets float32 products and convolutions
                round their factors to 10 bits.
        """
        fraction = float(options.get("memory_fraction") or 0)
        self.tf32 = bool(options.get("allow_tf32"))
        with self.here():
            self._memory.configure(fraction, bool(options.get("allow_growth")))

    def close(self) -> None:
        """Waits for the GPU and gives memory back."""
        with self.here():
            self.synchronize()
            self._staging.drain()
            self._programs.clear()
            self._memory.release()
