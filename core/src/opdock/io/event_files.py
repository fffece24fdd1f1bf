"""Event files: `events.out.tfevents.<time>.<host>`, written behind the program's back."""

from __future__ import annotations

import atexit
import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any, Final

from tensorboard.summary.writer.event_file_writer import _AsyncWriter

from opdock.io import filesystems, protos
from opdock.io.files import as_path, make_directories, tf_errors
from opdock.io.parsing import parsed
from opdock.io.records import RecordWriter, read_records

FILE_VERSION = "brain.Event:2"

__all__ = ["EventsWriter", "summary_iterator"]

_open: Final[dict[Any, IO[bytes]]] = {}
"""What still writes, and to which file."""
_parents: Final[list[Any]] = []
"""The same of the process that this one was forked from; kept, as files write when they go."""


@atexit.register
def _flush_all() -> None:
    """A program that ends without closing its writers has what they were given in its files."""
    for writer in list(_open):
        with suppress(OSError, ValueError):  # a full disk, a file that something else closed
            writer.flush()


def _leave_to_parent() -> None:
    """In a child of fork: the parent's threads write what waits, the child must not as well."""
    for file in _open.values():
        with suppress(OSError, ValueError):  # a file that is not the system's
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, file.fileno(), inheritable=False)
            os.close(nowhere)
    _parents.extend(_open.items())
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


class EventsWriter:
    """Writes events to a new file of a directory from a thread of its own.

    The file appears with the first event. A second writer that starts in the same second gets a
    name of its own instead of overwriting the first one's file, and so does one that goes on in a
    child of `fork`.

    Args:
        logdir: the directory, made when missing.
        max_queue: how many events may wait before `add_event` blocks.
        flush_secs: the longest time an event stays in memory.
        filename_suffix: ending of the file's name.
        filename_prefix: its beginning.
    """

    def __init__(
        self, logdir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "",
        filename_prefix: str = "events",
    ) -> None:  # fmt: skip
        self._logdir = as_path(logdir)
        self._max_queue = max_queue
        self._flush_secs = flush_secs
        self._suffix = filename_suffix or ""
        self._prefix = filename_prefix
        self._writer: Any = None
        self._file: IO[bytes]
        self._path: str | None = None
        self._closed = False
        self._process = 0
        make_directories(self._logdir or ".")

    @property
    def path(self) -> str | None:
        """The file's name, None before the first event."""
        return self._path

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def get_logdir(self) -> str:
        """The directory."""
        return self._logdir

    def add_event(self, event: Any) -> None:
        """Queues an event. The queue's errors, a full disk for instance, surface here later."""
        with tf_errors(self._path):
            self._open().write(event.SerializeToString())

    def start(self) -> None:
        """Makes the file now, if there is none yet."""
        with tf_errors(self._path):
            self._open()

    def flush(self) -> None:
        """Waits until every queued event is in the file."""
        if self._is_own() and not self._closed:
            with tf_errors(self._path):
                self._writer.flush()

    def close(self) -> None:
        """Flushes and closes the file."""
        if self._is_own() and not self._closed:
            self._closed = True
            _open.pop(self._writer, None)
            with tf_errors(self._path):
                try:
                    self._writer.close()
                finally:  # what is left in its buffer may not fit the disk
                    with suppress(OSError):
                        self._file.close()
        self._closed = True

    def reopen(self) -> None:
        """After `close`: the next event starts a new file."""
        if self._closed:
            self._writer, self._path, self._closed = None, None, False

    def _is_own(self) -> bool:
        """Whether there is a writer, and its thread in this process."""
        return self._writer is not None and self._process == os.getpid()

    def _open(self) -> Any:
        if not self._is_own():
            self._file = self._create()
            writer = _AsyncWriter(RecordWriter(self._file), self._max_queue, self._flush_secs)
            version = protos.Event(wall_time=time.time(), file_version=FILE_VERSION)
            writer.write(version.SerializeToString())
            self._writer, self._process = writer, os.getpid()
            _open[writer] = self._file
        return self._writer

    def _create(self) -> IO[bytes]:
        start = f"{self._prefix}.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}"
        number = 0
        while True:
            again = f".{number}" if number else ""
            path = os.path.join(self._logdir, f"{start}{again}{self._suffix}")
            there = filesystems.of(path)
            if not there.exists(path):
                make_directories(self._logdir or ".")
                with tf_errors(path), suppress(FileExistsError):
                    # Elsewhere there may be no way to make a file only if it is new.
                    mode = "xb" if filesystems.is_local(path) else "wb"
                    file: IO[bytes] = there.open(path, mode, None, None)
                    self._path = path
                    return file
            number += 1


def summary_iterator(path: Any) -> Iterator[Any]:
    """Reads an event file.

    Args:
        path: the file.

    Yields:
        `Event` protobufs in file order.

    Raises:
        tf.errors.NotFoundError: no such file.
        tf.errors.DataLossError: the file is damaged.
    """
    for record in read_records(path):
        yield parsed(protos.Event, record, f"a record of {as_path(path)}")
