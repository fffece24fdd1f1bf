"""A cluster that the program knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opdock.distribute.cluster_resolver.resolver import ClusterResolver, format_master_url
from opdock.train.server_lib import ClusterSpec

__all__ = ["SimpleClusterResolver"]


class SimpleClusterResolver(ClusterResolver):
    """What it was told.

    Args:
        cluster_spec: the tasks.
        master: the target for sessions, where none is asked for by its task.
        task_type: the job of this process.
        task_id: its number.
        environment: what kind of place this is.
        num_accelerators: how many devices of each type a task has.
        rpc_layer: the protocol between tasks.

    Raises:
        TypeError: `cluster_spec` is no ClusterSpec, or `master` no string.
    """

    def __init__(
        self, cluster_spec: ClusterSpec, master: str = "", task_type: str | None = None,
        task_id: int | None = None, environment: str = "",
        num_accelerators: Mapping[str, int] | None = None, rpc_layer: str | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError("cluster_spec must be a ClusterSpec.")
        if not isinstance(master, str):
            raise TypeError("master must be a string.")
        self._cluster_spec, self._master, self._environment = cluster_spec, master, environment
        self._num_accelerators = num_accelerators or {}
        self.task_type, self.task_id, self.rpc_layer = task_type, task_id, rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """The tasks."""
        return self._cluster_spec

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The target for sessions: what it was told, or that of a task."""
        if task_type is not None and task_id is not None:
            return self._master_of_task(task_type, task_id, rpc_layer)
        return format_master_url(self._master, rpc_layer or self.rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> Mapping[str, int]:
        """How many devices of each type a task has."""
        return self._num_accelerators

    @property
    def environment(self) -> str:
        """What kind of place this is."""
        return self._environment
