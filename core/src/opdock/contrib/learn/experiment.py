"""A model with the inputs of its training and evaluation, and the ways to run both."""

from __future__ import annotations

import inspect
import math
import os
import time
from collections.abc import Callable
from typing import Any

import opdock as tf
from opdock.contrib.learn.contracts import Evaluable, Trainable
from opdock.contrib.learn.exporting import ExportStrategy
from opdock.contrib.learn.monitors import ValidationMonitor

__all__ = ["Experiment"]

# Whether evaluations go on, by the last metrics and, if it asks for it, their checkpoint.
Predicate = Callable[..., bool] | None


class Experiment:
    """An estimator, `tf.contrib.learn`'s or `tf.estimator`'s, with its inputs.

    Args:
        estimator: the model.
        train_input_fn, eval_input_fn: functions that build features and labels.
        eval_metrics: more metrics, for contrib's estimators.
        train_steps: the global step at which training ends.
        eval_steps: how many steps an evaluation has.
        train_monitors: hooks for the training.
        eval_hooks: hooks for evaluations.
        local_eval_frequency: the steps between two evaluations in `local_run`.
        eval_delay_secs: how long `evaluate` waits before it begins.
        continuous_eval_throttle_secs: the least time from one evaluation to the next.
        min_eval_frequency: the least steps between two in `train_and_evaluate`; 0: none.
        delay_workers_by_global_step: a worker begins once those before it have made some steps,
            instead of some seconds after them.
        export_strategies: an `ExportStrategy`, or several, by which to export the model at the end.
        train_steps_per_iteration: the steps of a turn of `continuous_train_and_eval`.
        checkpoint_and_export: exports in between are not written.
        saving_listeners: told of each checkpoint; for `tf.estimator`'s.
        check_interval_secs: the least time between two looks for a checkpoint.

    Raises:
        ValueError: no estimator, or metrics for `tf.estimator`'s, or listeners for contrib's.
        UnimplementedError: `checkpoint_and_export` is asked for.
    """

    def __init__(
        self, estimator: Any, train_input_fn: Callable[[], Any], eval_input_fn: Callable[[], Any],
        eval_metrics: Any = None, train_steps: int | None = None, eval_steps: int | None = 100,
        train_monitors: Any = None, eval_hooks: Any = None,
        local_eval_frequency: int | None = None, eval_delay_secs: float = 120,
        continuous_eval_throttle_secs: float = 60, min_eval_frequency: int | None = None,
        delay_workers_by_global_step: bool = False, export_strategies: Any = None,
        train_steps_per_iteration: int | None = None, checkpoint_and_export: bool = False,
        saving_listeners: Any = None, check_interval_secs: float = 5,
    ) -> None:  # fmt: skip
        self._is_own = isinstance(estimator, Evaluable) and isinstance(estimator, Trainable)
        if not self._is_own and not all(hasattr(estimator, n) for n in ("train", "evaluate")):
            lacks = "Trainable" if isinstance(estimator, Evaluable) else "Evaluable"
            raise ValueError(
                f"`estimator` must implement `tf.contrib.learn.{lacks}` or "
                "`tf.estimator.Estimator`."
            )
        if not self._is_own and eval_metrics is not None:
            raise ValueError(
                "`eval_metrics` must be `None` with `tf.estimator.Estimator`. Use "
                "`eval_metric_ops` in `tf.estimator.EstimatorSpec` instead."
            )
        if self._is_own and saving_listeners is not None:
            raise ValueError("`saving_listeners` must be `None` with `tf.contrib.learn.Estimator`.")
        if checkpoint_and_export:
            raise tf.errors.UnimplementedError(
                None, None, "checkpoint_and_export: exports are made once, at the end of training; "
                "tf.estimator.train_and_evaluate with an exporter makes them in between.",
            )  # fmt: skip
        self._estimator = estimator
        self._train_input_fn, self._eval_input_fn = train_input_fn, eval_input_fn
        self._eval_metrics = eval_metrics
        self._train_steps, self._eval_steps = train_steps, eval_steps
        self._train_monitors = list(train_monitors or ())
        self._eval_hooks = list(eval_hooks or ())
        self._local_eval_frequency = local_eval_frequency
        self._eval_delay_secs = eval_delay_secs
        self._throttle_secs = continuous_eval_throttle_secs
        self._min_eval_frequency = 1 if min_eval_frequency is None else min_eval_frequency
        self._delay_workers_by_global_step = delay_workers_by_global_step
        self._train_steps_per_iteration = train_steps_per_iteration
        self._saving_listeners = saving_listeners
        self._check_interval_secs = check_interval_secs
        self.reset_export_strategies(export_strategies)

    estimator = property(lambda self: self._estimator, doc="The model.")
    eval_metrics = property(lambda self: self._eval_metrics, doc="Its further metrics.")
    train_steps = property(lambda self: self._train_steps, doc="The step at which training ends.")
    eval_steps = property(lambda self: self._eval_steps, doc="The steps of an evaluation.")

    def reset_export_strategies(self, new_export_strategies: Any = None) -> list[ExportStrategy]:
        """Exports by these strategies from now on; gives those before."""
        earlier = getattr(self, "_export_strategies", [])
        given = new_export_strategies
        given = [given] if isinstance(given, ExportStrategy) else list(given or ())
        for strategy in given:
            if not isinstance(strategy, ExportStrategy):
                raise ValueError(
                    f"export_strategies must be ExportStrategy objects, got {strategy!r}"
                )
        if len({s.name for s in given}) < len(given):
            raise ValueError("export_strategies must have names that differ")
        self._export_strategies: list[ExportStrategy] = given
        return earlier

    def extend_train_hooks(self, additional_hooks: Any) -> None:
        """Adds hooks for the training."""
        self._train_monitors.extend(additional_hooks)

    def train(self, delay_secs: float | None = None) -> Any:
        """Trains; a worker begins 5 seconds after the one before it. The estimator."""
        hooks, task = list(self._train_monitors), self._estimator.config.task_id or 0
        if delay_secs is None and self._delay_workers_by_global_step:
            hooks.append(tf.train.GlobalStepWaiterHook(int(8000 * math.log(task + 1))))
        elif delay_secs is None:
            delay_secs = min(60, task * 5)
        time.sleep(delay_secs or 0)
        return self._train(hooks)

    def evaluate(self, delay_secs: float | None = None, name: str | None = None) -> Any:
        """The metrics of the latest checkpoint."""
        time.sleep(self._eval_delay_secs if delay_secs is None else delay_secs)
        return self._evaluate(name or "one_pass")

    def train_and_evaluate(self) -> tuple[Any, list[Any]]:
        """Trains, evaluates in between where there are new checkpoints, and once at the end.

        Returns:
            The metrics of the end, and what the strategies exported.
        """
        return self._alternate(self._min_eval_frequency)

    def local_run(self) -> tuple[Any, list[Any]]:
        """`train_and_evaluate` with evaluations as often as `local_eval_frequency` says."""
        return self._alternate(self._local_eval_frequency)

    def continuous_eval(
        self, delay_secs: float | None = None, throttle_delay_secs: float | None = None,
        evaluate_checkpoint_only_once: bool = True, continuous_eval_predicate_fn: Predicate = None,
        name: str = "continuous",
    ) -> Any:  # fmt: skip
        """Evaluates each new checkpoint until that of the last step of training, and exports it.

        Args:
            delay_secs: how long to wait before the first; `eval_delay_secs` by default.
            throttle_delay_secs: the least time from one evaluation to the next.
            evaluate_checkpoint_only_once: whether to wait for a checkpoint that is new.
            continuous_eval_predicate_fn: is given the last metrics, and their checkpoint if it has
                an argument `checkpoint_path`; evaluations end where it says no.
            name: of the evaluations' folder.

        Returns:
            The last metrics.

        Raises:
            ValueError: `continuous_eval_predicate_fn` cannot be called.
        """
        return self._watch(
            self._eval_input_fn, name, delay_secs, throttle_delay_secs,
            evaluate_checkpoint_only_once, continuous_eval_predicate_fn, export=True,
        )  # fmt: skip

    def continuous_eval_on_train_data(
        self, delay_secs: float | None = None, throttle_delay_secs: float | None = None,
        continuous_eval_predicate_fn: Predicate = None, name: str = "continuous_on_train_data",
    ) -> Any:  # fmt: skip
        """Does the same on what the model is trained with, and exports nothing."""
        return self._watch(
            self._train_input_fn, name, delay_secs, throttle_delay_secs, True,
            continuous_eval_predicate_fn, export=False,
        )  # fmt: skip

    def continuous_train_and_eval(
        self, continuous_eval_predicate_fn: Predicate = None
    ) -> tuple[Any, Any]:
        """Trains `train_steps_per_iteration` steps, evaluates and exports, in turns.

        Without that number a turn has a tenth of `train_steps`, or 1,000 steps. The last turn may
        pass `train_steps`, as in TensorFlow.

        Args:
            continuous_eval_predicate_fn: see `continuous_eval`; at first it is given None.

        Returns:
            The last metrics, and what the strategies exported with them; None twice without a turn.

        Raises:
            ValueError: `continuous_eval_predicate_fn` cannot be called.
        """
        goes_on = _standardized(continuous_eval_predicate_fn)
        steps = self._train_steps_per_iteration
        if steps is None:
            steps = 1000 if self._train_steps is None else self._train_steps // 10
        results, exports, latest = None, None, None
        while goes_on(results, latest) and not self._is_trained(results):
            self._train(self._train_monitors, steps=steps)
            latest = tf.train.latest_checkpoint(self._estimator.model_dir)
            results = self._evaluate("one_pass", checkpoint_path=latest)
            exports = self._maybe_export(results)
        return results, exports

    def test(self) -> Any:
        """Trains a step and evaluates one, to see that both run: the metrics."""
        self._train(self._train_monitors, steps=1)
        results = self._evaluate("one_pass", steps=1)
        self._maybe_export(results)
        return results

    def _watch(
        self, input_fn: Callable[[], Any], name: str, delay_secs: float | None,
        throttle_secs: float | None, once: bool, predicate: Predicate, export: bool,
    ) -> Any:  # fmt: skip
        goes_on = _standardized(predicate)
        throttle_secs = self._throttle_secs if throttle_secs is None else throttle_secs
        time.sleep(self._eval_delay_secs if delay_secs is None else delay_secs)
        seen, results = None, None
        while goes_on(results, seen):
            began = time.monotonic()
            latest = tf.train.latest_checkpoint(self._estimator.model_dir)
            if latest is None or (once and latest == seen):
                results = {}  # as for predicates in TensorFlow: nothing new
            else:
                results = self._evaluate(name, input_fn, checkpoint_path=latest)
                seen = latest
                if export:
                    self._maybe_export(results, checkpoint_path=latest)
                if self._is_trained(results):
                    break
            time.sleep(max(0.0, throttle_secs - (time.monotonic() - began)))
        return results

    def _is_trained(self, results: Any) -> bool:
        """Whether metrics are those of the last step of training."""
        return bool(results and self._train_steps and results["global_step"] >= self._train_steps)

    def run_std_server(self) -> None:
        """Serves this task's part of the cluster, and does not return.

        Raises:
            ValueError: there is no cluster, or this is no task of it.
        """
        config = self._estimator.config
        if not config.cluster_spec or not config.task_type or config.task_id is None:
            raise ValueError(
                "Could not start server; be sure to specify cluster_spec, task_type, and task in "
                "RunConfig or set the TF_CONFIG environment variable."
            )
        tf.train.Server(
            config.cluster_spec, job_name=config.task_type, task_index=config.task_id
        ).join()

    def _alternate(self, frequency: int | None) -> tuple[Any, list[Any]]:
        hooks = list(self._train_monitors)
        if frequency and self._is_own:
            hooks.append(
                ValidationMonitor(
                    input_fn=self._eval_input_fn, eval_steps=self._eval_steps,
                    metrics=self._eval_metrics, every_n_steps=frequency, name="validation",
                    hooks=self._eval_hooks, check_interval_secs=self._check_interval_secs,
                )
            )  # fmt: skip
        self._train(hooks)
        results = self._evaluate("one_pass")
        return results, self._maybe_export(results)

    def _maybe_export(self, eval_result: Any, checkpoint_path: str | None = None) -> list[Any]:
        """What each strategy exports, into a folder of its name; subclasses of programs call it."""
        folder = os.path.join(os.fspath(self._estimator.model_dir), "export")
        return [
            each.export(
                self._estimator, os.path.join(folder, each.name), checkpoint_path, eval_result
            )
            for each in self._export_strategies
        ]

    def _train(self, hooks: list[Any], steps: int | None = None) -> Any:
        """Trains some steps, or up to the last one."""
        until = {"max_steps": self._train_steps} if steps is None else {"steps": steps}
        if self._is_own:
            return self._estimator.fit(input_fn=self._train_input_fn, monitors=hooks, **until)
        return self._estimator.train(
            self._train_input_fn, hooks=hooks, saving_listeners=self._saving_listeners, **until
        )

    def _evaluate(
        self, name: str, input_fn: Callable[[], Any] | None = None, steps: int | None = None,
        checkpoint_path: str | None = None,
    ) -> Any:  # fmt: skip
        more = {"metrics": self._eval_metrics} if self._is_own else {}
        return self._estimator.evaluate(
            input_fn=input_fn or self._eval_input_fn, steps=steps or self._eval_steps, name=name,
            hooks=self._eval_hooks, checkpoint_path=checkpoint_path, **more,
        )  # fmt: skip


def _standardized(predicate: Predicate) -> Callable[[Any, str | None], bool]:
    """A predicate of metrics and their checkpoint."""
    if predicate is None:
        return lambda results, path: True
    if not callable(predicate):
        raise ValueError("`continuous_eval_predicate_fn` must be a callable, or None.")
    if "checkpoint_path" in inspect.signature(predicate).parameters:
        return lambda results, path: predicate(results, checkpoint_path=path)
    return lambda results, path: predicate(results)
