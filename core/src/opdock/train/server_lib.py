"""`tf.train.Server` and `tf.train.ClusterSpec`: which tasks there are, and the one that is here."""

from __future__ import annotations

import threading
from typing import Any

from opdock import errors
from opdock.io import protos
from opdock.runtime.cancellation import patience
from opdock.runtime.cluster.task import start
from opdock.runtime.servers import LocalServer

__all__ = ["ClusterSpec", "Server", "make_server_def"]


class ClusterSpec:
    """The tasks of a cluster, by job.

    Args:
        cluster: job to its tasks' addresses, as a list or by number; a ClusterDef; or another
            `ClusterSpec`.

    Raises:
        TypeError: `cluster` is something else.
    """

    def __init__(self, cluster: Any) -> None:
        self._jobs: dict[str, dict[int, str]]
        if isinstance(cluster, ClusterSpec):
            self._jobs = {job: dict(tasks) for job, tasks in cluster._jobs.items()}
        elif isinstance(cluster, protos.ClusterDef):
            self._jobs = {job.name: dict(job.tasks) for job in cluster.job}
        elif isinstance(cluster, dict):
            self._jobs = {job: _numbered(job, tasks) for job, tasks in cluster.items()}
        else:
            raise TypeError(
                "`cluster` must be a dictionary mapping one or more job names to lists of network "
                "addresses, or a `ClusterDef` protocol buffer"
            )
        self._cluster_def = _message(self._jobs)

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return self._jobs == (other._jobs if isinstance(other, ClusterSpec) else other)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        jobs = self.as_dict()
        return f"ClusterSpec({{{', '.join(f'{job!r}: {jobs[job]!r}' for job in sorted(jobs))}}})"

    def as_dict(self) -> dict[str, Any]:
        """Job to the list of its tasks' addresses; a dict where numbers are left out."""
        dense = {job: sorted(tasks) == list(range(len(tasks))) for job, tasks in self._jobs.items()}
        return {
            job: self.job_tasks(job) if tasks and dense[job] else dict(sorted(tasks.items()))
            for job, tasks in self._jobs.items()
        }

    def as_cluster_def(self) -> Any:
        """The ClusterDef message."""
        return self._cluster_def

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._jobs)

    def num_tasks(self, job_name: str) -> int:
        """How many tasks a job has; ValueError if there is no such job."""
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The numbers of a job's tasks; ValueError if there is no such job."""
        return sorted(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a task; ValueError if there is no such task."""
        job = self._job(job_name)
        if task_index not in job:
            raise ValueError(f"No task with index {task_index!r} in job {job_name!r}")
        return job[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """The addresses of a job's tasks, None for numbers that are left out.

        Raises:
            ValueError: there is no such job.
        """
        job = self._job(job_name)
        return [job.get(i) for i in range(max(job) + 1)]

    def _job(self, name: str) -> dict[int, str]:
        if name not in self._jobs:
            raise ValueError(f"No such job in cluster: {name!r}")
        return self._jobs[name]


def _numbered(job: Any, tasks: Any) -> dict[int, str]:
    if isinstance(tasks, (list, tuple)):
        return dict(enumerate(tasks))
    if isinstance(tasks, dict):
        return dict(tasks)
    raise TypeError(
        f"The tasks for job {job!r} must be a list or a dictionary from integers to strings."
    )


def _message(jobs: dict[str, dict[int, str]]) -> Any:
    message = protos.ClusterDef()
    for job, tasks in sorted(jobs.items()):
        if not isinstance(job, (str, bytes)):
            raise TypeError(f"Job name {job!r} must be bytes or unicode")
        made = message.job.add(name=job)
        for number, address in tasks.items():
            if not isinstance(address, (str, bytes)):
                raise TypeError(f"Task address {address!r} must be bytes or unicode")
            if type(number) is not int or not 0 <= number < 1 << 31:
                raise TypeError(f"Task index {number!r} of job {job!r} must be an integer from 0")
            made.tasks[number] = address
    return message


class Server:
    """A task of a cluster, in this process; sessions with its target run over the cluster's tasks.

    Tasks of one process find each other. Reaching those of others takes a cluster engine, which a
    plugin brings.

    Args:
        server_or_cluster_def: a ServerDef, or the cluster as for `ClusterSpec`.
        job_name: the job of this task; the cluster's only one by default.
        task_index: its number; that of the job's only task by default.
        protocol: the name of a cluster engine; "grpc", the default, takes the preferred one.
        config: a ConfigProto for sessions that bring none.
        start: whether to start it at once.

    Raises:
        TypeError: the first argument is of another type.
        ValueError: job or task are not given, and there are several.
        InvalidArgumentError: the task's address has no port.
        InternalError: the cluster has no such job or task.
        UnimplementedError: no cluster engine has the name that was given as the protocol.
    """

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
    ) -> None:
        self._server_def = make_server_def(
            server_or_cluster_def, job_name, task_index, protocol, config
        )
        self._server: LocalServer | None = None
        self._address = self._own_address()
        if start:
            self.start()

    def _own_address(self) -> str:
        cluster, job = ClusterSpec(self._server_def.cluster), self._server_def.job_name
        index = self._server_def.task_index
        check = "Check the job name and task index with which this process was started."
        if job not in cluster.jobs:
            raise errors.InternalError(
                None, None,
                f'Job "{job}" was not defined in cluster, whose jobs are '
                f"{', '.join(cluster.jobs)}. {check}",
            )  # fmt: skip
        if index not in cluster.task_indices(job):
            raise errors.InternalError(
                None, None,
                f'Task {index} was not defined in job "{job}", whose tasks are '
                f"{', '.join(map(str, cluster.task_indices(job)))}. {check}",
            )  # fmt: skip
        address = cluster.task_address(job, index)
        if not address.rpartition(":")[2].isdigit() or ":" not in address:
            raise errors.InvalidArgumentError(
                None, None, f'Could not parse port for local server from "{address}"'
            )
        return address

    def start(self) -> None:
        """Starts the server; sessions can take its target then.

        Raises:
            UnimplementedError: no cluster engine has the name that was given as the protocol.
            UnknownError: another server has the address.
        """
        if self._server is not None:
            return
        try:
            self._server = start(self._address, self._server_def)
        except errors.UnknownError as e:
            raise errors.UnknownError(
                None, None,
                f"{e.message}. It is that of /job:{self._server_def.job_name}/task:"
                f"{self._server_def.task_index}: is one running that was started before, or with "
                "the same task index?",
            ) from None  # fmt: skip

    def join(self) -> None:
        """Waits for the end of the server, which is that of the process: for ever."""
        never = threading.Event()
        while not never.wait(patience()):
            pass

    @property
    def server_def(self) -> Any:
        """The ServerDef message."""
        return self._server_def

    @property
    def target(self) -> str:
        """The target of its sessions; empty before it is started."""
        return "" if self._server is None else self._server.target

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """A server of its own, with one task of job "local".

        Args:
            config: a ConfigProto for sessions that bring none.
            start: whether to start it at once.
        """
        return Server({"local": ["localhost:0"]}, protocol="grpc", config=config, start=start)


def make_server_def(
    given: Any, job_name: str | None, task_index: int | None, protocol: str | None, config: Any
) -> Any:
    """The ServerDef of one task."""
    made = protos.ServerDef()
    if isinstance(given, protos.ServerDef):
        made.MergeFrom(given)
    else:
        try:
            cluster = ClusterSpec(given)
        except TypeError:
            raise TypeError(
                "Could not convert `server_or_cluster_def` to a `tf.train.ServerDef` or "
                "`tf.train.ClusterSpec`."
            ) from None
        if job_name is None:
            if len(cluster.jobs) != 1:
                raise ValueError("Must specify an explicit `job_name`.")
            job_name = cluster.jobs[0]
        if task_index is None:
            indices = cluster.task_indices(job_name)
            if len(indices) != 1:
                raise ValueError("Must specify an explicit `task_index`.")
            task_index = indices[0]
        made.cluster.CopyFrom(cluster.as_cluster_def())
        protocol = protocol or "grpc"
    if job_name is not None:
        made.job_name = job_name
    if task_index is not None:
        made.task_index = task_index
    if protocol is not None:
        made.protocol = protocol
    if config is not None:
        made.default_session_config.MergeFrom(config)
    return made
