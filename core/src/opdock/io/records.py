"""The TFRecord framing, which event files use too.

A record is its length (u64), the masked CRC of those 8 bytes, the data, the masked CRC of the data.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Final, Self, cast

from opdock import errors
from opdock.io import crc32c, filesystems
from opdock.io.deflate import GZIP_BITS, DeflateOptions, DeflateReader, DeflateWriter
from opdock.io.files import as_path, atomic_write, tf_errors

HEADER = struct.Struct("<QI")
FOOTER = struct.Struct("<I")
OVERHEAD: Final = HEADER.size + FOOTER.size
"""What a record takes beside its data."""
_CHUNK = 1 << 18
COMPRESSIONS: Final[dict[str, DeflateOptions | None]] = {
    "": None, "ZLIB": DeflateOptions(), "GZIP": DeflateOptions(window_bits=GZIP_BITS),
}  # fmt: skip
"""The kinds of compression, with what they are without further options."""


def frame(data: bytes) -> bytes:
    """One record, ready to be appended to a file."""
    length = struct.pack("<Q", len(data))
    return b"".join(
        (length, FOOTER.pack(crc32c.masked(length)), data, FOOTER.pack(crc32c.masked(data)))
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


def _options(compression: str) -> DeflateOptions | None:
    if compression not in COMPRESSIONS:
        known = ", ".join(f'"{kind}"' for kind in COMPRESSIONS)
        raise errors.InvalidArgumentError(
            None, None, f"Unsupported compression type {compression!r}; have {known}"
        )
    return COMPRESSIONS[compression]


def open_for_writing(
    path: str, compression: str = "", options: DeflateOptions | None = None
) -> IO[bytes]:
    """Opens a record file, replacing what is there.

    Args:
        path: the file.
        compression: one of `COMPRESSIONS`.
        options: of the compression, if other than the usual ones.

    Raises:
        InvalidArgumentError: there is no such kind of compression.
        NotFoundError: the directory does not exist.
    """
    usual = _options(compression)
    with tf_errors(path):
        raw: IO[bytes] = filesystems.of(path).open(path, "wb", None, None)
    return raw if usual is None else cast("IO[bytes]", DeflateWriter(raw, options or usual))


def open_for_reading(path: str, compression: str = "") -> IO[bytes]:
    """Opens a record file; raises as `open_for_writing` does."""
    options = _options(compression)
    with tf_errors(path):
        raw: IO[bytes] = filesystems.of(path).open(path, "rb", None, None)
    return raw if options is None else cast("IO[bytes]", DeflateReader(raw, options.window_bits))


@contextmanager
def new_file(path: str, compression: str = "") -> Iterator[RecordWriter]:
    """A record file of the machine that has its name when all of it is written, or never."""
    options = _options(compression)
    with atomic_write(path) as raw:
        if options is None:
            yield RecordWriter(raw)
            return
        stream = DeflateWriter(raw, options)
        yield RecordWriter(cast("IO[bytes]", stream))
        stream.finish()


def compression_of(path: str | bytes | os.PathLike[str]) -> str:
    """The kind of compression of a record file, by its first bytes; that of an empty one is ""."""
    name = as_path(path)
    with tf_errors(name), filesystems.of(name).open(name, "rb", None, None) as file:
        start = file.read(HEADER.size)
    length, length_crc = HEADER.unpack(start.ljust(HEADER.size, b"\0"))
    if crc32c.masked(struct.pack("<Q", length)) == length_crc:
        return ""
    if start.startswith(b"\x1f\x8b"):
        return "GZIP"
    # zlib's header: the method is 8, and the two bytes are a multiple of 31.
    return "ZLIB" if start[:1] == b"\x78" and int.from_bytes(start[:2], "big") % 31 == 0 else ""


class RecordReader:
    """The records of a file, one after the other.

    Args:
        path: the file.
        compression: one of `COMPRESSIONS`.

    Attributes:
        offset: where the next record begins, in what the file holds uncompressed.

    Raises:
        NotFoundError: no such file.
    """

    def __init__(self, path: str | bytes | os.PathLike[str], compression: str = "") -> None:
        self.path = as_path(path)
        self.offset = 0
        self._held = b""  # of the file, read ahead
        self._at = 0  # so much of it was taken
        self._compression = compression
        self._file = open_for_reading(self.path, compression)

    def seek(self, offset: int) -> None:
        """Goes to the beginning of a record.

        Raises:
            UnimplementedError: the file is compressed.
        """
        if self._compression:
            raise errors.UnimplementedError(
                None, None,
                f"{self.path}: a file with {self._compression} compression can be read from its "
                "beginning only",
            )  # fmt: skip
        with tf_errors(self.path):
            self._file.seek(offset)
        self.offset, self._held, self._at = offset, b"", 0

    def read(self) -> bytes | None:
        """The next record, None at the end.

        Raises:
            DataLossError: a checksum does not match, or the file ends inside a record.
        """
        header = self._exactly(HEADER.size, may_end=True)
        if not header:
            return None
        length, length_crc = HEADER.unpack(header)
        if crc32c.masked(header[:8]) != length_crc:
            raise self._damaged("corrupted record")
        data = self._exactly(length)
        (data_crc,) = FOOTER.unpack(self._exactly(FOOTER.size))
        if crc32c.masked(data) != data_crc:
            raise self._damaged("corrupted record")
        self.offset += length + OVERHEAD
        return data

    def check_end(self) -> None:
        """Checks, after the last record, that a compressed stream ends there.

        Whoever reads a file while it is written comes to the end of its records, not of the stream.

        Raises:
            DataLossError: it lacks its end, and with it its checksum.
        """
        if isinstance(self._file, DeflateReader) and not self._file.whole:
            raise self._damaged(f"{self._compression} stream without its end, truncated")

    def _exactly(self, size: int, may_end: bool = False) -> bytes:
        end = self._at + size
        if end > len(self._held):
            try:
                self._hold(size, may_end)
            except MemoryError:  # packed, a gigabyte takes a megabyte of a file
                raise self._too_large(size) from None
            end = min(size, len(self._held))
        found = self._held[self._at : end]
        self._at = end
        return found

    def _hold(self, size: int, may_end: bool) -> None:
        """Reads ahead, so that so many bytes are held."""
        # A corrupt length must not allocate more than the file holds, so large ones come in pieces.
        parts = [self._held[self._at :]]
        missing = size - len(parts[0])
        while missing > 0:
            try:
                with tf_errors(self.path):
                    part = self._file.read(_CHUNK)
            except errors.DataLossError as e:
                raise self._damaged(f"{e.message}: corrupted record") from e
            if not part:
                if may_end and not any(parts):
                    break
                raise self._damaged("truncated record")
            parts.append(part)
            missing -= len(part)
        self._held, self._at = b"".join(parts), 0

    def _too_large(self, size: int) -> errors.ResourceExhaustedError:
        return errors.ResourceExhaustedError(
            None, None, f"{size} bytes at {self.offset} in {self.path} do not fit into memory"
        )

    def _damaged(self, what: str) -> errors.DataLossError:
        return errors.DataLossError(None, None, f"{what} at {self.offset} in {self.path}")

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __iter__(self) -> Iterator[bytes]:
        while True:
            yield from self._sound()
            data = self.read()
            if data is None:
                return
            yield data

    def _sound(self) -> Iterator[bytes]:
        """The next records as far as they are held and sound; `read` sees to the one behind."""
        held, start, end = self._held, HEADER.size, len(self._held) - FOOTER.size
        while held is self._held and (at := self._at + start) <= end:
            length, length_crc = HEADER.unpack_from(held, self._at)
            behind = at + length
            if behind > end or crc32c.masked(held[self._at : self._at + 8]) != length_crc:
                return
            data = held[at:behind]
            if crc32c.masked(data) != FOOTER.unpack_from(held, behind)[0]:
                return
            self._at = behind + FOOTER.size
            self.offset += length + OVERHEAD
            yield data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def read_records(path: str | bytes | os.PathLike[str], compression: str = "") -> Iterator[bytes]:
    """Yields the records of a file; it is opened with the first.

    Raises:
        NotFoundError: no such file.
        DataLossError: a checksum does not match, or the file ends inside a record.
    """
    with RecordReader(path, compression) as reader:
        yield from reader
