"""The sorted string table of TF's checkpoints: a file of sorted keys with values.

Data blocks, then an index block (last key of a block -> where it is), then a footer that finds the
index. Within a block a key stores only what differs from the key before it; every 16th key is
stored whole. Every block ends with its compression type and the masked CRC of both.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO, Self

from opdock import errors
from opdock.io import crc32c, filesystems, snappy
from opdock.io.files import tf_errors
from opdock.io.varint import read_varint, write_varint

_MAGIC = 0xDB4775248B80FB57
_FOOTER_SIZE = 48
_TRAILER_SIZE = 5
_RESTART_INTERVAL = 16
_BLOCK_SIZE = 1 << 18
_U32 = struct.Struct("<I")


def _shared_prefix(a: bytes, b: bytes) -> int:
    """How many leading bytes two keys share."""
    n = min(len(a), len(b))
    if a[:n] == b[:n]:
        return n
    return next(i for i in range(n) if a[i] != b[i])


class _BlockBuilder:
    def __init__(self) -> None:
        self.restarts = [0]
        self.data = bytearray()
        self._since_restart = 0
        self._last = b""

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self._since_restart < _RESTART_INTERVAL:
            shared = _shared_prefix(self._last, key)
        else:
            self.restarts.append(len(self.data))
            self._since_restart = 0
        write_varint(self.data, shared)
        write_varint(self.data, len(key) - shared)
        write_varint(self.data, len(value))
        self.data += key[shared:]
        self.data += value
        self._last = key
        self._since_restart += 1

    @property
    def size(self) -> int:
        return len(self.data) + 4 * len(self.restarts) + 4

    def finish(self) -> bytes:
        numbers = [*self.restarts, len(self.restarts)]
        return bytes(self.data) + struct.pack(f"<{len(numbers)}I", *numbers)


def _separator(last: bytes, following: bytes) -> bytes:
    """A short key k with last <= k < following."""
    same = _shared_prefix(last, following)
    if same < min(len(last), len(following)) and last[same] + 1 < following[same]:
        return last[:same] + bytes([last[same] + 1])
    return last


def _successor(key: bytes) -> bytes:
    """A short key that is not before `key`."""
    for i, byte in enumerate(key):
        if byte != 0xFF:
            return key[:i] + bytes([byte + 1])
    return key


def _handle(offset: int, size: int) -> bytes:
    out = bytearray()
    write_varint(out, offset)
    write_varint(out, size)
    return bytes(out)


class TableBuilder:
    """Writes a table to an open file; keys must come in ascending order."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._offset = 0
        self._block = _BlockBuilder()
        self._index = _BlockBuilder()
        self._last: bytes | None = None
        self._pending: bytes | None = None

    def add(self, key: bytes, value: bytes) -> None:
        """Adds an entry."""
        if self._last is not None and key <= self._last:
            raise errors.InternalError(None, None, f"table key {key!r} is not after {self._last!r}")
        if self._pending is not None:
            assert self._last is not None
            self._index.add(_separator(self._last, key), self._pending)
            self._pending = None
        self._block.add(key, value)
        self._last = key
        if self._block.size >= _BLOCK_SIZE:
            self._flush()

    def finish(self) -> None:
        """Writes what is left, the index and the footer."""
        if self._block.data:
            self._flush()
        meta = self._write(_BlockBuilder().finish())
        if self._pending is not None:
            assert self._last is not None
            self._index.add(_successor(self._last), self._pending)
        footer = meta + self._write(self._index.finish())
        self._file.write(footer.ljust(_FOOTER_SIZE - 8, b"\0") + struct.pack("<Q", _MAGIC))

    def _flush(self) -> None:
        self._pending = self._write(self._block.finish())
        self._block = _BlockBuilder()

    def _write(self, block: bytes) -> bytes:
        handle = _handle(self._offset, len(block))
        body = block + b"\0"
        self._file.write(body + _U32.pack(crc32c.masked(body)))
        self._offset += len(body) + 4
        return handle


def _entries(block: bytes, path: str) -> Iterator[tuple[bytes, bytes]]:
    """The (key, value) pairs of a block, in order."""
    if len(block) < 4:
        raise errors.DataLossError(None, None, f"bad block contents in {path}")
    (restarts,) = _U32.unpack_from(block, len(block) - 4)
    end = len(block) - 4 - 4 * restarts
    if end < 0:
        raise errors.DataLossError(None, None, f"bad block contents in {path}")
    at, key = 0, b""
    while at < end:
        shared, at = read_varint(block, at, f"table entry in {path}")
        own, at = read_varint(block, at, f"table entry in {path}")
        length, at = read_varint(block, at, f"table entry in {path}")
        if shared > len(key) or at + own + length > end:
            raise errors.DataLossError(None, None, f"bad entry in block of {path}")
        key = key[:shared] + block[at : at + own]
        yield key, block[at + own : at + own + length]
        at += own + length


class TableReader:
    """Reads a table file.

    Raises:
        NotFoundError: no such file.
        DataLossError: the file is no table, is cut or does not match its checksums.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with tf_errors(path):
            self._file = filesystems.open_bytes(path)
            self._size = self._file.seek(0, os.SEEK_END)
        try:
            self._index = list(_entries(self._read_index(), path))
        except BaseException:
            self._file.close()
            raise

    def _read_index(self) -> bytes:
        if self._size < _FOOTER_SIZE:
            raise errors.DataLossError(
                None, None, f"file is too short to be an sstable: {self.path}"
            )
        self._file.seek(self._size - _FOOTER_SIZE)
        footer = self._file.read(_FOOTER_SIZE)
        if int.from_bytes(footer[-8:], "little") != _MAGIC:
            raise errors.DataLossError(
                None, None, f"not an sstable (bad magic number): {self.path}"
            )
        at = 0
        for _ in range(2):
            _, at = read_varint(footer, at, "table footer")
        return self._read_block(footer[at:])

    def _read_block(self, handle: bytes) -> bytes:
        offset, at = read_varint(handle, 0, "block handle")
        size, _ = read_varint(handle, at, "block handle")
        if offset + size + _TRAILER_SIZE > self._size:
            raise errors.DataLossError(None, None, f"truncated block read in {self.path}")
        self._file.seek(offset)
        data = self._file.read(size + _TRAILER_SIZE)
        if crc32c.masked(data[:-4]) != _U32.unpack(data[-4:])[0]:
            raise errors.DataLossError(
                None, None, f"block checksum mismatch at byte {offset} of {self.path}"
            )
        kind = data[size]
        if kind == 0:
            return data[:size]
        if kind == 1:
            return snappy.decompress(data[:size])
        raise errors.DataLossError(None, None, f"bad block type {kind} in {self.path}")

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        for _, handle in self._index:
            yield from _entries(self._read_block(handle), self.path)

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or None."""
        for last, handle in self._index:
            if key <= last:
                for found, value in _entries(self._read_block(handle), self.path):
                    if found == key:
                        return value
                return None
        return None

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
