"""A cluster engine whose processes are threads, and which may carry badly.

Servers stand at addresses that only the engine knows, so that sessions and tasks reach them through
it alone, and all that they say crosses as bytes.
"""

from __future__ import annotations

import contextlib
import enum
import json
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError

import opdock as tf
from opdock import plugin
from opdock.plugin import Packet

FAR = "far:"  # what the engine's addresses begin with


class Fault(enum.Enum):
    """What becomes of a packet."""

    NONE = "it is carried"
    LOST = "it never arrives, and nobody is told"
    UNANSWERED = "it arrives, and its answer does not"
    TWICE = "it arrives twice"
    LATE = "it arrives when `Threads.late` is set"
    CUT = "nobody can be reached, which is known"
    DROPPED = "it never arrives, which is known later"


def copied(packet: Packet) -> Packet:
    return Packet(bytes(packet.header), tuple(bytes(p) for p in packet.parts))


class Channel:
    def __init__(self, engine: Threads, address: str) -> None:
        self._engine, self._address = engine, address

    def ask(self, packet: Packet) -> Future[Packet]:
        answer: Future[Packet] = Future()
        packet = copied(packet)
        kind = json.loads(packet.header)["kind"]
        fault = self._engine.fault(self._address, kind)
        self._engine.asked.append(self._address)
        if fault in (Fault.LOST, Fault.LATE):
            self._engine.lost.set()
        if fault is Fault.CUT:
            raise tf.errors.UnavailableError(None, None, f"{self._address} is cut off")
        if fault is Fault.DROPPED:
            threading.Thread(target=answer.set_exception, args=(gone(),), daemon=True).start()
            return answer
        for _ in range({Fault.LOST: 0, Fault.TWICE: 2}.get(fault, 1)):
            self._engine.moved(1)
            threading.Thread(target=self._carry, args=(packet, answer, fault), daemon=True).start()
        return answer

    def _carry(self, packet: Packet, answer: Future[Packet], fault: Fault) -> None:
        if fault is Fault.LATE:
            self._engine.late.wait()
        handle = self._engine.open.get(self._address)
        if handle is None:
            answer.set_exception(gone())
            self._engine.moved(-1)
            return
        session = json.loads(packet.header)["fields"].get("session", "")
        with self._engine.askers[session].asks():
            found = copied(handle(packet))
        self._engine.handled.put(found)
        if fault is Fault.UNANSWERED:
            self._engine.lost.set()
        else:
            with contextlib.suppress(InvalidStateError):  # it has come twice
                answer.set_result(found)
        self._engine.moved(-1)

    def tell(self, packet: Packet) -> Future[Packet]:
        return self.ask(packet)


def gone() -> tf.errors.UnavailableError:
    return tf.errors.UnavailableError(None, None, "it has died")


class Handled:
    """The answers that tasks have given."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.answers: list[Packet] = []

    def put(self, answer: Packet) -> None:
        with self._changed:
            self.answers.append(answer)
            self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: len(self.answers) >= count)


class Threads:
    """The engine.

    Attributes:
        open: what tasks make of packets, by address.
        asked: the addresses of all packets.
        fault: what becomes of a packet of an address and kind.
        late: lets go what is late.
        lost: set once a packet or its answer did not arrive, or is late.
        handled: the answers.
        askers: the process that asks in a session, by its name.
    """

    def __init__(self) -> None:
        self.open: dict[str, plugin.Handle] = {}
        self.asked: list[str] = []
        self.fault: Callable[[str, str], Fault] = lambda address, kind: Fault.NONE
        self.late, self.lost = threading.Event(), threading.Event()
        self.handled = Handled()
        self.askers: defaultdict[str, plugin.Asker] = defaultdict(plugin.Asker)
        self._under_way, self._counting = 0, threading.Lock()

    def moved(self, by: int) -> None:
        """Counts what is under way."""
        with self._counting:
            self._under_way += by

    @property
    def still(self) -> bool:
        """Whether something was lost, and all that was not has been answered."""
        return self.lost.is_set() and not self._under_way

    def serve(self, address: str, handle: plugin.Handle) -> Threads:
        self.open[address] = handle
        return self

    def close(self) -> None:
        pass

    def connect(self, address: str) -> Channel:
        if address not in self.open:
            raise tf.errors.UnavailableError(None, None, f"nobody is at {address}")
        return Channel(self, address)
