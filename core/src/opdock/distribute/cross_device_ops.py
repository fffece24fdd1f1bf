"""How values of several devices become one, and reach several devices."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opdock.distribute import device_util
from opdock.distribute.collective_keys import CollectiveKeys
from opdock.distribute.reductions import ReduceOp
from opdock.distribute.values import DistributedValues, Mirrored, PerReplica, regroup
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, device
from opdock.graph.variables.variable import Variable
from opdock.ops.collective import all_gather, all_reduce
from opdock.ops.identity import identity
from opdock.ops.joining import concat
from opdock.ops.sums import add_n

__all__ = [
    "AllReduceCrossDeviceOps", "CollectiveAllReduce", "CollectiveCommunication", "CrossDeviceOps",
    "HierarchicalCopyAllReduce",
    "MultiWorkerAllReduce", "NcclAllReduce", "ReductionToOneDevice",
    "devices_from", "reduce_non_distributed_value",
]  # fmt: skip


class CollectiveCommunication(enum.Enum):
    """By which way TF would reduce over workers; here they all meet at one of them."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class CrossDeviceOps:
    """Base class. A subclass says by which ways values are reduced."""

    _num_between_graph_workers = 1

    def reduce(self, reduce_op: Any, per_replica_value: Any, destinations: Any) -> Any:
        """The values of replicas as one, on the devices of `destinations`.

        Args:
            reduce_op: a `tf.distribute.ReduceOp`.
            per_replica_value: the values, or a tensor.
            destinations: a device's name, a tensor, a variable, or values of each replica.

        Raises:
            ValueError: there is no destination.
        """
        value = _per_replica(per_replica_value)
        where = devices_from(destinations)
        alone = len(value.values) == self._num_between_graph_workers == 1
        if alone and set(value.devices) == set(where):
            return regroup(value.devices, value.values, Mirrored)
        return self.reduce_implementation(reduce_op, value, destinations)

    def batch_reduce(
        self, reduce_op: Any, value_destination_pairs: Iterable[tuple[Any, Any]]
    ) -> list[Any]:
        """`reduce` for many values at once."""
        pairs = [(_per_replica(value), to) for value, to in value_destination_pairs]
        return self.batch_reduce_implementation(reduce_op, pairs)

    def broadcast(self, tensor: Any, destinations: Any) -> Any:
        """A tensor on the devices of `destinations`."""
        devices_from(destinations)
        return self.broadcast_implementation(tensor, destinations)

    def reduce_implementation(
        self, reduce_op: Any, per_replica_value: Any, destinations: Any
    ) -> Any:
        """What `reduce` gives where something is to be done."""
        raise NotImplementedError("_reduce method must be implemented in descendants.")

    def batch_reduce_implementation(
        self, reduce_op: Any, value_destination_pairs: Sequence[tuple[Any, Any]]
    ) -> list[Any]:
        """What `batch_reduce` gives."""
        return [self.reduce(reduce_op, value, to) for value, to in value_destination_pairs]

    def broadcast_implementation(self, tensor: Any, destinations: Any) -> Any:
        """What `broadcast` gives."""
        where = devices_from(destinations)
        return regroup(where, [copy_to_device(tensor, d) for d in where], Mirrored)


class _Adding(CrossDeviceOps):
    """What adds values on one device and copies the result to all."""

    def __init__(
        self, reduce_to_device: str | None = None,
        accumulation_fn: Callable[[list[Any]], Any] | None = None,
    ) -> None:  # fmt: skip
        self.reduce_to_device = reduce_to_device
        self.accumulation_fn = accumulation_fn or add_n

    def reduce_implementation(
        self, reduce_op: Any, per_replica_value: Any, destinations: Any
    ) -> Any:
        """Adds on one device and copies."""
        where = devices_from(destinations)
        with device(self.reduce_to_device or where[0]):
            values = per_replica_value.values
            total = _total(values, reduce_op, self.accumulation_fn, len(values))
        copies = [copy_to_device(total, d) for d in where]
        return copies[0] if len(copies) == 1 else regroup(where, copies, Mirrored)


