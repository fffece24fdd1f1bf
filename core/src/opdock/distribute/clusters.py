"""What the tasks of a cluster are to strategies."""

from __future__ import annotations

from typing import Any

from opdock.train.server_lib import ClusterSpec

__all__ = ["devices_of", "is_chief"]


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
