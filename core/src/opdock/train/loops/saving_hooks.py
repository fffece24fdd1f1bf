"""Hooks that write: checkpoints, summaries, the speed of the loop, profiles."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from opdock.api import logging
from opdock.api.timeline import Timeline
from opdock.graph.nodes.collections import GraphKeys, get_collection
from opdock.graph.nodes.graph import get_default_graph
from opdock.io import protos
from opdock.io.files import write_file
from opdock.summary.writer_cache import FileWriterCache
from opdock.train import training_util
from opdock.train.graph_io import write_graph
from opdock.train.loops.hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from opdock.train.loops.hooks import global_step_read
from opdock.train.loops.timers import SecondOrStepTimer, speed
from opdock.train.meta_graph import create_meta_graph_def

__all__ = [
    "CheckpointSaverHook", "CheckpointSaverListener", "ProfilerHook", "StepCounterHook",
    "SummarySaverHook",
]  # fmt: skip


class CheckpointSaverListener:
    """Something to do around each checkpoint of a `CheckpointSaverHook`."""

    def begin(self) -> None:
        """Called once, before the graph is final."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Called before a checkpoint is written."""

    def after_save(self, session: Any, global_step_value: int) -> bool | None:
        """Called after a checkpoint was written; True asks to end the loop."""
        return None

    def end(self, session: Any, global_step_value: int) -> None:
        """Called at the end, after the last checkpoint."""


