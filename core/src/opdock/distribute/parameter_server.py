"""Strategies that keep each variable in one place: on parameter servers, or on one device."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Final

from opdock.api import logging
from opdock.distribute import device_util
from opdock.distribute.aggregating import AggregatingVariable, make_aggregating
from opdock.distribute.cluster_resolver import SimpleClusterResolver, TFConfigClusterResolver
from opdock.distribute.clusters import id_in_cluster, is_chief, worker_count
from opdock.distribute.cross_device_ops import (
    ReductionToOneDevice,
    devices_from,
    reduce_non_distributed_value,
)
from opdock.distribute.extended import BetweenGraphs
from opdock.distribute.inputs import InputExtended, Worker
from opdock.distribute.mirrored import local_gpus
from opdock.distribute.modes import UpdateContext
from opdock.distribute.one_device import validate_colocate
from opdock.distribute.replicas import call_for_each_replica
from opdock.distribute.strategy import InputContext, Strategy
from opdock.distribute.values import DistributedValues, Mirrored
from opdock.graph.nodes.devicespec import DeviceSpec
from opdock.graph.nodes.scopes import colocate_with, device
from opdock.graph.variables.variable import Variable
from opdock.ops.identity import identity
from opdock.train.device_setter import replica_device_setter
from opdock.train.server_lib import ClusterSpec
from opdock.util import nest

__all__ = ["CentralStorageStrategy", "ParameterServerExtended", "ParameterServerStrategy"]

_HOST: Final = "/device:CPU:0"


class ParameterServerStrategy(Strategy):
    """Asynchronous training: each worker reads and updates variables that servers keep.

    The cluster is that of TF_CONFIG, or of a resolver. Each worker has a graph of its own, with a
    replica on each of its GPUs; those of one worker update together. Without a cluster it is all on
    this machine.

    Args:
        cluster_resolver: an object with `cluster_spec()`, `task_type`, `task_id` and
            `num_accelerators()`.

    Raises:
        ValueError: the cluster has no parameter server, or the task is not told.
    """

    def __init__(self, cluster_resolver: Any = None) -> None:
        super().__init__(ParameterServerExtended(self, cluster_resolver))


class CentralStorageStrategy(Strategy):
    """Replicas on several devices of this machine, which share variables on one.

    Args:
        compute_devices: where the replicas are; by default all GPUs, or the CPU.
        parameter_device: where the variables are; by default the CPU, or the only compute device.
    """

    def __init__(
        self, compute_devices: Sequence[str] | None = None, parameter_device: str | None = None
    ) -> None:
        super().__init__(ParameterServerExtended(self, None, compute_devices, parameter_device))

    @classmethod
    def _from_num_gpus(cls, num_gpus: int) -> CentralStorageStrategy:
        return cls(device_util.local_devices_from_num_gpus(num_gpus))


class ParameterServerExtended(InputExtended, BetweenGraphs):
    """What both strategies do."""

    def __init__(
        self, container_strategy: Any, cluster_resolver: Any = None,
        compute_devices: Sequence[str] | None = None, parameter_device: str | None = None,
        num_gpus: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(container_strategy)
        self._cross_device_ops = ReductionToOneDevice(reduce_to_device=_HOST)
        if cluster_resolver is not None:
            self._gpus = int(cluster_resolver.num_accelerators().get("GPU", 0))
        elif num_gpus is not None:
            # The cluster is told by `configure`.
            self._gpus, cluster_resolver = num_gpus, SimpleClusterResolver(ClusterSpec({}))
        else:
            self._gpus = local_gpus() if compute_devices is None else 0
            cluster_resolver = TFConfigClusterResolver()
        jobs = cluster_resolver.cluster_spec().as_dict()
        if jobs and compute_devices is None and parameter_device is None:
            self._use_cluster(jobs, cluster_resolver.task_type, cluster_resolver.task_id)
        else:
            self._use_machine(compute_devices, parameter_device)

    def _use_machine(
        self, compute_devices: Sequence[str] | None, parameter_device: str | None
    ) -> None:
        if compute_devices is None:
            compute_devices = device_util.local_devices_from_num_gpus(self._gpus)
        if parameter_device is None:
            parameter_device = compute_devices[0] if len(compute_devices) == 1 else _HOST
        self._cluster_spec: ClusterSpec | None = None
        self._task: tuple[str | None, int | None] = None, None
        self._is_chief = True
        self._variable_device: Any = parameter_device
        self._parameter_devices: tuple[str, ...] = (parameter_device,)
        self._compute_on(device_util.canonicalize(_HOST), compute_devices)

    def _use_cluster(self, jobs: dict[str, Any], task_type: str | None, task_id: Any) -> None:
        if not task_type or task_id is None:
            raise ValueError(
                "When `cluster_spec` is given, you must also specify `task_type` and `task_id`"
            )
        servers = len(jobs.get("ps", ()))
        if not servers:
            raise ValueError("The cluster spec needs to have `ps` jobs.")
        worker = f"/job:{task_type}/task:{task_id}"
        self._cluster_spec, self._task = ClusterSpec(jobs), (task_type, task_id)
        self._is_chief = task_type != "ps" and is_chief(jobs, task_type, task_id)
        self._variable_device = replica_device_setter(
            ps_tasks=servers, worker_device=worker, merge_devices=True, cluster=self._cluster_spec
        )
        self._parameter_devices = tuple(f"/job:ps/task:{i}" for i in range(servers))
        self._default_device = worker
        gpus = [f"{worker}/device:GPU:{i}" for i in range(self._gpus)]
        self._compute_on(worker, gpus or [worker])
        logging.info(
            "Multi-worker ParameterServerStrategy with cluster_spec = %r, task_type = %r, "
            "task_id = %r, num_ps_replicas = %r, is_chief = %r, devices = %r",
            jobs, task_type, task_id, servers, self._is_chief, self._devices,
        )  # fmt: skip

    def _compute_on(self, worker: str, devices: Sequence[str]) -> None:
        self._devices = tuple(device_util.canonicalize(d) for d in devices)
        if len(set(self._devices)) != len(self._devices):
            raise ValueError(f"Duplicate devices in {devices}, after canonicalization")
        self._workers = (Worker(worker, self._devices, remote=bool(self._cluster_spec)),)

    # ------------------------------------------------------------ variables
    def _allow_variable_partition(self) -> bool:
        return True

    def _create_variable(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        beside = kwargs.pop("colocate_with", None)
        where = device(None) if beside is not None else colocate_with(None, ignore_existing=True)
        place = device(self._variable_device) if beside is None else colocate_with(beside.op)
        with where, place:
            if self._num_replicas_in_sync == 1:
                return next_creator(**kwargs)
            return make_aggregating(self._container_strategy(), next_creator, **kwargs)

    def _validate_colocate_with_variable(self, colocate_with_variable: Any) -> None:
        validate_colocate(colocate_with_variable, self)

    def read_var(self, v: Any) -> Any:
        """The value of a variable."""
        return identity(v)

    def value_container(self, value: Any) -> Any:
        """What replicas know a variable as, or the value itself."""
        return getattr(value, "_aggregating_container", None) or value

    # ------------------------------------------------------------ input
    def _contexts(self) -> list[InputContext]:
        job, index = self._task
        if job not in ("chief", "worker"):
            return [InputContext(1, 0, self._num_replicas_in_sync)]
        count = worker_count(self._cluster_spec, job)
        number = id_in_cluster(self._cluster_spec, job, index)
        return [InputContext(count, number, self._num_replicas_in_sync)]

    # ------------------------------------------------------------ values
    def _check_here(self, destinations: Any) -> None:
        if not self._cluster_spec or destinations is None:
            return
        for name in devices_from(destinations):
            spec = DeviceSpec.from_string(name)
            if spec.job == self._task[0] and spec.task != self._task[1]:
                raise ValueError(
                    f"Cannot reduce to another worker: {name!r}, current worker is "
                    f"{self._workers[0].name!r}"
                )

    def _reduce_to(self, reduce_op: Any, value: Any, destinations: Any) -> Any:
        self._check_here(destinations)
        if not isinstance(value, DistributedValues):
            count = self._num_replicas_in_sync
            return reduce_non_distributed_value(reduce_op, count, value, destinations)
        return self._cross_device_ops.reduce(reduce_op, value, destinations)

    def _batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any) -> list[Any]:
        for _, destinations in value_destination_pairs:
            self._check_here(destinations)
        return self._cross_device_ops.batch_reduce(reduce_op, value_destination_pairs)

    def _broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        if isinstance(tensor, (float, int)):
            return tensor
        where = destinations or Mirrored(self._devices, self._devices)
        return self._cross_device_ops.broadcast(tensor, where)

    def _local_results(self, distributed_value: Any) -> tuple[Any, ...]:
        if isinstance(distributed_value, DistributedValues):
            return distributed_value.values
        return (distributed_value,)

    # ------------------------------------------------------------ computation
    def _call_for_each_replica(self, fn: Any, args: Any, kwargs: Any) -> Any:
        strategy = self._container_strategy()
        return call_for_each_replica(strategy, self._devices, fn, args, kwargs)

    def _update(self, var: Any, fn: Any, args: Any, kwargs: Any, group: bool) -> Any:
        if isinstance(var, AggregatingVariable):
            var = var.get()
        if not isinstance(var, Variable):
            raise ValueError(f"You can not update `var` {var!r}. It must be a Variable.")
        args, kwargs = nest.map_structure(_single, (tuple(args), kwargs))
        with colocate_with(var.op), UpdateContext(var.device):
            result = fn(var, *args, **kwargs)
        return result if group else nest.map_structure(self._local_results, result)

    def _update_non_slot(
        self, colocate_with: Any, fn: Any, args: Any, kwargs: Any, group: bool
    ) -> Any:
        with device(colocate_with.device), UpdateContext(colocate_with.device):
            result = fn(*args, **kwargs)
        return result if group else nest.map_structure(self._local_results, result)

    # ------------------------------------------------------------ facts
    @property
    def _num_replicas_in_sync(self) -> int:
        return len(self._devices)

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """Where replicas compute."""
        return self._devices

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Where variables are."""
        return self._parameter_devices

    def non_slot_devices(self, var_list: Any) -> Any:
        """The first of some variables, by name: beside it is what an optimizer has for all."""
        return min(var_list, key=lambda v: v.name)

    @property
    def experimental_should_init(self) -> bool:
        """Whether this task initializes the variables."""
        return self._is_chief

    def _configure(
        self, session_config: Any, cluster_spec: Any, task_type: str | None, task_id: int | None
    ) -> None:
        if cluster_spec:
            self._use_cluster(ClusterSpec(cluster_spec).as_dict(), task_type, task_id)
        if session_config:
            session_config.CopyFrom(self._update_config_proto(session_config))

    def _update_config_proto(self, config_proto: Any) -> Any:
        updated = copy.deepcopy(config_proto)
        updated.isolate_session_state = not self._cluster_spec
        job, index = self._task
        if job is not None:
            del updated.device_filters[:]
        if job in ("chief", "worker"):
            updated.device_filters.extend([f"/job:{job}/task:{index}", "/job:ps"])
        elif job == "evaluator":
            updated.device_filters.append(f"/job:{job}/task:{index}")
        return updated


def _single(value: Any) -> Any:
    """A value of which there is one.

    Raises:
        ValueError: each replica has its own.
    """
    if not isinstance(value, DistributedValues):
        return value
    if isinstance(value, Mirrored) and len(value.values) == 1:
        return value.primary
    raise ValueError(
        f"You cannot update variable with a {type(value).__name__} object {value!r} when using "
        "ParameterServerStrategy. You must specify a single value or a Mirrored with a single value"
    )
