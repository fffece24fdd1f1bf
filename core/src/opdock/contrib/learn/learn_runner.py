"""Runs an experiment as its task of a cluster does, or as a single machine does."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from opdock.contrib.learn.experiment import Experiment
from opdock.contrib.learn.run_config import RunConfig, TaskType
from opdock.contrib.training import HParams

__all__ = ["run", "tune"]

_SCHEDULES: Final = {
    TaskType.MASTER: "train_and_evaluate",
    TaskType.PS: "run_std_server",
    TaskType.WORKER: "train",
}


def run(
    experiment_fn: Callable[..., Any], output_dir: str | None = None, schedule: str | None = None,
    run_config: Any = None, hparams: Any = None,
) -> Any:  # fmt: skip
    """Makes an experiment and calls one of its methods.

    Args:
        experiment_fn: a function of `run_config` and `hparams`, or of `output_dir`.
        output_dir: the folder of the model; this or `run_config`.
        schedule: the method; by default that for the task, or "train_and_evaluate".
        run_config: a `RunConfig` with a folder.
        hparams: what `experiment_fn` is given beside it.

    Returns:
        What the method does.

    Raises:
        ValueError: neither or both of folder and config, or no such method.
        TypeError: `experiment_fn` makes no `Experiment`.
        RuntimeError: the estimator has another config.
    """
    if output_dir is not None and run_config is not None:
        raise ValueError("Cannot provide both `output_dir` and `run_config`")
    if output_dir is None and run_config is None:
        raise ValueError("Must set value for `output_dir` or `run_config`")
    if not callable(experiment_fn):
        raise TypeError(f'Experiment builder "{experiment_fn}" is not callable.')
    if run_config is None:
        if not output_dir:
            raise ValueError("Must specify an output directory")
        if hparams is not None:
            raise ValueError("Must set `hparams` as None for `experiment_fn` with `output_dir`.")
        experiment = _checked(experiment_fn(output_dir=output_dir))
    else:
        experiment = _configured(experiment_fn, run_config, hparams)
    name = schedule or _schedule_of(run_config or experiment.estimator.config)
    if not hasattr(experiment, name):
        raise ValueError(f"Schedule references non-existent task {name}")
    task = getattr(experiment, name)
    if not callable(task):
        raise TypeError(f"Schedule references non-callable member {name}")
    return task()


def _checked(experiment: Any) -> Experiment:
    if not isinstance(experiment, Experiment):
        raise TypeError(
            "Experiment builder did not return an Experiment instance, got "
            f"{type(experiment)} instead."
        )
    return experiment


def _configured(
    experiment_fn: Callable[..., Any], run_config: Any, hparams: Any, require_hparams: bool = False
) -> Experiment:
    if not isinstance(run_config, RunConfig):
        raise ValueError("`run_config` must be `tf.contrib.learn.RunConfig` instance")
    if not run_config.model_dir:
        raise ValueError("Must specify a model directory `model_dir` in `run_config`.")
    if hparams is not None and not isinstance(hparams, HParams):
        raise ValueError("`hparams` must be `HParams` instance")
    if require_hparams and hparams is None:
        raise ValueError("`hparams` cannot be `None`.")
    expected = run_config.uid()
    experiment = _checked(experiment_fn(run_config=run_config, hparams=hparams))
    config = experiment.estimator.config
    if not hasattr(config, "uid"):
        raise RuntimeError(
            "Pass `run_config` argument of the `experiment_fn` to the Estimator in Experiment. It "
            "is likely a different `RunConfig` is passed to `Estimator` or the `config` "
            "constructor argument in `Estimator` is not set."
        )
    if config.uid() != expected:
        raise RuntimeError(
            "`RunConfig` instance is expected to be used by the `Estimator` inside the "
            f"`Experiment`. expected {expected}, but got {config.uid()}"
        )
    return experiment


def _schedule_of(config: Any) -> str:
    """The schedule of a task of a cluster; of who trains alone "train_and_evaluate"."""
    cluster = config.cluster_spec if config else None
    if not cluster or sum(len(cluster.job_tasks(job)) for job in cluster.jobs) <= 1:
        return "train_and_evaluate"
    if not config.task_type:
        raise ValueError("Must specify a schedule")
    if config.task_type not in _SCHEDULES:
        raise ValueError(f"No default schedule for task type: {config.task_type}")
    return _SCHEDULES[config.task_type]


def tune(experiment_fn: Callable[..., Any], tuner: Any) -> None:
    """Runs an experiment for each trial of a tuner.

    Args:
        experiment_fn: a function of `run_config` and `hparams`.
        tuner: has `next_trial()`, whether there is another one, and `run_experiment`, which gets
            the function and calls it with the trial's settings.
    """
    made = functools.partial(_configured, experiment_fn, require_hparams=True)
    while tuner.next_trial():
        tuner.run_experiment(made)
