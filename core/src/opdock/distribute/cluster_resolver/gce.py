"""A cluster of Google Compute Engine's machines."""

from __future__ import annotations

import importlib
from typing import Any

from opdock.distribute.cluster_resolver.resolver import ClusterResolver, Told
from opdock.train.server_lib import ClusterSpec

__all__ = ["GCEClusterResolver"]


class _Fixed(Told[str]):
    """An attribute that is told once."""

    def __set__(self, resolver: ClusterResolver, value: str | None) -> None:
        if self.name in resolver.__dict__:
            raise RuntimeError(
                f"You cannot reset the {self.name} of the {type(resolver).__name__} after it has "
                "been created."
            )
        super().__set__(resolver, value)


class GCEClusterResolver(ClusterResolver):
    """The running machines of an instance group.

    Args:
        project: the project.
        zone: the group's zone.
        instance_group: the group.
        port: where tasks listen.
        task_type: the job that the machines are.
        task_id: the number of this one.
        rpc_layer: the protocol between tasks.
        credentials: Google's; "default" takes those of the application.
        service: the interface of Compute Engine, in place of Google's own for `credentials`.

    Raises:
        ImportError: Google's client for Python is not installed, and no service was given.
    """

    task_type = _Fixed()

    def __init__(
        self, project: str, zone: str, instance_group: str, port: int, task_type: str = "worker",
        task_id: int = 0, rpc_layer: str = "grpc", credentials: Any = "default",
        service: Any = None,
    ) -> None:  # fmt: skip
        self._group = {"project": project, "zone": zone, "instanceGroups": instance_group}
        self._port = port
        self._service = _googles_service(credentials) if service is None else service
        self.task_type, self.task_id, self.rpc_layer = task_type, task_id, rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """The machines that run now, ordered by their addresses."""
        groups, found = self._service.instanceGroups(), []
        request = groups.listInstances(
            **self._group, body={"instanceState": "RUNNING"}, orderBy="name"
        )
        while request is not None:
            response = request.execute()
            found += [self._address(item["instance"]) for item in response["items"]]
            request = groups.listInstances_next(
                previous_request=request, previous_response=response
            )
        return ClusterSpec({self.task_type: sorted(found)})

    def _address(self, instance: str) -> str:
        project, zone = self._group["project"], self._group["zone"]
        name = instance.rpartition("/")[2]
        machine = self._service.instances().get(project=project, zone=zone, instance=name).execute()
        return f"{machine['networkInterfaces'][0]['networkIP']}:{self._port}"

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The target for sessions: that of a task, this one by default."""
        return self._master_of_task(task_type, task_id, rpc_layer)


def _googles_service(credentials: Any) -> Any:
    try:
        discovery = importlib.import_module("googleapiclient.discovery")
        if credentials == "default":
            client = importlib.import_module("oauth2client.client")
            credentials = client.GoogleCredentials.get_application_default()
    except ImportError as e:
        raise ImportError(
            "googleapiclient must be installed before using the GCE cluster resolver: "
            "`pip install google-api-python-client oauth2client`."
        ) from e
    return discovery.build("compute", "v1", credentials=credentials)
