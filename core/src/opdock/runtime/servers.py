"""Servers of this process: what sessions with the same target share."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Sequence
from typing import Any, Final, Protocol

from opdock import errors
from opdock.runtime.resources import Store

__all__ = ["LocalServer", "find", "start"]

_FIRST_PORT: Final = 49152
"""Servers that may have any address are numbered from here, as the system would."""


class Abortable(Protocol):
    """A session."""

    def _abort(self) -> None: ...


class LocalServer:
    """One task whose sessions share variables, queues and tables. Nobody listens on its address.

    Args:
        target: the name by which sessions find it.
        job, index: the task.
        config: the ConfigProto of sessions that bring none.
    """

    def __init__(self, target: str, job: str, index: int, config: Any) -> None:
        self.target = target
        self.task = f"/job:{job}/replica:0/task:{index}"
        self.config = config
        self.store = Store(container=job)
        self._sessions: weakref.WeakSet[Abortable] = weakref.WeakSet()

    def add(self, session: Abortable) -> None:
        """Makes a session known, so that a reset ends it."""
        self._sessions.add(session)

    def reset(self, containers: Sequence[str]) -> None:
        """Forgets what is in these containers, or in all, and ends the sessions."""
        self.store.clear(containers)
        for session in list(self._sessions):
            session._abort()


# Reentrant: the collector may run inside, and a finalizer that it calls may come here.
_lock = threading.RLock()
_servers: Final[weakref.WeakValueDictionary[str, LocalServer]] = weakref.WeakValueDictionary()
"""By address; a server that nobody holds, and no session, is gone with all that it kept."""
_ports = itertools.count(_FIRST_PORT)


def start(address: str, job: str, index: int, config: Any) -> LocalServer:
    """A server at an address of this process.

    Args:
        address: "host:port"; port 0 takes one that no other server of the process has.
        job, index: the task.
        config: the ConfigProto of sessions that bring none.

    Raises:
        UnknownError: another server of the process has the address.
    """
    host, _, port = address.rpartition(":")
    with _lock:
        if port == "0":
            address = next(a for n in _ports if (a := f"{host}:{n}") not in _servers)
        if address in _servers:
            raise errors.UnknownError(None, None, f"Could not start a server at {address}: in use")
        server = _servers[address] = LocalServer(f"grpc://{address}", job, index, config)
        return server


def find(target: str | bytes | None) -> LocalServer | None:
    """The server of a session's target; None for a session of its own.

    Raises:
        NotFoundError: the target is neither.
    """
    name = (target.decode() if isinstance(target, bytes) else target) or ""
    if name in {"", "local"}:
        return None
    found = _servers.get(name.removeprefix("grpc://")) if name.startswith("grpc://") else None
    if found is None:
        raise errors.NotFoundError(
            None, None,
            f'No session factory registered for the given session options: {{target: "{name}"}}. '
            "opdock runs sessions in this process: on their own (target '') or on a "
            "tf.train.Server that was started here.",
        )  # fmt: skip
    return found
