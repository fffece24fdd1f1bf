"""Memory that the host and a device have in common, as devices that are CPUs do.

A block is host memory and a buffer over it. What the host writes there the device reads, and what
kernels wrote is there once the queue is empty: no command of the queue carries anything, where each
takes longer than most arrays take to copy. What a program gives is handed over as it lies.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any, Final

import numpy as np
import pyopencl as cl

from opdock_opencl.array import Array

__all__ = ["SharedMemory", "shares"]

_ALIGNED: Final = 128
"""Bytes of the largest vector."""
_KEPT: Final = 256 << 20
"""Free bytes that are kept beside as many as are in use."""
_WAITING: Final = 64 << 20
"""Free bytes that the queue may still be using before an upload waits for it."""
_WORTH_LENDING: Final = 1 << 14
"""Bytes from which copying a result takes longer than lending its memory to NumPy."""


def shares(device: Any) -> bool:
    """Whether there is memory in which the host and a device see what the other wrote.

    That is fine-grained shared virtual memory: nothing has to be mapped, only waited for.
    """
    try:
        found = int(device.svm_capabilities)
    except (cl.Error, AttributeError):  # before OpenCL 2.0 nobody knows
        return False
    return bool(found & cl.device_svm_capabilities.FINE_GRAIN_BUFFER)


class Block:
    """Host memory, and the buffer over it.

    Attributes:
        used: how much had been queued when it was last in use.
    """

    __slots__ = ("buffer", "memory", "used")

    def __init__(self, context: Any, size: int) -> None:
        byte = np.dtype(np.uint8)
        self.memory: Any = cl.fsvm_empty(context, size, byte, alignment=_ALIGNED)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        self.buffer = cl.Buffer(context, flags, hostbuf=self.memory)
        self.used = 0


class Lease:
    """A block in use: it is free again when nobody refers to this."""

    __slots__ = ("block", "lent", "owner")

    def __init__(self, owner: SharedMemory, block: Block) -> None:
        self.owner, self.block, self.lent = owner, block, False

    def __del__(self) -> None:
        self.owner.take_back(self)


class _Lent:
    """The bytes of a block that NumPy has the use of, for as long as some array needs them."""

    __slots__ = ("__array_interface__", "lease")

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.__array_interface__ = lease.block.memory.__array_interface__


class SharedMemory:
    """Blocks of the sizes that were needed, for one device and its queue in order.

    A block that a step frees serves the next kernel, whatever is queued before it. Where the host
    writes it, it takes one that nothing queued refers to.

    Attributes:
        active: bytes in use.
        queue: where the device's work is queued.
    """

    def __init__(self, context: Any, queue: Any) -> None:
        self.queue, self.active, self._context = queue, 0, context
        self._free: dict[int, deque[Block]] = defaultdict(deque)
        self._held = 0  # bytes of free blocks
        self._queued = self._done = 0  # commands

    def queued(self) -> None:
        """Notes that something was queued; whoever did so still holds what it refers to."""
        self._queued += 1

    def wait(self) -> None:
        """Until all that was queued is done."""
        queued = self._queued
        if queued != self._done:
            self.queue.finish()
            self._done = max(queued, self._done)

    def room(self, size: int) -> tuple[Any, Lease]:
        """A buffer of at least `size` bytes for a kernel to write, and what keeps it."""
        size = _rounded(size)
        try:
            block = self._free[size].pop()  # the last one to be used is in the processor's cache
            self._held -= size
        except IndexError:
            block = self._new(size)
        return self._leased(block)

    def place(self, array: Array, source: np.ndarray[Any, Any]) -> None:
        """Gives `array` memory with the values of a host array of its shape and type."""
        block = self._unused(_rounded(max(array.nbytes, 1)))
        array.data, array.lease = self._leased(block)
        np.ndarray(array.shape, array.dtype, block.memory)[...] = source

    def fetch(self, array: Array) -> np.ndarray[Any, Any]:
        """A copy of the values of an array, once they are computed."""
        self.wait()
        return np.array(np.ndarray(array.shape, array.dtype, array.lease.block.memory))

    def first(self, array: Array) -> int:
        """The first element of an int32 array, once it is computed."""
        self.wait()
        return int(np.ndarray((1,), array.dtype, array.lease.block.memory)[0])

    def give(self, array: Array) -> np.ndarray[Any, Any]:
        """The values of an array that nobody looks at again, in its own memory if it is large."""
        lease = array.lease
        if array.nbytes < _WORTH_LENDING or lease.lent:
            return self.fetch(array)
        self.wait()
        lease.lent = True
        self.active -= lease.block.memory.nbytes
        return np.ndarray(array.shape, array.dtype, np.asarray(_Lent(lease)))

    def take_back(self, lease: Lease) -> None:
        """A block that nobody uses any more, but for what is queued."""
        block = lease.block
        size = block.memory.nbytes
        if not lease.lent:
            self.active -= size
        block.used = self._queued
        self._held += size
        self._free[size].append(block)

    def trim(self) -> None:
        """Lets free blocks go."""
        self.wait()
        self._free.clear()
        self._held = 0

    def _leased(self, block: Block) -> tuple[Any, Lease]:
        self.active += block.memory.nbytes
        return block.buffer, Lease(self, block)

    def _unused(self, size: int) -> Block:
        """A block that nothing queued refers to."""
        free = self._free[size]
        if self._held > _WAITING:
            self.wait()
        try:
            block = free.popleft()
        except IndexError:
            return self._new(size)
        if block.used > self._done:
            free.appendleft(block)
            return self._new(size)
        self._held -= size
        return block

    def _new(self, size: int) -> Block:
        if self._held + size > max(_KEPT, self.active):
            self.trim()
        try:
            return Block(self._context, size)
        except MemoryError:
            self.trim()
            return Block(self._context, size)


def _rounded(size: int) -> int:
    """Sizes that blocks have, so that arrays of about one size have the use of the same ones."""
    step = max(_ALIGNED, 1 << max(size.bit_length() - 5, 0))
    return -(-size // step) * step
