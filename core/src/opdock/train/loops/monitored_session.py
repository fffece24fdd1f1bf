"""`tf.train.MonitoredSession` and its like: sessions that start, recover and end by themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final, Self

from opdock import errors
from opdock.api import logging
from opdock.distribute.modes import strategy_in_scope
from opdock.distribute.worker_context import get_current_worker_context
from opdock.graph.nodes.collections import GraphKeys, get_collection
from opdock.graph.nodes.graph import get_default_graph
from opdock.train.coordinator import Coordinator
from opdock.train.loops import wrapped_sessions as wrapped
from opdock.train.loops.hook import SessionRunHook
from opdock.train.loops.saving_hooks import (
    CheckpointSaverHook,
    StepCounterHook,
    SummarySaverHook,
)
from opdock.train.loops.scaffold import Scaffold
from opdock.train.loops.session_manager import SessionManager
from opdock.train.queue_runner import start_queue_runners
from opdock.util.inspecting import fn_args

__all__ = [
    "ChiefSessionCreator", "MonitoredSession", "MonitoredTrainingSession", "SessionCreator",
    "SingularMonitoredSession", "WorkerSessionCreator",
]  # fmt: skip

_STEPS_TOGETHER: Final = 1000
"""Steps between two checkpoints in which all workers take part, where a program gives seconds."""

USE_DEFAULT: Final = object()
"""Stands for an interval that is not given; None is given, and means never."""


class SessionCreator(ABC):
    """Makes sessions."""

    @abstractmethod
    def create_session(self) -> Any:
        """A new session, ready to be used."""
        raise NotImplementedError(f"create_session is not implemented for {self}.")


class _ScaffoldCreator(SessionCreator):
    """Makes sessions with what a scaffold has."""

    def __init__(self, scaffold: Scaffold | None, master: str, config: Any) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config
        self._session_manager: SessionManager | None = None

    def _get_session_manager(self) -> SessionManager:
        """The manager, made when the scaffold has all that it needs."""
        if self._session_manager is None:
            self._session_manager = SessionManager(
                local_init_op=self._scaffold.local_init_op,
                ready_op=self._scaffold.ready_op,
                ready_for_local_init_op=self._scaffold.ready_for_local_init_op,
                graph=get_default_graph(),
            )
        return self._session_manager


class ChiefSessionCreator(_ScaffoldCreator):
    """Makes sessions whose variables it restores or initializes.

    Args:
        scaffold: the operations and the saver; made when absent.
        master: the sessions' target.
        config: a ConfigProto for the sessions.
        checkpoint_dir: a directory, whose latest checkpoint is restored.
        checkpoint_filename_with_path: a checkpoint in place of a directory.
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        super().__init__(scaffold, master, config)
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_filename_with_path = checkpoint_filename_with_path

    def create_session(self) -> Any:
        """A session; RuntimeError when the model is not ready in it."""
        scaffold = self._scaffold.finalize()
        return self._get_session_manager().prepare_session(
            self._master,
            saver=scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path,
            config=self._config,
            init_op=scaffold.init_op,
            init_feed_dict=scaffold.init_feed_dict,
            init_fn=scaffold.init_fn,
        )


