"""Evaluation of each checkpoint of a training as it comes, with summaries at the end."""

from __future__ import annotations

from collections.abc import Callable
from time import gmtime, strftime
from typing import Any

from opdock.api import logging
from opdock.ops.summary import merge_all
from opdock.summary.writer_cache import FileWriterCache
from opdock.train.checkpoint_utils import checkpoints_iterator, wait_for_new_checkpoint
from opdock.train.loops.evaluation import (
    StopAfterNEvalsHook,
    counting,
    evaluate_once,
    get_or_create_eval_step,
)
from opdock.train.loops.hook import SessionRunHook
from opdock.train.loops.hooks import FinalOpsHook
from opdock.train.loops.monitored_session import ChiefSessionCreator, MonitoredSession
from opdock.train.training_util import get_or_create_global_step, global_step

__all__ = [
    "StopAfterNEvalsHook", "SummaryAtEndHook", "checkpoints_iterator", "evaluate_once",
    "evaluate_repeatedly", "get_or_create_eval_step", "wait_for_new_checkpoint",
]  # fmt: skip


class SummaryAtEndHook(SessionRunHook):
    """Writes summaries when a session ends.

    Args:
        log_dir: where they are written to.
        summary_writer: what writes them; one for `log_dir` if None.
        summary_op: the summaries; all of the graph's if None.
        feed_dict: what is fed to compute them.

    Raises:
        ValueError: there is neither a directory nor a writer.
    """

    def __init__(
        self, log_dir: Any = None, summary_writer: Any = None, summary_op: Any = None,
        feed_dict: Any = None,
    ) -> None:  # fmt: skip
        if log_dir is None and summary_writer is None:
            raise ValueError("One of log_dir or summary_writer should be used.")
        self._log_dir, self._summary_writer = log_dir, summary_writer
        self._summary_op, self._all = summary_op, summary_op is None
        self._feed_dict = feed_dict
        self._global_step: Any = None

    def begin(self) -> None:
        """Takes all summaries of the graph, if it was given none."""
        if self._all:
            self._summary_op = merge_all()
        self._global_step = get_or_create_global_step()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Opens the writer, if it was given none."""
        if self._summary_writer is None:
            self._summary_writer = FileWriterCache.get(self._log_dir)

    def end(self, session: Any) -> None:
        """Computes and writes the summaries."""
        if self._summary_op is not None:
            step = global_step(session, self._global_step)
            told = session.run(self._summary_op, self._feed_dict)
            self._summary_writer.add_summary(told, step)
        self._summary_writer.flush()


def evaluate_repeatedly(
    checkpoint_dir: Any, master: str = "", scaffold: Any = None, eval_ops: Any = None,
    feed_dict: Any = None, final_ops: Any = None, final_ops_feed_dict: Any = None,
    eval_interval_secs: float = 60, hooks: Any = None, config: Any = None,
    max_number_of_evaluations: int | None = None, timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Any:  # fmt: skip
    """Evaluates each new checkpoint of a directory, as `evaluate_once` does one.

    Args:
        checkpoint_dir: the directory.
        master, scaffold, eval_ops, feed_dict, final_ops, final_ops_feed_dict, hooks, config: as of
            `evaluate_once`.
        eval_interval_secs: how many seconds there are at least between two evaluations.
        max_number_of_evaluations: how many there are at most; None for any number.
        timeout, timeout_fn: how long a checkpoint is waited for, and what says whether to stop
            then, as of `checkpoints_iterator`.

    Returns:
        The values of `final_ops` of the last evaluation, or None.
    """
    eval_step = get_or_create_eval_step()
    every = list(hooks or [])
    if eval_ops is not None:
        eval_ops = counting(eval_ops, eval_step, every)
    at_end = FinalOpsHook(final_ops, final_ops_feed_dict)
    paths = checkpoints_iterator(checkpoint_dir, eval_interval_secs, timeout, timeout_fn)
    for done, path in enumerate(paths, 1):
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_filename_with_path=path)
        with MonitoredSession(creator, [*every, at_end]) as session:
            logging.info("Starting evaluation at %s", strftime("%Y-%m-%d-%H:%M:%S", gmtime()))
            if eval_ops is not None:
                while not session.should_stop():
                    session.run(eval_ops, feed_dict)
            logging.info("Finished evaluation at %s", strftime("%Y-%m-%d-%H:%M:%S", gmtime()))
        if max_number_of_evaluations is not None and done >= max_number_of_evaluations:
            break
    return at_end.final_ops_values
