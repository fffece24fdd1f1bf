"""`tf.train.SessionRunHook`, and the records that it exchanges with a monitored session."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["SessionRunArgs", "SessionRunContext", "SessionRunHook", "SessionRunValues"]


class SessionRunArgs(NamedTuple):
    """What is to be run in one step, or what a hook adds to it.

    Args:
        fetches: as for `tf.Session.run`.
        feed_dict: as for `tf.Session.run`.
        options: a RunOptions message.
    """

    fetches: Any
    feed_dict: Any = None
    options: Any = None


class SessionRunValues(NamedTuple):
    """What a step gave to a hook.

    Args:
        results: the values of the hook's fetches, in their structure.
        options: the RunOptions of the step.
        run_metadata: the RunMetadata of the step.
    """

    results: Any
    options: Any
    run_metadata: Any


class SessionRunContext:
    """What a hook may know of the step that it takes part in.

    Args:
        original_args: what the caller asked for, as `SessionRunArgs`.
        session: the session that runs it.
    """

    def __init__(self, original_args: SessionRunArgs, session: Any) -> None:
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    @property
    def original_args(self) -> SessionRunArgs:
        """What the caller asked for, without what hooks add."""
        return self._original_args

    @property
    def session(self) -> Any:
        """The session that runs the step, under the hooks."""
        return self._session

    @property
    def stop_requested(self) -> bool:
        """Whether a hook asked that this step be the last."""
        return self._stop_requested

    def request_stop(self) -> None:
        """Asks that this step be the last."""
        self._stop_requested = True


class SessionRunHook:
    """Something to do around the steps of a monitored session; subclasses say when they act."""

    def begin(self) -> None:
        """Called once, before the graph is final and the session made: ops may be added here."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Called for each session, the first one and those made after a failure.

        Args:
            session: the new session, initialized.
            coord: the coordinator of its threads.
        """

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each step; what is returned is run in the step as well."""
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each step that did not fail, with the values of what the hook asked for."""

    def end(self, session: Any) -> None:
        """Called before the session closes, unless an error ends it; the end of input is none."""
