"""Estimators whose configuration names a strategy: the library asks this module by name."""

from __future__ import annotations

import copy
from typing import Any

from opdock.api import logging
from opdock.distribute.clusters import id_in_cluster, normalize_cluster_spec
from opdock.distribute.distribute_coordinator import CoordinatorMode, run_distribute_coordinator
from opdock.distribute.worker_context import get_current_worker_context
from opdock.train.server_lib import ClusterSpec

__all__ = [
    "estimator_evaluate", "estimator_train", "init_run_config",
    "should_run_distribute_coordinator", "train_and_evaluate",
]  # fmt: skip


def init_run_config(config: Any, tf_config: dict[str, Any]) -> None:
    """Fills in a RunConfig that names strategies.

    Args:
        config: the RunConfig.
        tf_config: what TF_CONFIG says.

    Raises:
        ValueError: a strategy is given twice, or the cluster is.
    """
    given = config._experimental_distribute
    for kind in ("train_distribute", "eval_distribute"):
        own = getattr(given, kind, None)
        if own and getattr(config, f"_{kind}"):
            raise ValueError(f"Either `{kind}` or`experimental_distribute.{kind}` can be set.")
        if own:
            setattr(config, f"_{kind}", own)
    cluster = ClusterSpec(tf_config.get("cluster", {}))
    remote = getattr(given, "remote_cluster", None)
    config._init_distributed_setting_from_environment_var({})
    if remote and config._train_distribute:
        if cluster:
            raise ValueError(
                'Cannot set both "cluster_spec" of TF_CONFIG and '
                "`experimental_distribute.remote_cluster`"
            )
        config._cluster_spec = normalize_cluster_spec(remote)
        config._distribute_coordinator_mode = CoordinatorMode.STANDALONE_CLIENT
        logging.info("RunConfig initialized to drive %s", config._cluster_spec.as_dict())
        return
    if not cluster or "master" in cluster.jobs or not config._train_distribute:
        config._distribute_coordinator_mode = None
        config._init_distributed_setting_from_environment_var(tf_config)
        config._maybe_overwrite_session_config_for_distributed_training()
        return
    task = tf_config.get("task", {})
    config._cluster_spec = cluster
    config._task_type, config._task_id = task.get("type"), int(task.get("index", 0))
    config._distribute_coordinator_mode = CoordinatorMode.INDEPENDENT_WORKER
    logging.info("RunConfig initialized for one process a task of %s", cluster.as_dict())


def should_run_distribute_coordinator(config: Any) -> bool:
    """Whether the tasks of a cluster are to do their parts."""
    mode = getattr(config, "_distribute_coordinator_mode", None)
    if mode is None:
        return False
    if mode not in (CoordinatorMode.STANDALONE_CLIENT, CoordinatorMode.INDEPENDENT_WORKER):
        logging.warning("Unexpected distribute_coordinator_mode: %r", mode)
        return False
    return bool(config.cluster_spec)


def train_and_evaluate(estimator: Any, train_spec: Any, eval_spec: Any, executor_cls: Any) -> None:
    """Does this program's part: a server serves, workers train, the evaluator evaluates.

    Args:
        estimator: the estimator; each task works with a copy.
        train_spec, eval_spec: those of `tf.estimator.train_and_evaluate`.
        executor_cls: makes what evaluates.

    Raises:
        ValueError: the task has an unknown job.
    """
    config = estimator.config
    alone = config._distribute_coordinator_mode == CoordinatorMode.INDEPENDENT_WORKER

    def train(strategy: Any) -> None:
        own = _of_task(estimator, "train", strategy)
        # Of threads in one program, one tells what it does: hooks know tensors of one graph.
        hooks = list(train_spec.hooks) if alone or own.config.is_chief else []
        own.train(input_fn=train_spec.input_fn, max_steps=train_spec.max_steps, hooks=hooks)

    def evaluate(strategy: Any) -> None:
        own = _of_task(estimator, "eval", strategy)
        executor_cls(own, train_spec, eval_spec)._start_continuous_evaluation()

    _coordinate(
        config, train, config.train_distribute, eval_fn=evaluate,
        eval_strategy=config.eval_distribute,
    )  # fmt: skip


