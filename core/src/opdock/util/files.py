"""Whole files in one call, as TF's `file_io` reads and writes them."""

from __future__ import annotations

import uuid
import zlib
from typing import Any

from opdock import errors
from opdock.api.gfile import GFile, Remove, Rename, Stat
from opdock.io.files import as_path

__all__ = [
    "atomic_write_string_to_file", "file_crc32", "filecmp", "read_file_to_string",
    "write_string_to_file",
]  # fmt: skip


def read_file_to_string(filename: Any, binary_mode: bool = False) -> Any:
    """A file's content, as text or bytes; NotFoundError where there is none."""
    with GFile(filename, "rb" if binary_mode else "r") as file:
        return file.read()


def write_string_to_file(filename: Any, file_content: Any) -> None:
    """Writes text or bytes as a file's content."""
    with GFile(filename, "wb" if isinstance(file_content, bytes) else "w") as file:
        file.write(file_content)


def atomic_write_string_to_file(filename: Any, contents: Any, overwrite: bool = True) -> None:
    """Writes a file's content so that nobody sees a part of it.

    Raises:
        tf.errors.AlreadyExistsError: there is such a file, and `overwrite` is false.
    """
    beside = f"{as_path(filename)}.tmp{uuid.uuid4().hex}"
    write_string_to_file(beside, contents)
    try:
        Rename(beside, filename, overwrite)
    except errors.OpError:
        Remove(beside)
        raise


def file_crc32(filename: Any, block_size: int = 1 << 24) -> str:
    """The CRC-32 of a file's bytes in hexadecimal digits, read in blocks (-1: all at once)."""
    crc = 0
    with GFile(filename, "rb") as file:
        while block := file.read(block_size):
            crc = zlib.crc32(block, crc)
    return hex(crc)


def filecmp(filename_a: Any, filename_b: Any) -> bool:
    """Whether two files have the same content, by their sizes and checksums."""
    if Stat(filename_a).length != Stat(filename_b).length:
        return False
    return file_crc32(filename_a) == file_crc32(filename_b)