class CheckpointSaverHook(SessionRunHook):
    """Writes a checkpoint at the start, every so many steps or seconds, and at the end.

    Args:
        checkpoint_dir: the directory of the checkpoints, the graph and the event file.
        save_secs: the seconds between two checkpoints.
        save_steps: the steps between two checkpoints.
        saver: what saves; by default the one in the collection SAVERS.
        checkpoint_basename: how the files' names start.
        scaffold: has the saver.
        listeners: `CheckpointSaverListener`s.

    Raises:
        ValueError: both saver and scaffold are given, or not exactly one of `save_secs` and
            `save_steps`.
    """

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Sequence[CheckpointSaverListener] | None = None,
    ) -> None:
        logging.info("Create CheckpointSaverHook.")
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        self._saver = saver
        self._checkpoint_dir = checkpoint_dir
        self._save_path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._scaffold = scaffold
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._listeners = listeners or []
        self._steps_per_run = 1

    def _set_steps_per_run(self, steps_per_run: int) -> None:
        self._steps_per_run = steps_per_run

    def begin(self) -> None:
        """Finds the global step; RuntimeError without one."""
        self._summary_writer = FileWriterCache.get(self._checkpoint_dir)
        self._global_step = global_step_read("CheckpointSaverHook")
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Writes the graph, which is final now, and the checkpoint of the start."""
        step = session.run(self._global_step)
        graph = get_default_graph()
        definition = graph.as_graph_def(add_shapes=True)
        write_graph(definition, self._checkpoint_dir, "graph.pbtxt")
        saver = self._get_saver()
        self._summary_writer.add_graph(graph)
        self._summary_writer.add_meta_graph(
            create_meta_graph_def(
                graph_def=definition, saver_def=saver.saver_def if saver else None
            )
        )
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the global step."""
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes a checkpoint when it is time."""
        if not self._timer.should_trigger_for_step(run_values.results + self._steps_per_run):
            return
        # The value was read before the step, which may have moved it or not: look again.
        step = run_context.session.run(self._global_step)
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._save(run_context.session, step):
                run_context.request_stop()

    def end(self, session: Any) -> None:
        """Writes the last checkpoint, unless it is there."""
        step = session.run(self._global_step)
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session: Any, step: int) -> bool:
        """Writes a checkpoint; whether a listener asks to end the loop."""
        logging.info("Saving checkpoints for %d into %s.", step, self._save_path)
        for listener in self._listeners:
            listener.before_save(session, step)
        self._get_saver().save(session, self._save_path, global_step=step)
        log = protos.SessionLog(
            status=protos.SessionLog.CHECKPOINT, checkpoint_path=self._save_path
        )
        self._summary_writer.add_session_log(log, step)
        stop = False
        for listener in self._listeners:
            if listener.after_save(session, step):
                logging.info(
                    "A CheckpointSaverListener requested that training be stopped. listener: %s",
                    listener,
                )
                stop = True
        return stop

    def _get_saver(self) -> Any:
        if self._saver is not None:
            return self._saver
        if self._scaffold is not None:
            return self._scaffold.saver
        savers = get_collection(GraphKeys.SAVERS)
        if not savers:
            raise RuntimeError(
                f"No items in collection {GraphKeys.SAVERS}. Please add a saver to the collection "
                "or provide a saver or scaffold."
            )
        if len(savers) > 1:
            raise RuntimeError(
                f"More than one item in collection {GraphKeys.SAVERS}. Please indicate which one "
                "to use by passing it to the constructor."
            )
        self._saver = savers[0]
        return self._saver


class StepCounterHook(SessionRunHook):
    """Logs and records how many steps a second the loop takes.

    Args:
        every_n_steps: the steps between two records.
        every_n_secs: the seconds between two records.
        output_dir: a directory for the event file.
        summary_writer: a writer in place of the directory's.

    Raises:
        ValueError: not exactly one of the first two is given.
    """

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
    ) -> None:
        if (every_n_steps is None) == (every_n_secs is None):
            raise ValueError("exactly one of every_n_steps and every_n_secs should be provided.")
        self._timer = SecondOrStepTimer(every_steps=every_n_steps, every_secs=every_n_secs)
        self._summary_writer = summary_writer
        self._output_dir = output_dir
        self._last_global_step: int | None = None
        self._steps_per_run = 1

    def _set_steps_per_run(self, steps_per_run: int) -> None:
        self._steps_per_run = steps_per_run

    def begin(self) -> None:
        """Finds the global step; RuntimeError without one."""
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._global_step = global_step_read("StepCounterHook")
        self._summary_tag = f"{training_util.get_global_step().op.name}/sec"

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the global step."""
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Records the speed when it is time."""
        stale = run_values.results
        if self._timer.should_trigger_for_step(stale + self._steps_per_run):
            step = run_context.session.run(self._global_step)
            if self._timer.should_trigger_for_step(step):
                seconds, steps = self._timer.update_last_triggered_step(step)
                if seconds is not None and steps is not None:
                    self._log_and_record(steps, seconds, step)
        if stale == self._last_global_step:
            logging.log_first_n(
                logging.WARN,
                "It seems that global step (tf.train.get_global_step) has not been increased. "
                "Current value (could be stable): %s vs previous value: %s. You could increase "
                "the global step by passing tf.train.get_global_step() to "
                "Optimizer.apply_gradients or Optimizer.minimize.",
                5, stale, self._last_global_step,
            )  # fmt: skip
        self._last_global_step = stale

    def _log_and_record(self, elapsed_steps: int, elapsed_time: float, global_step: int) -> None:
        """Writes the speed; subclasses of users do more with it."""
        found = speed(elapsed_steps, elapsed_time)
        if self._summary_writer is not None:
            value = protos.Summary.Value(tag=self._summary_tag, simple_value=found)
            self._summary_writer.add_summary(protos.Summary(value=[value]), global_step)
        logging.info("%s: %g", self._summary_tag, found)


class SummarySaverHook(SessionRunHook):
    """Writes summaries.

    Args:
        save_steps: the steps between two of them.
        save_secs: the seconds between two of them.
        output_dir: a directory for the event file.
        summary_writer: a writer in place of the directory's.
        scaffold: has the summary op.
        summary_op: a serialized Summary as a string tensor, or a list of those.

    Raises:
        ValueError: not exactly one of scaffold and summary_op is given, or of the first two.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise ValueError("Exactly one of scaffold or summary_op must be provided.")
        self._summary_op = summary_op
        self._summary_writer = summary_writer
        self._output_dir = output_dir
        self._scaffold = scaffold
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)

    def begin(self) -> None:
        """Finds the global step; RuntimeError without one."""
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._next_step: int | None = None
        self._global_step = global_step_read("SummarySaverHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the global step, and for the summaries when it is time."""
        self._due = self._next_step is None or self._timer.should_trigger_for_step(self._next_step)
        requests = {"global_step": self._global_step}
        if self._due and (summaries := self._get_summary_op()) is not None:
            requests["summary"] = summaries
        return SessionRunArgs(requests)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes what it asked for."""
        if not self._summary_writer:
            return
        step = run_values.results["global_step"] + 1
        if self._due:
            step = run_context.session.run(self._global_step)
        if self._next_step is None:
            self._summary_writer.add_session_log(
                protos.SessionLog(status=protos.SessionLog.START), step
            )
        if self._due:
            self._timer.update_last_triggered_step(step)
            for summary in run_values.results.get("summary", ()):
                self._summary_writer.add_summary(summary, step)
        self._next_step = step + 1

    def end(self, session: Any = None) -> None:
        """Waits until all is in the file."""
        if self._summary_writer:
            self._summary_writer.flush()

    def _get_summary_op(self) -> list[Any] | None:
        found = self._summary_op
        if found is None:
            found = self._scaffold.summary_op
        return found if found is None or isinstance(found, list) else [found]


class ProfilerHook(SessionRunHook):
    """Traces a step now and then, and writes it as "timeline-<step>.json" in Chrome's format.

    Args:
        save_steps: the steps between two traces.
        save_secs: the seconds between two traces.
        output_dir: where the files go.
        show_dataflow: connect who makes a tensor with who takes it.
        show_memory: show the memory of tensors.

    Raises:
        ValueError: not exactly one of the first two is given.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        self._output_file = os.path.join(output_dir, "timeline-{}.json")
        self._file_writer = FileWriterCache.get(output_dir)
        self._show_dataflow = show_dataflow
        self._show_memory = show_memory
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)

    def begin(self) -> None:
        """Finds the global step; RuntimeError without one."""
        self._next_step: int | None = None
        self._global_step = global_step_read("ProfilerHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the global step, and for a trace when it is time."""
        self._due = self._next_step is not None and self._timer.should_trigger_for_step(
            self._next_step
        )
        options = None
        if self._due:
            options = protos.RunOptions(trace_level=protos.RunOptions.FULL_TRACE)
        return SessionRunArgs({"global_step": self._global_step}, options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes the trace."""
        stale = run_values.results["global_step"]
        if self._next_step is None:
            self._timer.update_last_triggered_step(stale)
        step = stale + 1
        if self._due:
            step = run_context.session.run(self._global_step)
            self._timer.update_last_triggered_step(step)
            self._save(step, run_values.run_metadata)
        self._next_step = step + 1

    def _save(self, step: int, metadata: Any) -> None:
        path = self._output_file.format(step)
        logging.info("Saving timeline for %d into '%s'.", step, path)
        text = Timeline(metadata.step_stats).generate_chrome_trace_format(
            show_dataflow=self._show_dataflow, show_memory=self._show_memory
        )
        write_file(path, text.encode())
        self._file_writer.add_run_metadata(metadata, f"step_{step}")
