"""The layers of a monitored session: hooks, threads that stop together, recovery."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

from opdock import errors
from opdock.api import logging
from opdock.io import protos
from opdock.train.coordinator import Coordinator
from opdock.train.loops.hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

__all__ = ["CoordinatedSession", "HookedSession", "RecoverableSession", "StepContext"]

PREEMPTION_ERRORS = (errors.AbortedError, errors.UnavailableError)
"""Errors after which another session can go on from the last checkpoint."""


class Creator(Protocol):
    """Whatever makes sessions."""

    def create_session(self) -> Any:
        """A new session."""


class StepContext:
    """What the function of `run_step_fn` may use.

    Args:
        session: the session under the hooks.
        run_with_hooks_fn: runs a step with hooks.
    """

    def __init__(self, session: Any, run_with_hooks_fn: Callable[..., Any]) -> None:
        self._session = session
        self._run_with_hooks = run_with_hooks_fn

    @property
    def session(self) -> Any:
        """The session, whose `run` calls no hooks."""
        return self._session

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """`MonitoredSession.run`, with hooks."""
        return self._run_with_hooks(*args, **kwargs)

    def request_stop(self) -> NoReturn:
        """Leaves the function and ends the loop."""
        raise StopIteration("step_fn has requested the iterations to stop.")


class WrappedSession:
    """A session around another one, which may say that the loop is to end.

    Args:
        sess: the session inside, of either kind.
    """

    def __init__(self, sess: Any) -> None:
        self._sess = sess

    @property
    def graph(self) -> Any:
        """The graph of the session."""
        return self._sess.graph

    @property
    def sess_str(self) -> str:
        """The target of the session."""
        return str(self._sess.sess_str)

    def should_stop(self) -> bool:
        """Whether the loop is to end, which it is when the session is closed."""
        if self._check_stop() or not self._sess:
            return True
        return isinstance(self._sess, WrappedSession) and self._sess.should_stop()

    def _check_stop(self) -> bool:
        """Whether this layer wants the loop to end."""
        return False

    def close(self) -> None:
        """Closes the session inside; that another process went away meanwhile is no error."""
        if not self._sess:
            return
        try:
            self._sess.close()
        except PREEMPTION_ERRORS as e:
            logging.warning("An error occurred when attempting to close the session: %s", e)
        finally:
            self._sess = None

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """One step, as `tf.Session.run`."""
        return self._sess.run(
            fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata
        )

    def run_step_fn(
        self,
        step_fn: Callable[[StepContext], Any],
        raw_session: Any,
        run_with_hooks: Callable[..., Any] | None = None,
    ) -> Any:
        """Calls a function that runs steps with and without hooks."""
        return step_fn(StepContext(raw_session, run_with_hooks or self.run))


class HookedSession(WrappedSession):
    """Calls hooks around each step.

    Args:
        sess: the session inside.
        hooks: the hooks, in order.
    """

    def __init__(self, sess: Any, hooks: Sequence[SessionRunHook]) -> None:
        super().__init__(sess)
        self._hooks = hooks
        self._should_stop = False

    def _check_stop(self) -> bool:
        return self._should_stop

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """One step, with what the hooks add to it.

        Raises:
            RuntimeError: a hook has ended the loop, or feeds clash.
        """
        if self.should_stop():
            raise RuntimeError("Run called even after should_stop requested.")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self._sess)
        options = options or protos.RunOptions()
        run_metadata = run_metadata or protos.RunMetadata()
        wanted: dict[Any, Any] = {"caller": fetches}
        feeds = self._before_run(context, wanted, feed_dict, options)
        values = super().run(wanted, feeds, options, run_metadata)
        for hook in self._hooks:
            result = SessionRunValues(values.get(hook), options, run_metadata)
            hook.after_run(context, result)
        self._should_stop = self._should_stop or context.stop_requested
        return values["caller"]

    def _before_run(
        self, context: SessionRunContext, wanted: dict[Any, Any], user_feeds: Any, options: Any
    ) -> Any:
        """Adds the hooks' fetches and options to those given; the feeds of all."""
        feeds: dict[Any, Any] = {}
        for hook in self._hooks:
            request = hook.before_run(context)
            if request is None:
                continue
            if request.fetches is not None:
                wanted[hook] = request.fetches
            if request.feed_dict:
                _check_apart(feeds, request.feed_dict, "Same tensor is fed by two hooks.")
                feeds.update(request.feed_dict)
            if request.options:
                _merge_options(options, request.options)
        if not feeds:
            return user_feeds
        if user_feeds:
            clash = "Same tensor is fed by a SessionRunHook and user."
            _check_apart(user_feeds, feeds, clash)
            feeds.update(user_feeds)
        return feeds


