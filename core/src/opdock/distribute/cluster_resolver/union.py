"""Several clusters as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opdock.distribute.cluster_resolver.resolver import ClusterResolver
from opdock.train.server_lib import ClusterSpec

__all__ = ["UnionClusterResolver"]


class UnionClusterResolver(ClusterResolver):
    """The tasks of all of some resolvers; for all else the first of them speaks.

    Args:
        *args: the resolvers.
        rpc_layer: the protocol between tasks.
        task_type: the job of this process.
        task_id: its number.

    Raises:
        TypeError: one of them is no resolver.
        ValueError: there is none, or another argument is given.
    """

    def __init__(self, *args: ClusterResolver, **kwargs: Any) -> None:
        told = {name: kwargs.pop(name, None) for name in ("rpc_layer", "task_type", "task_id")}
        if kwargs:
            raise ValueError(f"Unexpected kwargs provided {kwargs!r}")
        if not args:
            raise ValueError("At least one ClusterResolver is required.")
        if not all(isinstance(resolver, ClusterResolver) for resolver in args):
            raise TypeError("All arguments must be a sub-class of `ClusterResolver.`")
        self._all, self._first = args, args[0]
        for name, value in told.items():
            setattr(self, name, value)

    def _unless_told(self, name: str) -> Any:
        return getattr(self._first, name)

    def cluster_spec(self) -> ClusterSpec:
        """The tasks of all; lists of one job follow each other.

        Raises:
            KeyError: a job's tasks are numbered, and two have the same number.
        """
        found: dict[str, list[Any]] = {}
        for resolver in self._all:
            for job, tasks in resolver.cluster_spec().as_dict().items():
                found.setdefault(job, []).append(tasks)
        return ClusterSpec({job: _merged(several) for job, several in found.items()})

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The target for sessions: the first resolver's, or that of a task."""
        if task_type is not None and task_id is not None:
            return self._master_of_task(task_type, task_id, rpc_layer)
        return self._first.master(rpc_layer=rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> Mapping[str, int]:
        """How many devices of each type the first resolver finds."""
        return self._first.num_accelerators(task_type, task_id, config_proto)

    @property
    def environment(self) -> str | None:
        """What kind of place the first resolver says this is."""
        return self._first.environment


def _merged(several: list[Any]) -> list[str] | dict[int, str]:
    """The tasks of one job from several clusters."""
    if all(isinstance(tasks, list) for tasks in several):
        return [address for tasks in several for address in tasks]
    found: dict[int, str] = {}
    for tasks in several:
        numbered = dict(enumerate(tasks)) if isinstance(tasks, list) else tasks
        twice = found.keys() & numbered.keys()
        if twice:
            raise KeyError(f"Duplicate keys detected when merging two ClusterSpecs: {twice!r}")
        found.update(numbered)
    return found