class WorkerSessionCreator(_ScaffoldCreator):
    """Makes sessions whose variables somebody else restores or initializes.

    Args:
        scaffold: the operations; made when absent.
        master: the sessions' target.
        config: a ConfigProto for the sessions.
        max_wait_secs: how long to wait for the model to be ready.
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        max_wait_secs: float = 30 * 60,
    ) -> None:
        super().__init__(scaffold, master, config)
        self._max_wait_secs = max_wait_secs

    def create_session(self) -> Any:
        """A session; DeadlineExceededError when the model is not ready in time."""
        self._scaffold.finalize()
        return self._get_session_manager().wait_for_session(
            self._master, config=self._config, max_wait_secs=self._max_wait_secs
        )


class _CoordinatedSessionCreator(SessionCreator):
    """Makes sessions with hooks and threads."""

    def __init__(
        self, creator: wrapped.Creator, hooks: Sequence[SessionRunHook], grace: float
    ) -> None:
        self._creator = creator
        self._hooks = hooks
        self._grace = grace
        self.coord: Coordinator | None = None
        self.tf_sess: Any = None

    def create_session(self) -> wrapped.CoordinatedSession:
        self.tf_sess = self._creator.create_session()
        # No exception is a clean end here: the session's caller is to know of each.
        self.coord = Coordinator(clean_stop_exception_types=[])
        if get_collection(GraphKeys.QUEUE_RUNNERS):
            start_queue_runners(sess=self.tf_sess, coord=self.coord)
        for hook in self._hooks:
            hook.after_create_session(self.tf_sess, self.coord)
        hooked = wrapped.HookedSession(self.tf_sess, self._hooks)
        return wrapped.CoordinatedSession(hooked, self.coord, self._grace)


class _MonitoredSession:
    """What monitored sessions share.

    Args:
        session_creator: makes the session; a `ChiefSessionCreator` when absent.
        hooks: the hooks.
        should_recover: whether to make another session when a process went away.
        stop_grace_period_secs: how long threads may take to stop.
    """

    StepContext = wrapped.StepContext

    def __init__(
        self,
        session_creator: wrapped.Creator | None,
        hooks: Sequence[SessionRunHook] | None,
        should_recover: bool,
        stop_grace_period_secs: float = 120,
    ) -> None:
        self._graph_was_finalized = get_default_graph().finalized
        self._hooks = hooks or []
        for hook in self._hooks:
            hook.begin()
        worker = get_current_worker_context()
        if session_creator is None:
            session_creator = ChiefSessionCreator() if worker is None else worker.session_creator()
        self._coordinated_creator = _CoordinatedSessionCreator(
            session_creator, self._hooks, stop_grace_period_secs
        )
        self._sess: wrapped.WrappedSession | None
        if should_recover:
            self._sess = wrapped.RecoverableSession(self._coordinated_creator)
        else:
            self._sess = self._coordinated_creator.create_session()

    @property
    def graph(self) -> Any:
        """The graph of the session, None when it is closed."""
        session = self._tf_sess()
        return None if session is None else session.graph

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """One step with hooks; the arguments and the result are those of `tf.Session.run`.

        Raises:
            RuntimeError: the session is closed, or a hook has ended the loop.
        """
        return self._open().run(fetches, feed_dict, options, run_metadata)

    def run_step_fn(self, step_fn: Callable[[wrapped.StepContext], Any]) -> Any:
        """Calls a function that runs steps with and without hooks.

        Args:
            step_fn: its one argument, which must be called `step_context`, has the session and
                `run_with_hooks`.

        Returns:
            What the function returns.

        Raises:
            StopIteration: the function called `request_stop`.
            ValueError: the function has other arguments.
        """
        arguments = fn_args(step_fn)
        if arguments not in {("step_context",), ("self", "step_context")}:
            raise ValueError(
                "`step_fn` may either have one `step_context` argument, or `self` and "
                f"`step_context` arguments if it's an instance method. Got {arguments} instead."
            )
        return self._open().run_step_fn(step_fn, self._tf_sess())

    def _open(self) -> wrapped.WrappedSession:
        if self._sess is None:
            raise RuntimeError("Attempted to use a closed MonitoredSession.")
        return self._sess

    def should_stop(self) -> bool:
        """Whether the loop is to end."""
        return self._sess is None or self._sess.should_stop()

    def close(self) -> None:
        """Calls the hooks' `end`, stops the threads and closes the session."""
        self._close_internal()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if kind in (errors.OutOfRangeError, StopIteration):
            kind = None
        self._close_internal(kind)
        return kind is None

    def _close_internal(self, exception_type: type[BaseException] | None = None) -> None:
        try:
            if not exception_type:
                for hook in self._hooks:
                    hook.end(self._coordinated_creator.tf_sess)
        finally:
            try:
                if self._sess is None:
                    raise RuntimeError("Session is already closed.")
                self._sess.close()
            finally:
                self._sess = None
                self._coordinated_creator.tf_sess = None
                self._coordinated_creator.coord = None
                if not self._graph_was_finalized:
                    get_default_graph()._unsafe_unfinalize()

    def _is_closed(self) -> bool:
        return self._coordinated_creator.tf_sess is None

    def _tf_sess(self) -> Any:
        """The session under the hooks."""
        return self._coordinated_creator.tf_sess


