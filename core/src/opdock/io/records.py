"""The TFRecord framing, which event files use too.

A record is its length (u64), the masked CRC of those 8 bytes, the data, the masked CRC of the data.
"""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections.abc import Iterator
from typing import IO, Any, BinaryIO, Self

from opdock import errors
from opdock.io import crc32c
from opdock.io.files import as_path, tf_errors

_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")
_CHUNK = 1 << 20


def frame(data: bytes) -> bytes:
    """One record, ready to be appended to a file."""
    length = struct.pack("<Q", len(data))
    return b"".join(
        (length, _FOOTER.pack(crc32c.masked(length)), data, _FOOTER.pack(crc32c.masked(data)))
    )


class RecordWriter:
    """Appends records to an open binary file; owns the file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        """Appends one record."""
        self._file.write(frame(data))

    def flush(self) -> None:
        """Hands what was written to the operating system."""
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""
        return self._file.closed


def open_compressed(path: str, mode: str, compression: str = "") -> IO[bytes]:
    """Opens a record file for "rb" or "wb"; `compression` is "", "GZIP" or "ZLIB"."""
    with tf_errors(path):
        if compression == "GZIP":
            return gzip.open(path, mode)  # type: ignore[return-value]
        if compression == "ZLIB":
            return _ZlibFile(open(path, mode), mode)  # type: ignore[return-value]
        if compression not in ("", "NONE"):
            raise errors.InvalidArgumentError(
                None, None, f'Unsupported compression type {compression!r}; have "", "GZIP", "ZLIB"'
            )
        return open(path, mode)


class _ZlibFile:
    """A zlib stream as a file: the little that records need."""

    def __init__(self, raw: Any, mode: str) -> None:
        self._raw: BinaryIO = raw
        self._out = zlib.compressobj() if "w" in mode else None
        self._in = zlib.decompressobj()
        self._pending = bytearray()

    def write(self, data: bytes) -> int:
        assert self._out is not None
        self._raw.write(self._out.compress(data))
        return len(data)

    def read(self, size: int) -> bytes:
        try:
            while len(self._pending) < size and not self._in.eof:
                data = self._in.unconsumed_tail or self._raw.read(_CHUNK)
                # Bounded steps keep a hostile stream from expanding beyond what is asked for.
                self._pending += self._in.decompress(data, _CHUNK) if data else self._in.flush()
                if not data:
                    break
        except zlib.error as e:
            raise errors.DataLossError(None, None, f"inflate() failed: {e}") from e
        out = bytes(self._pending[:size])
        del self._pending[:size]
        return out

    def flush(self) -> None:
        if self._out is not None:
            self._raw.write(self._out.flush(zlib.Z_SYNC_FLUSH))
        self._raw.flush()

    def close(self) -> None:
        if self._out is not None and not self._raw.closed:
            self._raw.write(self._out.flush())
        self._raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        return self._raw.closed


def _read_exactly(file: IO[bytes], size: int, offset: int, may_end: bool = False) -> bytes:
    # A corrupt length must not allocate more than the file holds, so large ones come in pieces.
    parts: list[bytes] = []
    missing = size
    while missing:
        try:
            part = file.read(min(missing, _CHUNK))
        except (EOFError, gzip.BadGzipFile, zlib.error) as e:
            raise errors.DataLossError(None, None, f"inflate() failed: {e}") from e
        if not part:
            if may_end and not parts:
                return b""
            raise errors.DataLossError(None, None, f"truncated record at {offset}")
        parts.append(part)
        missing -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def read_records(path: str | bytes | os.PathLike[str], compression: str = "") -> Iterator[bytes]:
    """Yields the records of a file.

    Raises:
        NotFoundError: no such file.
        DataLossError: a checksum does not match, or the file ends inside a record.
    """
    name = as_path(path)
    with tf_errors(name), open_compressed(name, "rb", compression) as file:
        offset = 0
        while True:
            header = _read_exactly(file, _HEADER.size, offset, may_end=True)
            if not header:
                return
            length, length_crc = _HEADER.unpack(header)
            if crc32c.masked(header[:8]) != length_crc:
                raise errors.DataLossError(None, None, f"corrupted record at {offset} in {name}")
            data = _read_exactly(file, length, offset) if length else b""
            (data_crc,) = _FOOTER.unpack(_read_exactly(file, _FOOTER.size, offset))
            if crc32c.masked(data) != data_crc:
                raise errors.DataLossError(None, None, f"corrupted record at {offset} in {name}")
            yield data
            offset += _HEADER.size + length + _FOOTER.size
