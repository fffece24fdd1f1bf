"""A cluster of what Slurm has allocated."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

from opdock.distribute.cluster_resolver.resolver import ClusterResolver
from opdock.train.server_lib import ClusterSpec

__all__ = ["SlurmClusterResolver"]


class SlurmClusterResolver(ClusterResolver):
    """The nodes of a Slurm allocation, each with as many tasks, one after the other.

    Args:
        jobs: the number of tasks of each job.
        port_base: the port of a node's first task; the next ones follow.
        gpus_per_node: how many GPUs a node has.
        gpus_per_task: how many of them a task gets.
        tasks_per_node: how many tasks a node has; SLURM_NTASKS_PER_NODE by default.
        auto_set_gpu: whether `cluster_spec` sets CUDA_VISIBLE_DEVICES to this task's GPUs.
        rpc_layer: the protocol between tasks.

    Raises:
        KeyError: neither Slurm nor mpirun has said which process this is.
        RuntimeError: the tasks of a node are not known or want more GPUs than it has, or `jobs` are
            not as many tasks as were started.
    """

    def __init__(
        self, jobs: Mapping[str, int], port_base: int = 8888, gpus_per_node: int = 1,
        gpus_per_task: int = 1, tasks_per_node: int | None = None, auto_set_gpu: bool = True,
        rpc_layer: str = "grpc",
    ) -> None:  # fmt: skip
        by_mpi = "OMPI_COMM_WORLD_RANK" in os.environ
        rank, size = (
            ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
            if by_mpi
            else ("SLURM_PROCID", "SLURM_NTASKS")
        )
        self._rank, started = int(os.environ[rank]), int(os.environ[size])
        if tasks_per_node is None:
            if "SLURM_NTASKS_PER_NODE" not in os.environ:
                raise RuntimeError("Neither `tasks_per_node` or SLURM_NTASKS_PER_NODE is set.")
            tasks_per_node = int(os.environ["SLURM_NTASKS_PER_NODE"])
        if tasks_per_node * gpus_per_task > gpus_per_node:
            raise RuntimeError("Requested more GPUs per node then available.")
        if sum(jobs.values()) != started:
            raise RuntimeError("Requested more tasks then assigned tasks.")
        self._jobs, self._port_base = dict(sorted(jobs.items())), port_base
        self._gpus_per_node, self._gpus_per_task = gpus_per_node, gpus_per_task
        self._tasks_per_node, self._auto_set_gpu = tasks_per_node, auto_set_gpu
        self.rpc_layer = rpc_layer

    def _resolve_hostnames(self) -> list[str]:
        """The names of the allocated nodes, from Slurm's own command.

        Raises:
            FileNotFoundError: there is no such command.
            CalledProcessError: it failed.
        """
        command = shutil.which("scontrol")
        if command is None:
            raise FileNotFoundError("Slurm's command scontrol, which names the nodes, is not here")
        return subprocess.check_output([command, "show", "hostname"], text=True).split()

    def cluster_spec(self) -> ClusterSpec:
        """The tasks, as Slurm has placed them; sets `task_type` and `task_id` to this one's."""
        places = [
            f"{host}:{self._port_base + number}"
            for host in self._resolve_hostnames()
            for number in range(self._tasks_per_node)
        ]
        found: dict[str, list[str]] = {}
        first = 0
        for job, count in self._jobs.items():
            found[job] = places[first : first + count]
            if first <= self._rank < first + count:
                self.task_type, self.task_id = job, self._rank - first
            first += count
        if self._auto_set_gpu:
            own = self._rank % self._tasks_per_node * self._gpus_per_task
            gpus = range(own, own + self._gpus_per_task)
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, gpus))
        return ClusterSpec(found)

    def get_task_info(self) -> tuple[str | None, int | None]:
        """This process's job and number; None before `cluster_spec` was called."""
        return self.task_type, self.task_id

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The target for sessions: that of a task, or "" where none is known."""
        return self._master_of_task(task_type, task_id, rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> Mapping[str, int]:
        """How many GPUs a node has, as it was told."""
        return {"GPU": self._gpus_per_node}
