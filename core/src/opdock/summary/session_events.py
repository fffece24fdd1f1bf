"""Events written by operations of a session, to a file that it shares by its folder."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.scopes import name_scope
from opdock.io.files import as_path
from opdock.ops.identity import placeholder
from opdock.summary.recording import create_file_writer, import_event

__all__ = ["SessionEventsWriter"]


class SessionEventsWriter:
    """The interface of `EventsWriter`; those of one session and folder write one file.

    Writers of `tf.contrib.summary` for the folder write the same file.

    Args:
        session: the session, to whose graph the operations are added.
        logdir: the folder.
        max_queue: how many events may wait before `add_event` blocks.
        flush_secs: the longest time an event stays in memory.
        filename_suffix: ending of the file's name.
    """

    def __init__(
        self, session: Any, logdir: Any, max_queue: int, flush_secs: float, filename_suffix: str
    ) -> None:
        self._session = session
        self._logdir = as_path(logdir)
        with session.graph.as_default(), name_scope("filewriter"):
            writer = create_file_writer(logdir, max_queue, int(flush_secs * 1000), filename_suffix)
            with writer.as_default():
                self._event = placeholder(dtypes.string, [])
                self._add = import_event(self._event)
            self._init, self._flush, self._close = writer.init(), writer.flush(), writer.close()
        session.run(self._init)
        self.closed = False

    def get_logdir(self) -> str:
        """The folder."""
        return self._logdir

    def add_event(self, event: Any) -> None:
        """Queues an event."""
        self._session.run(self._add, {self._event: event.SerializeToString()})

    def flush(self) -> None:
        """Waits until every queued event is in the file."""
        if not self.closed:
            self._session.run(self._flush)

    def close(self) -> None:
        """Flushes and closes the file."""
        if not self.closed:
            self.closed = True
            self._session.run(self._close)

    def reopen(self) -> None:
        """After `close`: more events go to a new file."""
        if self.closed:
            self._session.run(self._init)
            self.closed = False
