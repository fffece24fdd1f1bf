"""Monitors of `tf.contrib.learn`: what looks on while an estimator trains; hooks came later."""

from __future__ import annotations

import copy
import inspect
import time
from typing import Any

import opdock as tf
from opdock.contrib.learn import exporting
from opdock.contrib.learn.monitor_hooks import (
    BaseMonitor,
    EveryN,
    RunHookAdapterForMonitors,
    replace_monitors_with_hooks,
)
from opdock.contrib.learn.watching_monitors import (
    CaptureVariable,
    GraphDump,
    LoggingTrainable,
    NanLoss,
    NanLossDuringTrainingError,
    PrintTensor,
    StopAtStep,
)
from opdock.contrib.learn.writing_monitors import (
    CheckpointSaver,
    StepCounter,
    SummarySaver,
    get_default_monitors,
)
from opdock.train import checkpoint_management

__all__ = [
    "BaseMonitor", "CaptureVariable", "CheckpointSaver", "EveryN", "ExportMonitor", "GraphDump",
    "LoggingTrainable", "NanLoss", "NanLossDuringTrainingError", "PrintTensor",
    "RunHookAdapterForMonitors", "StepCounter", "StopAtStep", "SummarySaver", "ValidationMonitor",
    "get_default_monitors", "replace_monitors_with_hooks",
]  # fmt: skip


class ExportMonitor(EveryN):
    """Raises UnimplementedError, as `Estimator.export` does, which it would call."""

    def __init__(self, every_n_steps: int, export_dir: str, *args: Any, **settings: Any) -> None:
        del args, settings
        raise exporting.no_bundle(f"ExportMonitor, every {every_n_steps} steps to {export_dir},")


class ValidationMonitor(EveryN):
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
        super().__init__(every_n_steps=every_n_steps, first_n_steps=-1)
        if x is None and input_fn is None:
            raise ValueError("Either x or input_fn should be provided.")
        self._evaluation = {
            "x": x, "y": y, "input_fn": input_fn, "batch_size": batch_size, "steps": eval_steps,
            "metrics": metrics, "hooks": hooks, "name": name,
        }  # fmt: skip
        self._rounds = early_stopping_rounds
        self._metric = early_stopping_metric
        self._minimize = early_stopping_metric_minimize
        self._interval = check_interval_secs
        self._looked_at: float | None = None
        self._latest: str | None = None
        self._best: tuple[int, Any, dict[str, Any]] | None = None
        self._stopped = False

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

    def every_n_step_end(self, step: int, outputs: dict[Any, Any]) -> bool:
        """Evaluates, if it is time and there is a new checkpoint; whether the training is to end.

        Raises:
            ValueError: no estimator was set, or the metric that is to be better is not there.
        """
        if self._estimator is None:
            raise ValueError("Missing call to set_estimator.")
        now, before = time.monotonic(), self._looked_at
        if self._interval is not None and before is not None and now - before <= self._interval:
            return False
        self._looked_at = now
        latest = checkpoint_management.latest_checkpoint(self._estimator.model_dir)
        if latest is None or latest == self._latest:
            return False
        self._latest = latest
        results = self._evaluate(latest)
        told = ", ".join(f"{name} = {value}" for name, value in results.items())
        tf.logging.info("Validation (step %d): %s", step, told)
        self._stopped = self._rounds is not None and self._is_over(step, results)
        return self._stopped

    def _evaluate(self, checkpoint: str) -> dict[str, Any]:
        settings, evaluate = dict(self._evaluation), self._estimator.evaluate
        if "x" not in inspect.signature(evaluate).parameters:  # one of `tf.estimator`
            foreign = [settings.pop(name) for name in ("x", "y", "batch_size", "metrics")]
            if any(value is not None for value in foreign):
                raise ValueError(
                    "tf.estimator.Estimator does not support following arguments: x, y, "
                    "batch_size, metrics. Should set as `None` in ValidationMonitor"
                )
        found: dict[str, Any] = evaluate(checkpoint_path=checkpoint, **settings)
        return found

    def _is_over(self, step: int, results: dict[str, Any]) -> bool:
        if self._metric not in results:
            raise ValueError(
                f"Metric {self._metric} missing from outputs {sorted(map(str, results))}."
            )
        value = results[self._metric]
        best = self.best_value
        if best is None or (value < best if self._minimize else value > best):
            self._best = (step, value, copy.deepcopy(results))
        assert self._best is not None
        assert self._rounds is not None
        return step - self._best[0] >= self._rounds
