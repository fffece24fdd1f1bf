"""Host copies of arrays that are on their way to the device."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import numpy as np
import pyopencl as cl

__all__ = ["Staging"]

_LIMIT: Final = 64 << 20
"""Bytes that may wait in host memory; beyond them an upload waits for the earlier ones."""


class Staging:
    """Uploads that do not wait for the device, from copies that only this object holds.

    The caller's array is free as soon as `send` returns. A copy is dropped once it has arrived.
    """

    def __init__(self) -> None:
        self._sent: deque[tuple[Any, int]] = deque()
        self._bytes = 0

    def send(self, queue: Any, target: Any, array: np.ndarray[Any, Any]) -> None:
        """Queues the copy of a contiguous, non-empty array into a device buffer."""
        self._drop(wait_for=array.nbytes)
        copy = np.array(array, order="C").reshape(-1).view(np.uint8)
        event = cl.enqueue_copy(queue, target, copy, is_blocking=False)
        # PyOpenCL's event keeps the copy; dropping it earlier would wait for the transfer.
        self._sent.append((event, copy.nbytes))
        self._bytes += copy.nbytes

    def _drop(self, wait_for: int) -> None:
        done = cl.command_execution_status.COMPLETE
        while self._sent:
            event, size = self._sent[0]
            if self._bytes + wait_for <= _LIMIT and event.command_execution_status > done:
                return
            event.wait()
            # The step of a signal handler may have dropped it, and sent others.
            if self._sent and self._sent[0][0] is event:
                del self._sent[0]
                self._bytes -= size
