"""`MirroredStrategy`: replicas on several devices, each with a copy of every variable."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from opdock.distribute import device_util
from opdock.distribute.cluster_resolver import TFConfigClusterResolver
from opdock.distribute.clusters import devices_of
from opdock.distribute.cross_device_ops import (
    MultiWorkerAllReduce,
    ReductionToOneDevice,
    reduce_non_distributed_value,
)
from opdock.distribute.extended import InOneGraph
from opdock.distribute.inputs import InputExtended, workers_of
from opdock.distribute.modes import UpdateContext
from opdock.distribute.reductions import ReduceOp
from opdock.distribute.replicas import call_for_each_replica
from opdock.distribute.steps import MultiStepContext, run_steps
from opdock.distribute.strategy import Strategy
from opdock.distribute.values import (
    DistributedValues,
    Mirrored,
    regroup,
    select_device_mirrored,
    update_regroup,
)
from opdock.distribute.variables import DistributedVariable, SyncOnReadVariable, make_mirrored
from opdock.graph.nodes.devicespec import DeviceSpec
from opdock.graph.nodes.scopes import device, name_scope
from opdock.ops.identity import identity
from opdock.util.graph_helpers import list_local_devices

__all__ = ["MirroredExtended", "MirroredStrategy", "local_gpus"]


def local_gpus() -> int:
    """How many GPUs a session of this process finds."""
    return sum(found.device_type == "GPU" for found in list_local_devices())


class MirroredStrategy(Strategy):
    """Synchronous training on several devices of one machine.

    Each device has a copy of every variable, and computes a replica's part of each batch; the
    gradients of all are reduced, and each copy is updated alike.

    Args:
        devices: the names of the devices; by default the GPUs of the cluster that TF_CONFIG tells
            of, or of this machine, or its CPU if there is none.
        cross_device_ops: how values are reduced, a `tf.distribute.CrossDeviceOps`.

    Raises:
        AssertionError: a device is named twice.
        ValueError: the devices are on several machines.
    """

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: Any = None) -> None:
        super().__init__(MirroredExtended(self, devices, cross_device_ops))


class MirroredExtended(InputExtended, InOneGraph):
    """What `MirroredStrategy` does."""

    def __init__(
        self, container_strategy: Any, devices: Sequence[str] | None = None,
        cross_device_ops: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(container_strategy)
        self._given_ops = cross_device_ops
        self._use(devices or _all_devices())

    def _use(self, devices: Sequence[str]) -> None:
        found = tuple(device_util.resolve(d) for d in devices)
        if len(set(found)) != len(found):
            raise AssertionError(f"No duplicates allowed in `devices` argument: {found}")
        self._devices = found
        self._workers = workers_of(found)
        several = len(self._workers) > 1
        if several and not isinstance(self._given_ops, MultiWorkerAllReduce):
            raise ValueError(
                "In-graph multi-worker training with `MirroredStrategy` is not supported."
            )
        if self._workers[0].remote:
            self._default_device = self._workers[0].name
        self._cross_device_ops = self._given_ops or ReductionToOneDevice()

    # ------------------------------------------------------------ variables
    def _create_variable(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        beside = kwargs.pop("colocate_with", None)
        devices = self._devices if beside is None else beside.devices

        def make(devices: Sequence[str], **kwargs: Any) -> list[Any]:
            made: list[Any] = []
            dtype, given = kwargs.get("dtype"), kwargs["initial_value"]
            kwargs["initial_value"] = self._initial_value(devices[0], dtype, given)
            for i, where in enumerate(devices):
                with device(where):
                    if i:
                        kwargs["initial_value"] = lambda: identity(made[0].initial_value)
                        kwargs["name"] = f"{made[0].op.name}/replica_{i}/"
                    made.append(next_creator(**kwargs))
            return made

        return make_mirrored(self._container_strategy(), devices, make, **kwargs)

    def _initial_value(self, where: str, dtype: Any, initial_value: Any) -> Any:
        """What the first copy of a variable begins with, on its device; the others copy it."""
        return initial_value

    def _validate_colocate_with_variable(self, colocate_with_variable: Any) -> None:
        kind, strategy = DistributedVariable, self._container_strategy()
        beside = colocate_with_variable
        if not isinstance(beside, kind) or beside.distribute_strategy is not strategy:
            raise ValueError(
                "`colocate_vars_with` must only be passed a variable created in this "
                f"tf.distribute.Strategy.scope(), not: {beside!r}"
            )

    def read_var(self, v: Any) -> Any:
        """The value of a variable across replicas."""
        return v._whole() if isinstance(v, SyncOnReadVariable) else identity(v.get())

    # ------------------------------------------------------------ values
    def _reduce_to(self, reduce_op: Any, value: Any, destinations: Any) -> Any:
        if isinstance(value, Mirrored) and reduce_op is ReduceOp.MEAN:
            return value
        if not isinstance(value, DistributedValues):
            count = self._num_replicas_in_sync
            return reduce_non_distributed_value(reduce_op, count, value, destinations)
        return self._cross_device_ops.reduce(reduce_op, value, destinations)

    def _batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any) -> list[Any]:
        found: list[Any]
        found = self._cross_device_ops.batch_reduce(reduce_op, value_destination_pairs)
        return found

    def _broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        if isinstance(tensor, (float, int)):
            return tensor
        where = destinations or regroup(self._devices, self._devices, Mirrored)
        return self._cross_device_ops.broadcast(tensor, where)

    def _local_results(self, distributed_value: Any) -> tuple[Any, ...]:
        if isinstance(distributed_value, DistributedValues):
            return distributed_value.values
        return (distributed_value,)

    def value_container(self, value: Any) -> Any:
        """The variable of which a variable is a copy, or the value itself."""
        reference = getattr(value, "_distributed_container", None)
        return value if reference is None else reference()

    # ------------------------------------------------------------ computation
    def _call_for_each_replica(self, fn: Any, args: Any, kwargs: Any) -> Any:
        strategy = self._container_strategy()
        return call_for_each_replica(strategy, self._devices, fn, args, kwargs)

    def _update(self, var: Any, fn: Any, args: Any, kwargs: Any, group: bool) -> Any:
        return self._on_each(var.devices, var.values, fn, args, kwargs, group)

    def _update_non_slot(
        self, colocate_with: Any, fn: Any, args: Any, kwargs: Any, group: bool
    ) -> Any:
        return self._on_each(colocate_with, None, fn, args, kwargs, group)

    def _on_each(
        self, devices: Sequence[str], copies: Any, fn: Any, args: Any, kwargs: Any, group: bool
    ) -> Any:
        updates = []
        for i, where in enumerate(devices):
            with device(where), UpdateContext(where), name_scope(f"update_{i}"):
                own = () if copies is None else (copies[i],)
                updates.append(
                    fn(
                        *own, *select_device_mirrored(where, tuple(args)),
                        **select_device_mirrored(where, kwargs),
                    )
                )  # fmt: skip
        return update_regroup(self, devices, updates, group)

    def _experimental_run_steps_on_iterator(
        self, fn: Any, iterator: Any, iterations: Any, initial_loop_values: Any
    ) -> MultiStepContext:
        return run_steps(self, fn, iterator, iterations, initial_loop_values)

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
        """Where copies of variables are."""
        return self._devices

    def non_slot_devices(self, var_list: Any) -> tuple[str, ...]:
        """Where an optimizer keeps what it has for all variables."""
        return self._devices

    def _configure(
        self, session_config: Any, cluster_spec: Any, task_type: str | None, task_id: int | None
    ) -> None:
        if session_config:
            session_config.CopyFrom(self._update_config_proto(session_config))
        if cluster_spec:
            gpus = sum(DeviceSpec.from_string(d).device_type == "GPU" for d in self._devices)
            self._use(devices_of(cluster_spec, gpus))

    def _update_config_proto(self, config_proto: Any) -> Any:
        updated = copy.deepcopy(config_proto)
        updated.isolate_session_state = True
        return updated


def _all_devices() -> tuple[str, ...]:
    """The devices of the cluster that TF_CONFIG tells of, or of this machine."""
    cluster = TFConfigClusterResolver().cluster_spec()
    found = devices_of(cluster, local_gpus()) if cluster else ()
    return found or device_util.local_devices_from_num_gpus(local_gpus())