class ReductionToOneDevice(_Adding):
    """Values are added on one device, and the result is copied to all.

    Args:
        reduce_to_device: the device; by default the first of those that want the result.
        accumulation_fn: adds a list of tensors; `tf.add_n` by default.
    """


class AllReduceCrossDeviceOps(_Adding):
    """The reduction where devices talk to each other; how they do is up to their backends.

    Args:
        all_reduce_alg: the algorithm that TF would take.
        num_packs: how many packs of gradients TF would make.
        agg_small_grads_max_bytes, agg_small_grads_max_group: which and how many of the gradients
            TF would put together.
    """

    def __init__(
        self, all_reduce_alg: str = "nccl", num_packs: int = 1,
        agg_small_grads_max_bytes: int = 0, agg_small_grads_max_group: int = 10,
    ) -> None:  # fmt: skip
        if num_packs < 0:
            raise ValueError(f"num_packs must be >= 0, but {num_packs} is specified")
        super().__init__()
        self._all_reduce_alg, self._num_packs = all_reduce_alg, num_packs


class NcclAllReduce(AllReduceCrossDeviceOps):
    """The reduction that programs ask for on NVIDIA's GPUs.

    Args:
        num_packs: how many packs of gradients TF would make.
    """

    def __init__(self, num_packs: int = 1) -> None:
        super().__init__("nccl", num_packs)


class HierarchicalCopyAllReduce(AllReduceCrossDeviceOps):
    """The reduction that programs ask for where groups of devices are near each other.

    Args:
        num_packs: how many packs of gradients TF would make.
    """

    def __init__(self, num_packs: int = 1) -> None:
        super().__init__("hierarchical_copy", num_packs)


class MultiWorkerAllReduce(AllReduceCrossDeviceOps):
    """The reduction that programs ask for over the devices of several workers.

    Args:
        worker_devices: the workers.
        num_gpus_per_worker: how many GPUs each has.
        all_reduce_spec, num_packs, agg_small_grads_max_bytes, agg_small_grads_max_group: by which
            ways, and in which packs, TF would reduce.
    """

    def __init__(
        self, worker_devices: Sequence[str], num_gpus_per_worker: int,
        all_reduce_spec: Any = ("pscpu/pscpu", 2, -1), num_packs: int = 0,
        agg_small_grads_max_bytes: int = 0, agg_small_grads_max_group: int = 10,
    ) -> None:  # fmt: skip
        super().__init__(str(all_reduce_spec), num_packs)
        self._worker_devices, self._num_gpus_per_worker = worker_devices, num_gpus_per_worker


class CollectiveAllReduce(CrossDeviceOps):
    """The reduction over the devices of workers that have a graph each, which all build alike.

    Args:
        num_workers: how many workers there are.
        num_gpus_per_worker: how many GPUs each has.
        all_reduce_merge_scope: how many reductions TF would give one name scope.
        collective_keys: numbers ops; those of other reductions in the same graphs go on counting.
    """

    def __init__(
        self, num_workers: int = 1, num_gpus_per_worker: int = 0, all_reduce_merge_scope: int = 32,
        collective_keys: CollectiveKeys | None = None,
    ) -> None:  # fmt: skip
        self._num_between_graph_workers = num_workers
        self._num_gpus_per_worker = num_gpus_per_worker
        self._all_reduce_merge_scope = all_reduce_merge_scope
        self._collective_keys = collective_keys or CollectiveKeys()

    def reduce_implementation(
        self, reduce_op: Any, per_replica_value: Any, destinations: Any
    ) -> Any:
        """Reduces over all devices of all workers, and copies to those that are asked for."""
        where = devices_from(destinations)
        value = per_replica_value
        size = len(value.values) * self._num_between_graph_workers
        if all(isinstance(v, IndexedSlices) for v in value.values):
            rows = self._on_each(all_gather, [v.values for v in value.values])
            indices = self._on_each(all_gather, [v.indices for v in value.values])
            found = [
                IndexedSlices(r, i, v.dense_shape)
                for r, i, v in zip(rows, indices, value.values, strict=True)
            ]
        else:
            found = self._on_each(_sums, [_dense(v) for v in value.values])
        reduced = dict(zip(value.devices, found, strict=True))
        copies = []
        # Whoever fetches one of them has all members come: the others wait for them.
        with control_dependencies([_operation(t) for t in found]):
            for name in where:
                with device(name):
                    total = _total([reduced.get(name, found[0])], reduce_op, add_n, size)
                copies.append(copy_to_device(total, name))
        return regroup(where, copies, Mirrored)

    def _on_each(self, collective: Callable[..., Any], values: Sequence[Any]) -> list[Any]:
        """What an op of the whole group gives each of this worker's devices."""
        size = len(values) * self._num_between_graph_workers
        if size == 1:
            return list(values)
        keys = self._collective_keys
        group, key = keys.get_group_key([v.device for v in values]), keys.get_op_instance_key()
        found = []
        for value in values:
            with device(value.device):
                found.append(collective(value, size, group, key))
        return found


