"""`tf.summary.FileWriter`: summaries, graphs and run metadata for TensorBoard."""

from __future__ import annotations

import logging
import os
import time
import warnings
from typing import Any, Self

from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.scopes import refuse_eagerly
from opdock.io import protos
from opdock.io.event_files import EventsWriter
from opdock.io.files import make_directories, write_file

__all__ = ["FileWriter"]

_log = logging.getLogger("tensorflow")


class FileWriter:
    """Writes events to a file of a directory that TensorBoard reads.

    Args:
        logdir: the directory, made when missing.
        graph: a `Graph` to write at once, as graph_def and then meta_graph_def.
        max_queue: how many events may wait before an `add_` call blocks.
        flush_secs: the longest time, in seconds, that an event stays in memory.
        graph_def: deprecated, use `graph`.
        filename_suffix: ending of the event file's name.
        session: have operations of this session write the events; writers of one session and
            folder then share one file.

    Raises:
        ValueError: both `graph` and `graph_def` are given.
    """

    def __init__(
        self, logdir: Any, graph: Any = None, max_queue: int = 10, flush_secs: float = 120,
        graph_def: Any = None, filename_suffix: str | None = None, session: Any = None,
    ) -> None:  # fmt: skip
        refuse_eagerly(
            "tf.summary.FileWriter is not compatible with eager execution. Use "
            "tf.contrib.summary instead."
        )
        suffix = filename_suffix or ""
        self.event_writer: Any
        if session is None:
            self.event_writer = EventsWriter(logdir, max_queue, flush_secs, suffix)
        else:
            from opdock.summary.session_events import SessionEventsWriter

            self.event_writer = SessionEventsWriter(session, logdir, max_queue, flush_secs, suffix)
        self._run_tags: set[str] = set()
        self._metadata_tags: set[str] = set()
        if graph is not None or graph_def is not None:
            self.add_graph(graph=graph, graph_def=graph_def)
            from opdock.train.meta_graph import create_meta_graph_def

            definition = graph_def
            if definition is None:
                definition = graph.as_graph_def(add_shapes=True) if _is_graph(graph) else graph
            self.add_meta_graph(create_meta_graph_def(graph_def=definition))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def get_logdir(self) -> str:
        """The directory of the event file."""
        folder: str = self.event_writer.get_logdir()
        return folder

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Adds the value of a summary op.

        Args:
            summary: a `Summary` or its serialized form, as `Session.run` returns it.
            global_step: the step to record.
        """
        if isinstance(summary, bytes):
            summary = protos.Summary.FromString(summary)
        else:
            copy = protos.Summary()
            copy.CopyFrom(summary)
            summary = copy
        for value in summary.value:
            # Readers need a tag's metadata once; repeating it would only cost space.
            if value.HasField("metadata"):
                if value.tag in self._metadata_tags:
                    value.ClearField("metadata")
                self._metadata_tags.add(value.tag)
        self._add(protos.Event(summary=summary), global_step)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Adds a `SessionLog`, e.g. that training started."""
        self._add(protos.Event(session_log=session_log), global_step)

    def add_graph(self, graph: Any = None, global_step: Any = None, graph_def: Any = None) -> None:
        """Adds a graph, which TensorBoard draws.

        Args:
            graph: a `Graph`.
            global_step: the step to record.
            graph_def: deprecated, a `GraphDef`.

        Raises:
            ValueError: both are given.
            TypeError: it is neither a Graph nor a GraphDef.
        """
        if graph is not None and graph_def is not None:
            raise ValueError("Please pass only graph, or graph_def (deprecated), but not both.")
        given = graph if graph is not None else graph_def
        if _is_graph(given):
            definition = given.as_graph_def(add_shapes=True)
            self._write_assets(given)
        elif isinstance(given, protos.GraphDef):
            _log.warning("Passing a `GraphDef` to the SummaryWriter is deprecated. Pass a `Graph`.")
            definition = given
        else:
            raise TypeError(
                "The passed graph must be an instance of `Graph` or the deprecated `GraphDef`"
            )
        self._add(protos.Event(graph_def=definition.SerializeToString()), global_step)

    def _write_assets(self, graph: Graph) -> None:
        from opdock.summary.plugin_asset import get_all_plugin_assets

        for asset in get_all_plugin_assets(graph):
            folder = os.path.join(os.fsdecode(self.get_logdir()), "plugins", asset.plugin_name)
            make_directories(folder)
            for name, content in asset.assets().items():
                data = content.encode() if isinstance(content, str) else content
                write_file(os.path.join(folder, name), data)

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Adds a `MetaGraphDef`; TypeError for anything else."""
        if not isinstance(meta_graph_def, protos.MetaGraphDef):
            raise TypeError(
                f"meta_graph_def must be type MetaGraphDef, saw type: {type(meta_graph_def)}"
            )
        self._add(protos.Event(meta_graph_def=meta_graph_def.SerializeToString()), global_step)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Adds the statistics of one `Session.run`, which TensorBoard shows in its graph.

        Args:
            run_metadata: a `RunMetadata`.
            tag: a name of this run, unique in the file.
            global_step: the step to record.

        Raises:
            ValueError: the tag was used before.
        """
        if tag in self._run_tags:
            raise ValueError("The provided tag was already used for this event type")
        self._run_tags.add(tag)
        tagged = protos.TaggedRunMetadata(tag=tag, run_metadata=run_metadata.SerializeToString())
        self._add(protos.Event(tagged_run_metadata=tagged), global_step)

    def add_event(self, event: Any) -> None:
        """Adds an `Event` as it is."""
        if self._is_open():
            self.event_writer.add_event(event)

    def _is_open(self) -> bool:
        if self.event_writer.closed:
            warnings.warn(
                "Attempting to use a closed FileWriter. The operation will be a noop unless the "
                "FileWriter is explicitly reopened.",
                stacklevel=3,
            )
        return not self.event_writer.closed

    def _add(self, event: Any, step: Any) -> None:
        event.wall_time = time.time()
        if step is not None:
            event.step = int(step)
        self.add_event(event)

    def flush(self) -> None:
        """Waits until every event is in the file."""
        if self._is_open():
            self.event_writer.flush()

    def close(self) -> None:
        """Flushes and closes the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """After `close`: more events go to a new file of the same directory."""
        self.event_writer.reopen()


def _is_graph(value: Any) -> bool:
    return isinstance(value, Graph)
