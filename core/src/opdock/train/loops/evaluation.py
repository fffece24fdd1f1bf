"""One evaluation of a checkpoint: some ops again and again, others once at the end."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from opdock import dtypes
from opdock.api import logging
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.scopes import control_dependencies
from opdock.graph.variables import initializers, variable_scope
from opdock.ops import state
from opdock.ops.cast import cast
from opdock.ops.identity import identity
from opdock.train.loops.hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from opdock.train.loops.hooks import FinalOpsHook, get_or_create_steps_per_run_variable
from opdock.train.loops.monitored_session import ChiefSessionCreator, MonitoredSession
from opdock.train.loops.scaffold import Scaffold

__all__ = [
    "MultiStepStopAfterNEvalsHook", "StopAfterNEvalsHook", "counting", "evaluate_once",
    "get_or_create_eval_step",
]  # fmt: skip


def get_or_create_eval_step() -> Any:
    """The local variable that counts evaluation steps; ValueError if there are several."""
    found = get_default_graph().get_collection(GraphKeys.EVAL_STEP)
    if len(found) > 1:
        raise ValueError("Multiple tensors added to tf.GraphKeys.EVAL_STEP")
    if found:
        return found[0]
    return variable_scope.get_variable(
        "eval_step", shape=[], dtype=dtypes.int64, initializer=initializers.zeros_initializer(),
        trainable=False, collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.EVAL_STEP],
    )  # fmt: skip


class StopAfterNEvalsHook(SessionRunHook):
    """Ends an evaluation after so many steps.

    Args:
        num_evals: how many; None for as many as there is input.
        log_progress: whether to log where it is, each tenth of the way.
    """

    def __init__(self, num_evals: int | None, log_progress: bool = True) -> None:
        self._num_evals = num_evals
        self._evals_completed: Any = None
        self._log_progress = log_progress
        few = num_evals is None or num_evals < 20
        self._log_frequency = 1 if few else math.floor((num_evals or 0) / 10)

    def _set_evals_completed_tensor(self, updated_eval_step: Any) -> None:
        self._evals_completed = updated_eval_step

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the count."""
        return SessionRunArgs({"evals_completed": self._evals_completed})

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Ends the evaluation when it is time."""
        done = run_values.results["evals_completed"]
        if self._log_progress:
            self._log(done)
        if self._num_evals is not None and done >= self._num_evals:
            run_context.request_stop()

    def _log(self, done: int) -> None:
        if self._num_evals is None:
            logging.info("Evaluation [%d]", done)
        elif done % self._log_frequency == 0 or done == self._num_evals:
            logging.info("Evaluation [%d/%d]", done, self._num_evals)


class MultiStepStopAfterNEvalsHook(StopAfterNEvalsHook):
    """Ends an evaluation whose steps take several turns inside the graph.

    Args:
        num_evals: how many turns; None for as many as there is input.
        steps_per_run: the turns of a step.
    """

    def __init__(self, num_evals: int | None, steps_per_run: int = 1) -> None:
        super().__init__(num_evals)
        self._log_frequency = 1
        self._steps_per_run = steps_per_run

    def begin(self) -> None:
        """Finds the variable of the turns."""
        self._turns = get_or_create_steps_per_run_variable()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Sets the turns of the first step."""
        self._set_turns(0, session)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Sets the turns of the next step, or ends the evaluation."""
        self._set_turns(run_values.results["evals_completed"], run_context.session)
        super().after_run(run_context, run_values)

    def _set_turns(self, done: int, session: Any) -> None:
        turns = self._steps_per_run
        if self._num_evals is not None:
            turns = min(self._num_evals - done, turns)
        self._turns.load(turns, session=session)


def evaluate_once(
    checkpoint_path: str | None,
    master: str = "",
    scaffold: Scaffold | None = None,
    eval_ops: Any = None,
    feed_dict: Any = None,
    final_ops: Any = None,
    final_ops_feed_dict: Any = None,
    hooks: Sequence[SessionRunHook] | None = None,
    config: Any = None,
) -> Any:
    """Restores a checkpoint, runs `eval_ops` until a hook ends it, and `final_ops` once then.

    Args:
        checkpoint_path: the checkpoint; without one variables are initialized.
        master: the session's target.
        scaffold: initializes and restores; made when absent. A `local_init_op` of its own must
            initialize the eval step as well.
        eval_ops: what to run in each step: a tensor, a list or a dict.
        feed_dict: what to feed in each step.
        final_ops: what to fetch at the end, in any structure.
        final_ops_feed_dict: what to feed then.
        hooks: further hooks.
        config: a ConfigProto for the session.

    Returns:
        The values of `final_ops`, or None.
    """
    eval_step = get_or_create_eval_step()
    hooks = list(hooks or [])
    if eval_ops is not None:
        eval_ops = counting(eval_ops, eval_step, hooks)
    logging.info("Starting evaluation at %s", time.strftime("%Y-%m-%dT%H:%M:%SZ"))
    creator = ChiefSessionCreator(
        scaffold, master, config, checkpoint_filename_with_path=checkpoint_path
    )
    at_end = FinalOpsHook(final_ops, final_ops_feed_dict)
    with MonitoredSession(creator, [*hooks, at_end]) as session:
        if eval_ops is not None:
            while not session.should_stop():
                session.run(eval_ops, feed_dict)
    logging.info("Finished evaluation at %s", time.strftime("%Y-%m-%d-%H:%M:%S"))
    return at_end.final_ops_values


def counting(eval_ops: Any, eval_step: Any, hooks: Sequence[SessionRunHook]) -> Any:
    """The ops and one that counts the step; hooks that end the evaluation get the count."""
    turns: Any = 1
    if any(isinstance(h, MultiStepStopAfterNEvalsHook) for h in hooks):
        turns = cast(get_or_create_steps_per_run_variable(), eval_step.dtype.base_dtype)
    count = state.assign_add(eval_step, turns, use_locking=True)
    if isinstance(eval_ops, dict):
        # TF adds to the caller's own dict.
        eval_ops["update_eval_step"] = count
        updates = list(eval_ops.values())
    else:
        updates = eval_ops = [*_listed(eval_ops), count]
    with control_dependencies(updates):
        done = identity(eval_step.read_value())
    for hook in hooks:
        if isinstance(hook, StopAfterNEvalsHook):
            hook._set_evals_completed_tensor(done)
    return eval_ops


def _listed(ops: Any) -> list[Any]:
    return list(ops) if isinstance(ops, (list, tuple)) else [ops]
