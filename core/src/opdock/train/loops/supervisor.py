"""`tf.train.Supervisor`: a session with checkpoints, summaries and threads around it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from opdock.api import logging
from opdock.graph.nodes.collections import GraphKeys, add_to_collection, get_collection
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.variables.variable_lists import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
)
from opdock.io import protos
from opdock.lookup.initialization import tables_initializer
from opdock.ops.control import group
from opdock.ops.summary import merge_all
from opdock.summary.writer import FileWriter
from opdock.train import training_util
from opdock.train.coordinator import Coordinator, LooperThread
from opdock.train.graph_io import write_graph
from opdock.train.loops.services import (
    SVStepCounterThread,
    SVSummaryThread,
    SVTimerCheckpointThread,
    named_global_step,
)
from opdock.train.loops.session_manager import SessionManager
from opdock.train.meta_graph import create_meta_graph_def
from opdock.train.saver import Saver

__all__ = ["Supervisor"]

_DEFAULT: Final = 0


class Supervisor:
    """Restores or initializes a model, and saves it and its summaries while it trains.

    Where an argument says "by default", `Supervisor.USE_DEFAULT` stands for what is in the graph's
    collection, or is made and put there; None stands for nothing.

    Args:
        graph: the model's graph, the default one when absent. It is final afterwards.
        ready_op: a string tensor, empty when all variables are initialized; by default one of all
            variables.
        ready_for_local_init_op: a string tensor, empty when `local_init_op` may run.
        is_chief: whether this process initializes, restores and saves; others wait for it.
        init_op: initializes the model if there is no checkpoint; by default all global variables.
        init_feed_dict: what to feed to it.
        local_init_op: run in every session; by default local variables and tables.
        logdir: where checkpoints and events go, and checkpoints are looked for.
        summary_op: by default all summaries.
        saver: by default one of all variables.
        global_step: the counter of steps; by default the tensor "global_step:0" if there is one.
        save_summaries_secs: the seconds between two summaries, 0 for none.
        save_model_secs: the seconds between two checkpoints, 0 for none.
        recovery_wait_secs: the seconds between two looks whether the model is ready.
        stop_grace_secs: how long threads may take to stop.
        checkpoint_basename: how the checkpoints' names start.
        session_manager: makes the sessions.
        summary_writer: by default one for `logdir`.
        init_fn: called with the session after `init_op`.
        local_init_run_options: RunOptions for `local_init_op`.

    Raises:
        ValueError: this is not the chief and a variable has no device.
    """

    USE_DEFAULT: Final = _DEFAULT

    def __init__(
        self,
        graph: Graph | None = None,
        ready_op: Any = _DEFAULT,
        ready_for_local_init_op: Any = _DEFAULT,
        is_chief: bool = True,
        init_op: Any = _DEFAULT,
        init_feed_dict: Any = None,
        local_init_op: Any = _DEFAULT,
        logdir: str | None = None,
        summary_op: Any = _DEFAULT,
        saver: Any = _DEFAULT,
        global_step: Any = _DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: SessionManager | None = None,
        summary_writer: Any = _DEFAULT,
        init_fn: Callable[[Any], Any] | None = None,
        local_init_run_options: Any = None,
    ) -> None:
        self._graph = get_default_graph() if graph is None else graph
        with self._graph.as_default():
            self._ready_op = _found_or_made(
                ready_op, GraphKeys.READY_OP, report_uninitialized_variables
            )
            self._ready_for_local_init_op = _found_or_made(
                ready_for_local_init_op, GraphKeys.READY_FOR_LOCAL_INIT_OP, lambda: None
            )
            self._init_op = _found_or_made(init_op, GraphKeys.INIT_OP, global_variables_initializer)
            self._local_init_op = _found_or_made(
                local_init_op, GraphKeys.LOCAL_INIT_OP,
                lambda: group(local_variables_initializer(), tables_initializer()),
            )  # fmt: skip
            self._saver = _found_or_made(
                saver, GraphKeys.SAVERS, lambda: Saver() if global_variables() else None
            )
            self._summary_op = _found_or_made(summary_op, GraphKeys.SUMMARY_OP, merge_all)
            self._global_step = _found_or_made(
                global_step, GraphKeys.GLOBAL_STEP, named_global_step
            )
        self._init_feed_dict = init_feed_dict
        self._init_fn = init_fn
        self._is_chief = is_chief
        self._coord = Coordinator()
        self._stop_grace_secs = stop_grace_secs
        self._meta_graph_def = create_meta_graph_def(
            graph_def=self._graph.as_graph_def(add_shapes=True),
            saver_def=self._saver.saver_def if self._saver else None,
        )
        # The chief alone writes.
        self._logdir = logdir if is_chief else None
        self._save_summaries_secs = save_summaries_secs if is_chief else None
        self._save_model_secs = save_model_secs if is_chief else None
        self._save_path = os.path.join(self._logdir, checkpoint_basename) if self._logdir else None
        self._summary_writer = None
        if is_chief and not _is_default(summary_writer):
            self._summary_writer = summary_writer
        elif self._logdir:
            self._summary_writer = FileWriter(self._logdir)
        self._graph_added_to_summary = False
        self._session_manager = session_manager or SessionManager(
            local_init_op=self._local_init_op,
            ready_op=self._ready_op,
            ready_for_local_init_op=self._ready_for_local_init_op,
            graph=self._graph,
            recovery_wait_secs=recovery_wait_secs,
            local_init_run_options=local_init_run_options,
        )
        self._verify_setup()
        self._graph.finalize()

    def _verify_setup(self) -> None:
        """ValueError for a variable without a device, where several processes share variables."""
        if self._is_chief:
            return
        for op in self._graph.get_operations():
            if op.type in {"Variable", "VariableV2"} and not op.device:
                raise ValueError(
                    f"When using replicas, all Variables must have their device set: {op}"
                )

    # ------------------------------------------------------------ what it was made with
    @property
    def is_chief(self) -> bool:
        """Whether this process initializes, restores and saves."""
        return self._is_chief

    @property
    def session_manager(self) -> SessionManager:
        """What makes the sessions."""
        return self._session_manager

    @property
    def coord(self) -> Coordinator:
        """The coordinator of the threads."""
        return self._coord

    @property
    def init_op(self) -> Any:
        """What initializes the model, or None."""
        return self._init_op

    @property
    def init_feed_dict(self) -> Any:
        """What is fed to `init_op`."""
        return self._init_feed_dict

    @property
    def ready_op(self) -> Any:
        """What says whether all is initialized, or None."""
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        """What says whether the local initialization may run, or None."""
        return self._ready_for_local_init_op

    @property
    def summary_writer(self) -> Any:
        """The chief's writer of events, or None."""
        return self._summary_writer

    @property
    def summary_op(self) -> Any:
        """The summaries, or None."""
        return self._summary_op

    @property
    def save_summaries_secs(self) -> Any:
        """The seconds between two summaries."""
        return self._save_summaries_secs

    @property
    def global_step(self) -> Any:
        """The counter of steps, or None."""
        return self._global_step

    @property
    def saver(self) -> Any:
        """What saves and restores, or None."""
        return self._saver

    @property
    def save_model_secs(self) -> Any:
        """The seconds between two checkpoints."""
        return self._save_model_secs

    @property
    def save_path(self) -> str | None:
        """The prefix of the checkpoints' names, or None."""
        return self._save_path

    # ------------------------------------------------------------ a session
    @contextlib.contextmanager
    def managed_session(
        self,
        master: str = "",
        config: Any = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Any]:
        """A session for the block, which ends with all threads stopped and the session closed.

        An exception of the block, or of a thread, is raised at the end of the block, unless it is
        OutOfRangeError, the end of input.

        Args:
            master: the session's target.
            config: a ConfigProto for the session.
            start_standard_services: whether to start the threads that save.
            close_summary_writer: whether to close the writer of events at the end.

        Yields:
            The session.
        """
        sess = None
        with contextlib.ExitStack() as at_end:
            try:
                sess = self.prepare_or_wait_for_session(
                    master, config=config, start_standard_services=start_standard_services
                )
                # Whatever still waits in a thread is cancelled; nobody is left to be told more.
                at_end.callback(_close, sess)
                yield sess
            except Exception as e:
                self.request_stop(e)
                if sess is None:  # Nothing ends well that has not begun.
                    raise
            finally:
                self.stop(close_summary_writer=close_summary_writer)

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Any:
        """A session in which the model is ready.

        Args:
            master: the session's target.
            config: a ConfigProto for the session.
            wait_for_checkpoint: whether the chief waits for a checkpoint.
            max_wait_secs: for how long; also how long others wait for the chief.
            start_standard_services: whether to start queue runners and the threads that save.
        """
        # An earlier session may have ended.
        self._coord.clear_stop()
        if self._summary_writer:
            self._summary_writer.reopen()
        if self._is_chief:
            sess = self._session_manager.prepare_session(
                master,
                init_op=self.init_op,
                saver=self.saver,
                checkpoint_dir=self._logdir,
                wait_for_checkpoint=wait_for_checkpoint,
                max_wait_secs=max_wait_secs,
                config=config,
                init_feed_dict=self._init_feed_dict,
                init_fn=self._init_fn,
            )
            self._write_graph()
            if start_standard_services:
                logging.info("Starting standard services.")
                self.start_standard_services(sess)
        else:
            sess = self._session_manager.wait_for_session(
                master, config=config, max_wait_secs=max_wait_secs
            )
        if start_standard_services:
            logging.info("Starting queue runners.")
            self.start_queue_runners(sess)
        return sess

    def _write_graph(self) -> None:
        if self._logdir:
            write_graph(self._graph.as_graph_def(add_shapes=True), self._logdir, "graph.pbtxt")
        if self._summary_writer and not self._graph_added_to_summary:
            self._summary_writer.add_graph(self._graph)
            self._summary_writer.add_meta_graph(self._meta_graph_def)
            self._graph_added_to_summary = True

    # ------------------------------------------------------------ threads
    def start_standard_services(self, sess: Any) -> list[LooperThread] | None:
        """Starts the threads that save: checkpoints, summaries, the speed.

        Args:
            sess: the session.

        Returns:
            The threads; None without a `logdir`.

        Raises:
            RuntimeError: this is not the chief.
        """
        if not self._is_chief:
            raise RuntimeError(
                "Only chief supervisor can start standard services. Because only chief "
                "supervisors can write events."
            )
        if not self._logdir:
            logging.warning("Standard services need a 'logdir' passed to the SessionManager")
            return None
        if self._global_step is not None and self._summary_writer:
            # TensorBoard drops what a run that was cut short had written behind this step.
            step = training_util.global_step(sess, self._global_step)
            started = protos.SessionLog(status=protos.SessionLog.START)
            self._summary_writer.add_session_log(started, step)
        threads: list[LooperThread] = []
        if self._save_summaries_secs and self._summary_writer:
            if self._summary_op is not None:
                threads.append(SVSummaryThread(self, sess))
            if self._global_step is not None:
                threads.append(SVStepCounterThread(self, sess))
        if self.saver and self._save_model_secs:
            threads.append(SVTimerCheckpointThread(self, sess))
        for thread in threads:
            thread.start()
        return threads

    def start_queue_runners(
        self, sess: Any, queue_runners: Iterable[Any] | None = None
    ) -> list[Any]:
        """Starts the threads that fill queues.

        Args:
            sess: the session.
            queue_runners: the runners, all of the graph by default.

        Returns:
            The threads.
        """
        if queue_runners is None:
            queue_runners = self._graph.get_collection(GraphKeys.QUEUE_RUNNERS)
        return [
            thread
            for runner in queue_runners
            for thread in runner.create_threads(sess, coord=self._coord, daemon=True, start=True)
        ]

    def loop(
        self,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Any = None,
        kwargs: Any = None,
    ) -> LooperThread:
        """Starts a thread that calls a function again and again until all stop.

        Args:
            timer_interval_secs: the seconds between two calls, None for none.
            target: the function.
            args, kwargs: its arguments.

        Returns:
            The thread.
        """
        return LooperThread.loop(self._coord, timer_interval_secs, target, args, kwargs)

    def stop(
        self,
        threads: Any = None,
        close_summary_writer: bool = True,
        ignore_live_threads: bool = False,
    ) -> None:
        """Stops all threads; the session stays open.

        Args:
            threads: further threads to wait for.
            close_summary_writer: whether to close the writer of events.
            ignore_live_threads: whether threads that do not stop in time are no error.

        Raises:
            RuntimeError: a thread does not stop in time.
            Exception: what the first thread that failed ended with.
        """
        self._coord.request_stop()
        try:
            self._coord.join(
                threads,
                stop_grace_period_secs=self._stop_grace_secs,
                ignore_live_threads=ignore_live_threads,
            )
        finally:
            # A thread may have used the writer to the last.
            if close_summary_writer and self._summary_writer:
                # The session may be gone, so there is no step to tell.
                stopped = protos.SessionLog(status=protos.SessionLog.STOP)
                self._summary_writer.add_session_log(stopped)
                self._summary_writer.close()
                self._graph_added_to_summary = False

    def request_stop(self, ex: Any = None) -> None:
        """Asks all threads to stop; see `Coordinator.request_stop`."""
        self._coord.request_stop(ex=ex)

    def should_stop(self) -> bool:
        """Whether all are to stop."""
        return self._coord.should_stop()

    def stop_on_exception(self) -> contextlib.AbstractContextManager[None]:
        """Turns an exception in the block into a request to stop."""
        return self._coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Waits until all are to stop."""
        self._coord.wait_for_stop()

    def summary_computed(self, sess: Any, summary: Any, global_step: int | None = None) -> None:
        """Writes a summary.

        Args:
            sess: the session, which is asked for the step.
            summary: a Summary, or its serialized form.
            global_step: the step, if it is known.

        Raises:
            TypeError: `summary` is neither.
            RuntimeError: there is no writer of events.
        """
        if not self._summary_writer:
            raise RuntimeError("Writing a summary requires a summary writer.")
        if global_step is None and self.global_step is not None:
            global_step = training_util.global_step(sess, self.global_step)
        self._summary_writer.add_summary(summary, global_step)


def _close(sess: Any) -> None:
    with contextlib.suppress(Exception):
        sess.close()


def _is_default(value: Any) -> bool:
    return isinstance(value, int) and value == _DEFAULT


def _found_or_made(given: Any, collection: str, make: Callable[[], Any]) -> Any:
    """What was given, or the first of a collection, or something new, which is put there."""
    if not _is_default(given):
        return given
    found = get_collection(collection)
    if len(found) > 1:
        logging.info("Found %d %s operations. Returning the first one.", len(found), collection)
    if found:
        return found[0]
    made = make()
    if made is not None:
        add_to_collection(collection, made)
    return made


# TF's names from before its style guide.
for _name in (
    "prepare_or_wait_for_session", "start_queue_runners", "start_standard_services", "stop",
    "request_stop", "loop", "should_stop", "stop_on_exception", "wait_for_stop", "summary_computed",
):  # fmt: skip
    _old = _name.replace("_or_wait_for", "").title().replace("_", "")
    setattr(Supervisor, _old, getattr(Supervisor, _name))
