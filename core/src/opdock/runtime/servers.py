"""Servers of this process: what sessions with the same target share."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from collections.abc import Sequence
from typing import Any, Final, Protocol

from opdock import errors
from opdock.runtime.meetings import Meetings
from opdock.runtime.resources import Store

__all__ = ["CLOSED", "LocalServer", "at", "find", "no_factory", "start", "tasks_of", "withdraw"]

CLOSED: Final = "Session::Close: the session was closed."
"""What is said of a step that waits when its session with a server ends."""
_FIRST_PORT: Final = 49152
"""Servers that may have any address are numbered from here, as the system would."""
_SCHEME: Final = "grpc://"


class Abortable(Protocol):
    """A session."""

    def _abort(self) -> None: ...


def tasks_of(cluster: Any) -> dict[str, str]:
    """The addresses of a ClusterDef by the names of the tasks, `/job:ps/replica:0/task:0`."""
    return {
        f"/job:{job.name}/replica:0/task:{index}": job.tasks[index]
        for job in cluster.job
        for index in sorted(job.tasks)
    }


class LocalServer:
    """One task of a cluster, whose sessions share variables, queues and tables.

    Args:
        address: where it is found.
        definition: its ServerDef.

    Attributes:
        service: what answers to masters, made when the first one asks.
    """

    def __init__(self, address: str, definition: Any) -> None:
        self.address = address
        self.target = f"{_SCHEME}{address}"
        self.definition = definition
        job = definition.job_name
        self.task = f"/job:{job}/replica:0/task:{definition.task_index}"
        self.config = definition.default_session_config
        self.store = Store(container=job)
        self.meetings = Meetings()
        self.service: Any = None
        self._sessions: weakref.WeakSet[Abortable] = weakref.WeakSet()
        self._others: list[LocalServer] = []

    @property
    def tasks(self) -> dict[str, str]:
        """The addresses of the cluster's tasks, this one's as it is."""
        return {**tasks_of(self.definition.cluster), self.task: self.address}

    def join(self, other: LocalServer) -> None:
        """Keeps another server of its cluster, and is kept by it: either may need the other."""
        if other.address in self.tasks.values() and self.address in other.tasks.values():
            self._others.append(other)
            other._others.append(self)

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
"""By address."""
_kept: Final[set[LocalServer]] = set()
"""A server stays for those who know its address, as in TensorFlow, when the `tf.train.Server` that
a program started is gone: until another one is to have the address, and no session holds it and no
`tf.train.Server` of its cluster."""
_ports = itertools.count(_FIRST_PORT)


def start(address: str, definition: Any) -> LocalServer:
    """A server at an address of this process.

    Args:
        address: "host:port"; port 0 takes one that no other server of the process has.
        definition: the ServerDef.

    Raises:
        UnknownError: another server of the process has the address.
    """
    host, _, port = address.rpartition(":")
    with _lock:
        if port == "0":
            address = next(a for n in _ports if (a := f"{host}:{n}") not in _servers)
        if address in _servers and not _leave(address):
            raise errors.UnknownError(None, None, f"Could not start a server at {address}: in use")
        server = LocalServer(address, definition)
        for other in list(_servers.values()):
            server.join(other)
        _servers[address] = server
        _kept.add(server)
        return server


def withdraw(server: LocalServer) -> None:
    """Takes back a start: its address is somebody else's."""
    with _lock:
        del _servers[server.address]
        _kept.discard(server)
        for other in server._others:
            other._others.remove(server)
        server._others.clear()


def _leave(address: str) -> bool:
    """Lets a server go with its cluster, if nobody holds one of them; whether it has gone."""
    server = _servers[address]
    cluster = weakref.WeakSet([server, *server._others])
    _kept.difference_update(cluster)
    del server
    gc.collect()  # Servers of one cluster hold each other: they go when they are collected.
    if not cluster:
        return True
    _kept.update(cluster)
    return False


def at(address: str) -> LocalServer | None:
    """The server of this process that has an address, if one does."""
    return _servers.get(address)


def find(target: str | bytes | None) -> str | None:
    """The address that a session's target names; None for a session of its own.

    Raises:
        NotFoundError: the target is neither.
    """
    name = (target.decode() if isinstance(target, bytes) else target) or ""
    if name in {"", "local"}:
        return None
    if not name.startswith(_SCHEME):
        raise no_factory(name, "A target is '' or that of a tf.train.Server, 'grpc://host:port'.")
    return name.removeprefix(_SCHEME)


def no_factory(target: str, why: str) -> errors.NotFoundError:
    """The error of a target that nobody can make sessions for."""
    return errors.NotFoundError(
        None, None,
        f'No session factory registered for the given session options: {{target: "{target}"}}. '
        f"{why}",
    )  # fmt: skip
