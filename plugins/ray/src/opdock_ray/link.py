"""The short way between two processes of one machine.

Ray calls actors, so a packet that goes by mailboxes goes from process to process four times until
its answer is there, a millisecond or more each time. That is what Ray offers between machines, and
what brings two processes of one machine together; what they say then goes through a connection of
the standard library (`multiprocessing.connection`), whose key only those have who reach the
mailbox. The kernel ends it with either process, and nothing is left of it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import AuthenticationError
from multiprocessing.connection import (
    Client,
    Connection,
    answer_challenge,
    deliver_challenge,
)
from typing import Any, Final

from opdock.plugin import Asker, Handle, Packet, errors, sheltered
from opdock_ray.frames import Frame, buffers, read, write

__all__ = ["Door", "Entrance", "Link", "possible"]

_KEY: Final = 32
_BACKLOG: Final = 64
Door = tuple[str, bytes]
"""Where a process listens, and the key."""


def possible() -> bool:
    """Whether processes of this system can be linked: it has addresses that leave no file."""
    return hasattr(os, "readv") and os.uname().sysname == "Linux"


class _Line:
    """A connection: who sends writes himself, or leaves it to whoever is at it."""

    def __init__(self, connection: Connection, take: Callable[[Frame], object]) -> None:
        self._connection, self._take = connection, take
        self._due: deque[list[Any]] = deque()
        self._writing = threading.Lock()

    @sheltered
    def send(self, frame: Frame) -> None:
        """Writes a frame. What is in it may be changed afterwards."""
        what = buffers(frame)
        if self._writing.acquire(blocking=False):
            try:
                self._write(what)
            finally:
                self._writing.release()
        else:
            # Another thread is writing, perhaps to a process that hangs.
            self._due.append([b"".join(what)])
        while self._due and self._writing.acquire(blocking=False):
            try:
                self._write(self._due.popleft())
            except IndexError:
                continue  # somebody was faster
            finally:
                self._writing.release()

    def _write(self, what: list[Any]) -> None:
        with contextlib.suppress(OSError):  # whoever reads finds out that it is over
            write(self._connection.fileno(), what)

    def listen(self) -> None:
        """Takes what comes until the connection ends."""
        with contextlib.suppress(OSError, EOFError):
            while True:
                self._take(read(self._connection.fileno()))

    def end(self) -> None:
        """Ends the connection, for threads as well that are reading or writing."""
        with (
            contextlib.suppress(OSError),
            socket.socket(fileno=os.dup(self._connection.fileno())) as s,
        ):
            s.shutdown(socket.SHUT_RDWR)


class Link:
    """What a process asks of another one, and that one's answers.

    Args:
        door: the other one's.

    Raises:
        OSError, EOFError, AuthenticationError: it is not there any more.
    """

    def __init__(self, door: Door) -> None:
        address, key = door
        self._line = _Line(Client(address, family="AF_UNIX", authkey=key), self._answered)
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[Packet]] = {}
        self._lock = threading.RLock()
        self._gone: errors.OpError | None = None

    def ask(self, packet: Packet) -> Future[Packet]:
        """Brings a packet to the other process; its answer, or what `break_off` was told.

        Raises:
            UnavailableError: it was broken off before.
        """
        answer: Future[Packet] = Future()
        number = next(self._numbers)
        with self._lock:
            if self._gone is not None:
                raise self._gone
            self._waiting[number] = answer
        self._line.send(Frame(number, False, packet))
        return answer

    def tell(self, packet: Packet) -> None:
        """Brings a packet to the other process.

        Raises:
            UnavailableError: it was broken off before.
        """
        if self._gone is not None:
            raise self._gone
        self._line.send(Frame(0, False, packet))

    def listen(self) -> None:
        """Hands out answers until the connection ends."""
        self._line.listen()

    def _answered(self, frame: Frame) -> None:
        with self._lock:
            answer = self._waiting.pop(frame.number, None)
        if answer is not None:
            answer.set_result(frame.packet)

    def break_off(self, error: errors.OpError) -> None:
        """Ends it; whoever waits for an answer gets an error."""
        with self._lock:
            if self._gone is None:
                self._gone = error
            waiting, self._waiting = self._waiting, {}
        self._line.end()
        for answer in waiting.values():
            answer.set_exception(error)


class Entrance:
    """Where other processes of this machine come in.

    Args:
        handle: what is made of their packets.
        workers: who does it.
    """

    def __init__(self, handle: Handle, workers: ThreadPoolExecutor) -> None:
        self._handle, self._workers = handle, workers
        self._key = secrets.token_bytes(_KEY)
        self._lock = threading.RLock()
        self._open = True
        self._lines: set[_Line] = set()
        # In the abstract namespace: no file is left when the process is killed.
        self._address = f"\0opdock-{os.getpid()}-{secrets.token_hex(8)}"
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(self._address)
        self._listening.listen(_BACKLOG)
        threading.Thread(target=self._welcome, daemon=True, name="opdock-door").start()

    @property
    def door(self) -> Door:
        """What others need to come in."""
        return self._address, self._key

    def close(self) -> None:
        """Lets nobody in any more, and nobody stay."""
        with self._lock:
            self._open, lines = False, tuple(self._lines)
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that closes it
        for line in lines:
            line.end()

    def _welcome(self) -> None:
        with self._listening, contextlib.suppress(OSError):  # closed
            while True:
                connection = Connection(self._listening.accept()[0].detach())
                threading.Thread(
                    target=self._serve, args=(connection,), daemon=True, name="opdock-link"
                ).start()

    def _serve(self, connection: Connection) -> None:
        try:
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
        except (OSError, EOFError, AuthenticationError):
            connection.close()
            return
        asker = Asker()
        line = _Line(
            connection, lambda frame: self._workers.submit(self._answer, line, asker, frame)
        )
        with self._lock:
            if self._open:
                self._lines.add(line)
            else:  # closed while the other end came in, which may think that it is in
                line.end()
        with contextlib.suppress(RuntimeError):  # no work is begun when a process is ending
            line.listen()
        asker.ended()
        with self._lock:
            self._lines.discard(line)

    def _answer(self, line: _Line, asker: Asker, frame: Frame) -> None:
        with asker.asks():
            packet = self._handle(frame.packet)
        if frame.number:
            line.send(Frame(frame.number, True, packet))
