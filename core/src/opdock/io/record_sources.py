"""What readers read: the records in a file, each with a key, by the kind of file.

A source is a function from a unit of work, the name of a file as a rule, to a generator of
(key, value). It opens the file when it is called; who does not want the rest closes the generator.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Generator
from typing import IO, Final

from opdock import errors
from opdock.io import filesystems
from opdock.io.files import read_file, tf_errors
from opdock.io.lmdb_files import pairs
from opdock.io.records import RecordReader, open_for_reading

__all__ = [
    "Records",
    "Source",
    "fixed_length",
    "identity",
    "lmdb_pairs",
    "text_lines",
    "tf_records",
    "whole_file",
]

Record = tuple[bytes, bytes]
Records = Generator[Record, None, None]
Source = Callable[[bytes], Records]
_SKIP: Final = 1 << 20


def identity(work: bytes) -> Records:
    """The unit of work itself."""
    yield work, work


def whole_file(work: bytes) -> Records:
    """The content of a file; NotFoundError when there is none."""
    yield work, read_file(work.decode())


def text_lines(skip: int) -> Source:
    """Lines without their ends, after a number of lines that are no records.

    The key is the name of the file and the number of the line, from 1.
    """

    def lines(work: bytes) -> Records:
        path = work.decode()
        with tf_errors(path):
            file = filesystems.of(path).open(path, "rb", None, None)
        return _lines(work, file, skip)

    return lines


def _lines(work: bytes, file: IO[bytes], skip: int) -> Records:
    with file, tf_errors(work.decode()):
        for number, line in enumerate(file, 1):
            text = line.removesuffix(b"\n").removesuffix(b"\r")
            if number > skip and (text or line.endswith(b"\n")):
                yield b"%s:%d" % (work, number), text


def fixed_length(header: int, record: int, footer: int, hop: int, encoding: str) -> Source:
    """Records of one length, whose key is the name of the file and their number, from 0.

    Args:
        header: bytes at the beginning of the file that are none of a record.
        record: the length of a record; what is left at the end and shorter is dropped.
        footer: bytes at the end of the file that are none of a record.
        hop: bytes from one record's beginning to the next's; 0 for the length of a record.
        encoding: "ZLIB" or "GZIP" for compressed files.
    """
    return functools.partial(_fixed_length, header, record, footer, hop or record, encoding)


def _fixed_length(
    header: int, record: int, footer: int, hop: int, encoding: str, work: bytes
) -> Records:
    path = work.decode()
    file = open_for_reading(path, encoding if encoding in ("ZLIB", "GZIP") else "")
    try:
        with tf_errors(path):
            if not _skip(file, header):
                raise errors.OutOfRangeError(
                    None, None, f"{path} ends within its header of {header} bytes"
                )
    except BaseException:
        file.close()
        raise
    return _windows(work, file, record, record + footer, hop)


def _windows(work: bytes, file: IO[bytes], size: int, needed: int, hop: int) -> Records:
    """Pieces of `size` bytes, as long as there are `needed` bytes from where they begin."""
    ahead = b""
    with file, tf_errors(work.decode()):
        for number in itertools.count():
            if number:
                rest, ahead = hop - len(ahead), ahead[hop:]
                if rest > 0 and not _skip(file, rest):
                    return
            ahead += _read(file, needed - len(ahead))
            if len(ahead) < needed:
                return
            yield b"%s:%d" % (work, number), ahead[:size]


def _read(file: IO[bytes], size: int) -> bytes:
    parts = []
    while size > 0 and (part := file.read(min(size, _SKIP))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _skip(file: IO[bytes], size: int) -> bool:
    """Whether there were so many bytes to leave out."""
    while size > 0 and (part := file.read(min(size, _SKIP))):
        size -= len(part)
    return size <= 0


def lmdb_pairs(work: bytes) -> Records:
    """The pairs of an LMDB database."""
    return pairs(work.decode())


def tf_records(compression: str) -> Source:
    """The records of a TFRecord file; the key is its name and where the record begins."""

    def records(work: bytes) -> Records:
        return _keyed(work, RecordReader(work, compression))

    return records


def _keyed(work: bytes, reader: RecordReader) -> Records:
    with reader:
        while True:
            key = b"%s:%d" % (work, reader.offset)
            data = reader.read()
            if data is None:
                return
            yield key, data
