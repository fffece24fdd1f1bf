"""The host as a device: its buffers are plain NumPy arrays."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np

from opdock.plugin import BaseDevice, DeviceAttributes, DType, MemoryStats, deterministic, errors
from opdock_cpu import blas
from opdock_cpu.crew import sharing
from opdock_cpu.namespace import namespace
from opdock_cpu.threads import at_most, threads

_LINE: Final = 64


@functools.cache
def _keep_freed_memory() -> None:
    """Has arrays of up to 32 MiB, once freed, leave their memory to the next ones.

    The allocator of glibc gives memory of 128 KiB and more back to the system, and each page of
    it costs as much to have again as to compute; once a larger piece was freed, what is smaller
    stays. Programs come to that sooner or later, by whatever they free first: here it is sooner.
    """
    np.empty((32 << 20) - (1 << 16), np.uint8)


class CpuDevice(BaseDevice):
    """Host memory and NumPy. Several of them share both; they differ in name only."""

    is_host = True
    namespace = namespace

    def __init__(self, attributes: DeviceAttributes) -> None:
        super().__init__(attributes)
        if deterministic():
            blas.only_one()
        _keep_freed_memory()

    def upload(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A contiguous copy."""
        return np.array(array, order="C")

    def download(self, buffer: Any) -> np.ndarray[Any, Any]:
        """A contiguous copy."""
        return np.array(buffer, order="C")

    def empty(self, shape: tuple[int, ...], dtype: DType) -> np.ndarray[Any, Any]:
        """An uninitialized array."""
        try:
            return np.empty(shape, dtype.np)
        except (MemoryError, ValueError) as e:  # the latter beyond all addresses
            raise errors.ResourceExhaustedError(
                None, None, f"OOM when allocating {list(shape)} of type {dtype.name} on host: {e}"
            ) from None

    def arena(
        self, nbytes: int, places: Sequence[tuple[int, tuple[int, ...], DType]]
    ) -> list[np.ndarray[Any, Any]]:
        """Arrays over parts of one block of memory, which begins at a cache line."""
        try:
            block = np.empty(nbytes + _LINE, np.uint8)
        except (MemoryError, ValueError) as e:
            raise errors.ResourceExhaustedError(
                None, None, f"OOM when allocating {nbytes} bytes on host: {e}"
            ) from None
        start = -block.ctypes.data % _LINE
        return [np.ndarray(shape, dtype.np, block, start + at) for at, shape, dtype in places]

    def memory(self) -> MemoryStats:
        """The machine's memory; what NumPy has in use is not counted."""
        return MemoryStats(limit=self.attributes.memory_bytes)

    def within(self, options: Mapping[str, Any]) -> AbstractContextManager[None] | None:
        """Limits the threads of generated code, of oneDNN and of NumPy's linear algebra.

        The limit is the option "intra_op_parallelism_threads"; see `opdock_cpu.threads.at_most`.
        One that the machine does not reach limits nothing, and costs no step anything.
        """
        asked = int(options.get("intra_op_parallelism_threads") or 0)
        return at_most(asked) if 0 < asked < threads() else None

    def told(self) -> str:
        """How work is shared out over threads, in the process."""
        return sharing()
