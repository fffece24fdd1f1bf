"""Runs an experiment as its task of a cluster does, or as a single machine does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from opdock.contrib.learn.experiment import Experiment
from opdock.contrib.learn.run_config import RunConfig, TaskType

__all__ = ["run"]

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
    name = schedule or _schedule_of(experiment.estimator.config)
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


def _configured(experiment_fn: Callable[..., Any], run_config: Any, hparams: Any) -> Experiment:
    if not isinstance(run_config, RunConfig):
        raise ValueError("`run_config` must be `tf.contrib.learn.RunConfig` instance")
    if not run_config.model_dir:
        raise ValueError("Must specify a model directory `model_dir` in `run_config`.")
    expected = run_config.uid()
    experiment = _checked(experiment_fn(run_config=run_config, hparams=hparams))
    config = experiment.estimator.config
    found = config.uid() if hasattr(config, "uid") else None
    if found != expected:
        raise RuntimeError(
            "`RunConfig` instance is expected to be used by the `Estimator` inside the "
            f"`Experiment`. expected {expected}, but got {found}"
        )
    return experiment


def _schedule_of(config: Any) -> str:
    if not config.cluster_spec or not config.task_type:
        return "train_and_evaluate"
    if config.task_type not in _SCHEDULES:
        raise ValueError(f"No default schedule for task type: {config.task_type}")
    return _SCHEDULES[config.task_type]