class MonitoredSession(_MonitoredSession):
    """A session that starts, recovers and ends by itself, with hooks around its steps.

    It restores or initializes the variables, starts queue runners, calls hooks, and goes on in a
    new session when a step ends with AbortedError or UnavailableError. As a context manager it
    takes the end of input (OutOfRangeError, StopIteration) as the end of the block.

    Args:
        session_creator: makes the session; a `ChiefSessionCreator` when absent.
        hooks: `SessionRunHook`s.
        stop_grace_period_secs: how long threads may take to stop.
    """

    def __init__(
        self,
        session_creator: wrapped.Creator | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        super().__init__(session_creator, hooks, True, stop_grace_period_secs)


class SingularMonitoredSession(_MonitoredSession):
    """A `MonitoredSession` that does not recover, and shows the session under it.

    Args:
        hooks: `SessionRunHook`s.
        scaffold, master, config, checkpoint_dir: see `ChiefSessionCreator`.
        stop_grace_period_secs: how long threads may take to stop.
        checkpoint_filename_with_path: see `ChiefSessionCreator`.
    """

    def __init__(
        self,
        hooks: Sequence[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | None = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        creator = ChiefSessionCreator(
            scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path
        )
        super().__init__(creator, hooks, False, stop_grace_period_secs)

    def raw_session(self) -> Any:
        """The session under the hooks."""
        return self._tf_sess()


def MonitoredTrainingSession(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: str | None = None,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: Any = USE_DEFAULT,
    save_summaries_steps: Any = USE_DEFAULT,
    save_summaries_secs: Any = USE_DEFAULT,
    config: Any = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: Any = USE_DEFAULT,
    summary_dir: str | None = None,
) -> MonitoredSession:
    """A `MonitoredSession` with the hooks that training wants.

    In a function of `run_distribute_coordinator` its task says what the target is, who the chief
    is, and who saves.

    Args:
        master: the session's target.
        is_chief: whether this process restores, initializes and saves; others wait for it, unless
            the strategy in scope has each process initialize its own variables.
        checkpoint_dir: where checkpoints are, and go.
        scaffold: the operations and the saver; made when absent.
        hooks: further hooks.
        chief_only_hooks: further hooks of the chief.
        save_checkpoint_secs: the seconds between two checkpoints; 600 if neither this nor
            `save_checkpoint_steps` is given. None or 0 for none.
        save_summaries_steps: the steps between two summaries; 100 if neither this nor
            `save_summaries_secs` is given. None or 0 for none.
        save_summaries_secs: the seconds between two summaries.
        config: a ConfigProto for the session.
        stop_grace_period_secs: how long threads may take to stop.
        log_step_count_steps: the steps between two records of the speed; None or 0 for none.
        max_wait_secs: how long others than the chief wait for it.
        save_checkpoint_steps: the steps between two checkpoints.
        summary_dir: where summaries go; `checkpoint_dir` when absent.
    """
    save_summaries_steps, save_summaries_secs = _interval(
        save_summaries_steps, save_summaries_secs, (100, None)
    )
    save_checkpoint_steps, save_checkpoint_secs = _interval(
        save_checkpoint_steps, save_checkpoint_secs, (None, 600)
    )
    scaffold = scaffold or Scaffold()
    summary_dir = summary_dir or checkpoint_dir
    strategy, worker = strategy_in_scope(), get_current_worker_context()
    creator: SessionCreator
    if worker is not None:
        is_chief = worker.is_chief
        creator = worker.session_creator(
            scaffold, config, checkpoint_dir, max_wait_secs=max_wait_secs
        )
        if worker.saves_together and save_checkpoint_secs:
            logging.warning(
                "All workers take part in a checkpoint, so they save every %d steps, as "
                "`save_checkpoint_secs` is not the same moment for each",
                _STEPS_TOGETHER,
            )
            save_checkpoint_steps, save_checkpoint_secs = _STEPS_TOGETHER, None
        checkpoint_dir, summary_dir = worker.own_folders(checkpoint_dir, summary_dir)
    elif is_chief or (strategy is not None and strategy.extended.experimental_should_init):
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    else:
        creator = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
    all_hooks = list(chief_only_hooks or []) if is_chief else []
    if is_chief or worker is not None:
        if summary_dir and log_step_count_steps and log_step_count_steps > 0:
            all_hooks.append(StepCounterHook(log_step_count_steps, output_dir=summary_dir))
        if summary_dir and _ever(save_summaries_steps, save_summaries_secs):
            all_hooks.append(
                SummarySaverHook(
                    save_summaries_steps, save_summaries_secs, summary_dir, scaffold=scaffold
                )
            )
        if checkpoint_dir and _ever(save_checkpoint_steps, save_checkpoint_secs):
            all_hooks.append(
                CheckpointSaverHook(
                    checkpoint_dir, save_checkpoint_secs, save_checkpoint_steps, scaffold=scaffold
                )
            )
    all_hooks.extend(hooks or [])
    return MonitoredSession(creator, all_hooks, stop_grace_period_secs)


def _interval(steps: Any, secs: Any, default: tuple[Any, Any]) -> tuple[Any, Any]:
    """Steps and seconds between two times; of one that is given, the other is None."""
    if steps is USE_DEFAULT and secs is USE_DEFAULT:
        return default
    return None if steps is USE_DEFAULT else steps, None if secs is USE_DEFAULT else secs


def _ever(steps: Any, secs: Any) -> bool:
    return bool((steps and steps > 0) or (secs and secs > 0))
