"""The records of an uncompressed TFRecord file by their numbers.

An index is the place and the size of each record. It is saved as text, a line "place size" for each
record, as other tools that read records write it too.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from typing import IO, Self, overload

from opdock import errors
from opdock.io import crc32c, filesystems
from opdock.io.files import as_path, read_file, tf_errors, write_file
from opdock.io.records import HEADER, OVERHEAD, RecordReader, compression_of

__all__ = ["IndexedRecords", "index_of", "load_index", "save_index"]

Index = list[tuple[int, int]]


def index_of(path: str | bytes | os.PathLike[str]) -> Index:
    """Place and size, framing included, of each record of a file; the records are not read.

    Raises:
        NotFoundError: no such file.
        DataLossError: the length of a record is damaged, or the file ends inside a record.
        FailedPreconditionError: what has the name has no places, as a pipe, or none that a record
            could be read from by itself, as it is compressed.
    """
    name = as_path(path)
    with tf_errors(name):
        length = filesystems.of(name).stat(name)[0]
        with filesystems.of(name).open(name, "rb", None, None) as file:
            if not file.seekable():
                raise errors.FailedPreconditionError(
                    None, None, f"{name} can be read once only, from its beginning: it has no index"
                )
            try:
                return list(_places(name, file, length))
            except errors.DataLossError:
                kind = compression_of(name)
                if not kind:
                    raise
        raise errors.FailedPreconditionError(
            None, None,
            f"{name} is compressed ({kind}): a record can be read after all before it only, so it "
            "has no index",
        )  # fmt: skip


def _places(name: str, file: IO[bytes], length: int) -> Iterator[tuple[int, int]]:
    offset = 0
    while offset < length:
        file.seek(offset)
        header = file.read(HEADER.size)
        if len(header) < HEADER.size:
            raise errors.DataLossError(None, None, f"truncated record at {offset} in {name}")
        size, size_crc = HEADER.unpack(header)
        if crc32c.masked(struct.pack("<Q", size)) != size_crc:
            raise errors.DataLossError(None, None, f"corrupted record at {offset} in {name}")
        if offset + size + OVERHEAD > length:
            raise errors.DataLossError(None, None, f"truncated record at {offset} in {name}")
        yield offset, size + OVERHEAD
        offset += size + OVERHEAD


def save_index(path: str | bytes | os.PathLike[str], index: Index) -> None:
    """Writes an index, which takes the place of what was there when all of it is written."""
    write_file(as_path(path), "".join(f"{at} {size}\n" for at, size in index).encode())


def load_index(path: str | bytes | os.PathLike[str]) -> Index:
    """Reads an index.

    Raises:
        NotFoundError: no such file.
        DataLossError: a line is none of an index.
    """
    name = as_path(path)
    found = []
    for number, line in enumerate(read_file(name).splitlines(), 1):
        words = line.split()
        if len(words) != 2 or not all(w.isdigit() for w in words):
            raise errors.DataLossError(
                None, None, f"{name}, line {number}: expected place and size, got {line[:80]!r}"
            )
        found.append((int(words[0]), int(words[1])))
    return found


class IndexedRecords(Sequence[bytes]):
    """A file's records as a sequence; each is read, and checked, when it is asked for.

    Args:
        path: the file.
        index: of the file, if it is known.

    Raises:
        NotFoundError: no such file.
        DataLossError: the file is damaged.
    """

    def __init__(self, path: str | bytes | os.PathLike[str], index: Index | None = None) -> None:
        self._index = index_of(path) if index is None else index
        self._reader = RecordReader(path)

    def __len__(self) -> int:
        return len(self._index)

    @overload
    def __getitem__(self, i: int) -> bytes: ...

    @overload
    def __getitem__(self, i: slice) -> list[bytes]: ...

    def __getitem__(self, i: int | slice) -> bytes | list[bytes]:
        if isinstance(i, slice):
            return [self._at(*place) for place in self._index[i]]
        return self._at(*self._index[i])

    def _at(self, offset: int, size: int) -> bytes:
        self._reader.seek(offset)
        record = self._reader.read()
        if record is None or len(record) + OVERHEAD != size:
            raise errors.DataLossError(
                None, None,
                f"{self._reader.path} has no record of {size} bytes at {offset}: the index is "
                "another file's",
            )  # fmt: skip
        return record

    def close(self) -> None:
        """Closes the file."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
