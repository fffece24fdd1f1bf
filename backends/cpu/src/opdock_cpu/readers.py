"""The readers behind TF's handles: records out of units of work that come from a queue."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from opdock.plugin import errors, host_ops
from opdock_cpu.queues import Wait

__all__ = ["Reader"]

Array = np.ndarray[Any, Any]
Record = tuple[bytes, bytes]


class Reader:
    """Gives records, one after the other, to whoever asks.

    Args:
        kind: the op that makes it, for messages.
        container: where it is.
        name: its own.
        source: from a unit of work to its records.
        whole: whether a unit is one record: it is over with it, and between two records there is
            nothing but counts to be saved.
    """

    def __init__(
        self, kind: str, container: str, name: str, source: host_ops.Source, whole: bool = False
    ) -> None:
        self.name: Final = f"{kind} '{name}'"
        self._place = (container or "localhost").encode(), name.encode()
        self.state = host_ops.ReaderState()
        self._source, self._whole = source, whole
        self._records: host_ops.Records | None = None
        self._broken: errors.OpError | None = None
        self._changed = threading.Condition()
        self._busy = False

    def read(self) -> Array:
        """What a reference to it is to those who look at its value: where it is found."""
        return np.array(self._place, object)

    @contextlib.contextmanager
    def _turn(self, wait: Wait) -> Iterator[None]:
        """One at a time; who waits for its turn can be cancelled as who waits for a queue."""
        with self._changed:
            wait(self._changed, lambda: not self._busy, lambda: None)
            self._busy = True
        try:
            yield
        finally:
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def give(self, next_work: Callable[[], bytes], wait: Wait, limit: int = 1) -> list[Record]:
        """The next records, all of one unit of work.

        Args:
            next_work: gives the next unit, waiting for it if need be.
            wait: waits until a condition holds.
            limit: how many records at most.

        Returns:
            At least one record, unless `limit` is 0.
        """
        found: list[Record] = []
        with self._turn(wait):
            while not found and limit > 0:
                if self.state.started == self.state.finished:
                    self._begin(next_work())
                self._take(found, 1 if self._whole else limit)
        return found

    def _begin(self, work: bytes) -> None:
        self.state.work = work
        # Only the file of a whole record is opened when it is read, as in TF: it is tried again.
        self._records = None if self._whole else self._source(work)
        self.state.started += 1

    def _take(self, found: list[Record], limit: int) -> None:
        if self._broken is not None:
            raise self._broken
        records = self._source(self.state.work) if self._records is None else self._records
        for _ in range(limit):
            try:
                record = next(records, None)
            except errors.OpError as e:
                # What comes after damage cannot be found; a whole file is tried again.
                self._broken = None if self._whole else e
                raise
            if record is not None:
                found.append(record)
                self.state.produced += 1
            if record is None or self._whole:
                self.state.finished = self.state.started
                self._records = None
                return

    def save(self, wait: Wait) -> bytes:
        """The state, serialized.

        Raises:
            UnimplementedError: such a reader has more of it.
        """
        self._check_whole("SerializeState")
        with self._turn(wait):
            return bytes(self.state.to_bytes())

    def restore(self, data: bytes, wait: Wait) -> None:
        """Takes on a state that was saved.

        Raises:
            UnimplementedError: such a reader cannot.
            InvalidArgumentError: it is none; the reader is reset.
        """
        self._check_whole("RestoreState")
        with self._turn(wait):
            self._clear()
            self.state = host_ops.ReaderState.from_bytes(data, self.name)

    def _check_whole(self, what: str) -> None:
        if not self._whole:
            raise errors.UnimplementedError(
                None, None, f"Reader {what}: {self.name} cannot save its place in a file"
            )

    def reset(self, wait: Wait) -> None:
        """Forgets all that was read, and the rest of the unit of work."""
        with self._turn(wait):
            self._clear()

    def _clear(self) -> None:
        self._drop()
        self.state = host_ops.ReaderState()
        self._broken = None

    def _drop(self) -> None:
        if self._records is not None:
            self._records.close()
        self._records = None

    def close(self) -> None:
        """Closes the file at the end of the session, unless a thread is reading it still."""
        with self._changed:
            if not self._busy:
                self._drop()
