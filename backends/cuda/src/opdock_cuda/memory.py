"""The memory of one GPU: CuPy's pool under TF's options, and pages that uploads pass through."""

from __future__ import annotations

import contextlib
import math
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import cupy
import numpy as np

from opdock.plugin import MemoryStats, as_dtype, errors

__all__ = ["Memory", "Staging"]

_IN_FLIGHT: Final = 8
"""Uploads whose pages may be taken at a time."""


class Memory:
    """What one GPU's buffers take; all of it comes from CuPy's pool.

    Args:
        name: what errors call the GPU's allocator.
        total: the GPU's memory in bytes, or None.
    """

    def __init__(self, name: str, total: int | None) -> None:
        self._name = name
        self._total = total
        self._limit = 0
        self._peak = 0
        self._pool = cupy.get_default_memory_pool()

    def configure(self, fraction: float, grow: bool) -> None:
        """Limits the pool to a fraction of the GPU (0: no limit), and takes it all at once.

        With `grow` memory is taken as it is needed. Without a fraction it is taken so in any case:
        a session that takes a whole GPU at once leaves nothing for its neighbours.
        """
        limit = int((self._total or 0) * fraction) if fraction > 0 else 0
        if limit != self._limit:
            self._limit = limit
            self._pool.set_limit(size=limit)
        missing = limit - int(self._pool.total_bytes())
        if limit and not grow and missing > 0:
            with contextlib.suppress(cupy.cuda.memory.OutOfMemoryError):
                self._pool.malloc(missing)

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """An uninitialized array.

        Raises:
            ResourceExhaustedError: the GPU has not that much memory left.
        """
        with self.told(shape, dtype):
            out = cupy.ndarray(shape, dtype)
        used = int(self._pool.used_bytes())
        self._peak = max(self._peak, used)
        return out

    @contextlib.contextmanager
    def told(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[None]:
        """Names a tensor in the error when there is no room for it."""
        try:
            yield
        except cupy.cuda.memory.OutOfMemoryError as e:
            size = math.prod(shape) * dtype.itemsize
            raise errors.ResourceExhaustedError(
                None, None,
                f"OOM when allocating tensor with shape[{','.join(map(str, shape))}] and type "
                f"{as_dtype(dtype).name} by allocator {self._name}: {size} bytes wanted, "
                f"{self._pool.used_bytes()} in use of {self._limit or self._total} ({e})",
            ) from None  # fmt: skip

    def stats(self) -> MemoryStats:
        """Bytes of live buffers, now and at most, and what there may be."""
        used = int(self._pool.used_bytes())
        self._peak = max(self._peak, used)
        return MemoryStats(in_use=used, peak=self._peak, limit=self._limit or self._total)

    def release(self) -> None:
        """Gives unused memory back to the GPU."""
        self._pool.free_all_blocks()


class Staging:
    """Pinned pages that uploads go through, so that neither the caller nor the GPU waits.

    The caller's array is copied into pages that the GPU reads by itself; they are used again once
    it has read them.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._busy: deque[tuple[Any, Any]] = deque()

    def upload(self, source: np.ndarray[Any, Any], target: Any) -> None:
        """Queues a copy of a contiguous host array; the caller may change it at once."""
        stream = cupy.cuda.get_current_stream()
        pages = cupy.cuda.alloc_pinned_memory(source.nbytes)
        staged = np.frombuffer(pages, np.uint8, source.nbytes)
        staged[...] = source.reshape(-1).view(np.uint8)
        target.data.copy_from_host_async(pages.ptr, source.nbytes, stream)
        event = cupy.cuda.Event(disable_timing=True)
        event.record(stream)
        with self._lock:
            self._busy.append((event, pages))
            while self._busy and (len(self._busy) > _IN_FLIGHT or self._busy[0][0].done):
                self._forget_first()

    def drain(self) -> None:
        """Waits until the GPU has read all pages, and forgets them."""
        with self._lock:
            while self._busy:
                self._forget_first()

    def _forget_first(self) -> None:
        with contextlib.suppress(IndexError):  # a signal handler's step may have come, and did it
            event, pages = self._busy.popleft()
            event.synchronize()
            del pages  # which go to whoever asks next
