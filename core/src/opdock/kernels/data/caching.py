"""Datasets whose elements are kept in a file."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import IO, Any

from opdock import errors
from opdock.io import filesystems
from opdock.io.files import sync_directory, tf_errors
from opdock.io.records import RecordWriter, read_records
from opdock.kernels.data.base import Dataset, DatasetIterator, Element, Following, State
from opdock.kernels.data.context import Context
from opdock.kernels.data.outcomes import drawn
from opdock.kernels.data.state import SavedState, load, save

__all__ = ["FileCacheDataset"]


class FileCacheDataset(Following):
    """The elements, which are written to a file in the first walk and read from it later.

    The file has its name once it is complete. Until then it ends with `.lockfile`, and who comes
    upon that name is told that somebody else is writing, or was when the process ended.
    """

    def __init__(self, source: Dataset, filename: str) -> None:
        super().__init__(source)
        self.filename = filename

    def cardinality(self) -> int:
        """The number of elements, as far as it is known."""
        return self.source.cardinality()

    @property
    def path(self) -> str:
        """The complete file."""
        return f"{self.filename}.index"

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _FileCacheIterator(self, context)


class _FileCacheIterator(DatasetIterator):
    def __init__(self, dataset: FileCacheDataset, context: Context) -> None:
        self._dataset, self._context = dataset, context
        self._walk: _Writing | _Reading | None = None
        self._count = self._errors = 0

    def _begun(self) -> Any:
        if self._walk is None:
            if filesystems.exists(self._dataset.path):
                self._walk = _Reading(self._dataset)
            else:
                self._walk = _Writing(self._dataset, self._context)
        return self._walk

    def next(self) -> Element | None:
        try:
            element: Element | None = self._begun().next()
        except errors.OpError:
            self._errors += 1
            raise
        self._count += element is not None
        return element

    def save(self) -> State:
        return {"count": self._count, "errors": self._errors}

    def restore(self, state: State) -> None:
        # The file may have been written since, or never: either way elements come in one order.
        # A complete file has no errors any more.
        while self._count < state["count"] or (
            self._errors < state["errors"] and isinstance(self._begun(), _Writing)
        ):
            element, error = drawn(self)
            if error is not None and self._errors > state["errors"]:
                raise error
            if element is None and error is None:
                return

    def close(self) -> None:
        if self._walk is not None:
            self._walk.close()


def _new_file(path: str) -> IO[bytes]:
    there = filesystems.of(path)
    if filesystems.is_local(path):
        return there.open(path, "xb", None, None)
    # Elsewhere there may be no way to make a file only if it is new.
    if there.exists(path):
        raise FileExistsError(path)
    return there.open(path, "wb", None, None)


class _Writing:
    def __init__(self, dataset: FileCacheDataset, context: Context) -> None:
        self._path, self._temporary = dataset.path, f"{dataset.filename}.lockfile"
        try:
            with tf_errors(self._temporary):
                self._file = _new_file(self._temporary)
        except errors.AlreadyExistsError:
            raise errors.AlreadyExistsError(
                None, None,
                "There appears to be a concurrent caching iterator running - cache lockfile "
                f"already exists ('{self._temporary}'). If you are sure no other running TF "
                "computations are using this cache prefix, delete the lockfile and re-initialize "
                "the iterator.",
            ) from None  # fmt: skip
        self._writer = RecordWriter(self._file)
        self._source = dataset.source.iterator(context)
        self._over = False
        self._failure: errors.OpError | None = None

    def next(self) -> Element | None:
        if self._failure is not None:
            raise type(self._failure)(None, None, self._failure.message)
        if self._over:
            return None
        element = self._source.next()
        try:
            with tf_errors(self._path):
                if element is None:
                    self._complete()
                else:
                    self._writer.write(save({"element": element}))
        except errors.OpError as e:  # the disk is full: what comes later would have a gap
            self._failure = e
            self._abandon()
            raise
        return element

    def _complete(self) -> None:
        self._file.flush()
        if filesystems.is_local(self._path):
            os.fsync(self._file.fileno())
        self._file.close()
        filesystems.rename(self._temporary, self._path)
        self._over = True
        sync_directory(filesystems.parent(self._path) or ".")

    def _abandon(self) -> None:
        """Lets go of what was written so far, so that another walk may begin."""
        if self._over:
            return
        self._over = True
        with suppress(OSError):  # what is left in its buffer may find no room
            self._file.close()
        with suppress(OSError):
            filesystems.of(self._temporary).remove(self._temporary)

    def close(self) -> None:
        self._source.close()
        self._abandon()


class _Reading:
    def __init__(self, dataset: FileCacheDataset) -> None:
        self._records = read_records(dataset.path)

    def next(self) -> Element | None:
        record = next(self._records, None)
        if record is None:
            return None
        found: Element = load(SavedState(record))["element"]
        return found

    def close(self) -> None:
        close = getattr(self._records, "close", None)
        if close is not None:
            close()
