"""Devices, streams, events and graphs that run at once."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
import types
from contextlib import contextmanager

import numpy as np

from cupy.cuda import memory
from cupy.cuda.memory import MemoryPointer, MemoryPool, OutOfMemoryError, owns

__all__ = [
    "Device", "Event", "Graph", "MemoryPointer", "MemoryPool", "Stream", "alloc",
    "alloc_pinned_memory", "driver", "get_current_stream", "get_elapsed_time", "memory", "owns",
    "runtime", "using_allocator", "waited",
]  # fmt: skip

_local = threading.local()
_numbers = itertools.count(1)


class CUDARuntimeError(RuntimeError):
    pass


runtime = types.SimpleNamespace(
    CUDARuntimeError=CUDARuntimeError,
    getDeviceCount=lambda: 1,
    getDevice=lambda: 0,
    streamCaptureModeRelaxed=2,
)
driver = types.SimpleNamespace(CUDADriverError=type("CUDADriverError", (RuntimeError,), {}))


def waited():
    """What makes the host wait for a value; CUDA forbids it while the thread captures."""
    if getattr(_local, "graph", None) is not None:
        raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported")


def enqueue(work):
    """Runs a piece of work, or adds it to the graph that the thread captures."""
    stream = get_current_stream()
    if stream.graph is not None:
        stream.graph.append(work)
    else:
        work()


def capturing():
    """Whether this thread's work is being captured."""
    return get_current_stream().graph is not None


class Device:
    def __init__(self, index=None):
        self.id = index or 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def synchronize(self):
        waited()


class Stream:
    def __init__(self, null=False, non_blocking=False):
        self.ptr = 0 if null else next(_numbers)
        self.is_non_blocking = non_blocking
        self.graph = None

    def __enter__(self):
        _local.streams = [*getattr(_local, "streams", ()), self]
        return self

    def __exit__(self, *_):
        _local.streams = _local.streams[:-1]

    def record(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event):
        pass

    def synchronize(self):
        if self.graph is not None:
            waited()

    def begin_capture(self, mode=None):
        if not self.is_non_blocking:
            raise CUDARuntimeError("cudaErrorStreamCaptureImplicit")
        self.graph = _local.graph = []

    def end_capture(self):
        work, self.graph, _local.graph = self.graph, None, None
        return Graph(work)


class Graph:
    def __init__(self, work):
        self.work = work
        self.launches = 0

    def launch(self, stream=None):
        self.launches += 1
        for piece in self.work:
            piece()


_null = Stream(null=True)
Stream.null = _null


def get_current_stream():
    return (getattr(_local, "streams", None) or [_null])[-1]


class Event:
    done = True

    def __init__(self, disable_timing=False):
        self.time = 0.0

    def record(self, stream=None):
        self.time = time.perf_counter()

    def synchronize(self):
        pass


def get_elapsed_time(first, last):
    return (last.time - first.time) * 1e3


def get_cublas_handle():
    return 1


def alloc(size):
    return getattr(_local, "malloc", memory.default_pool.malloc)(size)


@contextmanager
def using_allocator(malloc):
    with contextlib.ExitStack() as stack:
        before = getattr(_local, "malloc", memory.default_pool.malloc)
        stack.callback(setattr, _local, "malloc", before)
        _local.malloc = malloc
        yield


class _Pinned(bytearray):
    @property
    def ptr(self):
        return np.frombuffer(self, np.uint8).ctypes.data


def alloc_pinned_memory(size):
    return _Pinned(size)


memory.enqueue = enqueue
memory.OutOfMemoryError = OutOfMemoryError
