"""The writer of events that TensorFlow's C interface has, for programs that use it directly."""

from __future__ import annotations

import os
from typing import Any

from opdock.io import event_files, protos
from opdock.io.files import as_path

__all__ = ["EventsWriter"]


class EventsWriter:
    """Writes events to `<prefix>.out.tfevents.<time>.<host>`, a file of its own.

    The file is made with the first event, or when its name is asked for.

    Args:
        file_prefix: the folder and the beginning of the file's name.
    """

    def __init__(self, file_prefix: Any) -> None:
        self._folder, self._prefix = os.path.split(as_path(file_prefix))
        self._writer = self._with_suffix("")

    def _with_suffix(self, suffix: str) -> event_files.EventsWriter:
        return event_files.EventsWriter(
            self._folder, filename_suffix=suffix, filename_prefix=self._prefix
        )

    def InitWithSuffix(self, suffix: Any) -> None:
        """Makes the file, unless there is one, with an ending to its name."""
        if self._writer.path is None:
            self._writer = self._with_suffix(as_path(suffix))
        self._writer.start()

    def FileName(self) -> bytes:
        """The file's name."""
        self._writer.start()
        return os.fsencode(self._writer.path or "")

    def WriteEvent(self, event: Any) -> None:
        """Appends an event.

        Raises:
            TypeError: `event` is no `Event` protobuf.
        """
        if not isinstance(event, protos.Event):
            raise TypeError(f"Expected an event_pb2.Event proto, but got {type(event)}")
        self._writer.add_event(event)

    def Flush(self) -> None:
        """Waits until all events are in the file."""
        self._writer.flush()

    def Close(self) -> None:
        """Flushes and closes the file; a later event starts another."""
        self._writer.close()
        self._writer.reopen()
