"""LMDB databases: pairs of keys and values in a folder or a file. The package `lmdb` reads them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Generator
from typing import Any

from opdock import errors
from opdock.io.files import local_path

__all__ = ["pairs"]


def pairs(name: str) -> Generator[tuple[bytes, bytes], None, None]:
    """The pairs of a database, in the order of their keys, as long as somebody asks for them.

    Raises:
        UnimplementedError: the package is not there.
        InvalidArgumentError: there is no database of this name, or it is broken.
    """
    try:
        library: Any = importlib.import_module("lmdb")
    except ImportError:
        raise errors.UnimplementedError(
            None, None, f"LMDB databases need the package lmdb ({name}): pip install lmdb"
        ) from None
    path = local_path(name)
    try:
        folder = os.path.isdir(path)
        with library.open(path, subdir=folder, readonly=True, lock=False, create=False) as database:
            with database.begin() as transaction:
                yield from transaction.cursor()
    except library.Error as e:
        text = str(e)
        raise errors.InvalidArgumentError(
            None, None, text if path in text else f"{name}: {text}"
        ) from e
