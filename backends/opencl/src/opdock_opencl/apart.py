"""Memory of a device of its own: commands of the queue carry values to it and back."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyopencl as cl

from opdock_opencl.array import Array
from opdock_opencl.staging import Staging

__all__ = ["OwnMemory"]


class OwnMemory:
    """PyOpenCL's pool of buffers for one device and its queue in order.

    What is freed serves the next kernel, whatever is queued before it.

    Attributes:
        queue: where the device's work is queued.
    """

    def __init__(self, context: Any, queue: Any) -> None:
        self.queue = queue
        self._staging, self._lock = Staging(), threading.RLock()
        self._pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))

    @property
    def active(self) -> int:
        """Bytes in use."""
        return int(self._pool.active_bytes)

    def queued(self) -> None:
        """Notes that something was queued."""

    def wait(self) -> None:
        """Until all that was queued is done."""
        self.queue.finish()

    def room(self, size: int) -> tuple[Any, None]:
        """A buffer of at least `size` bytes, which keeps itself."""
        return self._pool.allocate(size), None

    def place(self, array: Array, source: np.ndarray[Any, Any]) -> None:
        """Gives `array` memory, and queues the values of a host array of its shape and type."""
        array.data, _ = self.room(max(array.nbytes, 16))
        if array.size:
            with self._lock:
                self._staging.send(self.queue, array.data, source)

    def first(self, array: Array) -> int:
        """The first element of an int32 array, once it is computed."""
        return int(self.fetch(Array(array.data, (1,), array.dtype))[0])

    def fetch(self, array: Array) -> np.ndarray[Any, Any]:
        """A copy of the values of an array, once they are computed."""
        out: np.ndarray[Any, Any] = np.empty(array.shape, array.dtype)
        if out.size:
            raw = out.reshape(-1).view(np.uint8)
            cl.enqueue_copy(self.queue, raw, array.data, is_blocking=True)
        return out

    def give(self, array: Array) -> np.ndarray[Any, Any]:
        """A copy of the values of an array."""
        return self.fetch(array)

    def trim(self) -> None:
        """Lets free buffers go."""
        self._pool.free_held()
