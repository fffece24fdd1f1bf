"""The pairs of keys and values in LMDB databases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opdock import dtypes, errors
from opdock.io.lmdb_files import pairs
from opdock.kernels.data.base import Dataset, DatasetIterator, Element, State, check_fits, invalid
from opdock.kernels.data.binding import boxed
from opdock.kernels.data.context import Context
from opdock.kernels.data.files import texts

__all__ = ["LMDBDataset"]


class LMDBDataset(Dataset):
    """The pairs of databases, one database after the other, each in the order of its keys.

    Args:
        filenames: folders of databases, or files that are one.
        types, shapes: what somebody expects: two scalar strings.

    Raises:
        InvalidArgumentError: somebody expects something else, or the names are a matrix.
    """

    def __init__(self, filenames: Any, types: Any, shapes: Any) -> None:
        super().__init__((dtypes.string, dtypes.string), ((), ()))
        if np.ndim(filenames) > 1:
            raise invalid("`filenames` must be a scalar or a vector.")
        check_fits(types, shapes, self.types, self.shapes)
        self.filenames = tuple(texts(filenames))

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _LMDBIterator(self)


class _LMDBIterator(DatasetIterator):
    def __init__(self, dataset: LMDBDataset) -> None:
        self._filenames = dataset.filenames
        self._file = self._read = 0
        self._pairs: Iterator[tuple[bytes, bytes]] | None = None

    def next(self) -> Element | None:
        while self._file < len(self._filenames):
            if self._pairs is None:
                self._pairs = pairs(self._filenames[self._file])
            try:
                pair = next(self._pairs, None)
            except errors.OpError:
                self._next_file()  # what comes after an error may still be had
                raise
            if pair is not None:
                self._read += 1
                return boxed(pair[0]), boxed(pair[1])
            self._next_file()
        return None

    def _next_file(self) -> None:
        self._pairs = None
        self._file, self._read = self._file + 1, 0

    def save(self) -> State:
        return {"file": self._file, "read": self._read}

    def restore(self, state: State) -> None:
        self.close()
        self._file, self._read, self._pairs = state["file"], 0, None
        while self._file == state["file"] and self._read < state["read"]:
            if self.next() is None:
                return

    def close(self) -> None:
        close = getattr(self._pairs, "close", None)
        if close is not None:
            close()
