"""One `FileWriter` a directory, shared by all who ask."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

from opdock.graph.nodes.graph import get_default_graph
from opdock.io.files import as_path
from opdock.summary.writer import FileWriter

__all__ = ["FileWriterCache"]


class FileWriterCache:
    """Cache of file writers by directory."""

    _cache: ClassVar[dict[str, FileWriter]] = {}
    _lock = threading.RLock()

    @staticmethod
    def clear() -> None:
        """Closes and forgets all writers."""
        with FileWriterCache._lock:
            for writer in FileWriterCache._cache.values():
                writer.close()
            FileWriterCache._cache.clear()

    @staticmethod
    def get(logdir: Any) -> FileWriter:
        """The writer of a directory, made with the default graph when there is none yet."""
        path = as_path(logdir)
        with FileWriterCache._lock:
            writer = FileWriterCache._cache.get(path)
            if writer is None:
                writer = FileWriter(path, graph=get_default_graph())
                FileWriterCache._cache[path] = writer
            return writer
