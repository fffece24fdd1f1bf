"""One engine and stream of oneDNN for the process, and its statuses as typed errors."""

from __future__ import annotations

import functools
from typing import Any, Final

from opdock.plugin import errors
from opdock_cpu.onednn.library import Library, find

__all__ = ["Api", "api"]

_STATUS: Final = {
    1: (errors.ResourceExhaustedError, "out of memory"),
    2: (errors.UnimplementedError, "invalid arguments"),
    3: (errors.UnimplementedError, "unimplemented"),
    4: (errors.UnimplementedError, "no implementation left"),
}


class Api:
    """The library with an engine, a stream and the number of its threads.

    Attributes:
        ffi, lib: cffi's view of the library.
        engine, stream: oneDNN's; execution on a CPU stream is synchronous.
        set_threads: sets OpenMP's threads for the calling thread; None without OpenMP.
        usual: how many threads OpenMP uses where nobody said otherwise.
    """

    def __init__(self, library: Library) -> None:
        self.ffi, self.lib = library.ffi, library.lib
        # Looked up through oneDNN, so that it is the runtime which oneDNN itself uses.
        openmp = library.runtime == "OpenMP"
        self.set_threads = self.lib.omp_set_num_threads if openmp else None
        self.usual = int(self.lib.omp_get_max_threads()) if openmp else 1
        self.engine = self.make(self.lib.dnnl_engine_create, 1, 0)
        self.stream = self.make(self.lib.dnnl_stream_create, self.engine, 1)
        # Primitives are kept where they are bound; oneDNN's own cache shares equal ones.
        self.check(self.lib.dnnl_set_primitive_cache_capacity(1024), "set_primitive_cache_capacity")

    def check(self, status: int, what: str) -> None:
        """Raises for a status other than success."""
        if status:
            cls, text = _STATUS.get(status, (errors.InternalError, f"status {status}"))
            raise cls(None, None, f"oneDNN {what}: {text}")

    def make(self, create: Any, *args: Any, destroy: Any = None) -> Any:
        """What a function of oneDNN creates, destroyed with its last reference."""
        out = self.ffi.new("void **")
        self.check(create(out, *args), getattr(create, "__name__", "create"))
        return out[0] if destroy is None else self.ffi.gc(out[0], destroy)


@functools.cache
def api() -> Api:
    """The process's oneDNN.

    Raises:
        UnavailableError: there is none; the message says why.
    """
    found = find()
    if isinstance(found, str):
        raise errors.UnavailableError(None, None, found)
    return Api(found)
