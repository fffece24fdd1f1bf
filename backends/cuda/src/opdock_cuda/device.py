"""A GPU as a device: its buffers are CuPy arrays."""

from __future__ import annotations

from typing import Any

import array_api_compat.cupy as xp
import cupy
import numpy as np

from opdock.plugin import BaseDevice, DeviceAttributes, DType, MemoryStats, errors


class CudaDevice(BaseDevice):
    """One GPU; CuPy's memory pool serves the buffers."""

    namespace = xp

    def __init__(self, attributes: DeviceAttributes) -> None:
        super().__init__(attributes)
        self._device = cupy.cuda.Device(attributes.index)

    def upload(self, array: np.ndarray[Any, Any]) -> Any:
        """A copy in the GPU's memory; blocking, so the caller may change `array` afterwards."""
        try:
            with self._device:
                return cupy.array(array, order="C", blocking=True)
        except cupy.cuda.memory.OutOfMemoryError as e:
            raise errors.ResourceExhaustedError(None, None, str(e)) from None

    def download(self, buffer: Any) -> np.ndarray[Any, Any]:
        """A copy in host memory."""
        return np.asarray(cupy.asnumpy(buffer))

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        """An uninitialized array."""
        try:
            with self._device:
                return cupy.empty(shape, dtype.np)
        except cupy.cuda.memory.OutOfMemoryError as e:
            raise errors.ResourceExhaustedError(None, None, str(e)) from None

    def synchronize(self) -> None:
        """Blocks until the GPU has done all that was queued."""
        self._device.synchronize()

    def memory(self) -> MemoryStats:
        """What the GPU has, and what is in use by any process."""
        free, total = self._device.mem_info
        return MemoryStats(in_use=total - free, limit=total)
