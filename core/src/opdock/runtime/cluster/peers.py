"""The way to a task: straight to a server of this process, through a cluster engine to others."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from opdock import errors
from opdock.codes import coded
from opdock.plugins.clusters import Channel, ClusterEngine, Packet
from opdock.plugins.loading import resolve
from opdock.plugins.manager import get_manager
from opdock.runtime import servers
from opdock.runtime.cluster.messages import Message, decode, encode, raised
from opdock.util.shelter import sheltered
from opdock.util.threads import begin

__all__ = ["Peer", "connect", "engine"]


class Peer(Protocol):
    """A task, wherever it is."""

    def ask(self, request: Message) -> Future[Message]:
        """The answer to come, or the OpError in its place."""
        ...

    def tell(self, request: Message) -> Future[Any] | None:
        """Asks, and does not care for the answer; its arrival, where that takes time."""
        ...


class _Here:
    """A task of this process.

    Args:
        answer: what it makes of a request.
    """

    def __init__(self, answer: Callable[[Message], Message]) -> None:
        self._answer = answer

    def ask(self, request: Message) -> Future[Message]:
        answer: Future[Message] = Future()

        def work() -> None:
            try:
                answer.set_result(self._answer(request))
            except BaseException as e:
                answer.set_exception(e)

        begin(threading.Thread(target=work, daemon=True, name="opdock-task"))
        return answer

    def tell(self, request: Message) -> None:
        self._answer(request)


class _Elsewhere:
    """A task of another process.

    Args:
        channel: the way to it.
        address: its own.
    """

    def __init__(self, channel: Channel, address: str) -> None:
        self._channel, self._address = channel, address
        self._process = os.getpid()

    def _check(self) -> None:
        """Raises FailedPreconditionError in a child of `fork`.

        What it said would go as its parent's word: the end of its copy of a session would be that
        of the parent's.
        """
        if os.getpid() != self._process:
            raise errors.FailedPreconditionError(
                None, None,
                f"The way to the task at {self._address} is that of the process from which this "
                "one was forked. Start the process with multiprocessing's method 'spawn', and make "
                "its session there.",
            )  # fmt: skip

    def ask(self, request: Message) -> Future[Message]:
        self._check()
        answer: Future[Message] = Future()

        def arrived(packet: Future[Packet]) -> None:
            try:
                found = decode(packet.result())
                error = raised(found)
                if error is None:
                    answer.set_result(found)
                else:
                    answer.set_exception(error)
            except BaseException as e:
                answer.set_exception(e)

        self._channel.ask(encode(request)).add_done_callback(arrived)
        return answer

    def tell(self, request: Message) -> Future[Any] | None:
        self._check()
        return self._channel.tell(encode(request))


def connect(address: str) -> Peer:
    """The way to the task of an address.

    Raises:
        UnavailableError: nobody has the address, or not yet.
        UnimplementedError: it is not of this process, and there is no cluster engine.
    """
    server = servers.at(address)
    if server is not None:
        return _Here(server.service.answer)
    found = engine("")
    if found is None:
        raise errors.UnimplementedError(
            None, None,
            coded(
                "OPD-CLUSTER-001",
                f"No server of this process has the address {address}, and no cluster engine is "
                "installed that could reach others.",
            ),
        )  # fmt: skip
    return _Elsewhere(found.connect(address), address)


# ---------------------------------------------------------------- engines
_lock = threading.Lock()
_open: dict[str, ClusterEngine] = {}


def _after_fork() -> None:
    """Has a child make engines of its own."""
    global _lock
    _lock = threading.Lock()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def engine(protocol: str) -> ClusterEngine | None:
    """The engine of a name, or for "grpc" and none the preferred one; None if there is none.

    Raises:
        UnimplementedError: no engine has the name.
    """
    specs = get_manager().cluster_engines()
    named = [s for s in specs if s.name == protocol]
    if protocol not in ("", "grpc") and not named:
        names = ", ".join(repr(s.name) for s in specs) or "none"
        raise errors.UnimplementedError(
            None, None,
            coded(
                "OPD-CLUSTER-001",
                f"No cluster engine is called {protocol!r}, which the server asks for as its "
                f"protocol; installed: {names}.",
            ),
        )  # fmt: skip
    if not specs:
        return None
    return _opened((named or specs)[0].engine)


@sheltered
def _opened(name: str) -> ClusterEngine:
    with _lock:
        if name not in _open:
            _open[name] = resolve(name)()
        return _open[name]
