"""`tf.data.experimental.CheckpointInputPipelineHook`: where training's input stands, in files."""

from __future__ import annotations

import os
from typing import Any

from opdock.data.iterators import GLOBAL_ITERATORS, IteratorSaveable
from opdock.graph.nodes.collections import get_collection
from opdock.train.checkpoint_management import latest_checkpoint
from opdock.train.loops.hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from opdock.train.loops.hooks import global_step_read
from opdock.train.loops.timers import SecondOrStepTimer
from opdock.train.saver import Saver

__all__ = ["CheckpointInputPipelineHook"]


class CheckpointInputPipelineHook(SessionRunHook):
    """Saves where all iterators of the graph stand, whenever an estimator saves its variables.

    Training that is resumed goes on with the elements that were left. The checkpoints, `input.ckpt`
    in the estimator's directory, are apart from those of the model, so evaluation does not read
    them.

    Args:
        estimator: whose `model_dir`, and steps or seconds between checkpoints, count.

    Raises:
        ValueError: the estimator saves neither by steps nor by seconds.
    """

    def __init__(self, estimator: Any) -> None:
        config = estimator.config
        prefix = "input"
        if config.num_worker_replicas > 1:
            prefix += f"_{config.task_type}_{config.task_id}"
        self._folder = estimator.model_dir
        self._path = os.path.join(self._folder, f"{prefix}.ckpt")
        self._latest = f"checkpoint_{prefix}"
        self._timer = SecondOrStepTimer(
            every_secs=config.save_checkpoints_secs, every_steps=config.save_checkpoints_steps
        )
        self._begun = False

    def begin(self) -> None:
        """Finds the iterators; ValueError where there is none."""
        iterators = get_collection(GLOBAL_ITERATORS)
        self._saver = Saver([IteratorSaveable(i, i.name) for i in iterators])
        self._global_step = global_step_read("CheckpointInputPipelineHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the global step. The first time, iterators go to where they stood last.

        Other hooks initialize them after the session was made, which comes before.
        """
        if not self._begun:
            self._begun = True
            session = run_context.session
            last = latest_checkpoint(self._folder, self._latest)
            if last is not None:
                self._saver.restore(session, last)
            else:
                self._save(session, session.run(self._global_step))
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Saves when it is time."""
        if self._timer.should_trigger_for_step(run_values.results + 1):
            # The value was read before the step, which may have moved it or not: look again.
            step = run_context.session.run(self._global_step)
            if self._timer.should_trigger_for_step(step):
                self._save(run_context.session, step)

    def end(self, session: Any) -> None:
        """Saves at the end, unless that was done."""
        step = session.run(self._global_step)
        if step != self._timer.last_triggered_step():
            self._save(session, step)

    def _save(self, session: Any, step: int) -> None:
        self._timer.update_last_triggered_step(step)
        self._saver.save(
            session, self._path, step, latest_filename=self._latest, write_meta_graph=False
        )
