"""What all cluster resolvers are."""

from __future__ import annotations

import abc
import collections
from collections.abc import Mapping
from typing import Any, Generic, Self, TypeVar, overload

from opdock.graph.nodes.graph import Graph
from opdock.runtime.session import Session
from opdock.runtime.targets import DeviceInfo
from opdock.train.server_lib import ClusterSpec

__all__ = ["ClusterResolver", "Told", "format_master_url", "get_accelerator_devices"]

T = TypeVar("T")


def format_master_url(master: str, rpc_layer: str | None = None) -> str:
    """The target of an address: with its protocol, if one is given."""
    return f"{rpc_layer}://{master}" if rpc_layer else master


def get_accelerator_devices(master: str, config_proto: Any) -> list[DeviceInfo]:
    """All devices that a session of a target has."""
    with Graph().as_default(), Session(master, config=config_proto) as session:
        return session.list_devices()


class Told(Generic[T]):
    """An attribute of a resolver: what it was told, or else what it finds out when it is asked."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, resolver: None, owner: type) -> Self: ...
    @overload
    def __get__(self, resolver: ClusterResolver, owner: type) -> T | None: ...
    def __get__(self, resolver: ClusterResolver | None, owner: type) -> Self | T | None:
        if resolver is None:
            return self
        told: T | None = resolver.__dict__.get(self.name)
        return resolver._unless_told(self.name) if told is None else told

    def __set__(self, resolver: ClusterResolver, value: T | None) -> None:
        resolver.__dict__[self.name] = value


class ClusterResolver(abc.ABC):
    """Who knows which tasks a cluster has; each kind asks someone else.

    Attributes:
        task_type: the job of this process, if that is known.
        task_id: its number.
        rpc_layer: the protocol between tasks.
    """

    task_type = Told[str]()
    task_id = Told[int]()
    rpc_layer = Told[str]()

    def _unless_told(self, name: str) -> Any:
        """What `task_type`, `task_id` or `rpc_layer` is where the resolver was not told."""
        return None

    @abc.abstractmethod
    def cluster_spec(self) -> ClusterSpec:
        """The tasks as they are now."""

    @abc.abstractmethod
    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The target for sessions.

        Args:
            task_type: the job of the task that is to be the master; this task's by default.
            task_id: its number; this task's by default.
            rpc_layer: the protocol, in place of the resolver's own.
        """

    def _master_of_task(
        self, task_type: str | None, task_id: int | None, rpc_layer: str | None
    ) -> str:
        """The target of a task, this one by default; "" where neither is known.

        Raises:
            ValueError: the cluster has no such task.
        """
        job = self.task_type if task_type is None else task_type
        index = self.task_id if task_id is None else task_id
        if job is None or index is None:
            return ""
        address = self.cluster_spec().task_address(job, index)
        return format_master_url(address, rpc_layer or self.rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> Mapping[str, int]:
        """How many devices of each type a session finds: in one task if one is given, or in all."""
        counts: collections.defaultdict[str, int] = collections.defaultdict(int)
        one = task_type is not None and task_id is not None
        own = (f"/job:{task_type}/", f"/task:{task_id}/") if one else ()
        for device in get_accelerator_devices(self.master(task_type, task_id), config_proto):
            if all(part in device.name for part in own):
                counts[device.device_type] += 1
        return counts

    @property
    def environment(self) -> str | None:
        """What kind of place this is: nothing in particular."""
        return ""
