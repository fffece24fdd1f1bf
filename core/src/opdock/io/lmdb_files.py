"""LMDB databases, to be read only: the pairs of the main one, in the order of their keys.

LMDB's own library maps a file into memory and believes what it says, so that a damaged one may end
the process. Here each page is looked at where it is read. Files are those of machines with 64 bits
and little-endian numbers.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Generator, Iterator
from typing import BinaryIO, Final, NamedTuple, NoReturn

from opdock import errors
from opdock.io import filesystems
from opdock.io.files import local_path, tf_errors

__all__ = ["pairs"]

_MAGIC: Final = 0xBEEFC0DE
_HEAD: Final = struct.Struct("<QHHHH")
"""Of a page: its number, something unused, its kind, and where its places end and nodes begin."""
_META: Final = struct.Struct("<II16x48sIHH24x8xQQQ")
"""Magic, version, the database of free pages (with the size of pages), flags and depth of the main
one and its root, the last page, and the number of the transaction."""
_NODE: Final = struct.Struct("<HHHH")
"""The size of data, low and high, flags, the size of the key; of branches the number of a page."""
_BRANCH, _LEAF, _OVERFLOW = 1, 2, 4
_BIG, _SUB, _SEVERAL = 1, 2, 4
_DUPLICATES: Final = 4
_SIZES: Final = tuple(1 << i for i in range(8, 17))
_DEPTH: Final = 32


class _Meta(NamedTuple):
    """What a database says of itself."""

    size: int
    flags: int
    root: int
    last: int
    transaction: int


def pairs(name: str) -> Generator[tuple[bytes, bytes], None, None]:
    """The pairs of a database, a file or the folder that has it, as long as somebody asks for them.

    Raises:
        OpError: there is no such file; `InvalidArgumentError` if it is no database, `DataLossError`
            if it is damaged, `UnimplementedError` if its keys have several values.
    """
    path = local_path(name)
    if filesystems.isdir(path):
        path = os.path.join(path, "data.mdb")
    with tf_errors(path), filesystems.open_bytes(path) as file:
        yield from _Database(path, file).walk()


class _Database:
    """A file's pages.

    Args:
        path: of the file, for messages.
        file: the file.
    """

    def __init__(self, path: str, file: BinaryIO) -> None:
        self._path, self._file = path, file
        self._length = file.seek(0, os.SEEK_END)
        first = self._meta(0)
        if first is None:
            raise errors.InvalidArgumentError(None, None, f"{path}: no LMDB database")
        # The last transaction but one has the other page: one of both is whole.
        second = self._meta(first.size)
        self._of = first if second is None or second.size != first.size else max(
            first, second, key=lambda m: m.transaction
        )  # fmt: skip
        if self._of.flags & _DUPLICATES:
            raise errors.UnimplementedError(None, None, f"{path}: keys with several values")
        self._left = self._of.last + 1

    def _meta(self, at: int) -> _Meta | None:
        self._file.seek(at)
        data = self._file.read(_HEAD.size + _META.size)
        if len(data) < _HEAD.size + _META.size:
            return None
        magic, version, free, _, flags, _, root, last, transaction = _META.unpack_from(
            data, _HEAD.size
        )
        size = int.from_bytes(free[:4], "little")
        if magic != _MAGIC or version != 1 or size not in _SIZES:
            return None
        return _Meta(size, flags, root, last, transaction)

    def _damaged(self, what: str) -> NoReturn:
        raise errors.DataLossError(None, None, f"{self._path}: damaged database: {what}")

    def _bytes(self, page: int, size: int, offset: int = 0) -> bytes:
        """Bytes from the begin of a page on, or behind it."""
        if page > self._of.last:
            self._damaged(f"there is no page {page}")
        begin = page * self._of.size + offset
        end = min((self._of.last + 1) * self._of.size, self._length)
        if begin + size > end:
            self._damaged(f"page {page} is cut short")
        self._file.seek(begin)
        return self._file.read(size)

    def walk(self) -> Iterator[tuple[bytes, bytes]]:
        """The pairs, page by page."""
        if self._of.root == (1 << 64) - 1:  # it is empty
            return
        waiting = [(self._of.root, 0)]
        while waiting:
            page, depth = waiting.pop()
            self._left -= 1
            if self._left < 0 or depth > _DEPTH:
                self._damaged("its pages lead in a circle")
            data = self._bytes(page, self._of.size)
            number, _, kind, end, _ = _HEAD.unpack_from(data)
            if number != page or not kind & (_BRANCH | _LEAF):
                self._damaged(f"page {page} is no part of the tree")
            places = self._places(page, data, end)
            if kind & _BRANCH:
                below = [self._child(data, at) for at in places]
                waiting += [(child, depth + 1) for child in reversed(below)]
            else:
                yield from (self._pair(page, data, at) for at in places)

    def _places(self, page: int, data: bytes, end: int) -> tuple[int, ...]:
        count = (end - _HEAD.size) // 2
        if count < 0 or end > len(data):
            self._damaged(f"page {page} ends before it begins")
        found = struct.unpack_from(f"<{count}H", data, _HEAD.size)
        if any(at < end or at + _NODE.size > len(data) for at in found):
            self._damaged(f"a node of page {page} lies elsewhere")
        return found

    def _child(self, data: bytes, at: int) -> int:
        low, high, top, _ = _NODE.unpack_from(data, at)
        return int(low | high << 16 | top << 32)

    def _pair(self, page: int, data: bytes, at: int) -> tuple[bytes, bytes]:
        low, high, flags, length = _NODE.unpack_from(data, at)
        size, begin = low | high << 16, at + _NODE.size + length
        if flags & (_SUB | _SEVERAL):
            raise errors.UnimplementedError(None, None, f"{self._path}: databases within it")
        held = 8 if flags & _BIG else size
        if begin + held > len(data):
            self._damaged(f"a pair of page {page} does not end")
        key, value = data[begin - length : begin], data[begin : begin + held]
        if not flags & _BIG:
            return key, value
        own = int.from_bytes(value, "little")
        number, _, kind, _, _ = _HEAD.unpack(self._bytes(own, _HEAD.size))
        if number != own or not kind & _OVERFLOW:
            self._damaged(f"page {own} has no large value")
        return key, self._bytes(own, size, _HEAD.size)
