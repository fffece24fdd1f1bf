"""What replicas read: each batch of a data set in parts, or what an input function makes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Final, Self

from opdock.data.dataset import DatasetV2
from opdock.data.dataset_v1 import DatasetV1
from opdock.data.devices import MultiDeviceIterator
from opdock.distribute import device_util
from opdock.distribute.numpy_dataset import variables_of
from opdock.distribute.strategy import InputContext
from opdock.distribute.values import regroup
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.devicespec import DeviceSpec
from opdock.graph.nodes.operation import Operation
from opdock.graph.nodes.scopes import device
from opdock.graph.nodes.typespec import TensorSpec
from opdock.ops.array import shape
from opdock.ops.control import group
from opdock.util import nest

__all__ = ["DistributedDataset", "DistributedIterator", "InputExtended", "Worker", "workers_of"]

# Op types that batch; the second input is the size.
_BATCHES: Final = frozenset({
    "BatchDataset", "BatchDatasetV2", "PaddedBatchDataset", "PaddedBatchDatasetV2",
})  # fmt: skip
_MAPS_AND_BATCHES: Final = frozenset({"MapAndBatchDataset", "ExperimentalMapAndBatchDataset"})


@dataclasses.dataclass(frozen=True)
class Worker:
    """A machine that reads for the replicas on it.

    Attributes:
        name: the device that reads.
        devices: those of its replicas.
        remote: whether it is a task of a cluster.
    """

    name: str
    devices: tuple[str, ...]
    remote: bool = False


def workers_of(devices: Sequence[str]) -> tuple[Worker, ...]:
    """The machines that have some devices, in their order.

    Raises:
        ValueError: some devices are of tasks and some are not, or a task has no number.
    """
    tasks: dict[str, list[str]] = {}
    for name in devices:
        spec = DeviceSpec.from_string(name)
        local = spec.job in (None, "localhost")
        task = "" if local else DeviceSpec(job=spec.job, task=spec.task).to_string()
        tasks.setdefault(task, []).append(name)
    if "" in tasks:
        if len(tasks) > 1:
            raise ValueError("Remote device string must have job specified.")
        return (Worker(device_util.canonicalize("/device:CPU:0"), tuple(tasks[""])),)
    return tuple(Worker(name, tuple(found), remote=True) for name, found in tasks.items())


# ---------------------------------------------------------------- one worker
class _DatasetReader:
    """A worker's iterator over a data set, whose devices take turns."""

    def __init__(self, dataset: Any, worker: Worker) -> None:
        self._worker, self._dataset = worker, dataset
        with device(worker.name):
            self._iterator = MultiDeviceIterator(dataset, worker.devices, source_device=worker.name)

    def next(self) -> list[Any]:
        """An element for each device."""
        found = []
        for where in self._worker.devices:
            with device(where):
                found.append(self._iterator.get_next(where))
        return found

    def initialize(self) -> list[Operation]:
        """The operations that begin anew."""
        return [self._iterator.initializer]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)


class _FunctionReader:
    """A worker's function that makes an element at each call."""

    def __init__(self, fn: Callable[[], Any], worker: Worker) -> None:
        self._worker, self._fn = worker, fn

    def next(self) -> list[Any]:
        """An element for each device."""
        found = []
        for where in self._worker.devices:
            with device(where):
                found.append(self._fn())
        return found

    def initialize(self) -> list[Operation]:
        """There is nothing to begin anew."""
        return []


def _reader(made: Any, worker: Worker) -> Any:
    if isinstance(made, DatasetV2):
        return _DatasetReader(made, worker)
    if callable(made):
        return _FunctionReader(made, worker)
    raise ValueError("input_fn must return a tf.data.Dataset or a callable.")


# ---------------------------------------------------------------- all workers
class DistributedIterator:
    """What all workers read, as values of replicas.

    Args:
        workers: the workers.
        readers: one for each.
    """

    def __init__(self, workers: Sequence[Worker], readers: Sequence[Any]) -> None:
        self._workers, self._readers = workers, readers
        self._devices = tuple(d for worker in workers for d in worker.devices)

    def get_next(self, name: str | None = None) -> Any:
        """The next element of each replica."""
        found: list[Any] = []
        for worker, reader in zip(self._workers, self._readers, strict=True):
            with device(worker.name):
                found += reader.next()
        return regroup(self._devices, found)

    def initialize(self) -> Operation:
        """The operation that begins anew."""
        return group(*(op for reader in self._readers for op in reader.initialize()))

    @property
    def initializer(self) -> Operation:
        """The operation that begins anew."""
        return self.initialize()

    @property
    def output_classes(self) -> Any:
        """The classes of what an element of one replica is made of."""
        return self._readers[0].output_classes

    @property
    def output_shapes(self) -> Any:
        """Their shapes."""
        return self._readers[0].output_shapes

    @property
    def output_types(self) -> Any:
        """Their types."""
        return self._readers[0].output_types

    @property
    def element_spec(self) -> Any:
        """What an element of one replica is."""
        return self._readers[0].element_spec


