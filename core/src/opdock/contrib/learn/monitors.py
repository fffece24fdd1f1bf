"""Monitors of `tf.contrib.learn`: what looks on while an estimator trains, before there were hooks.

Those here are hooks that know the estimator; those of programs, which are none, get one for all.
"""

from __future__ import annotations

import time
from typing import Any

import opdock as tf
from opdock.contrib.learn.monitor_hooks import (
    BaseMonitor,
    EveryN,
    RunHookAdapterForMonitors,
    replace_monitors_with_hooks,
)
from opdock.train.loops.hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

__all__ = [
    "BaseMonitor", "EveryN", "ExportMonitor", "RunHookAdapterForMonitors", "ValidationMonitor",
    "replace_monitors_with_hooks",
]  # fmt: skip


class ExportMonitor(EveryN):
    """Raises UnimplementedError, as `Estimator.export` does, which it would call."""

    def __init__(self, every_n_steps: int, export_dir: str, *args: Any, **settings: Any) -> None:
        del args, settings
        raise tf.errors.UnimplementedError(
            None, None,
            f"ExportMonitor would write session bundles to {export_dir} every {every_n_steps} "
            "steps, the format before SavedModel, which opdock does not have. An ExportStrategy "
            "(make_export_strategy) has an Experiment write SavedModels while it trains.",
        )  # fmt: skip


class ValidationMonitor(SessionRunHook):
    """Evaluates the latest checkpoint while a model is trained, and may end the training.

    Args:
        x, y, input_fn, batch_size: see `BaseEstimator.evaluate`.
        eval_steps: how many steps an evaluation has.
        every_n_steps: the steps of training after which there may be another evaluation.
        metrics: see `BaseEstimator.evaluate`.
        hooks: hooks for the evaluations.
        early_stopping_rounds: training ends when so many steps have brought nothing better.
        early_stopping_metric: what is to be better.
        early_stopping_metric_minimize: whether less is better.
        name: what the folder of the summaries is called.
        check_interval_secs: checkpoints are looked for no more often than that.

    Raises:
        ValueError: neither arrays nor a function.
    """

    def __init__(
        self, x: Any = None, y: Any = None, input_fn: Any = None, batch_size: int | None = None,
        eval_steps: int | None = None, every_n_steps: int = 100, metrics: Any = None,
        hooks: Any = None, early_stopping_rounds: int | None = None,
        early_stopping_metric: str = "loss", early_stopping_metric_minimize: bool = True,
        name: str | None = None, check_interval_secs: float | None = 5,
    ) -> None:  # fmt: skip
        if x is None and input_fn is None:
            raise ValueError("Either x or input_fn should be provided.")
        self._evaluation = {
            "x": x, "y": y, "input_fn": input_fn, "batch_size": batch_size, "steps": eval_steps,
            "metrics": metrics, "hooks": hooks, "name": name,
        }  # fmt: skip
        self._every_n_steps = every_n_steps
        self._rounds = early_stopping_rounds
        self._metric = early_stopping_metric
        self._minimize = early_stopping_metric_minimize
        self._interval = check_interval_secs or 0
        self._estimator: Any = None
        self._step: Any = None
        self._asked_at: int | None = None
        self._looked_at = float("-inf")
        self._latest: str | None = None
        self._best: tuple[int, Any, dict[str, Any]] | None = None
        self._stopped = False

    def set_estimator(self, estimator: Any) -> None:
        """Says which estimator is evaluated."""
        self._estimator = estimator

    @property
    def early_stopped(self) -> bool:
        """Whether this ended the training."""
        return self._stopped

    @property
    def best_step(self) -> int | None:
        """The step of training after which the metric was best."""
        return None if self._best is None else self._best[0]

    @property
    def best_value(self) -> Any:
        """The best of the metric."""
        return None if self._best is None else self._best[1]

    @property
    def best_metrics(self) -> dict[str, Any] | None:
        """All metrics of that evaluation."""
        return None if self._best is None else self._best[2]

    def begin(self) -> None:
        """Finds the global step."""
        self._step = tf.train.get_global_step()

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the global step."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Evaluates, if it is time and there is a new checkpoint."""
        step = int(run_values.results)
        if self._asked_at is not None and step - self._asked_at < self._every_n_steps:
            return
        now = time.monotonic()
        if now - self._looked_at < self._interval:
            return
        self._asked_at, self._looked_at = step, now
        latest = tf.train.latest_checkpoint(self._estimator.model_dir)
        if latest is None or latest == self._latest:
            return
        self._latest = latest
        results = self._estimator.evaluate(checkpoint_path=latest, **self._evaluation)
        if self._rounds is not None and self._is_over(step, results):
            self._stopped = True
            run_context.request_stop()

    def _is_over(self, step: int, results: dict[str, Any]) -> bool:
        if self._metric not in results:
            raise ValueError(
                f"Metric {self._metric} missing from outputs {sorted(map(str, results))}."
            )
        value = results[self._metric]
        best = self.best_value
        if best is None or (value < best if self._minimize else value > best):
            self._best = (step, value, results)
        assert self._best is not None
        assert self._rounds is not None
        return step - self._best[0] >= self._rounds
