"""Compilation beside the program: a caller asks for a function and goes on until it is there.

What is on disk is there at once. The rest is compiled by a thread that begins a moment later, so
that most first steps neither wait for LLVM nor share their cores with it.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final

from opdock.plugin import deterministic
from opdock_cpu.jit import llvm

__all__ = ["Function", "address", "caller", "ffi", "request"]

_DELAY: Final = 0.1
"""Seconds from a request to compiling, in which most first steps are over.

A lower priority of the thread instead was measured: on two busy cores it takes many seconds.
"""
# Weak: what a program that is gone had asked for need not be kept, and is not compiled.
_queue: queue.SimpleQueue[weakref.ref[Function] | None] = queue.SimpleQueue()
_worker: threading.Thread | None = None
# Reentrant: the collector may run inside, and a finalizer that it calls may come here.
_lock = threading.RLock()
_known: weakref.WeakValueDictionary[str, Function] = weakref.WeakValueDictionary()
_stopped = threading.Event()


class Function:
    """Generated code, or the promise of it. The code goes with it: who calls it, holds it.

    Attributes:
        failure: why there never will be code.
    """

    __slots__ = ("__weakref__", "_code", "_name", "_source", "failure")

    def __init__(self, source: str, name: str) -> None:
        self._source, self._name = source, name
        self._code: llvm.Code | None = None
        self.failure = ""

    @property
    def address(self) -> int | None:
        """Where the code is; None until it is compiled."""
        return None if self._code is None else self._code.address

    def load(self) -> bool:
        """Loads it from disk, if it is there and nothing is being compiled; whether it did."""
        return self._have(llvm.load_cached)

    def compile(self) -> None:
        """Compiles it now, unless it is there."""
        if self._code is None:
            self._have(llvm.compile_ir)

    def _have(self, get: Callable[[str, str], llvm.Code | None]) -> bool:
        try:
            code = get(self._source, self._name)
        except (ImportError, OSError, RuntimeError) as e:
            code, self.failure = None, str(e)
        with _lock:
            # A caller that could not wait may have compiled it beside the worker. The first code
            # stays: its address is in use already, and code goes when nobody holds it.
            if self._code is None:
                self._code = code
        return self._code is not None


def request(write: Callable[[str], str]) -> Function:
    """The function that `write(name)` gives the source of, compiled in the background.

    Who asks for the same source shares it, while somebody holds it. `OPDOCK_JIT=sync` compiles
    before returning, and so does `TF_DETERMINISTIC_OPS`: what serves until then rounds otherwise.
    """
    text = write("NAME")
    key = _digest(text)
    waits = llvm.asked() == "sync" or deterministic()
    with _lock:
        found = _known.get(key)
        if found is None:
            name = f"opdock_{key[:24]}"
            found = _known[key] = Function(text.replace("@NAME(", f"@{name}("), name)
            if not waits and not found.load():
                _start()
                _queue.put(weakref.ref(found))
    if waits and found.address is None:
        found.compile()
    return found


@functools.lru_cache(maxsize=128)
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _start() -> None:
    global _worker
    if _worker is None or not _worker.is_alive():
        worker = threading.Thread(target=_work, name="opdock-jit", daemon=True)
        try:
            worker.start()
        except RuntimeError:
            return  # the system has no room for it now: plain kernels compute meanwhile
        _worker = worker


def _work() -> None:
    delay = _DELAY
    while (wanted := _take()) is not None and not _stopped.wait(delay):
        wanted.compile()
        del wanted  # while the queue is empty, nobody holds it but its programs
        delay = _DELAY if _queue.empty() else 0.0


def _take() -> Function | None:
    """The next function that somebody still wants; None at the end."""
    while (asked := _queue.get()) is not None:
        wanted = asked()
        if wanted is not None:
            return wanted
    return None


def _stop() -> None:
    # A thread inside LLVM while the interpreter goes down would crash it.
    _stopped.set()
    if _worker is not None and _worker.is_alive():
        _queue.put(None)
        _worker.join()


atexit.register(_stop)


def reset_after_fork() -> None:
    """A child has no worker."""
    global _worker, _lock
    _worker, _lock = None, threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=reset_after_fork)

_ffi: Any = None


@functools.cache
def caller(arguments: int) -> Callable[[int], Any]:
    """Makes an address callable with so many pointers and a number."""
    import _cffi_backend as cffi

    # Put together, not read from text: the reader gives up at some hundreds of arguments.
    nothing, number = cffi.new_void_type(), cffi.new_primitive_type("int64_t")
    pointers = (cffi.new_pointer_type(nothing),) * arguments
    kind = cffi.new_function_type((*pointers, number), nothing)
    return lambda address: cffi.cast(kind, address)


def address(array: Any) -> int:
    """Where an array's first element is."""
    found: int = array.__array_interface__["data"][0]
    return found


def ffi() -> Any:
    """The process's cffi."""
    global _ffi
    if _ffi is None:
        # The extension module reads these types itself; the package would load a parser of C for
        # them, which takes longer than all else that a first step needs.
        import _cffi_backend

        _ffi = _cffi_backend.FFI()
    return _ffi
