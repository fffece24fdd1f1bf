"""Compilation beside the program: a caller asks for a function and goes on until it is there."""

from __future__ import annotations

import atexit
import hashlib
import os
import queue
import threading
from collections.abc import Callable
from typing import Any

from opdock_cpu.jit import llvm

__all__ = ["Function", "request"]

_queue: queue.SimpleQueue[Function | None] = queue.SimpleQueue()
_worker: threading.Thread | None = None
_lock = threading.Lock()
_known: dict[str, Function] = {}
_stopped = False


class Function:
    """Generated code, or the promise of it.

    Attributes:
        address: where it is; None until it is compiled.
        failure: why it never will be.
    """

    __slots__ = ("_name", "_source", "address", "failure")

    def __init__(self, source: str, name: str) -> None:
        self._source, self._name = source, name
        self.failure = ""
        self.address = llvm.compile_ir(source, name, only_cached=True)

    def compile(self) -> None:
        """Compiles it now."""
        try:
            self.address = llvm.compile_ir(self._source, self._name)
        except (OSError, RuntimeError) as e:
            self.failure = str(e)


def request(write: Callable[[str], str]) -> Function:
    """The function that `write(name)` gives the source of, compiled in the background.

    The same source is compiled once in a process. `OPDOCK_JIT=sync` compiles before returning.
    """
    text = write("NAME")
    key = hashlib.sha256(text.encode()).hexdigest()
    with _lock:
        found = _known.get(key)
        if found is None:
            name = f"opdock_{key[:24]}"
            found = _known[key] = Function(text.replace("@NAME(", f"@{name}("), name)
            if found.address is None and os.environ.get("OPDOCK_JIT") != "sync":
                _start()
                _queue.put(found)
    if found.address is None and os.environ.get("OPDOCK_JIT") == "sync":
        found.compile()
    return found


def _start() -> None:
    global _worker
    if _worker is None or not _worker.is_alive():
        _worker = threading.Thread(target=_work, name="opdock-jit", daemon=True)
        _worker.start()


def _work() -> None:
    while not _stopped:
        wanted = _queue.get()
        if wanted is None:
            return
        wanted.compile()


def _stop() -> None:
    # A thread inside LLVM while the interpreter goes down would crash it.
    global _stopped
    _stopped = True
    if _worker is not None and _worker.is_alive():
        _queue.put(None)
        _worker.join()


atexit.register(_stop)


def reset_after_fork() -> None:
    """A child has no worker."""
    global _worker, _lock
    _worker, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=reset_after_fork)

_ffi: Any = None


def caller(arguments: int) -> Callable[[int], Any]:
    """Makes an address callable with so many pointers and a number."""
    signature = f"void(*)({'void*, ' * arguments}int64_t)"
    return lambda address: ffi().cast(signature, address)


def ffi() -> Any:
    """The process's cffi."""
    global _ffi
    if _ffi is None:
        import cffi

        _ffi = cffi.FFI()
    return _ffi