def _check_apart(feeds: Any, others: Any, text: str) -> None:
    both = set(feeds) & set(others)
    if both:
        raise RuntimeError(f"{text} Conflict(s): {list(both)}")


def _merge_options(options: Any, more: Any) -> None:
    """Adds what another RunOptions asks for; of two numbers the larger one counts."""
    for field in ("trace_level", "timeout_in_ms", "inter_op_thread_pool"):
        setattr(options, field, max(getattr(options, field), getattr(more, field)))
    for field in ("output_partition_graphs", "report_tensor_allocations_upon_oom"):
        setattr(options, field, getattr(options, field) or getattr(more, field))
    debug = options.debug_options
    debug.debug_tensor_watch_opts.extend(more.debug_options.debug_tensor_watch_opts)
    if more.debug_options.reset_disk_byte_usage:
        debug.reset_disk_byte_usage = True


class CoordinatedSession(WrappedSession):
    """Ends the loop when a coordinator says so, with the error that a thread told it of.

    Args:
        sess: the session inside.
        coord: the coordinator of the session's threads.
        stop_grace_period_secs: how long threads may take to stop.
    """

    def __init__(self, sess: Any, coord: Coordinator, stop_grace_period_secs: float = 120) -> None:
        super().__init__(sess)
        self._coord = coord
        self._grace = stop_grace_period_secs

    def _check_stop(self) -> bool:
        self._coord.raise_requested_exception()
        return self._coord.should_stop()

    def close(self) -> None:
        """Stops the threads, raises the error of the first that failed, closes the session."""
        self._coord.request_stop()
        try:
            self._coord.join(stop_grace_period_secs=self._grace, ignore_live_threads=True)
        finally:
            # What is useful to know has been reported by the threads.
            with contextlib.suppress(Exception):
                super().close()

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """One step; if it failed since a thread lost another process, that is what is raised."""
        try:
            return super().run(fetches, feed_dict, options, run_metadata)
        except PREEMPTION_ERRORS:
            raise
        except Exception as e:
            try:
                self._coord.raise_requested_exception()
            except PREEMPTION_ERRORS:
                raise
            except Exception:
                raise e from None
            raise


class RecoverableSession(WrappedSession):
    """Makes a new session when another process went away, and runs the step there.

    Args:
        creator: makes the sessions.
    """

    def __init__(self, creator: Creator) -> None:
        self._creator = creator
        super().__init__(self._create_session())

    def _create_session(self) -> Any:
        while True:
            try:
                return self._creator.create_session()
            except PREEMPTION_ERRORS as e:
                _tell("was being created", e)

    def _check_stop(self) -> bool:
        if not self._sess:
            return True
        try:
            return bool(self._sess._check_stop())
        except PREEMPTION_ERRORS as e:
            _tell("was asked whether to stop", e)
            self.close()
            self._sess = self._create_session()
            return False
        except Exception:
            # It is raised by the next step; whoever asks now is told to take none.
            return True

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """One step, in as many sessions as it takes."""
        return self._recovering(lambda s: s.run(fetches, feed_dict, options, run_metadata))

    def run_step_fn(
        self,
        step_fn: Callable[[StepContext], Any],
        raw_session: Any,
        run_with_hooks: Callable[..., Any] | None = None,
    ) -> Any:
        """Calls the function, in as many sessions as it takes."""
        return self._recovering(lambda s: s.run_step_fn(step_fn, raw_session, s.run))

    def _recovering(self, step: Callable[[Any], Any]) -> Any:
        while True:
            try:
                if not self._sess:
                    self._sess = self._create_session()
                return step(self._sess)
            except PREEMPTION_ERRORS as e:
                _tell("ran a step", e)
                self.close()


def _tell(when: str, error: Exception) -> None:
    logging.info(
        "An error was raised while a session %s, as when another process goes away. A new session "
        "is made, which goes on from the last checkpoint. Error: %s",
        when, error,
    )  # fmt: skip
