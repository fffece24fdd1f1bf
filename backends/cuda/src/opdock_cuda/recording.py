"""Work recorded as a CUDA graph: what a program queues is captured once and replayed each step.

The recording has memory of its own. Nothing else is given that memory while the recording lives,
so replays may write it again and again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import cupy

from opdock.plugin import errors

__all__ = ["Recorder", "Recording", "recording"]

_LOCAL = threading.local()


class RefusedError(errors.FailedPreconditionError):
    """What a kernel wants to do cannot be part of a recording."""


def recording() -> bool:
    """Whether this thread's work is being recorded."""
    return bool(getattr(_LOCAL, "on", False))


def refuse(what: str) -> None:
    """Ends a recording in which a kernel wants the host to wait for a value.

    Raises:
        RefusedError: this thread records.
    """
    if recording():
        raise RefusedError(None, None, what)


class Recording:
    """A captured program.

    Attributes:
        result: what the recorded function returned: the buffers that every replay fills again.
    """

    def __init__(self, graph: Any, result: Any, kept: list[Any]) -> None:
        self._graph = graph
        self._kept = kept
        self.result = result

    def replay(self) -> None:
        """Queues the recorded work once more."""
        self._graph.launch()


class Recorder:
    """Captures on a stream of its own; the others go on."""

    def __init__(self) -> None:
        self._stream: Any = None
        self._side: Any = None

    def record(self, work: Callable[[], Any]) -> Recording | str:
        """The recording of what `work` queues, or the reason why there is none."""
        if self._stream is None:
            # A stream that waits for the default one would pull the default one into the graph.
            self._stream = cupy.cuda.Stream(non_blocking=True)
            self._side = cupy.cuda.Stream(non_blocking=True)
        cupy.cuda.get_current_stream().synchronize()
        pool = cupy.cuda.MemoryPool()
        stream = self._stream
        _LOCAL.on, _LOCAL.side, _LOCAL.kept = True, self._side, [pool]
        graph: Any = None
        try:
            with cupy.cuda.using_allocator(pool.malloc), stream:
                stream.begin_capture(cupy.cuda.runtime.streamCaptureModeRelaxed)
                try:
                    result = work()
                finally:
                    graph = stream.end_capture()
        except RefusedError as e:
            return e.message
        except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as e:
            return f"CUDA refuses to record it: {e}"
        finally:
            kept, _LOCAL.on, _LOCAL.side, _LOCAL.kept = _LOCAL.kept, False, None, None
        return Recording(graph, result, kept)


def set_aside(source: Any, target: Any) -> None:
    """Copies host data beside a recording, at once: every replay finds it as it is now."""
    stream = _LOCAL.side
    target.data.copy_from_host_async(source.ctypes.data, source.nbytes, stream)
    stream.synchronize()
    _LOCAL.kept.append(target)
