"""`tf.contrib.testing`: what tests of training loops look at: a writer that keeps, event files."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any, ClassVar

import numpy as np

from opdock.api import gfile
from opdock.io import protos
from opdock.io.event_files import summary_iterator
from opdock.summary import writer, writer_cache

__all__ = [
    "FakeSummaryWriter", "assert_summary", "latest_event_file", "latest_events",
    "latest_summaries", "simple_values_from_events", "to_summary_proto",
]  # fmt: skip


class FakeSummaryWriter:
    """Keeps what a `tf.summary.FileWriter` would write.

    Args:
        logdir: the directory, which is not made.
        graph: the graph.
    """

    _replaced: ClassVar[Any] = None

    def __init__(self, logdir: Any, graph: Any = None) -> None:
        self._logdir = logdir
        self._graph = graph
        self._summaries: dict[Any, list[Any]] = {}
        self._added_graphs: list[Any] = []
        self._added_meta_graphs: list[Any] = []
        self._added_session_logs: list[Any] = []
        self._added_run_metadata: dict[str, Any] = {}

    @classmethod
    def install(cls) -> None:
        """Takes the place of the file writer until `uninstall`; ValueError if it has already."""
        if cls._replaced:
            raise ValueError("FakeSummaryWriter already installed.")
        cls._replaced = writer.FileWriter
        cls._put(cls)

    @classmethod
    def uninstall(cls) -> None:
        """Gives the file writer its place back; ValueError if it has it."""
        if not cls._replaced:
            raise ValueError("FakeSummaryWriter not installed.")
        cls._put(cls._replaced)
        cls._replaced = None

    @staticmethod
    def _put(kind: Any) -> None:
        for module in (writer, writer_cache):
            setattr(module, "FileWriter", kind)  # noqa: B010 - a module's class is no variable

    @property
    def summaries(self) -> dict[Any, list[Any]]:
        """The summaries of each step."""
        return self._summaries

    def assert_summaries(
        self,
        test_case: Any,
        expected_logdir: Any = None,
        expected_graph: Any = None,
        expected_summaries: dict[Any, dict[str, float]] | None = None,
        expected_added_graphs: list[Any] | None = None,
        expected_added_meta_graphs: list[Any] | None = None,
        expected_session_logs: list[Any] | None = None,
    ) -> None:
        """Asserts that this was written; what is None is not looked at.

        Args:
            test_case: a `unittest.TestCase`.
            expected_logdir: the directory.
            expected_graph: the graph of the constructor.
            expected_summaries: the simple values by tag, of some steps.
            expected_added_graphs, expected_added_meta_graphs: all graphs.
            expected_session_logs: all session logs.
        """
        if expected_logdir is not None:
            test_case.assertEqual(expected_logdir, self._logdir)
        if expected_graph is not None:
            test_case.assertIs(expected_graph, self._graph)
        for step, expected in (expected_summaries or {}).items():
            test_case.assertIn(step, self._summaries)
            values = (v for summary in self._summaries[step] for v in summary.value)
            # How often a supervisor's thread writes the speed depends on the clock.
            found = {v.tag: v.simple_value for v in values if v.tag != "global_step/sec"}
            test_case.assertEqual(expected, found)
        for wanted, added in (
            (expected_added_graphs, self._added_graphs),
            (expected_added_meta_graphs, self._added_meta_graphs),
            (expected_session_logs, self._added_session_logs),
        ):
            if wanted is not None:
                test_case.assertEqual(wanted, added)

    def add_summary(self, summ: Any, current_global_step: Any) -> None:
        """Keeps a summary, given as a message or serialized."""
        if isinstance(summ, bytes):
            summ = protos.Summary.FromString(summ)
        self._summaries.setdefault(current_global_step, []).append(summ)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Keeps a graph; ValueError for a GraphDef or a negative step."""
        _check_step(global_step)
        if graph_def is not None:
            raise ValueError(f"Unexpected graph_def {graph_def}.")
        self._added_graphs.append(graph)

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Keeps a MetaGraphDef; ValueError for a negative step."""
        _check_step(global_step)
        self._added_meta_graphs.append(meta_graph_def)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Keeps a SessionLog."""
        self._added_session_logs.append(session_log)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Keeps a RunMetadata; ValueError for a negative step."""
        _check_step(global_step)
        self._added_run_metadata[tag] = run_metadata

    def flush(self) -> None:
        """Does nothing."""

    def reopen(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


def _check_step(step: Any) -> None:
    if step is not None and step < 0:
        raise ValueError(f"Invalid global_step {step}.")


def assert_summary(
    expected_tags: Iterable[str], expected_simple_values: dict[str, float], summary_proto: Any
) -> None:
    """ValueError unless a summary has these tags, AssertionError unless these values."""
    for value in summary_proto.value:
        if value.tag in expected_simple_values:
            np.testing.assert_almost_equal(
                value.simple_value, expected_simple_values[value.tag], decimal=2, err_msg=value.tag
            )
    expected, found = set(expected_tags), {v.tag for v in summary_proto.value}
    if expected != found:
        raise ValueError(f"Expected tags {expected}, got {found}.")


def to_summary_proto(summary_str: bytes) -> Any:
    """The Summary that a summary op gave."""
    return protos.Summary.FromString(summary_str)


def latest_event_file(base_dir: str) -> str | None:
    """The newest event file of a directory, or None."""
    return max(gfile.Glob(os.path.join(base_dir, "events.*")), default=None)


def latest_events(base_dir: str) -> Iterable[Any]:
    """The events of the newest event file of a directory."""
    path = latest_event_file(base_dir)
    return [] if path is None else summary_iterator(path)


def latest_summaries(base_dir: str) -> list[Any]:
    """Those events of the newest event file that have a summary."""
    return [e for e in latest_events(base_dir) if e.HasField("summary")]


def simple_values_from_events(events: Iterable[Any], tags: Collection[str]) -> dict[str, float]:
    """The last value of each tag; ValueError where one is no simple value."""
    last: dict[str, tuple[int, float]] = {}
    for event in events:
        for value in event.summary.value:
            if value.tag not in tags:
                continue
            if not value.HasField("simple_value"):
                raise ValueError(f"Summary for {value.tag} is not a simple_value.")
            if value.tag not in last or event.step > last[value.tag][0]:
                last[value.tag] = event.step, value.simple_value
    return {tag: value for tag, (_, value) in last.items()}
