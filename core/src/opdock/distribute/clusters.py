"""What the tasks of a cluster are to strategies."""

from __future__ import annotations

from typing import Any

from opdock.io import protos
from opdock.train.server_lib import ClusterSpec

__all__ = [
    "collective_leader", "devices_of", "id_in_cluster", "is_chief", "normalize_cluster_spec",
    "worker_count",
]  # fmt: skip


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


def normalize_cluster_spec(cluster_spec: Any) -> ClusterSpec:
    """A cluster as a ClusterSpec.

    Args:
        cluster_spec: a dict, a ClusterDef or a ClusterSpec.

    Raises:
        ValueError: it is none of them.
    """
    if not isinstance(cluster_spec, (dict, protos.ClusterDef, ClusterSpec)):
        raise ValueError(
            "`cluster_spec' should be dict or a `tf.train.ClusterSpec` or a "
            "`tf.train.ClusterDef` object"
        )
    return ClusterSpec(cluster_spec)


def _checked(cluster_spec: Any, task_type: str | None, task_id: int | None) -> dict[str, Any]:
    """The tasks of a cluster by job.

    Raises:
        ValueError: the cluster has no such task, or several chiefs or evaluators.
    """
    if cluster_spec is None or task_type is None or task_id is None:
        raise ValueError("None of `cluster_spec`, `task_type`, and `task_id` should be `None`.")
    jobs = normalize_cluster_spec(cluster_spec).as_dict()
    if task_type not in ("chief", "worker", "evaluator", "ps"):
        raise ValueError(
            f'Unrecognized task_type: {task_type!r}, valid task types are: "chief", '
            '"worker", "evaluator" and "ps".'
        )
    if task_type not in jobs:
        raise ValueError(f"`task_type` {task_type!r} not found in cluster_spec.")
    for job in ("chief", "evaluator"):
        if len(jobs.get(job, ())) > 1:
            raise ValueError(f"There must be at most one {job!r} job.")
    if task_id >= len(jobs[task_type]):
        raise ValueError(f"The `task_id` {task_id} exceeds the maximum id of {task_type}.")
    return jobs


def is_chief(
    cluster_spec: Any = None, task_type: str | None = None, task_id: int | None = None
) -> bool:
    """Whether a task is the one that initializes variables and writes checkpoints.

    Raises:
        ValueError: the cluster has no such task.
    """
    jobs = _checked(cluster_spec, task_type, task_id)
    if task_type in ("chief", "evaluator"):
        return True
    return "chief" not in jobs and (task_type, task_id) == ("worker", 0)


def collective_leader(cluster_spec: Any, task_type: str | None, task_id: int | None) -> str:
    """The task to which the members of groups come; "" where a task is by itself.

    Raises:
        ValueError: the cluster has no such task.
    """
    if not normalize_cluster_spec(cluster_spec).as_dict():
        return ""
    jobs = _checked(cluster_spec, task_type, task_id)
    if task_type == "evaluator":
        return ""
    return f"/job:{'chief' if 'chief' in jobs else 'worker'}/replica:0/task:0"


def worker_count(cluster_spec: Any, task_type: str | None) -> int:
    """How many tasks train; or evaluate, if that is the task's job.

    Raises:
        ValueError: the task does neither, or the cluster has no such job.
    """
    jobs = _checked(cluster_spec, task_type, 0)
    if task_type == "ps":
        raise ValueError(f"Unexpected `task_type` {task_type!r}")
    if task_type == "evaluator":
        return len(jobs["evaluator"])
    return len(jobs.get("chief", ())) + len(jobs.get("worker", ()))


def id_in_cluster(cluster_spec: Any, task_type: str | None, task_id: int | None) -> int:
    """The number of a task among those that train, or evaluate; the chief's is 0.

    Raises:
        ValueError: the task does neither, or the cluster has no such task.
    """
    jobs = _checked(cluster_spec, task_type, task_id)
    if task_type == "ps" or task_id is None:
        raise ValueError(f"There is no id for task_type {task_type!r}")
    return task_id + (len(jobs.get("chief", ())) if task_type == "worker" else 0)
