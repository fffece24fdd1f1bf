"""Monitors that write files while an estimator trains: summaries, checkpoints, its speed."""

from __future__ import annotations

import os
import time
from typing import Any

import opdock as tf
from opdock.contrib.learn.monitor_hooks import BaseMonitor, EveryN
from opdock.contrib.learn.watching_monitors import PrintTensor, value_of

__all__ = ["CheckpointSaver", "StepCounter", "SummarySaver", "get_default_monitors"]


class SummarySaver(EveryN):
    """Writes a summary.

    Args:
        summary_op: a scalar of serialized summaries, `tf.summary.merge_all()` for instance.
        save_steps: how many steps there are from one to the next.
        output_dir: where to, if no writer is given.
        summary_writer: writes them; else one for `output_dir` or the estimator's folder.
        scaffold: has the summary, if it is not given.
    """

    def __init__(
        self, summary_op: Any, save_steps: int = 100, output_dir: str | None = None,
        summary_writer: Any = None, scaffold: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(every_n_steps=save_steps)
        self._summary, self._scaffold, self._writer = summary_op, scaffold, summary_writer
        if summary_writer is None and output_dir:
            self._writer = tf.summary.FileWriter(output_dir)

    def set_estimator(self, estimator: Any) -> None:
        """Says whose folder the summaries go to, if they have none."""
        super().set_estimator(estimator)
        if self._writer is None:
            self._writer = tf.summary.FileWriter(estimator.model_dir)

    def every_n_step_begin(self, step: int) -> list[Any]:
        """Asks for the summary."""
        if self._summary is None and self._scaffold is not None:
            self._summary = self._scaffold.summary_op
        return [] if self._summary is None else [self._summary]

    def every_n_step_end(self, step: int, outputs: dict[Any, Any]) -> bool:
        """Writes it."""
        if self._summary is not None and self._writer is not None:
            self._writer.add_summary(value_of(outputs, self._summary), step)
        return False

    def end(self, session: Any = None) -> None:
        """Sees that all is in the file."""
        super().end(session=session)
        if self._writer is not None:
            self._writer.flush()


class CheckpointSaver(BaseMonitor):
    """Saves checkpoints: after the first step, then from time to time, and after the last one.

    Args:
        checkpoint_dir: the folder.
        save_secs: how many seconds there are from one to the next.
        save_steps: how many steps there are.
        saver: a `tf.train.Saver`; else the scaffold's.
        checkpoint_basename: how the files' names begin.
        scaffold: has a saver.

    Raises:
        ValueError: neither seconds nor steps are given, or both.
    """

    def __init__(
        self, checkpoint_dir: str, save_secs: float | None = None, save_steps: int | None = None,
        saver: Any = None, checkpoint_basename: str = "model.ckpt", scaffold: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if save_steps is None and save_secs is None:
            raise ValueError("Either save_steps or save_secs should be provided")
        if save_steps is not None and save_secs is not None:
            raise ValueError("Can not provide both save_steps and save_secs.")
        self._saver, self._scaffold = saver, scaffold
        self._writer = tf.summary.FileWriterCache.get(checkpoint_dir)
        self._path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._seconds, self._steps = save_secs, save_steps
        self._begun_at: int | None = None
        self._saved: tuple[int, float] | None = None

    def begin(self, max_steps: int | None = None) -> None:
        """Nothing is saved yet."""
        super().begin(max_steps)
        self._begun_at = self._saved = None

    def step_begin(self, step: int) -> list[Any]:
        """See `BaseMonitor`."""
        self._begun_at = step
        return super().step_begin(step)

    def post_step(self, step: int, session: Any) -> None:
        """Saves, if it is time."""
        super().post_step(step, session)
        if self._saved is None:
            due = True
        elif self._steps is not None:
            due = step >= self._saved[0] + self._steps
        else:
            due = time.monotonic() >= self._saved[1] + (self._seconds or 0)
        if due:
            self._save(step, session)

    def end(self, session: Any = None) -> None:
        """Saves what the last step has made."""
        super().end(session)
        if self._begun_at is not None:
            self._save(self._begun_at, session)

    def _save(self, step: int, session: Any) -> None:
        if self._saved is not None and self._saved[0] == step:
            return
        tf.logging.info("Saving checkpoints for %d into %s.", step, self._path)
        self._saved = step, time.monotonic()
        saver = self._scaffold.saver if self._saver is None else self._saver
        saver.save(session, self._path, global_step=step)
        log = tf.SessionLog(status=tf.SessionLog.CHECKPOINT, checkpoint_path=self._path)
        self._writer.add_session_log(log, step)


class StepCounter(EveryN):
    """Writes how many steps there were a second.

    Args:
        every_n_steps: how many steps there are from one figure to the next.
        output_dir, summary_writer: see `SummarySaver`.
    """

    def __init__(
        self, every_n_steps: int = 100, output_dir: str | None = None, summary_writer: Any = None
    ) -> None:
        super().__init__(every_n_steps=every_n_steps)
        self._writer = summary_writer
        if summary_writer is None and output_dir:
            self._writer = tf.summary.FileWriterCache.get(output_dir)
        self._reported: tuple[int, float] | None = None

    def set_estimator(self, estimator: Any) -> None:
        """Says whose folder the figures go to, if they have none."""
        super().set_estimator(estimator)
        if self._writer is None:
            self._writer = tf.summary.FileWriterCache.get(estimator.model_dir)

    def every_n_step_end(self, step: int, outputs: dict[Any, Any]) -> bool:
        """Writes the figure, from the second time on."""
        now = time.monotonic()
        if self._reported is not None and self._writer is not None and now > self._reported[1]:
            rate = (step - self._reported[0]) / (now - self._reported[1])
            value = tf.Summary.Value(tag="global_step/sec", simple_value=rate)
            self._writer.add_summary(tf.Summary(value=[value]), step)
        self._reported = step, now
        return False


def get_default_monitors(
    loss_op: Any = None, summary_op: Any = None, save_summary_steps: int = 100,
    output_dir: str | None = None, summary_writer: Any = None,
) -> list[Any]:  # fmt: skip
    """The monitors of most trainings.

    Args:
        loss_op: the loss, to be logged.
        summary_op, output_dir, summary_writer: see `SummarySaver`.
        save_summary_steps: its `save_steps`.

    Returns:
        A `PrintTensor` and a `SummarySaver`, as far as there is something for them.
    """
    found: list[Any] = []
    if loss_op is not None:
        found.append(PrintTensor(tensor_names={"loss": loss_op.name}))
    if summary_op is not None:
        found.append(SummarySaver(summary_op, save_summary_steps, output_dir, summary_writer))
    return found
