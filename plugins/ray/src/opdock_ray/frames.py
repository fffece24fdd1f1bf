"""Packets as bytes of a stream: a table of lengths, then one part after the other."""

from __future__ import annotations

import errno
import os
import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from opdock.plugin import Packet

__all__ = ["Frame", "buffers", "read", "write"]

_ALIGNED: Final = 64
_FIXED: Final = struct.Struct("<QBI")
_MOST_BUFFERS: Final = 512  # a system's limit is 1024 a call
_MOST_PARTS: Final = 1 << 20
_MOST_BYTES: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class Frame:
    """A packet on its way.

    Attributes:
        number: by which it is answered, or what it answers; 0 if nobody wants an answer.
        reply: whether it is an answer.
        packet: what is carried.
    """

    number: int
    reply: bool
    packet: Packet


def _padding(length: int) -> int:
    return -length % _ALIGNED


def buffers(frame: Frame) -> list[Any]:
    """What to write, in order; the parts themselves, no copies."""
    whole = [frame.packet.header, *frame.packet.parts]
    lengths = [memoryview(p).nbytes for p in whole]
    table = struct.pack(f"<{len(lengths)}Q", *lengths)
    found: list[Any] = [_FIXED.pack(frame.number, frame.reply, len(lengths)) + table]
    for part, length in zip(whole, lengths, strict=True):
        found.append(part)
        if padding := _padding(length):
            found.append(bytes(padding))
    return found


def write(file: int, what: list[Any]) -> None:
    """Writes buffers to a stream, whole.

    Raises:
        OSError: nobody reads it any more.
    """
    due = [view for b in what if len(view := memoryview(b).cast("B"))]
    at = 0
    while at < len(due):
        done = os.writev(file, due[at : at + _MOST_BUFFERS])
        while at < len(due) and done >= len(due[at]):
            done -= len(due[at])
            at += 1
        if done:
            due[at] = due[at][done:]


def read(file: int) -> Frame:
    """The next frame of a stream; its parts share memory, and begin at multiples of 64 bytes.

    Raises:
        EOFError: nobody writes it any more.
        OSError: it was closed, or what is in it is no frame, after which nothing can be.
    """
    number, reply, count = _FIXED.unpack(_bytes(file, _FIXED.size))
    if not 0 < count <= _MOST_PARTS:
        raise OSError(errno.EPROTO, f"a frame of {count} parts")
    lengths = struct.unpack(f"<{count}Q", _bytes(file, 8 * count))
    whole = sum(n + _padding(n) for n in lengths)
    if whole > _MOST_BYTES:
        raise OSError(errno.EPROTO, f"a frame of {whole} bytes")
    memory = _bytes(file, whole)
    parts, at = [], 0
    for length in lengths:
        parts.append(memory[at : at + length])
        at += length + _padding(length)
    header, *rest = parts
    return Frame(number, bool(reply), Packet(header.tobytes(), tuple(rest)))


def _bytes(file: int, count: int) -> Any:
    try:
        memory = np.empty(count, np.uint8)
    except MemoryError as e:
        raise OSError(errno.ENOMEM, f"no memory for a frame of {count} bytes") from e
    view = memory.data
    while view:
        done = os.readv(file, [view])
        if not done:
            raise EOFError
        view = view[done:]
    return memory
