"""What a cluster engine is: whatever brings packets from one task of a cluster to another.

Core says what is in the packets, and what tasks make of them; an engine opens tasks by address,
carries, and tells when nobody is there.
"""

from __future__ import annotations

import contextlib
import contextvars
import re
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from opdock.fields import check_fields
from opdock.late import record

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = [
    "Asker", "Channel", "ClusterEngine", "ClusterEngineSpec", "Handle", "Packet", "Serving",
    "while_asked",
]  # fmt: skip

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_DOTTED: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


class Packet(NamedTuple):
    """What an engine carries, as it is.

    Attributes:
        header: what it is about.
        parts: bytes, or NumPy arrays of bytes with one dimension, which nobody changes.
    """

    header: bytes
    parts: tuple[Any, ...]


Handle = Callable[[Packet], Packet]
"""What a task makes of a packet. It raises nothing, may take as long as a step does, and is called
by many threads at once: one step may wait for what another packet brings."""


class Asker:
    """A process that asks a task, for engines that notice when it ends.

    What it has begun ends then: nobody waits for it, and what it would take from a queue, say, is
    for others.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._ended = False
        self._under_way: dict[object, Callable[[], None]] = {}

    @contextlib.contextmanager
    def asks(self) -> Iterator[None]:
        """While it lasts, what is handled is of this process."""
        before = _asker.set(self)
        try:
            yield
        finally:
            _asker.reset(before)

    def ended(self) -> None:
        """Says that the process has ended, or waits for no answer any more."""
        with self._lock:
            self._ended, under_way = True, tuple(self._under_way.values())
        for give_up in under_way:
            give_up()

    @contextlib.contextmanager
    def _while_asked(self, give_up: Callable[[], None]) -> Iterator[None]:
        key = object()
        with self._lock:
            self._under_way[key] = give_up
            ended = self._ended
        try:
            if ended:
                give_up()
            yield
        finally:
            with self._lock:
                del self._under_way[key]


_asker: contextvars.ContextVar[Asker | None] = contextvars.ContextVar("opdock_asker", default=None)


def while_asked(give_up: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
    """While it lasts, `give_up` is called if the process that has asked ends."""
    asker = _asker.get()
    return contextlib.nullcontext() if asker is None else asker._while_asked(give_up)


class Serving(Protocol):
    """A task that is open."""

    def close(self) -> None:
        """Lets nobody in any more."""
        ...


class Channel(Protocol):
    """The way to one task.

    Its methods may raise UnavailableError: nobody is there, or no longer. Packets may overtake each
    other. One that arrives twice is answered with an error the second time, if what it asks for
    must not be done twice; for one that is lost the session's deadline is waited for.
    """

    def ask(self, packet: Packet) -> Future[Packet]:
        """Brings a packet to the task.

        Returns:
            The answer to come; or UnavailableError, as soon as it is known that none will.
        """
        ...

    def tell(self, packet: Packet) -> Future[Any] | None:
        """Brings a packet to the task, and waits for nothing: the answer is dropped.

        Returns:
            What ends when the packet has arrived, with UnavailableError as soon as it is known that
            it will not; None where that is not known, or where all methods tell from then on.
        """
        ...


class ClusterEngine(Protocol):
    """One process's access to the tasks of clusters, by their addresses ("host:port")."""

    def serve(self, address: str, handle: Handle) -> Serving:
        """Opens the task of an address.

        Raises:
            UnknownError: another process has the address.
        """
        ...

    def connect(self, address: str) -> Channel:
        """The way to the task of an address.

        Raises:
            UnavailableError: nobody has opened it, or not yet.
        """
        ...


@record(frozen=True, kw_only=True)
class ClusterEngineSpec:
    """A cluster engine: what it is called, and where it is, imported when a cluster needs it.

    Attributes:
        name: what the `protocol` of a `tf.train.Server` may call it; "grpc", TF's default, takes
            the engine of the highest priority.
        engine: "pkg.mod:function", called without arguments: a `ClusterEngine`.
        priority: the higher is preferred.

    Raises:
        TypeError, ValueError: a field is malformed.
    """

    name: str
    engine: str
    priority: int = 100

    def __post_init__(self) -> None:
        check_fields(self, "ClusterEngineSpec.")
        for what, pattern in (("name", _NAME), ("engine", _DOTTED)):
            value = getattr(self, what)
            if not pattern.fullmatch(value):
                raise ValueError(f"ClusterEngineSpec.{what} is malformed: {value!r}")
