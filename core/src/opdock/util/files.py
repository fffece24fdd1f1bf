"""Whole files in one call, as TF's `file_io` reads and writes them."""

from __future__ import annotations

from typing import Any

from opdock.api.gfile import GFile

__all__ = ["read_file_to_string", "write_string_to_file"]


def read_file_to_string(filename: Any, binary_mode: bool = False) -> Any:
    """A file's content, as text or bytes; NotFoundError where there is none."""
    with GFile(filename, "rb" if binary_mode else "r") as file:
        return file.read()


def write_string_to_file(filename: Any, file_content: Any) -> None:
    """Writes text or bytes as a file's content."""
    with GFile(filename, "wb" if isinstance(file_content, bytes) else "w") as file:
        file.write(file_content)
