"""Whole files in one call, as TF's `file_io` reads and writes them."""

from __future__ import annotations

import uuid
import zlib
from typing import Any

from opdock.api import gfile
from opdock.api.gfile import GFile

__all__ = [
    "atomic_write_string_to_file", "file_crc32", "filecmp", "read_file_to_string",
    "write_string_to_file",
]  # fmt: skip

_BLOCK = 1 << 24


def read_file_to_string(filename: Any, binary_mode: bool = False) -> Any:
    """A file's content, as text or bytes; NotFoundError where there is none."""
    with GFile(filename, "rb" if binary_mode else "r") as file:
        return file.read()


def write_string_to_file(filename: Any, file_content: Any) -> None:
    """Writes text or bytes as a file's content."""
    with GFile(filename, "wb" if isinstance(file_content, bytes) else "w") as file:
        file.write(file_content)


def atomic_write_string_to_file(filename: Any, contents: Any, overwrite: bool = True) -> None:
    """Writes a file so that others see all of it or nothing.

    Raises:
        AlreadyExistsError: the file exists, and is not to be overwritten.
    """
    beside = f"{filename}.tmp{uuid.uuid4().hex}"
    write_string_to_file(beside, contents)
    try:
        gfile.Rename(beside, filename, overwrite)
    except BaseException:
        gfile.Remove(beside)
        raise


def file_crc32(filename: Any, block_size: int = _BLOCK) -> str:
    """The CRC-32 of a file's content, in hexadecimal as TF writes it.

    Args:
        filename: the file.
        block_size: how much is read at a time.
    """
    checksum = 0
    with GFile(filename, "rb") as file:
        while block := file.read(block_size):
            checksum = zlib.crc32(block, checksum)
    return hex(checksum)


def filecmp(filename_a: Any, filename_b: Any) -> bool:
    """Whether two files have the same content."""
    if gfile.Stat(filename_a).length != gfile.Stat(filename_b).length:
        return False
    return file_crc32(filename_a) == file_crc32(filename_b)
