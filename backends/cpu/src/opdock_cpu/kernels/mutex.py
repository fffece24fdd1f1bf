"""Locks that steps hold, in the host's memory."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, errors, finalizer

__all__ = ["table"]

table = KernelTable()


class _Mutex:
    """Held by one at a time; who asks first gets it first."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._changed = threading.Condition()
        self._line: deque[object] = deque()

    def lock(self, wait: Callable[..., None]) -> _Held:
        """Waits for its turn.

        Raises:
            CancelledError: the session was closed, or the step's time is over.
        """
        ticket = object()
        with self._changed:
            self._line.append(ticket)
            wait(self._changed, lambda: self._line[0] is ticket, lambda: self.leave(ticket))
        return _Held(self, ticket)

    def leave(self, ticket: object) -> None:
        """Lets the next one in; nothing happens if the ticket is not in the line."""
        with self._changed:
            if ticket in self._line:
                self._line.remove(ticket)
                self._changed.notify_all()


class _Held:
    """A lock that is held until it is released, its step has failed, or nobody has it."""

    def __init__(self, mutex: _Mutex, ticket: object) -> None:
        self._mutex, self._ticket = mutex, ticket

    def release(self) -> None:
        self._mutex.leave(self._ticket)

    abandoned = release
    __del__ = finalizer(release)


def _own(handle: Any) -> Any:
    return handle.item() if isinstance(handle, np.ndarray) else handle


@table.binder("MutexV2")
def mutex(sig: NodeSig) -> Callable[[], Any]:
    """The mutex of a node: its own, or the one that it shares by name."""
    attrs, resources = sig.attrs, sig.resources
    name = attrs["shared_name"] or sig.name
    assert resources is not None
    return lambda: resources.get_or_create("mutex", attrs["container"], name, lambda: _Mutex(name))


@table.binder("MutexLock")
def lock(sig: NodeSig) -> Callable[[Any], Any]:
    """Takes a mutex."""
    resources = sig.resources
    assert resources is not None

    def run(handle: Any) -> _Held:
        found = _own(handle)
        if not isinstance(found, _Mutex):
            raise errors.InvalidArgumentError(
                None, None, f"MutexLock '{sig.name}': the handle is not one of a mutex"
            )
        return found.lock(resources.wait)

    return run


@table.binder("ConsumeMutexLock")
def consume(sig: NodeSig) -> Callable[[Any], tuple[()]]:
    """Releases a mutex."""

    def run(held: Any) -> tuple[()]:
        found = _own(held)
        if not isinstance(found, _Held):
            raise errors.InvalidArgumentError(
                None, None, f"Expected input to be a MutexLock, got {type(found).__name__}"
            )
        found.release()
        return ()

    return run
