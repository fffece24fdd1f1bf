"""Monitors as programs of TensorFlow's first year write them, and a hook that calls them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import opdock as tf
from opdock.train.loops.hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

__all__ = ["BaseMonitor", "EveryN", "RunHookAdapterForMonitors", "replace_monitors_with_hooks"]


class BaseMonitor:
    """What monitors derive from: each method may be replaced."""

    def __init__(self) -> None:
        self._begun = False
        self._current_epoch: int | None = None
        self._current_step: int | None = None
        self._max_steps: int | None = None
        self._estimator: Any = None

    @property
    def run_on_all_workers(self) -> bool:
        """Whether every task runs it, not the chief alone."""
        return False

    def set_estimator(self, estimator: Any) -> None:
        """Says which estimator is watched.

        Raises:
            ValueError: there is none.
        """
        if estimator is None:
            raise ValueError("Missing estimator.")
        self._estimator = estimator

    def begin(self, max_steps: int | None = None) -> None:
        """Is called when the graph is there, before the first step.

        Raises:
            ValueError: the monitor has begun and not ended.
        """
        if self._begun:
            raise ValueError("begin called twice without end.")
        self._begun, self._max_steps = True, max_steps

    def end(self, session: Any = None) -> None:
        """Is called after the last step.

        Raises:
            ValueError: the monitor has not begun.
        """
        if not self._begun:
            raise ValueError("end called without begin.")
        self._begun, self._max_steps = False, None

    def epoch_begin(self, epoch: int) -> None:
        """For programs that call it.

        Raises:
            ValueError: the last epoch has not ended, or the number is none.
        """
        if self._current_epoch is not None:
            raise ValueError("epoch_begin called twice without epoch_end.")
        if epoch < 0:
            raise ValueError(f"Invalid epoch {epoch}.")
        self._current_epoch = epoch

    def epoch_end(self, epoch: int) -> None:
        """For programs that call it.

        Raises:
            ValueError: it is another epoch than the one that began.
        """
        if self._current_epoch != epoch:
            raise ValueError(f"epoch_end expected {self._current_epoch} but got {epoch}.")
        self._current_epoch = None

    def step_begin(self, step: int) -> list[Any]:
        """The tensors, or their names, that `step_end` is to see.

        Raises:
            ValueError: there is no such step.
        """
        if step < 0 or (self._max_steps is not None and step > self._max_steps):
            raise ValueError(f"Invalid step {step}.")
        self._current_step = step
        return []

    def step_end(self, step: int, output: dict[Any, Any]) -> bool:
        """Takes their values, by what they were asked for; true ends the training.

        Raises:
            ValueError: it is another step than the one that began.
        """
        if self._current_step != step:
            raise ValueError(f"step_end expected {self._current_step} but got {step}.")
        self._current_step = None
        return False

    def post_step(self, step: int, session: Any) -> None:
        """Is called after `step_end`, with the session."""


class EveryN(BaseMonitor):
    """A monitor that looks at some steps: subclasses replace the methods whose names say so.

    Args:
        every_n_steps: how many steps there are from one to the next.
        first_n_steps: of the first so many, all.
    """

    def __init__(self, every_n_steps: int = 100, first_n_steps: int = 1) -> None:
        super().__init__()
        self._every_n_steps, self._first_n_steps = every_n_steps, first_n_steps
        self._last_successful_step: int | None = None
        self._last_active_step = 0
        self._looks = False

    def every_n_step_begin(self, step: int) -> list[Any]:
        """`step_begin` of those steps."""
        return []

    def every_n_step_end(self, step: int, outputs: dict[Any, Any]) -> bool:
        """`step_end` of those steps."""
        return False

    def every_n_post_step(self, step: int, session: Any) -> None:
        """`post_step` of those steps, and of the last one."""

    def step_begin(self, step: int) -> list[Any]:
        """See `BaseMonitor`."""
        super().step_begin(step)
        self._looks = (
            step <= self._first_n_steps
            or step >= self._every_n_steps + self._last_active_step
            or step == self._max_steps
        )
        return self.every_n_step_begin(step) if self._looks else []

    def step_end(self, step: int, output: dict[Any, Any]) -> bool:
        """See `BaseMonitor`."""
        super().step_end(step, output)
        return self.every_n_step_end(step, output) if self._looks else False

    def post_step(self, step: int, session: Any) -> None:
        """See `BaseMonitor`."""
        super().post_step(step, session)
        if self._looks:
            self.every_n_post_step(step, session)
            self._last_active_step = step
        self._last_successful_step = step

    def end(self, session: Any = None) -> None:
        """See `BaseMonitor`."""
        super().end(session)
        if self._last_successful_step not in (None, self._last_active_step):
            self.every_n_post_step(self._last_successful_step, session)


class RunHookAdapterForMonitors(SessionRunHook):
    """A hook that calls monitors.

    Args:
        monitors: a list of them.
    """

    def __init__(self, monitors: Iterable[Any]) -> None:
        self._monitors = list(monitors)
        self._global_step: Any = None
        self._step: int | None = None

    def begin(self) -> None:
        """Begins all."""
        self._step, self._global_step = None, tf.train.get_global_step()
        for monitor in self._monitors:
            monitor.begin(max_steps=None)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for what the monitors want to see."""
        if self._step is None:
            self._step = int(run_context.session.run(self._global_step)) + 1
        graph = run_context.session.graph
        wanted: dict[Any, Any] = {}
        for monitor in self._monitors:
            asked = monitor.step_begin(self._step) or []
            if not isinstance(asked, list):
                raise ValueError("Monitor.step_begin should return a list.")
            wanted.update((key, _element(graph, key)) for key in asked)
        return SessionRunArgs((self._global_step, wanted))

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Hands out the values, and ends the training if a monitor says so."""
        step, values = run_values.results
        for monitor in self._monitors:
            if monitor.step_end(self._step, values):
                run_context.request_stop()
        for monitor in self._monitors:
            monitor.post_step(self._step, run_context.session)
        self._step = int(step) + 1

    def end(self, session: Any) -> None:
        """Ends all."""
        self._step = None
        for monitor in self._monitors:
            if "session" in inspect.signature(monitor.end).parameters:
                monitor.end(session=session)
            else:
                monitor.end()


def _element(graph: Any, key: Any) -> Any:
    """What a monitor asks for; the name of an operation stands for its one output."""
    if not isinstance(key, str) or ":" in key:
        return graph.as_graph_element(key)
    outputs = graph.get_operation_by_name(key).outputs
    if len(outputs) != 1:
        raise ValueError(f"Name {key} is ambiguous, as its operation has {len(outputs)} outputs.")
    return outputs[0]


def replace_monitors_with_hooks(monitors_or_hooks: Any, estimator: Any = None) -> list[Any]:
    """Hooks, with one around all that are monitors alone.

    Args:
        monitors_or_hooks: a list of both, or None.
        estimator: what they are told of, if there is one; where it is not the chief's, monitors
            that do not run on all workers are left out.

    Returns:
        A list of `SessionRunHook`s.
    """
    given = list(monitors_or_hooks or ())
    hooks = [m for m in given if isinstance(m, SessionRunHook)]
    monitors = [m for m in given if not isinstance(m, SessionRunHook)]
    if estimator is not None:
        if not estimator.config.is_chief:
            monitors = [m for m in monitors if m.run_on_all_workers]
        for monitor in monitors:
            monitor.set_estimator(estimator)
    return [*hooks, RunHookAdapterForMonitors(monitors)] if monitors else hooks
