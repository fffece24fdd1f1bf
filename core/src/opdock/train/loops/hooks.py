"""Hooks that watch a loop and end it: by step, by NaN, at the end; and hooks that feed and log."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock import dtypes, errors
from opdock.api import logging
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import graph_behind
from opdock.graph.variables import initializers, variable_scope
from opdock.runtime.recover.located import made_of
from opdock.train import training_util
from opdock.train.loops.hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from opdock.train.loops.timers import HookTimer, NeverTriggerTimer, SecondOrStepTimer

__all__ = [
    "FeedFnHook", "FinalOpsHook", "GlobalStepWaiterHook", "LoggingTensorHook",
    "NanLossDuringTrainingError", "NanTensorHook", "StopAtStepHook",
    "get_or_create_steps_per_run_variable",
]  # fmt: skip


_NAMED: Final = 10
"""How many variables that are NaN a report names."""


def global_step_read(hook: str) -> Any:
    """The tensor from which hooks read the global step.

    Args:
        hook: the class that asks, for the message.

    Raises:
        RuntimeError: the graph has no global step.
    """
    found = training_util._get_or_create_global_step_read()
    if found is None:
        raise RuntimeError(f"Global step should be created to use {hook}.")
    return found


class LoggingTensorHook(SessionRunHook):
    """Logs the values of tensors, as INFO.

    Args:
        tensors: tag to tensor or its name, or a sequence of tensors or names.
        every_n_iter: log every so many steps of this session.
        every_n_secs: log every so many seconds.
        at_end: log at the end as well, or then only.
        formatter: makes the text of a dict of tag to value.

    Raises:
        ValueError: it is not clear when to log.
    """

    def __init__(
        self,
        tensors: Any,
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[Any], str] | None = None,
    ) -> None:
        only_at_end = at_end and every_n_iter is None and every_n_secs is None
        if not only_at_end and (every_n_iter is None) == (every_n_secs is None):
            raise ValueError(
                "either at_end and/or exactly one of every_n_iter and every_n_secs must be "
                "provided."
            )
        if every_n_iter is not None and every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        if isinstance(tensors, dict):
            self._tensors = {tag: tensors[tag] for tag in sorted(tensors)}
        else:
            self._tensors = {item: item for item in tensors}
        self._formatter = formatter
        self._timer: HookTimer = (
            NeverTriggerTimer() if only_at_end else SecondOrStepTimer(every_n_secs, every_n_iter)
        )
        self._at_end = at_end

    def begin(self) -> None:
        """Finds the tensors that are named."""
        self._timer.reset()
        self._count = 0
        self._found = {tag: graph_element(tensor) for tag, tensor in self._tensors.items()}

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Asks for the tensors when it is time."""
        self._due = self._timer.should_trigger_for_step(self._count)
        return SessionRunArgs(self._found) if self._due else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Logs what it asked for."""
        if self._due:
            self._log(run_values.results)
        self._count += 1

    def end(self, session: Any) -> None:
        """Logs the last values, if asked."""
        if self._at_end:
            self._log(session.run(self._found))

    def _log(self, values: Any) -> None:
        seconds, _ = self._timer.update_last_triggered_step(self._count)
        with np.printoptions(suppress=True):
            if self._formatter:
                logging.info(self._formatter(values))
                return
            text = ", ".join(f"{tag} = {values[tag]}" for tag in self._tensors)
        if seconds is None:
            logging.info("%s", text)
        else:
            logging.info("%s (%.3f sec)", text, seconds)


def graph_element(value: Any) -> Any:
    """A tensor or operation of the default graph, by itself or by name.

    Raises:
        ValueError: it is of another graph, or the name of an operation with several outputs.
    """
    graph = get_default_graph()
    if not isinstance(value, str):
        if graph_behind(value) is not graph:
            raise ValueError(
                f"Passed {value} should have graph attribute that is equal to current graph "
                f"{graph}."
            )
        return value
    if ":" in value:
        return graph.as_graph_element(value)
    element = graph.as_graph_element(f"{value}:0")
    if len(element.op.outputs) > 1:
        raise ValueError(
            f"Name {value} is ambiguous, as this `Operation` has multiple outputs (at least 2)."
        )
    return element


class StopAtStepHook(SessionRunHook):
    """Ends the loop at a step.

    Args:
        num_steps: end after so many steps, counted from where the session starts.
        last_step: end at this global step.

    Raises:
        ValueError: not exactly one of them is given.
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps = num_steps
        self._last_step = last_step

    def begin(self) -> None:
        """Finds the global step; RuntimeError without one."""
        self._global_step = global_step_read("StopAtStepHook")

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Counts from the step at which the first session starts, not from where others go on."""
        if self._last_step is None:
            self._last_step = session.run(self._global_step) + self._num_steps

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the global step."""
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Ends the loop when the step is reached."""
        assert self._last_step is not None
        # The value was read before the step, which may have moved it or not: look again.
        if run_values.results + 1 < self._last_step:
            return
        if run_context.session.run(self._global_step) >= self._last_step:
            run_context.request_stop()


def get_or_create_steps_per_run_variable() -> Any:
    """The variable that says how many turns a loop inside the graph takes in one step.

    Raises:
        RuntimeError: the graph has several.
    """
    collection = "hooks_steps_per_run"
    found = get_default_graph().get_collection(collection)
    if len(found) > 1:
        raise RuntimeError("Multiple steps_per_run_var in collection.")
    if found:
        return found[0]
    with variable_scope.variable_scope("hooks", reuse=variable_scope.AUTO_REUSE):
        return variable_scope.get_variable(
            "steps_per_run", initializer=initializers.ones_initializer(), shape=[],
            dtype=dtypes.int32, trainable=False, use_resource=True,
            collections=[collection, GraphKeys.LOCAL_VARIABLES],
        )  # fmt: skip


class MultiStepStopAtStepHook(StopAtStepHook):
    """Ends a loop whose steps take several turns inside the graph, the last one as many as needed.

    Args:
        num_steps, last_step: see `StopAtStepHook`.
        steps_per_run: the turns of a step.

    Raises:
        ValueError: an argument is out of range, or not exactly one of the first two is given.
    """

    def __init__(
        self, num_steps: int | None = None, last_step: int | None = None, steps_per_run: int = 1
    ) -> None:
        super().__init__(num_steps, last_step)
        if steps_per_run is None or steps_per_run < 1:
            raise ValueError("steps_per_run should be greater than 0")
        self._steps_per_run = steps_per_run

    def begin(self) -> None:
        """Finds the global step; RuntimeError without one."""
        super().begin()
        self._turns = get_or_create_steps_per_run_variable()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Sets the turns of the first step."""
        super().after_create_session(session, coord)
        self._set_turns(session.run(self._global_step), session)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Ends the loop, or sets the turns of the next step."""
        assert self._last_step is not None
        step = run_context.session.run(self._global_step)
        if step >= self._last_step:
            run_context.request_stop()
        else:
            self._set_turns(step, run_context.session)

    def _set_turns(self, step: int, session: Any) -> None:
        assert self._last_step is not None
        self._turns.load(min(self._last_step - step, self._steps_per_run), session=session)


class NanLossDuringTrainingError(RuntimeError):
    """The loss is not a number.

    Args:
        report: what is known of it, such as the operation whose result it is.
    """

    def __init__(self, report: str = "") -> None:
        super().__init__(report)
        self.report = report

    def __str__(self) -> str:
        return "\n\t ".join(filter(None, ("NaN loss during training.", self.report)))


class NanTensorHook(SessionRunHook):
    """Ends the loop when the loss is NaN, and says where it came from.

    Args:
        loss_tensor: the loss.
        fail_on_nan_loss: raise `NanLossDuringTrainingError` rather than end quietly.
    """

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss = loss_tensor
        self._fail = fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the loss."""
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Fails or ends the loop if the loss is NaN."""
        if not np.isnan(run_values.results):
            return
        text, report = "Model diverged with loss = NaN.", self._report(run_context.session)
        if self._fail:
            logging.error(text)
            raise NanLossDuringTrainingError(report)
        logging.warning("%s\n\t %s", text, report)
        run_context.request_stop()

    def _report(self, session: Any) -> str:
        """Which op's result is NaN, at which step, what else is, and how to find the first one."""
        graph = session.graph
        loss = graph.as_graph_element(self._loss, allow_operation=False)
        lines = [f"{loss.name} is NaN: {made_of(loss.op)}"]
        step = training_util.get_global_step(graph)
        if step is not None:
            lines.append(f"after global step {session.run(step)}")
        spoilt = [
            v for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES) if _spoilt(session, v)
        ]
        if spoilt:
            lines.append(f"NaN by now, too: {_listed([v.op.name for v in spoilt])}")
        lines.append("tf.add_check_numerics_ops() names the first op that gives one.")
        return "\n\t ".join(lines)


