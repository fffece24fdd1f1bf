"""A cluster that the environment variable TF_CONFIG tells of."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from opdock.distribute.cluster_resolver.resolver import ClusterResolver
from opdock.train.server_lib import ClusterSpec

__all__ = ["TFConfigClusterResolver"]


def _told(key: str, default: Any = None) -> Any:
    """What TF_CONFIG has under a key, now."""
    return json.loads(os.environ.get("TF_CONFIG") or "{}").get(key, default)


class TFConfigClusterResolver(ClusterResolver):
    """What TF_CONFIG says whenever it is asked.

    Args:
        task_type: the job of this process, in place of what TF_CONFIG says.
        task_id: the same for its number.
        rpc_layer: the same for the protocol.
        environment: what kind of place this is.
    """

    def __init__(
        self, task_type: str | None = None, task_id: int | None = None,
        rpc_layer: str | None = None, environment: str | None = None,
    ) -> None:  # fmt: skip
        self.task_type, self.task_id, self.rpc_layer = task_type, task_id, rpc_layer
        self._environment = environment

    def _unless_told(self, name: str) -> Any:
        task = _told("task", {})
        if name == "task_id":
            return int(task["index"]) if "index" in task else None
        found = task.get("type") if name == "task_type" else _told(name)
        return None if found is None else str(found)

    def cluster_spec(self) -> ClusterSpec:
        """The tasks that TF_CONFIG tells of."""
        return ClusterSpec(_told("cluster", {}))

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The target for sessions: TF_CONFIG's own word, or that of a task; "" for one task alone.

        Raises:
            ValueError: the cluster has no such task.
        """
        session_master = _told("session_master")
        if session_master is not None:
            return str(session_master)
        cluster = self.cluster_spec()
        if sum(map(cluster.num_tasks, cluster.jobs)) < 2:
            return ""
        return self._master_of_task(task_type, task_id, rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> Mapping[str, int]:
        """How many devices of each type a task has, this one by default."""
        job = self.task_type if task_type is None else task_type
        index = self.task_id if task_id is None else task_id
        return super().num_accelerators(job, index, config_proto)

    @property
    def environment(self) -> str | None:
        """What kind of place this is."""
        return self._environment
