"""Results of benchmarks in files, as TensorFlow's TestReporter writes them."""

from __future__ import annotations

import os
from typing import Any

from opdock.io import files, protos

__all__ = ["check_free", "entry_path", "write_entries"]


def entry_path(prefix: str, name: str) -> str:
    """The file for a result: the prefix, then the name, whose slashes would be folders."""
    return prefix + name.replace("/", "__")


def check_free(prefix: str, name: str) -> None:
    """Checks that there is no such file: what was measured before is kept.

    Raises:
        OSError: it exists.
    """
    path = entry_path(prefix, name)
    if os.path.exists(path):
        raise OSError(f"File already exists: {path}")


def write_entries(prefix: str, entry: Any) -> None:
    """Writes a `BenchmarkEntries` that holds one `BenchmarkEntry`.

    Raises:
        OSError: the file exists already.
    """
    check_free(prefix, entry.name)
    data = protos.BenchmarkEntries(entry=[entry]).SerializeToString()
    files.write_file(entry_path(prefix, entry.name), data)