def _sums(value: Any, size: int, group: int, key: int) -> Any:
    return all_reduce(value, size, group, key, "Add", "Id")


def reduce_non_distributed_value(
    reduce_op: Any, replicas: int, value: Any, destinations: Any
) -> Any:
    """A value that all replicas have in common, reduced: the mean is itself.

    Raises:
        ValueError: the sum over several replicas is asked for.
    """
    if isinstance(value, (int, float)) and value == 0:
        return 0
    if reduce_op is ReduceOp.MEAN:
        return value
    where = devices_from(destinations)
    if replicas != 1:
        raise ValueError(
            f"A non-DistributedValues value {value} cannot be reduced with the given reduce op "
            f"{reduce_op}."
        )
    return copy_to_device(value, where[0])


# ---------------------------------------------------------------- parts
def _per_replica(value: Any) -> Any:
    if isinstance(value, DistributedValues):
        return value
    if isinstance(value, (list, tuple)) or not hasattr(value, "device"):
        raise ValueError(
            f"Cannot convert `input_tensor` to a `PerReplica` object, got {value!r} but expected "
            "a tensor"
        )
    return PerReplica((value.device,), (value,))


def devices_from(destinations: Any) -> tuple[str, ...]:
    """The devices that are meant.

    Raises:
        ValueError: none is.
    """
    if isinstance(destinations, DistributedValues):
        return destinations.devices
    if isinstance(destinations, (Tensor, IndexedSlices, Variable)):
        destinations = destinations.device
    elif not isinstance(destinations, str):
        raise ValueError(
            "destinations must be one of a `DistributedValues` object, a tf.Variable object, or a "
            "device string."
        )
    if not destinations:
        raise ValueError("destinations can not be empty")
    return (device_util.resolve(destinations),)


def copy_to_device(value: Any, where: str) -> Any:
    """A tensor, or slices of one, on a device."""
    with device(where):
        if isinstance(value, IndexedSlices):
            shape = value.dense_shape
            return IndexedSlices(
                identity(value.values), identity(value.indices),
                None if shape is None else identity(shape),
            )  # fmt: skip
        return identity(value)


def _total(
    values: Sequence[Any], reduce_op: Any, add: Callable[[list[Any]], Any], count: int
) -> Any:
    """The sum, or the mean of so many, of values, slices of them if all are."""
    if reduce_op not in (ReduceOp.SUM, ReduceOp.MEAN):
        raise ValueError("`reduce_op` must be Reduce.SUM or Reduce.MEAN.")
    share = 1 if reduce_op is ReduceOp.SUM else count
    if all(isinstance(v, IndexedSlices) for v in values):
        rows = concat([v.values for v in values], 0)
        return IndexedSlices(
            rows if share == 1 else rows / share, concat([v.indices for v in values], 0),
            values[0].dense_shape,
        )  # fmt: skip
    total = add([_dense(v) for v in values])
    return total if share == 1 else total / share


def _operation(value: Any) -> Any:
    return value.values.op if isinstance(value, IndexedSlices) else value.op


def _dense(value: Any) -> Any:
    return identity(value) if isinstance(value, IndexedSlices) else value