def _coordinate(config: Any, worker_fn: Any, strategy: Any, **evaluation: Any) -> Any:
    """Calls functions for the tasks of a RunConfig's cluster."""
    mode = config._distribute_coordinator_mode
    driven = mode == CoordinatorMode.STANDALONE_CLIENT  # by a program that is none of the tasks
    return run_distribute_coordinator(
        worker_fn, strategy, mode=mode, cluster_spec=config.cluster_spec,
        task_type=None if driven else config.task_type, task_id=None if driven else config.task_id,
        session_config=config.session_config, **evaluation,
    )  # fmt: skip


def _of_task(estimator: Any, kind: str, strategy: Any) -> Any:
    """An estimator with the configuration of the task that this thread works for.

    Args:
        estimator: the estimator of all tasks.
        kind: "train" or "eval".
        strategy: what the task trains or evaluates by.
    """
    context = get_current_worker_context()
    own = copy.deepcopy(estimator)
    config = own._config
    setattr(config, f"_{kind}_distribute", strategy)
    setattr(own, f"_{kind}_distribution", strategy)
    cluster = context.cluster_spec if context.distributed_mode else ClusterSpec({})
    jobs, job, index = cluster.as_dict(), context.task_type, context.task_id
    config._distribute_coordinator_mode = None
    config._cluster_spec = cluster
    config._task_type, config._task_id = job, index
    config._master = config._evaluation_master = context.master_target
    config._is_chief = context.is_chief
    config._num_ps_replicas = len(jobs.get("ps", ()))
    config._num_worker_replicas = context.num_workers if jobs else 0
    config._global_id_in_cluster = None
    if jobs:
        config._global_id_in_cluster = id_in_cluster(jobs, job, index) if job else 0
    return own


def estimator_train(estimator: Any, train_distributed_fn: Any, hooks: Any) -> Any:
    """Trains on the cluster that this program drives.

    Args:
        estimator: the estimator; what trains is a copy.
        train_distributed_fn: trains an estimator by a strategy, with hooks.
        hooks: the hooks of the chief.

    Returns:
        The copy.

    Raises:
        ValueError: each task has to do its own part, or the cluster has an evaluator.
    """
    _check_driven(estimator, "train")

    def train(strategy: Any) -> Any:
        own = _of_task(estimator, "train", strategy)
        train_distributed_fn(own, strategy, hooks)
        return own

    config = estimator._config
    return _coordinate(config, train, config._train_distribute)


def estimator_evaluate(estimator: Any, evaluate_distributed_fn: Any, hooks: Any) -> Any:
    """Evaluates on the cluster that this program drives.

    Args:
        estimator: the estimator; what evaluates is a copy.
        evaluate_distributed_fn: evaluates an estimator by a strategy, with hooks.
        hooks: the hooks of the chief.

    Returns:
        What the function returns.

    Raises:
        ValueError: each task has to do its own part, or the cluster has an evaluator.
    """
    _check_driven(estimator, "eval")

    def evaluate(strategy: Any) -> Any:
        return evaluate_distributed_fn(_of_task(estimator, "eval", strategy), strategy, hooks)

    config = estimator._config
    return _coordinate(config, evaluate, config._eval_distribute)


def _check_driven(estimator: Any, kind: str) -> None:
    """Raises ValueError where one call cannot do what all tasks of a cluster have to."""
    config, method = estimator._config, {"train": "train", "eval": "evaluate"}[kind]
    if "evaluator" in normalize_cluster_spec(config.cluster_spec).jobs:
        raise ValueError(
            "'evaluator' job is not supported if you don't use `train_and_evaluate`, as "
            f"`Estimator.{method}` does not"
        )
    if config._distribute_coordinator_mode != CoordinatorMode.STANDALONE_CLIENT:
        raise ValueError(
            f"Only `tf.estimator.train_and_evaluate` is supported in a cluster, not "
            f"`Estimator.{method}`: each task has to do its own part"
        )
    strategy = getattr(config, f"_{kind}_distribute")
    if strategy is None or strategy.extended.experimental_between_graph:
        raise ValueError(
            f"`Estimator.{method}` drives a cluster by one graph, which "
            f"{type(strategy).__name__} does not make: use `tf.estimator.train_and_evaluate`"
        )
