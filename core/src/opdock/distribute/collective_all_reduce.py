"""`MultiWorkerMirroredStrategy`: workers in step, each with copies of every variable."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from opdock.api import logging
from opdock.distribute import clusters, device_util
from opdock.distribute.cluster_resolver import (
    ClusterResolver,
    SimpleClusterResolver,
    TFConfigClusterResolver,
)
from opdock.distribute.collective_keys import CollectiveKeys
from opdock.distribute.cross_device_ops import CollectiveAllReduce, CollectiveCommunication
from opdock.distribute.extended import BetweenGraphs
from opdock.distribute.mirrored import MirroredExtended, local_gpus
from opdock.distribute.reductions import ReduceOp
from opdock.distribute.strategy import InputContext, Strategy
from opdock.distribute.values import DistributedValues, Mirrored
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import device
from opdock.ops.collective import broadcast_recv, broadcast_send
from opdock.train.server_lib import ClusterSpec

__all__ = ["CollectiveAllReduceExtended", "CollectiveAllReduceStrategy"]


class CollectiveAllReduceStrategy(Strategy):
    """Synchronous training on several workers: each runs a program of its own, in step with others.

    The cluster and this worker's place in it come from TF_CONFIG; without one the worker is alone.
    Each of its devices has a copy of every variable, which begins with the chief's value, and
    gradients are reduced over all devices of all workers.

    Args:
        communication: a `tf.distribute.experimental.CollectiveCommunication`, by which way TF would
            reduce.

    Raises:
        ValueError: TF_CONFIG does not say which task this is, or the cluster has no workers.
    """

    def __init__(
        self, communication: CollectiveCommunication = CollectiveCommunication.AUTO
    ) -> None:
        super().__init__(CollectiveAllReduceExtended(self, communication))

    @classmethod
    def _from_local_devices(cls, devices: Sequence[str]) -> CollectiveAllReduceStrategy:
        """One for several devices of this worker."""
        made = cls()
        made.extended._use(tuple(devices))
        return made


class CollectiveAllReduceExtended(BetweenGraphs, MirroredExtended):
    """What `MultiWorkerMirroredStrategy` does.

    Args:
        container_strategy: the strategy whose part this is.
        communication: by which way TF would reduce.
        cluster_resolver: knows the cluster; TF_CONFIG does by default.
    """

    def __init__(
        self, container_strategy: Any, communication: CollectiveCommunication,
        cluster_resolver: ClusterResolver | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(communication, CollectiveCommunication):
            raise AssertionError(f"communication: {communication!r}")
        resolver = TFConfigClusterResolver() if cluster_resolver is None else cluster_resolver
        # Of its own process TF_CONFIG says nothing, and a session would find what is here.
        here = isinstance(resolver, TFConfigClusterResolver)
        self._gpus = local_gpus() if here else int(resolver.num_accelerators().get("GPU", 0))
        self._communication, self._keys = communication, CollectiveKeys()
        devices = self._join(resolver)
        super().__init__(container_strategy, devices, self._reductions())

    def _reductions(self) -> CollectiveAllReduce:
        return CollectiveAllReduce(self._num_workers, self._gpus, collective_keys=self._keys)

    def _join(self, resolver: ClusterResolver) -> tuple[str, ...]:
        """Takes a worker's place in a cluster; its devices."""
        cluster = resolver.cluster_spec()
        self._cluster = cluster.as_dict()
        self._task = resolver.task_type, resolver.task_id
        if not self._cluster:
            self._num_workers, self._number, self._is_chief = 1, 0, True
            return device_util.local_devices_from_num_gpus(self._gpus)
        job, index = self._task
        if job is None or index is None:
            raise ValueError(
                "When `cluster_spec` is given, you must also specify `task_type` and `task_id`."
            )
        self._num_workers = clusters.worker_count(cluster, job)
        if not self._num_workers:
            raise ValueError(
                "No `worker`, `chief` or `evaluator` tasks can be found in `cluster_spec`."
            )
        self._number = clusters.id_in_cluster(cluster, job, index)
        self._is_chief = clusters.is_chief(cluster, job, index)
        worker = f"/job:{job}/task:{index}"
        logging.info(
            "Multi-worker CollectiveAllReduceStrategy with cluster_spec = %r, task_type = %r, "
            "task_id = %r, num_workers = %r, communication = %s",
            self._cluster, job, index, self._num_workers, self._communication,
        )  # fmt: skip
        return tuple(f"{worker}/device:GPU:{i}" for i in range(self._gpus)) or (worker,)

    def _configure(
        self, session_config: Any, cluster_spec: Any, task_type: str | None, task_id: int | None
    ) -> None:
        if cluster_spec:
            resolver = SimpleClusterResolver(
                ClusterSpec(cluster_spec), task_type=task_type, task_id=task_id
            )
            devices = self._join(resolver)
            self._given_ops = self._reductions()
            self._use(devices)
        if session_config:
            session_config.CopyFrom(self._update_config_proto(session_config))

    def _update_config_proto(self, config_proto: Any) -> Any:
        updated = copy.deepcopy(config_proto)
        rewrites = updated.graph_options.rewrite_options
        rewrites.scoped_allocator_optimization = rewrites.ON
        rewrites.scoped_allocator_opts.enable_op[:] = ["CollectiveReduce"]
        if self._communication is CollectiveCommunication.NCCL:
            updated.experimental.collective_nccl = True
        if self._cluster:
            leader = clusters.collective_leader(self._cluster, *self._task)
            updated.experimental.collective_group_leader = leader
            # A worker's session is its own task's: workers meet in what they reduce.
            updated.device_filters[:] = ["/job:{}/task:{}".format(*self._task)]
        return updated

    # ------------------------------------------------------------ variables and values
    def _initial_value(self, where: str, dtype: Any, initial_value: Any) -> Any:
        if self._num_workers == 1:
            return initial_value
        group, size = self._keys.get_group_key([where]), self._num_workers
        key = self._keys.get_variable_instance_key()

        def of_chief() -> Any:
            with device(where):
                own = convert_to_tensor(
                    initial_value() if callable(initial_value) else initial_value, dtype=dtype
                )
                if self._is_chief:
                    return broadcast_send(own, own.shape, own.dtype, size, group, key)
                return broadcast_recv(own.shape, own.dtype, size, group, key)

        return of_chief

    def _reduce_to(self, reduce_op: Any, value: Any, destinations: Any) -> Any:
        if self._num_workers == 1 or (isinstance(value, Mirrored) and reduce_op is ReduceOp.MEAN):
            return super()._reduce_to(reduce_op, value, destinations)
        if isinstance(value, DistributedValues) and len(self._devices) == 1:
            value = value.values[0]
        return self._cross_device_ops.reduce(reduce_op, value, destinations)

    # ------------------------------------------------------------ facts
    def _contexts(self) -> list[InputContext]:
        return [InputContext(self._num_workers, self._number, self._num_replicas_in_sync)]

    def _share(self, worker: int) -> tuple[int, int]:
        return self._num_workers, self._number

    @property
    def _saves_together(self) -> bool:
        return self._num_workers > 1

    @property
    def _num_replicas_in_sync(self) -> int:
        return len(self._devices) * self._num_workers
