"""Links between processes of one machine, proved within one process: no Ray takes part."""

from __future__ import annotations

import contextlib
import os
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import AuthenticationError
from multiprocessing.connection import answer_challenge

import numpy as np
import pytest

import opdock as tf
import opdock_ray.link
from opdock.plugin import Packet
from opdock.plugins.clusters import while_asked
from opdock_ray.frames import Frame, buffers, read, write
from opdock_ray.link import Entrance, Link

PACKETS = [
    Packet(b"", ()),
    Packet(b"header", (b"", b"more")),
    Packet(b"h" * 1000, tuple(bytes([i % 256]) * (i % 70) for i in range(1500))),
    Packet(b"large", (np.arange(3_000_000, dtype=np.uint8), b"small")),
]


def text(packet: Packet) -> tuple[bytes, list[bytes]]:
    return packet.header, [bytes(p) for p in packet.parts]


@pytest.mark.parametrize("packet", PACKETS)
def test_a_frame_goes_through_a_stream(packet):
    out, into = os.pipe()
    sent = threading.Thread(target=write, args=(into, buffers(Frame(7, True, packet))))
    sent.start()
    found = read(out)
    sent.join()
    assert (found.number, found.reply, text(found.packet)) == (7, True, text(packet))
    assert all(p.ctypes.data % 16 == 0 for p in found.packet.parts)
    os.close(into)
    with pytest.raises(EOFError):
        read(out)
    os.close(out)


@pytest.mark.parametrize(
    "sent",
    [
        struct.pack("<QBI", 1, 0, 0),
        struct.pack("<QBI", 1, 0, 2**32 - 1),
        struct.pack("<QBIQ", 1, 0, 1, 2**63),
        struct.pack("<QBI2Q", 1, 0, 2, 2**40, 2**40),
    ],
)
def test_what_is_no_frame_ends_the_stream(sent):
    out, into = os.pipe()
    os.write(into, sent)
    with pytest.raises(OSError, match="a frame of"):
        read(out)
    os.close(into)
    os.close(out)


@pytest.mark.parametrize("length", range(1, 40, 7))
def test_a_frame_that_is_cut_off_ends_the_stream(length):
    out, into = os.pipe()
    whole = b"".join(map(bytes, buffers(Frame(1, False, Packet(b"header", (b"part",))))))
    os.write(into, whole[:length])
    os.close(into)
    with pytest.raises(EOFError):
        read(out)
    os.close(out)


class Pair:
    """A link, and what the other end makes of packets."""

    def __init__(self, handle) -> None:
        self.entrance = Entrance(handle, ThreadPoolExecutor(8))
        self.link = Link(self.entrance.door)
        self.listening = threading.Thread(target=self.link.listen)
        self.listening.start()


@pytest.fixture
def pair():
    made = []

    def make(handle):
        made.append(Pair(handle))
        return made[-1]

    yield make
    for one in made:
        one.link.break_off(tf.errors.UnavailableError(None, None, "the test is over"))
        one.entrance.close()
        one.listening.join()


def test_answers_find_their_questions(pair):
    first = threading.Event()

    def handle(packet: Packet) -> Packet:
        if packet.header == b"later":
            first.wait()
        return Packet(packet.header[::-1], packet.parts)

    link = pair(handle).link
    later, now = link.ask(Packet(b"later", ())), link.ask(Packet(b"now", PACKETS[3].parts))
    assert text(now.result()) == (b"won", text(PACKETS[3])[1])
    assert not later.done()
    first.set()
    assert later.result().header == b"retal"


def test_many_threads_ask_at_once(pair):
    link = pair(lambda packet: packet).link
    parts = [np.full(n * 5000, n, np.uint8) for n in range(40)]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda p: link.ask(Packet(b"", (p,))).result(), parts))
    for sent, answer in zip(parts, answers, strict=True):
        np.testing.assert_array_equal(sent, answer.parts[0])


def test_what_is_told_arrives(pair):
    heard, told = threading.Event(), []

    def handle(packet: Packet) -> Packet:
        told.append(packet.header)
        heard.set()
        return packet

    link = pair(handle).link
    link.tell(Packet(b"news", ()))
    heard.wait()
    assert told == [b"news"]


def test_nobody_waits_for_an_end_that_is_gone(pair):
    hang = threading.Event()
    one = pair(lambda packet: hang.wait() and packet)
    answer = one.link.ask(Packet(b"never", ()))
    one.entrance.close()
    one.listening.join()  # it was noticed
    gone = tf.errors.UnavailableError(None, None, "it has ended")
    one.link.break_off(gone)
    assert answer.exception() is gone
    with pytest.raises(tf.errors.UnavailableError, match="it has ended"):
        one.link.ask(Packet(b"", ()))
    with pytest.raises(tf.errors.UnavailableError, match="it has ended"):
        one.link.tell(Packet(b"", ()))
    hang.set()


def test_a_task_hears_that_who_asked_has_ended(pair):
    begun, gone = threading.Event(), threading.Event()

    def handle(packet: Packet) -> Packet:
        with while_asked(gone.set):
            begun.set()
            gone.wait()
        return packet

    link = pair(handle).link
    link.ask(Packet(b"take", ()))
    begun.wait()
    link.break_off(tf.errors.UnavailableError(None, None, "it has ended"))
    gone.wait()


def test_only_who_has_the_key_comes_in(pair):
    one = pair(lambda packet: packet)
    address, key = one.entrance.door
    with pytest.raises(AuthenticationError):
        Link((address, key[::-1]))
    assert one.link.ask(Packet(b"still", ())).result().header == b"still"


@pytest.mark.parametrize("when", ["before", "after"])
def test_who_comes_in_while_the_door_is_closed_does_not_wait(monkeypatch, when):
    """Its end of the connection is there before the entrance knows of it."""
    at_the_door, closed = threading.Event(), threading.Event()

    def slowly(connection, key):
        if when == "after":
            answer_challenge(connection, key)
        at_the_door.set()
        closed.wait()
        if when == "before":
            answer_challenge(connection, key)

    monkeypatch.setattr(opdock_ray.link, "answer_challenge", slowly)
    entrance = Entrance(lambda packet: packet, ThreadPoolExecutor(1))

    def come_in():
        with contextlib.suppress(OSError, EOFError):
            Link(entrance.door).listen()

    coming = threading.Thread(target=come_in)
    coming.start()
    at_the_door.wait()
    entrance.close()
    closed.set()
    coming.join()
    with pytest.raises(ConnectionRefusedError):
        Link(entrance.door)
