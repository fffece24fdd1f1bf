"""A cluster of Kubernetes' pods."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from opdock.distribute.cluster_resolver.resolver import ClusterResolver
from opdock.train.server_lib import ClusterSpec

__all__ = ["KubernetesClusterResolver"]


class KubernetesClusterResolver(ClusterResolver):
    """The running pods that have certain labels.

    Args:
        job_to_label_mapping: for each job the selectors of its pods.
        tf_server_port: where tasks listen.
        rpc_layer: the protocol between tasks.
        override_client: a client of Kubernetes, in place of one for the configuration of the user.

    Raises:
        ImportError: Kubernetes' client for Python is not installed, and none was given.
    """

    def __init__(
        self, job_to_label_mapping: Mapping[str, Sequence[str]] | None = None,
        tf_server_port: int = 8470, rpc_layer: str = "grpc", override_client: Any = None,
    ) -> None:  # fmt: skip
        self._client = _users_client() if override_client is None else override_client
        self._labels = job_to_label_mapping or {"worker": ["job-name=tensorflow"]}
        self._port = tf_server_port
        self.rpc_layer = rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """The pods that run now, ordered by their names.

        Raises:
            RuntimeError: one that has the labels does not run.
        """
        return ClusterSpec(
            {
                job: [self._address(pod) for selector in selectors for pod in self._pods(selector)]
                for job, selectors in self._labels.items()
            }
        )

    def _pods(self, selector: str) -> list[Any]:
        found = self._client.list_pod_for_all_namespaces(label_selector=selector)
        return sorted(found.items, key=lambda pod: pod.metadata.name)

    def _address(self, pod: Any) -> str:
        if pod.status.phase != "Running":
            raise RuntimeError(
                f'Pod "{pod.metadata.name}" is not running; phase: "{pod.status.phase}"'
            )
        return f"{pod.status.host_ip}:{self._port}"

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The target for sessions: that of a task, or "" where none is known."""
        return self._master_of_task(task_type, task_id, rpc_layer)


def _users_client() -> Any:
    try:
        client = importlib.import_module("kubernetes.client")
        config = importlib.import_module("kubernetes.config")
    except ImportError as e:
        raise ImportError(
            "The Kubernetes Python client must be installed before using the Kubernetes Cluster "
            "Resolver: `pip install kubernetes`."
        ) from e
    config.load_kube_config()
    return client.CoreV1Api()
