"""The threads of a `tf.train.Supervisor`: summaries, the speed, checkpoints."""

from __future__ import annotations

import time
from typing import Any

from opdock import dtypes
from opdock.api import logging
from opdock.graph.nodes.graph import get_default_graph
from opdock.io import protos
from opdock.train import training_util
from opdock.train.coordinator import LooperThread
from opdock.train.loops.timers import speed

__all__ = ["SVStepCounterThread", "SVSummaryThread", "SVTimerCheckpointThread", "named_global_step"]


class SVSummaryThread(LooperThread):
    """Writes summaries.

    Args:
        sv: the supervisor.
        sess: its session.
    """

    def __init__(self, sv: Any, sess: Any) -> None:
        super().__init__(sv.coord, sv.save_summaries_secs)
        self._sv, self._sess = sv, sess

    def run_loop(self) -> None:
        """Writes the summaries as they are now."""
        step = None
        if self._sv.global_step is None:
            summary = self._sess.run(self._sv.summary_op)
        else:
            summary, step = self._sess.run([self._sv.summary_op, self._sv.global_step])
        if self._sv.summary_writer:
            logging.info("Recording summary at step %s.", step)
            self._sv.summary_writer.add_summary(summary, step)


class SVStepCounterThread(LooperThread):
    """Writes how many steps a second there are.

    Args:
        sv: the supervisor.
        sess: its session.
        step_counter: the counter, by default the supervisor's.
    """

    def __init__(self, sv: Any, sess: Any, step_counter: Any = None) -> None:
        super().__init__(sv.coord, sv.save_summaries_secs)
        self._sv, self._sess = sv, sess
        self._last_time = 0.0
        self._last_step = 0
        self._step_counter = sv.global_step if step_counter is None else step_counter
        self._summary_tag = f"{self._step_counter.op.name}/sec"

    def start_loop(self) -> None:
        """Counts from here."""
        self._last_time = time.time()
        self._last_step = training_util.global_step(self._sess, self._step_counter)

    def run_loop(self) -> None:
        """Writes the speed since the last turn."""
        step, now = training_util.global_step(self._sess, self._step_counter), time.time()
        found = speed(step - self._last_step, now - self._last_time)
        self._last_step, self._last_time = step, now
        if self._sv.summary_writer:
            value = protos.Summary.Value(tag=self._summary_tag, simple_value=found)
            self._sv.summary_writer.add_summary(protos.Summary(value=[value]), step)
        logging.log_first_n(logging.INFO, "%s: %g", 10, self._summary_tag, found)


class SVTimerCheckpointThread(LooperThread):
    """Writes checkpoints.

    Args:
        sv: the supervisor.
        sess: its session.
    """

    def __init__(self, sv: Any, sess: Any) -> None:
        super().__init__(sv.coord, sv.save_model_secs)
        self._sv, self._sess = sv, sess

    def run_loop(self) -> None:
        """Writes a checkpoint."""
        sv = self._sv
        logging.info("Saving checkpoint to path %s", sv.save_path)
        sv.saver.save(self._sess, sv.save_path, global_step=sv.global_step)
        if sv.summary_writer and sv.global_step is not None:
            step = training_util.global_step(self._sess, sv.global_step)
            log = protos.SessionLog(
                status=protos.SessionLog.CHECKPOINT, checkpoint_path=sv.save_path
            )
            sv.summary_writer.add_session_log(log, step)


def named_global_step() -> Any:
    """The tensor that is called as the global step is, or None."""
    try:
        step = get_default_graph().get_tensor_by_name("global_step:0")
    except KeyError:
        return None
    if step.dtype.base_dtype in (dtypes.int32, dtypes.int64):
        return step
    logging.warning("Found 'global_step' is not an int type: %s", step.dtype)
    return None
