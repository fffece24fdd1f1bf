"""The shapes-only device: buffers without values, and a ledger of memory and copies."""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opdock.plugin import BaseDevice, DeviceAttributes, DType, MemoryStats, errors

_SMALL = 64
"""Integer uploads up to this size keep their values: shapes, axes and sizes depend on them."""


class NullBuffer:
    """A shape and an element type; `value` only for small integers that came from the host."""

    __slots__ = ("__weakref__", "dtype", "shape", "value")

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], value: np.ndarray[Any, Any] | None
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.value = value

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """What the values would take."""
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"<NullBuffer {self.shape} {self.dtype}>"


@dataclass
class Ledger:
    """What happened on a device.

    Attributes:
        in_use, peak: bytes of live buffers, now and at most.
        uploads, downloads: number of copies and their bytes.
        kernels: calls by op type.
    """

    in_use: int = 0
    peak: int = 0
    uploads: tuple[int, int] = (0, 0)
    downloads: tuple[int, int] = (0, 0)
    kernels: dict[str, int] = field(default_factory=dict)


class NullDevice(BaseDevice):
    """Pretends to compute; `ledger` says what it would have cost."""

    def __init__(self, attributes: DeviceAttributes) -> None:
        super().__init__(attributes)
        self.ledger = Ledger()

    def upload(self, array: np.ndarray[Any, Any]) -> NullBuffer:
        """The array's shape and type; ResourceExhaustedError above the pretended memory."""
        array = np.asarray(array)
        keep = array.dtype.kind in "iub" and array.size <= _SMALL
        buffer = self.allocate(array.shape, array.dtype, np.array(array) if keep else None)
        count, total = self.ledger.uploads
        self.ledger.uploads = count + 1, total + buffer.nbytes
        return buffer

    def download(self, buffer: NullBuffer) -> np.ndarray[Any, Any]:
        """The value if it is known, else zeros of the right shape and type."""
        count, total = self.ledger.downloads
        self.ledger.downloads = count + 1, total + buffer.nbytes
        if buffer.value is not None:
            return buffer.value.copy()
        if buffer.dtype == object:
            return np.full(buffer.shape, b"", object)
        return np.zeros(buffer.shape, buffer.dtype)

    def empty(self, shape: tuple[int, ...], dtype: DType) -> NullBuffer:
        """A buffer of that shape."""
        return self.allocate(tuple(shape), dtype.np)

    def allocate(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], value: Any = None
    ) -> NullBuffer:
        """A buffer that counts as memory until it is garbage."""
        buffer = NullBuffer(shape, dtype, value)
        ledger, size, limit = self.ledger, buffer.nbytes, self.attributes.memory_bytes
        if limit is not None and ledger.in_use + size > limit:
            raise errors.ResourceExhaustedError(
                None,
                None,
                f"OOM when allocating {list(shape)} of type {dtype}: {size} bytes on top of "
                f"{ledger.in_use} of {limit}",
            )
        ledger.in_use += size
        ledger.peak = max(ledger.peak, ledger.in_use)
        weakref.finalize(buffer, _release, ledger, size).atexit = False
        return buffer

    def memory(self) -> MemoryStats:
        """Bytes of live buffers, now and at most."""
        ledger = self.ledger
        return MemoryStats(
            in_use=ledger.in_use, peak=ledger.peak, limit=self.attributes.memory_bytes
        )

    def close(self) -> None:
        """Starts a new ledger."""
        self.ledger = Ledger()


def _release(ledger: Ledger, size: int) -> None:
    ledger.in_use -= size
