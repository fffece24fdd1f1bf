"""What strategies know of clusters: from TF_CONFIG, or from an estimator's configuration."""

from __future__ import annotations

import json
import os
from typing import Any

from opdock.train.server_lib import ClusterSpec

__all__ = ["cluster_of_environment", "devices_of", "is_chief", "task_of_environment"]


def _config() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(os.environ.get("TF_CONFIG") or "{}")
    return found


def cluster_of_environment() -> dict[str, list[str]]:
    """The tasks of the cluster that TF_CONFIG tells of, by job; empty where there is none."""
    found: dict[str, list[str]] = ClusterSpec(_config().get("cluster", {})).as_dict()
    return found


def task_of_environment() -> tuple[str | None, int | None]:
    """The task that this process is, by TF_CONFIG: its job and its number."""
    task = _config().get("task", {})
    index = task.get("index")
    return task.get("type"), None if index is None else int(index)


def devices_of(cluster: Any, gpus: int) -> tuple[str, ...]:
    """The devices of all workers of a cluster, the chief's first.

    Args:
        cluster: a ClusterSpec, or what one is made of.
        gpus: how many each has; without any it is the worker as a whole.
    """
    jobs = ClusterSpec(cluster).as_dict()
    tasks = [
        f"/job:{job}/task:{i}" for job in ("chief", "worker") for i in range(len(jobs.get(job, ())))
    ]
    if not gpus:
        return tuple(tasks)
    return tuple(f"{task}/device:GPU:{i}" for task in tasks for i in range(gpus))


def is_chief(cluster: Any, task_type: str | None, task_id: int | None) -> bool:
    """Whether a task is the one that initializes variables and writes checkpoints.

    Raises:
        ValueError: the cluster has no such task.
    """
    jobs = ClusterSpec(cluster).as_dict()
    if task_type == "evaluator":
        return True
    if task_type not in jobs or task_id is None or task_id >= len(jobs[task_type]):
        raise ValueError(f"The task {task_type!r} {task_id} is not of the cluster {jobs}")
    first = "chief" if "chief" in jobs else "worker"
    return (task_type, task_id) == (first, 0)
