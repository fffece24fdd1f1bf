"""What a summary writer of `tf.contrib.summary` is behind its handle: an event file, once made."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from opdock import errors
from opdock.io import protos
from opdock.io.event_files import EventsWriter

__all__ = ["EventSink"]


class EventSink:
    """The file to which the ops of one handle write.

    Args:
        name: the name of the resource, for errors.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._file: EventsWriter | None = None
        self._most, self._waiting = 0, 0

    def create(self, logdir: str, max_queue: int, flush_millis: int, suffix: str) -> None:
        """Starts a file in a directory; nothing happens if there is one."""
        if self._file is None:
            ending = f".{os.getpid()}{suffix}"
            self._file = EventsWriter(logdir, max_queue, flush_millis / 1000, ending)
            self._file.start()
            self._file.flush()
            self._most = max_queue

    def write(self, step: int, content: bytes, field: str = "summary") -> None:
        """Adds an event with a serialized Summary or, by `field`, with a graph.

        Raises:
            NotFoundError: the writer was not initialized, or is closed.
        """
        event = protos.Event(wall_time=time.time(), step=step)
        if field == "summary":
            event.summary.ParseFromString(content)
        else:
            setattr(event, field, content)
        self._put(event)

    def write_summaries(self, step: int, summaries: Sequence[bytes]) -> None:
        """Adds one event with all values of serialized Summaries.

        Raises:
            DataLossError: one of them is none.
            NotFoundError: the writer was not initialized, or is closed.
        """
        from google.protobuf.message import DecodeError

        event = protos.Event(wall_time=time.time(), step=step)
        for index, data in enumerate(summaries):
            try:
                event.summary.MergeFromString(data)
            except DecodeError:
                raise errors.DataLossError(
                    None, None,
                    f"Bad tf.compat.v1.Summary binary proto tensor string at index {index}",
                ) from None  # fmt: skip
        self._put(event)

    def add(self, content: bytes) -> None:
        """Adds a serialized Event as it is; InvalidArgumentError if it is none."""
        from google.protobuf.message import DecodeError

        try:
            event = protos.Event.FromString(content)
        except DecodeError as e:
            raise errors.InvalidArgumentError(None, None, f"Not an Event: {e}") from None
        self._put(event)

    def flush(self) -> None:
        """Waits until all events are in the file."""
        self._opened().flush()
        self._waiting = 0

    def close(self) -> None:
        """Flushes and forgets the file; nothing happens without one."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _put(self, event: Any) -> None:
        """Adds an event; all are in the file once more wait than may."""
        self._opened().add_event(event)
        self._waiting += 1
        if self._waiting > self._most:
            self.flush()

    def _opened(self) -> Any:
        if self._file is None:
            raise errors.NotFoundError(
                None, None, f"Resource {self._name} does not exist: the summary writer was not"
                " initialized, see tf.contrib.summary.initialize()",
            )  # fmt: skip
        return self._file
