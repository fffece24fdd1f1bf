"""An OpenCL device: its buffers are PyOpenCL arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array

from opdock.plugin import BaseDevice, DeviceAttributes, DType, MemoryStats, errors


class OpenCLDevice(BaseDevice):
    """One device with a context and an in-order queue of its own."""

    def __init__(self, attributes: DeviceAttributes) -> None:
        super().__init__(attributes)
        found = [d for p in cl.get_platforms() for d in p.get_devices()]
        self._context = cl.Context([found[attributes.index]])
        self.queue = cl.CommandQueue(self._context)

    def upload(self, array: np.ndarray[Any, Any]) -> Any:
        """A copy in device memory; blocking, so the caller may change `array` afterwards."""
        try:
            return cl_array.to_device(self.queue, np.ascontiguousarray(array), async_=False)
        except cl.MemoryError as e:
            raise errors.ResourceExhaustedError(None, None, str(e)) from None

    def download(self, buffer: Any) -> np.ndarray[Any, Any]:
        """A copy in host memory."""
        return np.asarray(buffer.get(self.queue))

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        """An uninitialized array."""
        try:
            return cl_array.empty(self.queue, shape, dtype.np)
        except cl.MemoryError as e:
            raise errors.ResourceExhaustedError(None, None, str(e)) from None

    def synchronize(self) -> None:
        """Blocks until the queue is empty."""
        self.queue.finish()

    def memory(self) -> MemoryStats:
        """What the device has; OpenCL does not tell what is in use."""
        return MemoryStats(limit=self.attributes.memory_bytes)