def _spoilt(session: Any, variable: Any) -> bool:
    """Whether a variable holds a NaN."""
    if not variable.dtype.is_floating:
        return False
    try:
        return bool(np.isnan(session.run(variable)).any())
    except errors.FailedPreconditionError:  # nobody initialized it
        return False


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


class GlobalStepWaiterHook(SessionRunHook):
    """Lets a worker wait until others have brought the global step so far.

    Args:
        wait_until_step: the step at which this worker starts.
    """

    def __init__(self, wait_until_step: int) -> None:
        self._wait_until_step = wait_until_step

    def begin(self) -> None:
        """Finds the global step; RuntimeError without one."""
        self._started = False
        self._global_step = global_step_read("_GlobalStepWaiterHook")

    def before_run(self, run_context: SessionRunContext) -> None:
        """Waits, before the first step."""
        if self._started or self._wait_until_step <= 0:
            self._started = True
            return
        logging.info("Waiting for global step %d before starting training.", self._wait_until_step)
        logged = 0
        while (step := run_context.session.run(self._global_step)) < self._wait_until_step:
            if step - logged > 1000:
                logging.info(
                    "Waiting for global step %d before starting training. Current step is %d.",
                    self._wait_until_step, step,
                )  # fmt: skip
                logged = step
            time.sleep(0.5)
        self._started = True


