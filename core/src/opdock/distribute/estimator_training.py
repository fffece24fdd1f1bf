"""Estimators whose configuration names a strategy: the library asks this module by name."""

from __future__ import annotations

import copy
from typing import Any, Final

from opdock import errors
from opdock.api import logging
from opdock.distribute.clusters import id_in_cluster, is_chief
from opdock.train.server_lib import ClusterSpec, Server

__all__ = [
    "estimator_evaluate", "estimator_train", "init_run_config",
    "should_run_distribute_coordinator", "train_and_evaluate",
]  # fmt: skip

_INDEPENDENT: Final = "independent_worker"


def init_run_config(config: Any, tf_config: dict[str, Any]) -> None:
    """Fills in a RunConfig that names strategies.

    Args:
        config: the RunConfig.
        tf_config: what TF_CONFIG says.

    Raises:
        ValueError: a strategy is given twice.
        UnimplementedError: it is to run on a cluster whose tasks other programs serve.
    """
    given = config._experimental_distribute
    for kind in ("train_distribute", "eval_distribute"):
        own = getattr(given, kind, None)
        if own and getattr(config, f"_{kind}"):
            raise ValueError(f"Either `{kind}` or`experimental_distribute.{kind}` can be set.")
        if own:
            setattr(config, f"_{kind}", own)
    if getattr(given, "remote_cluster", None):
        raise errors.UnimplementedError(
            None, None,
            "experimental_distribute.remote_cluster: one program that drives a cluster of servers. "
            "Start the program once a task instead, with TF_CONFIG, as opdock launch does",
        )  # fmt: skip
    cluster = ClusterSpec(tf_config.get("cluster", {}))
    config._init_distributed_setting_from_environment_var({})
    if not cluster or "master" in cluster.jobs or not config._train_distribute:
        config._distribute_coordinator_mode = None
        config._init_distributed_setting_from_environment_var(tf_config)
        config._maybe_overwrite_session_config_for_distributed_training()
        return
    task = tf_config.get("task", {})
    config._cluster_spec = cluster
    config._task_type, config._task_id = task.get("type"), int(task.get("index", 0))
    config._distribute_coordinator_mode = _INDEPENDENT
    logging.info("RunConfig initialized for one process a task of %s", cluster.as_dict())


def should_run_distribute_coordinator(config: Any) -> bool:
    """Whether each task of a cluster is to do its part of `train_and_evaluate` here."""
    return bool(getattr(config, "_distribute_coordinator_mode", None)) and bool(config.cluster_spec)


def train_and_evaluate(estimator: Any, train_spec: Any, eval_spec: Any, executor_cls: Any) -> None:
    """Does this task's part: a server serves, workers train, the evaluator evaluates.

    Args:
        estimator: the estimator; each task works with a copy.
        train_spec, eval_spec: those of `tf.estimator.train_and_evaluate`.
        executor_cls: makes what evaluates.

    Raises:
        ValueError: the task has an unknown job.
    """
    config = estimator.config
    job, index, cluster = config.task_type, config.task_id, config.cluster_spec
    if job == "evaluator":
        own = _of_task(estimator, "eval", config.eval_distribute, "", ClusterSpec({}))
        executor_cls(own, train_spec, eval_spec)._start_continuous_evaluation()
        return
    if job not in ("chief", "worker", "ps"):
        raise ValueError(f"Unexpected task_type: {job!r}")
    server = Server(cluster, job_name=job, task_index=index, config=config.session_config)
    if job == "ps":
        server.join()
        return
    strategy = config.train_distribute
    if not strategy.extended.experimental_between_graph and not is_chief(cluster, job, index):
        server.join()  # the chief's graph spans all workers
        return
    strategy = copy.deepcopy(strategy)
    strategy.configure(
        session_config=config.session_config, cluster_spec=cluster, task_type=job, task_id=index
    )
    own = _of_task(estimator, "train", strategy, server.target, cluster)
    own.train(
        input_fn=train_spec.input_fn, max_steps=train_spec.max_steps, hooks=list(train_spec.hooks)
    )


def _of_task(estimator: Any, kind: str, strategy: Any, target: str, cluster: Any) -> Any:
    """An estimator with the configuration of a task.

    Args:
        estimator: the estimator of all tasks.
        kind: "train" or "eval".
        strategy: what the task trains or evaluates by.
        target: the task's own server.
        cluster: the cluster that it is of, none for an evaluator.
    """
    own = copy.deepcopy(estimator)
    config = own._config
    setattr(config, f"_{kind}_distribute", strategy)
    setattr(own, f"_{kind}_distribution", strategy)
    jobs = cluster.as_dict()
    job, index = config._task_type, config._task_id
    config._distribute_coordinator_mode = None
    config._cluster_spec = cluster
    config._master = config._evaluation_master = target
    config._is_chief = not jobs or is_chief(cluster, job, index)
    config._num_ps_replicas = len(jobs.get("ps", ()))
    config._num_worker_replicas = len(jobs.get("worker", ())) + len(jobs.get("chief", ()))
    config._global_id_in_cluster = id_in_cluster(jobs, job, index) if jobs else None
    return own


def _refuse(what: str) -> None:
    raise ValueError(
        f"Only `tf.estimator.train_and_evaluate` is supported in a cluster, not `{what}`: each "
        "task has to do its own part"
    )


def estimator_train(estimator: Any, train_distributed_fn: Any, hooks: Any) -> None:
    """Refuses to train in a cluster without an evaluator's part.

    Raises:
        ValueError: always.
    """
    _refuse("Estimator.train")


def estimator_evaluate(estimator: Any, evaluate_distributed_fn: Any, hooks: Any) -> None:
    """Refuses to evaluate in a cluster without its training.

    Raises:
        ValueError: always.
    """
    _refuse("Estimator.evaluate")