class DistributedDataset:
    """A data set of each worker, whose elements its replicas take in turn.

    Args:
        workers: the workers.
        make: makes the data set of a worker, given its number.
    """

    def __init__(self, workers: Sequence[Worker], make: Callable[[int], Any]) -> None:
        self._workers, self._datasets = workers, []
        for i, worker in enumerate(workers):
            with device(worker.name):
                self._datasets.append(make(i))
        self.element_spec = self._datasets[0].element_spec

    def make_initializable_iterator(self) -> DistributedIterator:
        """An iterator, to be initialized before it is used."""
        pairs = zip(self._datasets, self._workers, strict=True)
        return DistributedIterator(self._workers, [_reader(d, w) for d, w in pairs])

    _make_initializable_iterator = make_initializable_iterator

    def make_one_shot_iterator(self) -> Any:
        """Refuses to.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            "Cannot create a one shot iterator. Please use `make_initializable_iterator()` instead."
        )

    _make_one_shot_iterator = make_one_shot_iterator

    def __iter__(self) -> Self:
        raise RuntimeError(
            "__iter__() is only supported inside of tf.function or when eager execution is enabled."
        )


class InputExtended:
    """The part of a strategy that reads.

    A subclass has `_workers`, and says how many replicas, and whether a batch is one of all.
    """

    _global_batch_size: Any
    _workers: tuple[Worker, ...]
    _num_replicas_in_sync: Any

    def _contexts(self) -> list[InputContext]:
        """What each worker's input function is told."""
        count = len(self._workers)
        return [InputContext(count, i, self._num_replicas_in_sync) for i in range(count)]

    def _share(self, worker: int) -> tuple[int, int]:
        """Among how many a data set is shared that all workers make, and which part one has."""
        return len(self._workers), worker

    def _experimental_distribute_dataset(self, dataset: Any) -> DistributedDataset:
        replicas = self._num_replicas_in_sync if self._global_batch_size else 1
        parts = in_parts(dataset, replicas)

        def of_worker(i: int) -> Any:
            count, number = self._share(i)
            return parts if count == 1 else parts.shard(count, number)

        return DistributedDataset(self._workers, of_worker)

    def _make_dataset_iterator(self, dataset: Any) -> DistributedIterator:
        return self._experimental_distribute_dataset(dataset).make_initializable_iterator()

    def _experimental_distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any]
    ) -> DistributedDataset:
        contexts = self._contexts()
        return DistributedDataset(self._workers, lambda i: dataset_fn(contexts[i]))

    def _make_input_fn_iterator(
        self, input_fn: Callable[[InputContext], Any], replication_mode: Any
    ) -> DistributedIterator:
        readers = []
        for worker, told in zip(self._workers, self._contexts(), strict=True):
            with device(worker.name):
                readers.append(_reader(input_fn(told), worker))
        return DistributedIterator(self._workers, readers)

    def _experimental_make_numpy_dataset(self, numpy_input: Any, session: Any) -> Any:
        kept = variables_of(numpy_input, session, self._workers[0].name)
        return DatasetV1.from_tensor_slices(kept)


# ---------------------------------------------------------------- parts of batches
def in_parts(dataset: Any, replicas: int) -> Any:
    """A data set of the parts that replicas have of each batch of another one.

    Raises:
        ValueError: its elements are not batches, or their number is only known when it runs.
    """
    if replicas == 1:
        return dataset
    size = _batch_size(dataset._variant_tensor.op)
    if size is None:
        raise ValueError(
            "Call the `batch` method on the input Dataset in order to be able to split your input "
            f"across {replicas} replicas.\n Please the tf.distribute.Strategy guide."
        )
    part = -(-size // replicas)
    found = dataset.unbatch().batch(part)
    if all(isinstance(spec, TensorSpec) for spec in nest.flatten(dataset.element_spec)):
        found = dataset.flat_map(lambda *batch: _slices(batch, part))
    return found.prefetch(replicas)


def _slices(batch: tuple[Any, ...], part: int) -> Any:
    rows = shape(nest.flatten(batch)[0], out_type="int64")[0]
    whole = batch[0] if len(batch) == 1 else batch
    return DatasetV1.range(0, rows, part).map(
        lambda begin: nest.map_structure(lambda t: t[begin : begin + part], whole)
    )


def _batch_size(op: Operation) -> int | None:
    """How many elements a batch has that a data set gives, None where it gives no batches."""
    if op.type in _BATCHES or op.type in _MAPS_AND_BATCHES:
        index = 1 if op.type in _BATCHES else -3
        found = constant_value(op.inputs[index])
        return None if found is None else int(found)
    for source in op.inputs:
        if source.dtype.name == "variant":
            size = _batch_size(source.op)
            if size is not None:
                return size
    return None