class FinalOpsHook(SessionRunHook):
    """Runs something at the end.

    Args:
        final_ops: what to fetch then, in any structure.
        final_ops_feed_dict: what to feed for it.
    """

    def __init__(self, final_ops: Any, final_ops_feed_dict: Any = None) -> None:
        self._final_ops = final_ops
        self._feed_dict = final_ops_feed_dict
        self._values: Any = None

    @property
    def final_ops_values(self) -> Any:
        """The values that were fetched, or None."""
        return self._values

    def end(self, session: Any) -> None:
        """Fetches the values."""
        if self._final_ops is None:
            return
        try:
            self._values = session.run(self._final_ops, feed_dict=self._feed_dict)
        except (errors.OutOfRangeError, StopIteration):
            logging.warning(
                "The final ops of FinalOpsHook ended with OutOfRangeError or StopIteration: they "
                "have a dependency back to some input source, which has ended. They should depend "
                "on variables only; of a metric, fetch the value and not the update."
            )
            raise


class FeedFnHook(SessionRunHook):
    """Feeds each step what a function returns.

    Args:
        feed_fn: makes a feed dict, without arguments.
    """

    def __init__(self, feed_fn: Callable[[], Any]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Adds the feeds."""
        return SessionRunArgs(fetches=None, feed_dict=self.feed_fn())
